"""The CUDA driver through ctypes, for `gpu.py`: events, memory, and what the device is called."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

_MAJOR, _MINOR, _MULTIPROCESSORS = 75, 76, 16
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, …_MINOR, …_MULTIPROCESSOR_COUNT."""
_TIMING: Final = 0
"""CU_EVENT_DEFAULT: an event that takes the time."""


class Failed(RuntimeError):
    """A call of the driver that did not give CUDA_SUCCESS."""


@dataclass(frozen=True, slots=True)
class Driver:
    """The driver, with the primary context of device 0 current on this thread."""

    library: ctypes.CDLL
    device: int

    @classmethod
    def find(cls) -> Driver | str:
        """The driver, or why there is none to measure with."""
        try:
            library = ctypes.CDLL("libcuda.so.1")
        except OSError:
            return "no CUDA driver (libcuda.so.1)"
        count, device, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
        found = library.cuInit(0) or library.cuDeviceGetCount(ctypes.byref(count))
        if found or not count.value:
            return f"the CUDA driver finds no device (its result is {found})"
        driver = cls(library, device.value)
        driver.call("cuDeviceGet", ctypes.byref(device), 0)
        driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        driver.call("cuCtxSetCurrent", context)
        return cls(library, device.value)

    def call(self, name: str, *args: Any) -> None:
        """Calls a function of the driver.  Failed, with its name for what went wrong."""
        code = self.library[name](*args)
        if code:
            text = ctypes.c_char_p(b"an error without a name")
            self.library.cuGetErrorName(code, ctypes.byref(text))
            raise Failed(f"{name}: {(text.value or b'').decode()} ({code})")

    def address(self, name: str) -> int:
        """Where a function of the driver is."""
        return ctypes.cast(self.library[name], ctypes.c_void_p).value or 0

    def synchronize(self) -> None:
        """Waits for all that was launched."""
        self.call("cuCtxSynchronize")

    # ---- memory and code; it is held as long as the process ----

    def allocate(self, size: int) -> int:
        """New memory, of zeros."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        self.call("cuMemsetD8_v2", address, ctypes.c_ubyte(0), ctypes.c_size_t(size))
        return address.value

    def free(self, address: int) -> None:
        """Gives memory back."""
        self.call("cuMemFree_v2", ctypes.c_uint64(address))

    def copy(self, target: int, source: int, size: int) -> None:
        """Begins to copy from device memory to device memory."""
        places = ctypes.c_uint64(target), ctypes.c_uint64(source)
        self.call("cuMemcpyDtoDAsync_v2", *places, ctypes.c_size_t(size), None)

    def kernel(self, ptx: str, name: str) -> int:
        """The handle of a kernel, a CUfunction."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), ptx.encode() + b"\0")
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function.value or 0

    # ---- time ----

    def timer(self) -> Callable[[Callable[[], object], int], float]:
        """What gives the seconds that the device takes for one of so many calls, by two events on
        the default stream."""
        begin, end = ctypes.c_void_p(), ctypes.c_void_p()
        for event in (begin, end):
            self.call("cuEventCreate", ctypes.byref(event), _TIMING)

        def seconds(work: Callable[[], object], times: int) -> float:
            elapsed = ctypes.c_float()
            self.call("cuEventRecord", begin, None)
            for _ in range(times):
                work()
            self.call("cuEventRecord", end, None)
            self.call("cuEventSynchronize", end)
            self.call("cuEventElapsedTime", ctypes.byref(elapsed), begin, end)
            return elapsed.value / 1e3 / times

        return seconds

    # ---- names ----

    def facts(self) -> dict[str, str]:
        """The device and the driver."""
        name, version = ctypes.create_string_buffer(256), ctypes.c_int()
        self.call("cuDeviceGetName", name, 256, self.device)
        self.call("cuDriverGetVersion", ctypes.byref(version))
        major, minor = self._attribute(_MAJOR), self._attribute(_MINOR)
        return {
            "device": name.value.decode(),
            "compute capability": f"{major}.{minor}",
            "multiprocessors": str(self._attribute(_MULTIPROCESSORS)),
            "driver": _driver_version(),
            "CUDA of the driver": f"{version.value // 1000}.{version.value % 1000 // 10}",
        }

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, self.device)
        return value.value


def _driver_version() -> str:
    """As nvidia-smi shows it; NVML knows it, the driver's own interface does not."""
    text = ctypes.create_string_buffer(96)
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
        if library.nvmlInit_v2() or library.nvmlSystemGetDriverVersion(text, 96):
            return "unknown"
        library.nvmlShutdown()
    except (OSError, AttributeError):
        return "unknown"
    return text.value.decode()

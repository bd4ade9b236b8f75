"""libcuda from Python: loads an image once and launches its kernels, for calls without generated
code.

Functions, structs and numbers are from the reference of the CUDA Driver API. The first launch opens
libcuda, so that modules can be loaded on a machine without a GPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final

from ferrule.runtime.abi import LAUNCH_CONFIG, DeviceType
from ferrule.runtime.devices import EMULATE
from ferrule.runtime.errors import CudaError
from ferrule.runtime.forks import ForkLock
from ferrule.runtime.ptx.arguments import Packed

_LIBRARY: Final = "libcuda.so.1"
# CUDA_ERROR_INVALID_CONTEXT: this thread has no current context.
_INVALID_CONTEXT: Final = 201


_C_TYPES: Final[dict[str, Any]] = {"i32": ctypes.c_uint32, "ptr": ctypes.c_void_p}


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = tuple((name, _C_TYPES[kind]) for name, kind in LAUNCH_CONFIG)


STATE: Final = ("kernel", "get_device", "launch")
"""The pointers through which machine code launches a kernel: its handle (null until the image is
loaded), and the driver's cuCtxGetDevice and cuLaunchKernelEx."""


class KernelState(ctypes.Structure):
    """A `STATE`, which Python fills."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in STATE)


class Image:
    """An image in the driver: loaded on the first launch, for the life of the process."""

    def __init__(self, image: bytes, kernels: Sequence[str]) -> None:
        # cuLibraryLoadData reads PTX text up to a zero byte. A cubin knows its own length.
        self._image: Final = image + b"\0"
        self.states: Final = {name: KernelState() for name in kernels}
        self._lock: Final = ForkLock()
        self._driver: ctypes.CDLL | None = None
        self._contexts: Final[dict[int, ctypes.c_void_p]] = {}

    def launch(self, kernel: str, packed: Packed) -> None:
        """Launch a kernel on the device of its tensors, else on the current, else the first one.

        It uses the caller's current stream on this device. CudaError if the driver is missing or
        refuses a call.
        """
        driver = self._opened(f"in the launch of {kernel}")
        base, sizes = ctypes.addressof(packed.data), packed.sizes
        addresses = [base + start for start in packed.starts]
        pointers = (ctypes.c_void_p * max(1, len(addresses)))(*addresses)
        with self._current(driver, packed.device, kernel) as ordinal:
            config = LaunchConfig(*sizes.grid, *sizes.block, sizes.shared_bytes, _stream(ordinal))
            function = ctypes.c_void_p(self.states[kernel].kernel)
            arguments = (ctypes.byref(config), function, pointers, None)
            _call(driver, kernel, "cuLaunchKernelEx", *arguments)

    def _opened(self, doing: str) -> ctypes.CDLL:
        with self._lock:
            if self._driver is None:
                self._driver = self._open(doing)
            return self._driver

    def _open(self, doing: str) -> ctypes.CDLL:
        try:
            driver = ctypes.CDLL(_LIBRARY)
        except OSError as error:
            raise CudaError(
                f"the CUDA driver cannot be loaded {doing}: {error}; "
                f"{_LIBRARY} comes with the NVIDIA driver: install that; without one, {EMULATE}"
            ) from None
        kernel = doing.rpartition(" ")[2]
        _call(driver, kernel, "cuInit", 0)
        library = ctypes.c_void_p()
        options = (None, None, 0, None, None, 0)
        _call(driver, kernel, "cuLibraryLoadData", ctypes.byref(library), self._image, *options)
        found = {name: ctypes.c_void_p() for name in self.states}
        for name, place in found.items():
            arguments = (ctypes.byref(place), library, name.encode())
            _call(driver, name, "cuLibraryGetKernel", *arguments)
        self._tell(driver, found)
        return driver

    def _tell(self, driver: ctypes.CDLL, found: Mapping[str, ctypes.c_void_p]) -> None:
        """Fill the states; the kernel's handle comes last, because machine code tests only it."""
        for state in self.states.values():
            state.get_device = ctypes.cast(driver.cuCtxGetDevice, ctypes.c_void_p).value
            state.launch = ctypes.cast(driver.cuLaunchKernelEx, ctypes.c_void_p).value
        with Lock():  # a memory barrier: other threads see the writes above before the one below
            pass
        for name, state in self.states.items():
            state.kernel = found[name].value

    @contextmanager
    def _current(self, driver: ctypes.CDLL, device: int | None, kernel: str) -> Iterator[int]:
        """Make a context of the device current for the block; yields the device's ordinal."""
        current = ctypes.c_int(-1)
        status = driver.cuCtxGetDevice(ctypes.byref(current))
        if status == 0 and device in (None, current.value):
            yield current.value
            return
        # A thread that has not used CUDA yet has no context, which is no error.
        if status not in (0, _INVALID_CONTEXT):
            raise _error(driver, kernel, "cuCtxGetDevice", status)
        wanted = 0 if device is None else device
        _call(driver, kernel, "cuCtxPushCurrent_v2", self._context(driver, wanted, kernel))
        try:
            yield wanted
        finally:
            driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))

    def _context(self, driver: ctypes.CDLL, device: int, kernel: str) -> ctypes.c_void_p:
        with self._lock:
            if device not in self._contexts:
                context = ctypes.c_void_p()
                arguments = (ctypes.byref(context), device)
                _call(driver, kernel, "cuDevicePrimaryCtxRetain", *arguments)
                self._contexts[device] = context
            return self._contexts[device]


def _call(driver: ctypes.CDLL, kernel: str, name: str, *arguments: Any) -> None:
    status = getattr(driver, name)(*arguments)
    if status != 0:
        raise _error(driver, kernel, name, status)


def _error(driver: ctypes.CDLL, kernel: str, name: str, status: int) -> CudaError:
    code, text = ctypes.c_char_p(), ctypes.c_char_p()
    driver.cuGetErrorName(status, ctypes.byref(code))
    driver.cuGetErrorString(status, ctypes.byref(text))
    known = (code.value or b"an unknown error").decode()
    words = (text.value or b"the driver has no text for it").decode()
    return CudaError(f"{name} failed with {known} ({status}: {words}) in the launch of {kernel}")


def _stream(device: int) -> int | None:
    """The caller's current stream on a device."""
    from ferrule.runtime.host import libtvm_ffi

    ask = libtvm_ffi().TVMFFIEnvGetStream
    ask.restype = ctypes.c_void_p
    found: int | None = ask(int(DeviceType.CUDA), device)
    return found

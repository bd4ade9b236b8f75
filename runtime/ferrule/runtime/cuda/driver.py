"""The CUDA driver for `fe.cuda`: found, its errors raised, a device's context current for a while.

The library is looked for on the first call, and not before. A context that was current before a
call is so afterwards.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from ferrule.runtime.devices import EMULATE
from ferrule.runtime.errors import CudaError

LIBRARY: Final = "libcuda.so.1"

# CUDA_ERROR_DEINITIALIZED, CUDA_ERROR_NO_DEVICE and CUDA_ERROR_INVALID_CONTEXT of cuda.h.
_DEINITIALIZED, _NO_DEVICE, _INVALID_CONTEXT = 4, 100, 201
_NONE_TO_USE: Final = (_DEINITIALIZED, _NO_DEVICE)


def library() -> ctypes.CDLL:
    """libcuda; CudaError where the process finds none."""
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise CudaError(
            f"the CUDA driver cannot be loaded: {error}; {LIBRARY} comes with the NVIDIA driver: "
            f"install that; without one, {EMULATE}"
        ) from None


def call(name: str, *arguments: Any) -> None:
    """Call a function of the driver; CudaError with its words where it refuses."""
    cuda = library()
    status = getattr(cuda, name)(*arguments)
    if status != 0:
        raise refused(cuda, name, status)


def refused(cuda: ctypes.CDLL, name: str, status: int) -> CudaError:
    """The exception for a result other than success."""
    code, text = ctypes.c_char_p(), ctypes.c_char_p()
    cuda.cuGetErrorName(status, ctypes.byref(code))
    cuda.cuGetErrorString(status, ctypes.byref(text))
    if status in _NONE_TO_USE:
        known = (code.value or b"CUDA_ERROR_DEINITIALIZED").decode()
        return CudaError(f"there is no GPU: {name} failed with {known} ({status}); {EMULATE}")
    known = (code.value or b"an unknown error").decode()
    words = (text.value or b"the driver has no text for it").decode(errors="replace")
    return CudaError(f"{name} failed with {known} ({status}: {words})")


def device_count() -> int:
    """How many GPUs there are; 0 where there is no driver or it has none."""
    try:
        cuda = library()
    except CudaError:
        return 0
    count = ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
        return 0
    return count.value


def check_device(device: int) -> int:
    """A device's number; TypeError or ValueError if it is none, CudaError without any GPU."""
    if isinstance(device, bool) or not isinstance(device, int):
        raise TypeError(f"device must be an int, but got {device!r}")
    call("cuInit", 0)
    count = device_count()
    if not 0 <= device < count:
        raise ValueError(f"device must be in [0, {count}), but got {device}")
    return device


@contextmanager
def on_device(device: int) -> Iterator[None]:
    """The device's primary context is current: the caller's own where that is of the device."""
    call("cuInit", 0)
    current = ctypes.c_int(-1)
    status = library().cuCtxGetDevice(ctypes.byref(current))
    if status == 0 and current.value == device:
        yield
        return
    context = ctypes.c_void_p()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    try:
        call("cuCtxPushCurrent_v2", context)
        try:
            yield
        finally:
            # Not with `call`: an exception here would hide the one of the block.
            library().cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
    finally:
        library().cuDevicePrimaryCtxRelease_v2(device)


class Hold:
    """The primary context of a device, held for something that is in it."""

    def __init__(self, device: int) -> None:
        self.device = check_device(device)
        self.context = ctypes.c_void_p()
        call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)

    def release(self, destroy: str, handle: ctypes.c_void_p) -> None:
        """Destroy the handle; does nothing if the context or the driver is gone already."""
        cuda = library()
        if cuda.cuCtxPushCurrent_v2(self.context) == 0:
            getattr(cuda, destroy)(handle)
            cuda.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
            cuda.cuDevicePrimaryCtxRelease_v2(self.device)


def synchronize(device: int = 0) -> None:
    """Wait for everything that a device was given."""
    with on_device(check_device(device)):
        call("cuCtxSynchronize")

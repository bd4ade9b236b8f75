"""Calls with arrays of CuPy run on CuPy's current stream, as those with torch's tensors on torch's.

tvm-ffi takes such an array through DLPack's Python protocol, which says nothing of streams; its
default is that the array's device waits until the data is there for the default stream.  Here
nobody waits: what runs on CuPy's own stream comes after what CuPy has put there.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any, Final

import tvm_ffi

from ferrule.runtime.abi import DeviceType
from ferrule.runtime.engine import libtvm_ffi

_UNSYNCHRONISED: Final = -1
"""The stream with which a producer of DLPack's protocol does not wait for anything."""


class OnStream(tuple[Any, ...]):
    """Arguments during whose life a device's env stream is another one.

    The call lets go of them when it has ended, on every way; so the former stream is current again.
    """

    def __new__(cls, values: Sequence[Any], device: int, stream: int) -> OnStream:
        """Makes the stream, a `cudaStream_t`, the current one of the CUDA device.

        Raises RuntimeError where tvm-ffi refuses it.
        """
        self = super().__new__(cls, values)
        self._device, self._former = device, None
        self._former = _exchange(device, stream)
        return self

    def __del__(self) -> None:
        if self._former is not None:
            _exchange(self._device, self._former)

    _device: int
    _former: int | None


def _exchange(device: int, stream: int) -> int:
    """Makes a stream the device's current one, and gives the one that was."""
    former = ctypes.c_void_p()
    library, kind = libtvm_ffi(), int(DeviceType.CUDA)
    given = ctypes.c_void_p(stream)
    if library.TVMFFIEnvSetStream(kind, device, given, ctypes.byref(former)) != 0:
        raise RuntimeError(f"tvm-ffi refused stream {stream:#x} for cuda:{device}")
    return former.value or 0


class _Unsynchronised:
    """An array of CuPy, whose stream nobody is to wait for."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()  # type: ignore[no-any-return]

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**{**options, "stream": _UNSYNCHRONISED})


def on_current_stream(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a call, on the stream that is current for CuPy where one is an array of it.

    The device is that of the first such array.
    """
    cupy = sys.modules.get("cupy")
    kind = getattr(cupy, "ndarray", None)
    if cupy is None or kind is None or not any(isinstance(value, kind) for value in values):
        return values
    device = next(value.device.id for value in values if isinstance(value, kind))
    converted = [
        tvm_ffi.from_dlpack(_Unsynchronised(value)) if isinstance(value, kind) else value
        for value in values
    ]
    return OnStream(converted, device, cupy.cuda.get_current_stream(device).ptr)

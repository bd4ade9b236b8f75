"""Runs calls with CuPy arrays on CuPy's current stream, as calls with torch tensors on torch's.

tvm-ffi takes a CuPy array through DLPack's Python protocol, without a stream.  By default the
protocol then makes the default stream wait for the array's data.  Here this is not needed: work on
CuPy's own stream runs after all work that CuPy put there before.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any, Final

import tvm_ffi

from ferrule.runtime.abi import DeviceType
from ferrule.runtime.host import libtvm_ffi

_UNSYNCHRONISED: Final = -1
"""The stream with which a producer of DLPack's protocol does not wait for anything."""


class OnStream(tuple[Any, ...]):
    """Arguments of a call; while this tuple lives, a device's env stream is another one.

    The call always releases the tuple at its end, also after an error.  Then the former stream is
    current again.
    """

    def __new__(cls, values: Sequence[Any], device: int, stream: int) -> OnStream:
        """Make the stream, a `cudaStream_t`, the current stream of the CUDA device.

        Raises RuntimeError if tvm-ffi refuses it.
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
    """Make a stream the device's current one; return the former stream."""
    former = ctypes.c_void_p()
    library, kind = libtvm_ffi(), int(DeviceType.CUDA)
    given = ctypes.c_void_p(stream)
    if library.TVMFFIEnvSetStream(kind, device, given, ctypes.byref(former)) != 0:
        raise RuntimeError(f"tvm-ffi refused stream {stream:#x} for cuda:{device}")
    return former.value or 0


class _Unsynchronised:
    """A CuPy array that DLPack's protocol exports without synchronisation of streams."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()  # type: ignore[no-any-return]

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**{**options, "stream": _UNSYNCHRONISED})


def on_current_stream(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a call; with CuPy's current stream as env stream if one is a CuPy array.

    The stream is the current one on the device of the first CuPy array.
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

"""Arrays on a GPU: made, copied, and brought back as NumPy's.

An array is a tensor of tvm-ffi. Copies wait for all that the device was given before, and are done
when they return.
"""

from __future__ import annotations

import ctypes
import importlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrule import specs
from ferrule.runtime.abi import DeviceType
from ferrule.runtime.cuda.driver import call, on_device
from ferrule.runtime.cuda.tensors import new_tensor
from ferrule.runtime.values.views import OBJECT_HEADER, DLTensor, View, view_of
from ferrule.specs.dtypes import as_dtype

Shape = int | Sequence[int]


def array(values: Any, dtype: Any = None, *, device: int = 0) -> Any:
    """A copy on a GPU of an array, of nested lists of numbers, or of any tensor of the CPU.

    It is compact. `dtype`: what the elements become, by NumPy's rules; else they keep theirs, and
    Python's floats are float64, as in NumPy. TypeError for values that no tensor can have.
    """
    host = _on_host(values, dtype)
    made = new_tensor(host.shape, _dtype_of(host.dtype), device)
    _copy(made, host, device)
    return made


def empty(shape: Shape, dtype: Any = "float32", *, device: int = 0) -> Any:
    """A compact array whose elements are whatever is there.

    `dtype`: of ferrule (`fe.Float32`), its name, or NumPy's.
    """
    return new_tensor(_sizes(shape), _dtype_of(dtype), device)


def zeros(shape: Shape, dtype: Any = "float32", *, device: int = 0) -> Any:
    """A compact array of zeros."""
    made = empty(shape, dtype, device=device)
    view = view_of(made)
    size = _bytes(view)
    if size:
        with on_device(device):
            call("cuMemsetD8_v2", ctypes.c_uint64(view.address), 0, ctypes.c_size_t(size))
    return made


def empty_like(tensor: Any, *, device: int | None = None) -> Any:
    """A compact array of the shape and dtype of another tensor, on its GPU unless one is named."""
    view = view_of(tensor)
    where = device if device is not None else (_ordinal(view) or 0)
    return new_tensor(view.shape, view.dtype, where)


def to_numpy(tensor: Any) -> np.ndarray[Any, Any]:
    """A tensor's elements as a new NumPy array, from a GPU or the CPU.

    A dtype that NumPy lacks, such as bfloat16, is that of the package ml_dtypes; where it is not
    installed, TypeError.
    """
    view = view_of(tensor)
    kind = _numpy_of(view.dtype)
    # One copy takes all bytes from the first element to the last. The gaps go at the end, on the
    # CPU.
    span = _span(view) * kind.itemsize
    held = np.empty(span, np.uint8)
    device = _ordinal(view)
    if span and device is None:
        ctypes.memmove(held.ctypes.data, view.address, span)
    elif span:
        with on_device(device or 0):
            size = ctypes.c_size_t(span)
            to, source = ctypes.c_void_p(held.ctypes.data), ctypes.c_uint64(view.address)
            call("cuMemcpyDtoH_v2", to, source, size)
    strides = [step * kind.itemsize for step in view.strides]
    shown: np.ndarray[Any, Any] = np.ndarray(view.shape, kind, held, strides=strides)
    made: np.ndarray[Any, Any] = shown.copy()
    return made


def copy(to: Any, source: Any) -> None:
    """Copy all elements of one tensor into another of the same shape and dtype.

    Each may be on a GPU or the CPU, and must be compact. ValueError where they differ or have gaps,
    and for a destination that cannot be written.
    """
    into, outof = view_of(to), view_of(source)
    if (into.shape, into.dtype) != (outof.shape, outof.dtype):
        raise ValueError(
            f"copy needs two tensors of one shape and dtype, but got {into.shape} "
            f"{into.dtype.name} and {outof.shape} {outof.dtype.name}"
        )
    if into.read_only:
        raise ValueError("the destination cannot be written")
    for view, what in ((into, "destination"), (outof, "source")):
        if not _is_compact(view):
            raise ValueError(f"the {what} has gaps: its strides are {view.strides}")
    # The strides of a single element mean nothing.
    if into.strides != outof.strides and math.prod(into.shape) > 1:
        raise ValueError(f"the strides differ: {into.strides} and {outof.strides}")
    _copy_views(into, outof)


# ---- copies ----


def _copy(to: Any, host: np.ndarray[Any, Any], device: int) -> None:
    if host.nbytes:
        with on_device(device):
            place, source = view_of(to).address, ctypes.c_void_p(host.ctypes.data)
            size = ctypes.c_size_t(host.nbytes)
            call("cuMemcpyHtoD_v2", ctypes.c_uint64(place), source, size)


def _copy_views(to: View, source: View) -> None:
    size = _bytes(to)
    if not size:
        return
    devices = _ordinal(to), _ordinal(source)
    if devices == (None, None):
        ctypes.memmove(to.address, source.address, size)
        return
    with on_device(devices[0] if devices[0] is not None else devices[1] or 0):
        ends = ctypes.c_uint64(to.address), ctypes.c_uint64(source.address)
        call("cuMemcpy", *ends, ctypes.c_size_t(size))


# ---- sizes and dtypes ----


def _on_host(values: Any, dtype: Any) -> np.ndarray[Any, Any]:
    wanted = None if dtype is None else _numpy_of(_dtype_of(dtype))
    if not isinstance(values, (np.ndarray, np.generic)) and hasattr(values, "__dlpack__"):
        values = to_numpy(values)
    made = np.array(values, wanted, order="C")
    if made.dtype == object:
        raise TypeError(f"an array needs numbers, but got {type(values).__name__} of objects")
    return made


def _sizes(shape: Shape) -> tuple[int, ...]:
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for size in sizes:
        # `True` is an int in Python, but as a size it is a mistake.
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)):
            raise TypeError(f"shape must be ints, but got {shape!r}")
        if size < 0:
            raise ValueError(f"shape must not be negative, but got {shape!r}")
    return tuple(int(size) for size in sizes)


def _dtype_of(dtype: Any) -> specs.DType:
    """ferrule's dtype for one of its own, a name, or NumPy's."""
    if isinstance(dtype, (specs.DType, str)):
        return as_dtype(dtype)
    try:
        name = np.dtype(dtype).name
    except TypeError:
        raise TypeError(
            f"dtype must be a dtype of ferrule or NumPy, or a name, but got {dtype!r}"
        ) from None
    return as_dtype(name)


def _numpy_of(dtype: specs.DType) -> np.dtype[Any]:
    """NumPy's dtype of the same name, or that of ml_dtypes."""
    try:
        return np.dtype(dtype.name)
    except TypeError:
        pass
    found: Any
    try:
        found = getattr(importlib.import_module("ml_dtypes"), dtype.name, None)
    except ImportError:
        found = None
    if found is None:
        raise TypeError(f"NumPy has no {dtype.name}; for some dtypes the package ml_dtypes has it")
    made: np.dtype[Any] = np.dtype(found)
    return made


def _ordinal(view: View) -> int | None:
    """The GPU that a tensor is on; None for the CPU. ValueError for any other device."""
    raw = DLTensor.from_address(view.tensor.__chandle__() + OBJECT_HEADER)
    if raw.device_type in (DeviceType.CPU, DeviceType.CUDA_HOST):
        return None
    if raw.device_type not in (DeviceType.CUDA, DeviceType.CUDA_MANAGED):
        raise ValueError(f"a tensor must be on the CPU or a GPU of CUDA, but is on {view.device}")
    return int(raw.device_id)


def _bytes(view: View) -> int:
    return (math.prod(view.shape) * view.dtype.bits + 7) // 8


def _span(view: View) -> int:
    """Elements from the first to the last."""
    if 0 in view.shape:
        return 0
    if any(step < 0 for step in view.strides):
        raise ValueError(f"the strides must not be negative, but are {view.strides}")
    return 1 + sum((n - 1) * step for n, step in zip(view.shape, view.strides, strict=True))


def _is_compact(view: View) -> bool:
    return 0 in view.shape or (
        all(step >= 0 for step in view.strides) and _span(view) == math.prod(view.shape)
    )

"""Copies of tensors of the CPU in the memory of a GPU, real or emulated, through its driver alone.

Arrays of NumPy, tensors of PyTorch and of tvm-ffi: each gets memory that ends where its own does,
so that whoever checks accesses sees one behind it.
"""

from __future__ import annotations

import copy
import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import tvm_ffi
from cuda_device import forged_at

import ferrule as fe
from ferrule.runtime.values.views import OBJECT_HEADER, DLTensor, view_of

ALIGNMENT = 256
"""Of what the driver allocates."""

WORD = 4
"""Bytes that memory is a multiple of: atomics on 2 bytes touch the word around them."""


@cache
def _primary() -> tuple[ctypes.CDLL, ctypes.c_void_p]:
    """The driver, and the primary context of device 0."""
    driver, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    require(driver.cuInit(0), "cuInit")
    require(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "cuDevicePrimaryCtxRetain")
    return driver, context


def forget() -> None:
    """Ask for the driver again: another GPU is emulated."""
    _primary.cache_clear()


def _driver() -> ctypes.CDLL:
    """The driver, with the context current on this thread."""
    driver, context = _primary()
    require(driver.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    return driver


def require(code: int, what: str) -> None:
    """AssertionError unless the driver's result is CUDA_SUCCESS."""
    if code == 0:
        return
    words = ctypes.c_char_p()
    _primary()[0].cuGetErrorString(code, ctypes.byref(words))
    raise AssertionError(f"{what}: the CUDA driver's result is {code}: {words.value!r}")


def root(array: Any) -> Any:
    """The array whose memory a view shows."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


@dataclass(frozen=True, slots=True)
class Place:
    """Memory of the CPU: what holds it, where it is, and whether it may be written."""

    owner: Any
    start: int
    size: int
    writable: bool = True


def place_of(value: Any) -> Place:
    """The memory that a tensor shows a part of."""
    if isinstance(value, np.ndarray):
        owner = root(value)
        low, high = bounds(owner)
        return Place(owner, low, high - low, owner.flags.writeable)
    if isinstance(value, tvm_ffi.Tensor):
        raw = _raw(value)
        return Place(value, int(raw.data + raw.byte_offset), _size(raw))
    storage = value.untyped_storage()
    return Place(value, storage.data_ptr(), storage.nbytes())


def bounds(array: Any) -> tuple[int, int]:
    """The first address of an array's memory and the first behind it."""
    start = array.ctypes.data
    if not array.size:
        return start, start
    ways = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)]
    low = start + sum(way for way in ways if way < 0)
    return low, start + sum(way for way in ways if way > 0) + array.itemsize


def _raw(tensor: Any) -> DLTensor:
    """What a tensor of tvm-ffi says of itself."""
    return DLTensor.from_address(tensor.__chandle__() + OBJECT_HEADER)


def _size(raw: DLTensor) -> int:
    """Bytes from the first element to the last, which no stride goes back from."""
    shape = raw.shape[: raw.ndim] if raw.ndim else []
    strides = raw.strides[: raw.ndim] if raw.ndim else []
    bits = (raw.dtype >> 8 & 0xFF) * (raw.dtype >> 16)
    last = sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    return 0 if 0 in shape else (last * bits + bits + 7) // 8


@dataclass(frozen=True, slots=True)
class Block:
    """The memory of a tensor on the device: all of it, also what a view leaves out."""

    host: Place
    address: int
    allocated: int

    @classmethod
    def of(cls, host: Place) -> Block:
        """A copy, as well aligned as the memory of the CPU, that ends where that does."""
        start, shift = ctypes.c_uint64(), host.start % ALIGNMENT
        room = max(WORD, -(-(shift + host.size) // WORD) * WORD)
        require(_driver().cuMemAlloc_v2(ctypes.byref(start), ctypes.c_size_t(room)), "cuMemAlloc")
        block = cls(host, start.value + shift, start.value)
        place = ctypes.c_uint64(block.address)
        block._copy("cuMemcpyHtoD_v2", place, ctypes.c_void_p(host.start))
        return block

    def view(self, value: Any) -> Any:
        """The tensor on the GPU that lies in its memory as this one lies in the CPU's."""
        held = view_of(value)
        raw = _raw(held.tensor)
        shape = tuple(raw.shape[: raw.ndim]) if raw.ndim else ()
        strides = tuple(raw.strides[: raw.ndim]) if raw.ndim else ()
        offset = held.address - self.host.start if 0 not in shape else 0
        return forged_at(self.address + offset, shape, strides, raw.dtype)

    def back(self) -> None:
        """Into the tensor, as far as it may be written."""
        if self.host.writable:
            source = ctypes.c_uint64(self.address)
            self._copy("cuMemcpyDtoH_v2", ctypes.c_void_p(self.host.start), source)

    def free(self) -> None:
        """Gives the memory back."""
        require(_driver().cuMemFree_v2(ctypes.c_uint64(self.allocated)), "cuMemFree")

    def _copy(self, name: str, target: Any, source: Any) -> None:
        if self.host.size:
            require(_driver()[name](target, source, ctypes.c_size_t(self.host.size)), name)


@contextmanager
def on_device(values: Any) -> Iterator[Any]:
    """The same values with tensors on the GPU for those of the CPU, in tuples, lists, dicts too.

    Behind the block the tensors of the CPU are what those are then.
    """
    blocks: dict[tuple[int, int], Block] = {}
    try:
        yield _changed(values, lambda value: _moved(value, blocks))
        require(_driver().cuCtxSynchronize(), "cuCtxSynchronize")
        for block in blocks.values():
            block.back()
    finally:
        for block in blocks.values():
            block.free()


def _moved(value: Any, blocks: dict[tuple[int, int], Block]) -> Any:
    host = place_of(value)
    key = host.start, host.size
    if key not in blocks:
        blocks[key] = Block.of(host)
    return blocks[key].view(value.detach() if hasattr(value, "detach") else value)


def hosts(values: Any) -> list[Any]:
    """The tensors of the CPU among these, in their order."""
    found: list[Any] = []
    _changed(values, found.append)
    return found


def as_array(value: Any) -> Any:
    """A tensor of the CPU as an array of NumPy."""
    if isinstance(value, np.ndarray):
        return value
    return fe.cuda.to_numpy(value.detach() if hasattr(value, "detach") else value)


def copied(values: Any) -> Any:
    """The same values with copies of tensors of the CPU, also of those that know no deep copy."""
    return _changed(values, _copied)


def _copied(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return copy.deepcopy(value)
    if isinstance(value, tvm_ffi.Tensor):
        return tvm_ffi.from_dlpack(np.from_dlpack(value).copy(order="K"))
    return value.detach().clone()


def _changed(value: Any, change: Any) -> Any:
    torch = sys.modules.get("torch")
    match value:
        case np.ndarray():
            return change(value)
        case tvm_ffi.Tensor():
            return change(value) if _raw(value).device_type == 1 else value
        case tuple() if hasattr(value, "_fields"):
            return type(value)(*(_changed(item, change) for item in value))
        case tuple() | list():
            return type(value)(_changed(item, change) for item in value)
        case dict():
            return {key: _changed(item, change) for key, item in value.items()}
    if torch is not None and isinstance(value, torch.Tensor) and value.device.type == "cpu":
        return change(value)
    return value

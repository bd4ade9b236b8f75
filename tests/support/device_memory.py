"""Copies of NumPy arrays in the memory of a real GPU, through the CUDA driver alone."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from cuda_device import forged

ALIGNMENT = 256
"""Of what the driver allocates."""


@cache
def _primary() -> tuple[ctypes.CDLL, ctypes.c_void_p]:
    """The driver, and the primary context of device 0."""
    driver, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    require(driver.cuInit(0), "cuInit")
    require(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "cuDevicePrimaryCtxRetain")
    return driver, context


def _driver() -> ctypes.CDLL:
    """The driver, with the context current on this thread."""
    driver, context = _primary()
    require(driver.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    return driver


def require(code: int, what: str) -> None:
    """AssertionError unless the driver's result is CUDA_SUCCESS."""
    assert code == 0, f"{what}: the CUDA driver's result is {code}"


def root(array: Any) -> Any:
    """The array whose memory a view shows."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def bounds(array: Any) -> tuple[int, int]:
    """The first address of an array's memory and the first behind it."""
    start = array.ctypes.data
    if not array.size:
        return start, start
    ways = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)]
    low = start + sum(way for way in ways if way < 0)
    return low, start + sum(way for way in ways if way > 0) + array.itemsize


@dataclass(frozen=True, slots=True)
class Block:
    """The memory of an array on the device: all of it, also what a view leaves out."""

    owner: Any
    host: int
    size: int
    address: int
    allocated: int

    @classmethod
    def of(cls, owner: Any) -> Block:
        """A copy, as well aligned as the array."""
        low, high = bounds(owner)
        start, shift = ctypes.c_uint64(), low % ALIGNMENT
        room = ctypes.c_size_t(high - low + 2 * ALIGNMENT)
        require(_driver().cuMemAlloc_v2(ctypes.byref(start), room), "cuMemAlloc")
        block = cls(owner, low, high - low, start.value + shift, start.value)
        block._copy("cuMemcpyHtoD_v2", ctypes.c_uint64(block.address), ctypes.c_void_p(low))
        return block

    def view(self, array: Any) -> Any:
        """The tensor on the GPU that lies as this view of the array."""
        offset = array.ctypes.data - self.host if array.size else 0
        memory = (ctypes.c_ubyte * max(1, self.size)).from_address(self.address)
        # Nobody reads it here: the address is the device's.
        place = np.ndarray(array.shape, array.dtype, memory, offset, array.strides)
        return forged(place)

    def back(self) -> None:
        """Into the array, as far as it may be written."""
        if self.owner.flags.writeable:
            self._copy("cuMemcpyDtoH_v2", ctypes.c_void_p(self.host), ctypes.c_uint64(self.address))

    def free(self) -> None:
        """Gives the memory back."""
        require(_driver().cuMemFree_v2(ctypes.c_uint64(self.allocated)), "cuMemFree")

    def _copy(self, name: str, target: Any, source: Any) -> None:
        if self.size:
            require(_driver()[name](target, source, ctypes.c_size_t(self.size)), name)


@contextmanager
def on_device(values: Any) -> Iterator[Any]:
    """The same values with tensors on the GPU for arrays, in tuples, lists and dicts too.

    Behind the block the arrays are what the tensors are then.
    """
    blocks: dict[int, Block] = {}
    try:
        yield _moved(values, blocks)
        require(_driver().cuCtxSynchronize(), "cuCtxSynchronize")
        for block in blocks.values():
            block.back()
    finally:
        for block in blocks.values():
            block.free()


def _moved(value: Any, blocks: dict[int, Block]) -> Any:
    match value:
        case np.ndarray():
            owner = root(value)
            if id(owner) not in blocks:
                blocks[id(owner)] = Block.of(owner)
            return blocks[id(owner)].view(value)
        case tuple() if hasattr(value, "_fields"):
            return type(value)(*(_moved(item, blocks) for item in value))
        case tuple() | list():
            return type(value)(_moved(item, blocks) for item in value)
        case dict():
            return {key: _moved(item, blocks) for key, item in value.items()}
    return value

"""The layout of a kernel's parameters in its parameter space.

The function that launches the kernel has one parameter for each member of a struct. Members are
laid out as in C, each at a multiple of its own alignment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from ferrule.specs import Int32, Signature
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import Param, Pointer, Scalar, Tuple

LIMITS: Final = {
    "grid_x": (0, 2**31 - 1),
    "grid_y": (0, 65535),
    "grid_z": (0, 65535),
    "block_x": (1, 1024),
    "block_y": (1, 1024),
    "block_z": (1, 64),
    "shared_bytes": (0, 48 << 10),
}
"""The launch sizes, in the order of the function's last parameters, with CUDA's limits for them
(CUDA C++ Programming Guide, technical specifications)."""

MAX_THREADS: Final = 1024
_SIZES: Final = tuple(Scalar(name, Int32) for name in LIMITS)

Leaf: TypeAlias = Scalar | Pointer


@dataclass(frozen=True, slots=True)
class Place:
    """A parameter of the function, and the offset of its bytes."""

    param: Leaf
    offset: int


@dataclass(frozen=True, slots=True)
class KernelLayout:
    """The places of the function's parameters, the `starts` of the kernel's parameters, and the
    number of bytes of all."""

    places: tuple[Place, ...]
    starts: tuple[int, ...]
    size: int

    @property
    def has_gaps(self) -> bool:
        """Whether there is padding between the parameters."""
        return sum(_size(place.param) for place in self.places) < self.size


def called(kernel: Signature) -> Signature:
    """The signature of the function that launches a kernel: its parameters, then the sizes."""
    leaves = [place.param for place in kernel_layout(kernel).places]
    return Signature(kernel.name, (*leaves, *_SIZES))


def kernel_layout(kernel: Signature) -> KernelLayout:
    """The places of a kernel's parameters, each aligned on its own."""
    places: list[Place] = []
    starts: list[int] = []
    end = 0
    for param in kernel.params:
        start = _aligned(end, _align(param))
        starts.append(start)
        places += _places(param, param.name, start)
        end = start + _size(param)
    return KernelLayout(tuple(places), tuple(starts), end)


def _places(param: Param, name: str, start: int) -> Iterator[Place]:
    match param:
        case Scalar(dtype=dtype):
            yield Place(Scalar(name, dtype), start)
        case Pointer():
            yield Place(replace(param, name=name), start)
        case Tuple(items=items, fields=fields):
            for position, (item, offset) in enumerate(zip(items, _offsets(items), strict=True)):
                inner = item.name if fields else position
                yield from _places(item, f"{name}_{inner}", start + offset)
        case _:
            raise TypeError(f"{param!r} is no parameter of a kernel")


def _offsets(items: Sequence[Param]) -> list[int]:
    offsets, end = [], 0
    for item in items:
        offsets.append(_aligned(end, _align(item)))
        end = offsets[-1] + _size(item)
    return offsets


def _size(param: Param) -> int:
    match param:
        case Scalar(dtype=dtype):
            return dtype.itemsize
        case Tuple(items=items):
            return _aligned(_offsets(items)[-1] + _size(items[-1]), _align(param))
    return 8


def _align(param: Param) -> int:
    return max(map(_align, param.items)) if isinstance(param, Tuple) else _size(param)


def _aligned(offset: int, align: int) -> int:
    # Division rounds down, so the negation on both sides rounds up.
    return -(-offset // align) * align

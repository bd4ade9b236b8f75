"""What users import to write kernels: `arch`, `math`, `Tensor`.  Each is a name without a meaning
of its own: the lowering finds its meaning by identity in `intrinsics`, and outside of a compiled
function a call raises `OutsideKernel`.
"""

from __future__ import annotations

from typing import Any, NoReturn


class OutsideKernel(RuntimeError):
    """Something that only a compiled function can do was called as ordinary Python."""


def outside(name: str) -> NoReturn:
    """Raises `OutsideKernel` for the face with this name."""
    raise OutsideKernel(
        f"{name} has a meaning only in a function that is compiled: "
        f"use it inside @ferrule.kernel or @ferrule.jit"
    )


class Tensor:
    """A tensor parameter of a kernel or a host function; written as an annotation.

    `a.shape`, `a.stride`: tuples of sizes.  `a.element_type`: the dtype.  `a[i, j]` reads an
    element and `a[i, j] = x` writes one, with one integer coordinate for each dim.  In a host
    function `a[:]` is the whole tensor, in expressions and as the target of an assignment.
    """

    shape: tuple[Any, ...]
    stride: tuple[Any, ...]
    element_type: Any

    def __init__(self) -> None:
        raise TypeError("Tensor is an annotation; make_fake_tensor makes an example of one")

    def __getitem__(self, index: Any) -> Any:
        outside("Tensor.__getitem__")

    def __setitem__(self, index: Any, value: Any) -> None:
        outside("Tensor.__setitem__")


class _Annotation:
    """A class that stands only in annotations."""

    def __init__(self) -> None:
        raise TypeError(f"{type(self).__name__} is an annotation")


class Pointer(_Annotation):
    """An address; `make_ptr` and `nullptr` make examples."""


class Shape(_Annotation):
    """A tuple of sizes; the example is a tuple of ints, symbolic ints, and None for any."""


class Stride(_Annotation):
    """A tuple of strides; see `Shape`."""


class Coord(_Annotation):
    """A tuple of coordinates; see `Shape`."""


class Tile(_Annotation):
    """A tuple of tile sizes; see `Shape`."""


class IntTuple(_Annotation):
    """A tuple of integers; see `Shape`."""


class Constexpr(_Annotation):
    """A parameter whose value is known at compile time: `Constexpr`, or `Constexpr[int]`.

    It is gone from the calls of the compiled function.  A field of a dataclass or named tuple stays
    in the call, where it must have the value of the example.
    """

    def __class_getitem__(cls, item: object) -> type[Constexpr]:
        return cls


def range_constexpr(*args: int) -> range:
    """`range` with bounds known at compile time: the loop over it is unrolled.

    Raises TypeError for bounds that are known only at the call.
    """
    return range(*args)

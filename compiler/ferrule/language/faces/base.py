"""Names that users import to write kernels: `arch`, `math`, `Tensor`.  Each is a *face*, a name
without a meaning of its own: the lowering finds its meaning by identity in `intrinsics`, and a call
outside of a compiled function raises `OutsideKernel`."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, NoReturn


class OutsideKernel(RuntimeError):
    """A function that works only in compiled code was called in ordinary Python."""


def outside(name: str) -> NoReturn:
    """Raises `OutsideKernel` for the face with this name."""
    raise OutsideKernel(
        f"{name} has a meaning only in a function that is compiled: "
        f"use it inside @ferrule.kernel or @ferrule.jit"
    )


class Tensor:
    """A tensor parameter of a kernel or a host function; written as an annotation.

    `a.shape`, `a.stride`: tuples of sizes.  `a.element_type`: the dtype.  `a[i, j]` reads an
    element and `a[i, j] = x` writes one, with one integer coordinate for each dim; a None keeps its
    dim, so that `a[i, None]` is a tensor.  `a.layout`, `a.iterator`, `a.reshape(…)`,
    `a.transpose(…)`, `a.recast(dtype)`: see the page about layouts.  `a.dim()`, `a.size(i)` and the
    others are the names in C++ kernel libraries.  In a host function `a[:]` is the whole tensor, in
    expressions and as the target of an assignment.
    """

    shape: tuple[Any, ...]
    stride: tuple[Any, ...]
    layout: Any
    iterator: Any
    element_type: Any
    dim: Callable[[], int]
    size: Callable[[int], Any]
    sizes: Callable[[], tuple[Any, ...]]
    strides: Callable[[], tuple[Any, ...]]
    numel: Callable[[], Any]
    data_ptr: Callable[[], Any]
    is_contiguous: Callable[[], Any]

    def __init__(self) -> None:
        raise TypeError("Tensor is an annotation; make_fake_tensor makes an example of one")

    def __getitem__(self, index: Any) -> Any:
        outside("Tensor.__getitem__")

    def __setitem__(self, index: Any, value: Any) -> None:
        outside("Tensor.__setitem__")

    def load(self) -> Any:
        """The vector of all elements; the shape must be known at compile time."""
        outside("Tensor.load")

    def store(self, data: Any) -> None:
        """Writes a vector of the same shape."""
        outside("Tensor.store")

    def fill(self, value: Any) -> None:
        """Writes one number to every element; the shape must be known at compile time."""
        outside("Tensor.fill")


class _Annotation:
    """A class for annotations only."""

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

    Calls of the compiled function do not have it.  A field of a dataclass or named tuple remains in
    the call, and must have the value of the example.
    """

    def __class_getitem__(cls, item: object) -> type[Constexpr]:
        return cls


def range(
    *args: int,
    unroll: int = 0,
    unroll_full: bool = False,
    vectorize: bool | int | None = None,
    reassociate: bool = False,
    prefetch_stages: int | None = None,
    at_least_once: bool = False,
) -> builtins.range:
    """Python's `range` with hints for the compilation of the loop over it.

    `unroll`: the number of iterations to unroll, 1 for none; `unroll_full`: unroll completely.
    `vectorize`: whether to use vectors, or of how many elements.  No hint changes a result: floats
    are added in order, unless `reassociate=True` allows sums and products of floats in this loop in
    any order, LLVM's "reassoc": they may be vectors then, and their last bits depend on the CPU.
    The compiler may ignore hints, and a loop with a `break` or `return` has none.  The last two
    arguments are accepted and ignored.
    """
    return builtins.range(*args)


def range_constexpr(*args: int) -> builtins.range:
    """`range` with bounds known at compile time: the loop over it is unrolled.

    Raises TypeError for run-time bounds.
    """
    return builtins.range(*args)


def const_expr(value: Any) -> Any:
    """The value itself, which must be known at compile time, as in `if const_expr(n > 4):`."""
    return value


def static_assert(condition: object, message: object = "") -> None:
    """Ends a compilation with a CompileError with this message, unless the condition holds.

    The condition must be known at compile time.  Outside of a compilation: an AssertionError.
    """
    if not condition:
        raise AssertionError(message)


def printf(*args: Any, end: str = "\n") -> None:
    """Prints at run time: `printf("i = {}, x = {:.3f}", i, x)`, `printf("%d", i)`, `printf(i, x)`.

    Takes the format of Python's `format` without names and alignment, or that of C's `printf`.  The
    text goes to the process's standard output at once, followed by `end` unless it ends with a
    newline.
    """
    outside("printf")

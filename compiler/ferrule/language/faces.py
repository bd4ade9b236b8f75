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


def range_constexpr(*args: int) -> range:
    """`range` with bounds known at compile time: the loop over it is unrolled.

    Raises TypeError for bounds that are known only at the call.
    """
    return range(*args)

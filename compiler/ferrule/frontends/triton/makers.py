"""Examples of tensors that a function allocates, and of descriptors."""

from __future__ import annotations

from typing import Any, Literal

from ferrule import specs
from ferrule.frontends.triton.arguments import Descriptor, Output
from ferrule.specs import Dim, DType
from ferrule.specs.expr import is_dim


def like(source: str, *, dtype: DType | str | None = None) -> Output:
    """An example of a tensor that the function allocates and returns, with the sizes of a
    parameter.

    It is compact, regardless of the parameter's strides; `dtype` is the parameter's by default.
    Raises TypeError for a value that is not a name, ValueError for an unknown dtype.
    """
    if not isinstance(source, str):
        raise TypeError(f"like: expected the name of a parameter, but got {source!r}")
    return Output(source, None, None if dtype is None else specs.as_dtype(dtype))


def empty(shape: tuple[Dim | str, ...], dtype: DType | str) -> Output:
    """An example of a tensor that the function allocates and returns.

    Sizes are numbers, expressions over the sizes of parameters, and names of these.  Raises
    TypeError for other sizes, ValueError for an unknown dtype.
    """
    return Output(None, _sizes("empty", shape), specs.as_dtype(dtype))


def zeros(shape: tuple[Dim | str, ...], dtype: DType | str) -> Output:
    """An example of a tensor that the function allocates, fills with 0 before the kernel is
    launched, and returns: for kernels that add to it.  Sizes are those of `empty`."""
    return Output(None, _sizes("zeros", shape), specs.as_dtype(dtype), fill=0)


def _sizes(what: str, shape: Any) -> tuple[Dim | str, ...]:
    if isinstance(shape, tuple | list) and all(isinstance(n, str) or is_dim(n) for n in shape):
        return tuple(shape)
    raise TypeError(
        f"{what}: expected a tuple of sizes, numbers or names such as ('m', 64), but got {shape!r}"
    )


def descriptor(
    example: Any,
    block_shape: tuple[int, ...],
    padding: Literal["zero", "nan"] = "zero",
    *,
    flatten: bool = False,
) -> Descriptor:
    """An example of the result of `TensorDescriptor.from_tensor(tensor, block_shape, padding)`.

    Callers pass the tensor, or the function allocates it, for `like`, `empty` and `zeros`; the
    function encodes the descriptor on each call.  With `flatten` the tensor is compact and has more
    dims than the block: its first dims are merged into one, as in a view of q, (batch, heads,
    length, wide), as (batch * heads * length, wide).  Raises TypeError for an invalid block,
    ValueError for another padding.
    """
    block = block_shape if isinstance(block_shape, tuple | list) else None
    if block is None or not all(type(size) is int and size > 0 for size in block):
        raise TypeError(
            "descriptor: expected a block_shape of numbers such as (64, 64), "
            f"but got {block_shape!r}"
        )
    if padding not in ("zero", "nan"):
        raise ValueError(f"descriptor: padding is 'zero' or 'nan', but got {padding!r}")
    return Descriptor(example, tuple(block), padding, flatten=bool(flatten))

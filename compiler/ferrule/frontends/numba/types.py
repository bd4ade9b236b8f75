"""Specs as Numba's types, and as arguments of Numba's code.

Numba flattens its values into arguments.  An array becomes `meminfo, parent, nitems, itemsize,
data, shape..., strides...`: 64 bits each, strides in bytes; the first two belong to Python and may
be null.  A tuple becomes its items.  The same holds on the CPU and on GPUs (Numba 0.68, numba-cuda
0.30).
"""

from __future__ import annotations

from typing import Any

from ferrule.compiler.conventions.arguments import NULL, Argument, cast
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.specs import DType, Param, compact_strides
from ferrule.specs.params import Scalar, Tensor, Tuple


def numba_type(types: Any, spec: Param) -> Any:
    """The type for which Numba compiles a parameter with this spec.

    Raises CompileError for specs that have no type in Numba.
    """
    match spec:
        case Tensor():
            return types.Array(
                _dtype(types, spec.name, spec.dtype),
                len(spec.shape),
                _layout(spec),
                readonly=spec.read_only,
                aligned=spec.align % spec.dtype.itemsize == 0,
            )
        case Scalar(name=name, dtype=dtype):
            return _dtype(types, name, dtype)
        case Tuple(items=items, fields=False):
            return types.BaseTuple.from_types(tuple(numba_type(types, item) for item in items))
    raise CompileError(
        Diagnostic(
            f"the parameter {spec.name!r} is a {type(spec).__name__}, which Numba has no type for",
            expected="tensors, numbers, and tuples of these",
        )
    )


def flattened(spec: Param) -> list[Argument]:
    """The arguments of Numba's code for a parameter with this spec."""
    match spec:
        case Tensor():
            sizes = [spec.numel, spec.dtype.itemsize]
            dims = [*spec.shape, *spec.byte_strides]
            return [
                NULL,
                NULL,
                *(cast(size, "int64") for size in sizes),
                spec.data,
                *(cast(dim, "int64") for dim in dims),
            ]
        case Tuple(items=items):
            return [argument for item in items for argument in flattened(item)]
    return [spec]


def _layout(tensor: Tensor) -> str:
    """Numba's letter: C and F for compact arrays, A for any strides."""
    rank = len(tensor.shape)
    order = tuple(range(rank))
    if tensor.strides == compact_strides(tensor.shape, order[::-1]):
        return "C"
    return "F" if tensor.strides == compact_strides(tensor.shape, order) else "A"


def _dtype(types: Any, name: str, dtype: DType) -> Any:
    word = "boolean" if dtype.kind == "bool" else dtype.name
    found = getattr(types, word, None)
    if found is None or dtype.bits < 8:
        raise CompileError(f"the parameter {name!r} is of {dtype.name}, which Numba does not have")
    return found


def dtype_of(types: Any, kind: Any) -> DType | None:
    """The dtype of a number of Numba; None for a type that is not a number."""
    from ferrule.specs import ALL_DTYPES

    for dtype in ALL_DTYPES:
        word = "boolean" if dtype.kind == "bool" else dtype.name
        if getattr(types, word, None) == kind and dtype.kind != "complex":
            return dtype
    return None

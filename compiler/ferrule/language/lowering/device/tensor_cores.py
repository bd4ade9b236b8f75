"""`fe.arch.mma` and `ldmatrix`: matrices that are distributed over the lanes of a warp."""

from __future__ import annotations

import ast
from typing import Any, Final

from ferrule.language.faces import tensor_cores as faces
from ferrule.language.ir import ops
from ferrule.language.ir.tensor_cores import MATRIX_COUNTS, MMA_DTYPES, are_factors
from ferrule.language.ir.types import TensorType
from ferrule.language.lowering.arguments import Intrinsic, bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.device.shared_memory import shared_pointer
from ferrule.language.lowering.device.threads import mask_of, place, require_kernel
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.tensors import access
from ferrule.language.values import Number, TensorView, Vector
from ferrule.specs import AddressSpace, DType, Int32

_ALIGN: Final = 16
_WORDS: Final = {2: 1, 4: 2}
"""For the number of 32-bit words in A's fragment, the number in B's."""


def _mma(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Vector:
    """`fe.arch.mma(a, b, c)`."""
    given = bound(low, "a b c", args, kwargs, node)
    require_kernel(low, "mma", node)
    a, b, c = (
        _vector(low, f"the {name} of mma", value, node)
        for name, value in zip("abc", given, strict=True)
    )
    _require_dtypes(low, a.dtype, b.dtype, c.dtype, node)
    _require_sizes(low, a, b, c, node)
    build = low.builder
    d = build.fragment(_type(c.dtype, 4), "d")
    left, right = filled(low, a, "a"), filled(low, b, "b")
    mask, where = mask_of(low, None, node), place(low, node)
    build.mma(d, left, right, filled(low, c, "c"), mask, where)
    return _elements(low, d, 4)


def _vector(low: Lowering, what: str, value: Any, node: ast.AST) -> Vector:
    if isinstance(value, Vector):
        return value
    hint = f"{value.name}.load()" if isinstance(value, TensorView) else None
    low.fail(
        node,
        f"{what} is {describe(value)}",
        expected="a vector: the elements of the matrix that this lane has",
        hint=hint,
    )


def _require_dtypes(low: Lowering, a: DType, b: DType, c: DType, node: ast.AST) -> None:
    if a not in MMA_DTYPES:
        low.fail(
            node,
            f"mma of a matrix of {a.name}",
            expected=" or ".join(dtype.name for dtype in MMA_DTYPES),
            hint="a.to(fe.TFloat32)" if a.name == "float32" else None,
        )
    if not are_factors(a, b, MMA_DTYPES):
        low.fail(node, f"mma of {a.name} and {b.name}", expected="a and b of one dtype")
    if c not in MMA_DTYPES[a]:
        low.fail(
            node,
            f"mma of {a.name} adds to c of {c.name}",
            expected="c of " + " or ".join(dtype.name for dtype in MMA_DTYPES[a]),
        )


def _require_sizes(low: Lowering, a: Vector, b: Vector, c: Vector, node: ast.AST) -> None:
    size = a.dtype.itemsize
    known = {of_a * 4 // size: of_b * 4 // size for of_a, of_b in _WORDS.items()}
    counts = len(a.items), len(b.items), len(c.items)
    if known.get(counts[0]) != counts[1] or counts[2] != 4:
        one, two = (f"{of_a}, {of_b} and 4" for of_a, of_b in known.items())
        low.fail(
            node,
            "a, b and c of mma have {}, {} and {} elements".format(*counts),
            expected=f"{one} or {two} of them, of {a.dtype.name}",
        )


def _ldmatrix(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Vector:
    """`fe.arch.ldmatrix(ptr, num_matrices=4, transpose=False)`."""
    words = "ptr num_matrices= transpose="
    pointer, count, transposed = bound(low, words, args, kwargs, node)
    require_kernel(low, "ldmatrix", node)
    number = 4 if count is None else coercion.plain(count)
    if isinstance(number, bool) or number not in MATRIX_COUNTS:
        low.fail(node, f"num_matrices is {describe(count)}", expected="1, 2 or 4")
    _require_flag(low, transposed, node)
    dtype = shared_pointer(low, "ldmatrix", pointer, node).type.dtype
    _require_itemsize(low, "ldmatrix", dtype, node, transposed=bool(transposed))
    size = number * 4 // dtype.itemsize
    target = low.builder.fragment(_type(dtype, size), "matrices")
    mask, where = mask_of(low, None, node), place(low, node)
    low.builder.load_matrix(target, pointer.value, mask, where, transposed=bool(transposed))
    return _elements(low, target, size)


def _stmatrix(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    """`fe.arch.stmatrix(ptr, matrices, transpose=False)`."""
    pointer, matrices, transposed = bound(low, "ptr matrices transpose=", args, kwargs, node)
    require_kernel(low, "stmatrix", node)
    vector = _vector(low, "the matrices of stmatrix", matrices, node)
    _require_flag(low, transposed, node)
    dtype = shared_pointer(low, "stmatrix", pointer, node).type.dtype
    _require_itemsize(low, "stmatrix", dtype, node, transposed=bool(transposed))
    counts = [number * 4 // dtype.itemsize for number in MATRIX_COUNTS]
    if vector.dtype is not dtype or len(vector.items) not in counts:
        low.fail(
            node,
            f"stmatrix of {len(vector.items)} elements of {vector.dtype.name} to {dtype.name}",
            expected=f"{', '.join(map(str, counts))} of {dtype.name}: 1, 2 or 4 words of 32 bits",
        )
    source = filled(low, vector, "matrices")
    mask, where = mask_of(low, None, node), place(low, node)
    low.state.writes += 1
    low.builder.store_matrix(pointer.value, source, mask, where, transposed=bool(transposed))


def _require_flag(low: Lowering, transposed: Any, node: ast.AST) -> None:
    if transposed not in (None, True, False):
        low.fail(
            node,
            f"transpose is {describe(transposed)}",
            expected="True or False, known at compile time",
        )


def _require_itemsize(
    low: Lowering, name: str, dtype: DType, node: ast.AST, *, transposed: bool
) -> None:
    access.require_element(low, dtype, node)
    sizes = (2,) if transposed else (1, 2, 4)
    if dtype.itemsize not in sizes:
        low.fail(
            node,
            f"{name} of {dtype.name}" + (", transposed" if transposed else ""),
            expected="elements of " + " or ".join(map(str, sizes)) + " bytes",
        )


def _type(dtype: DType, size: int) -> TensorType:
    return TensorType(dtype, (size,), (1,), _ALIGN, AddressSpace.rmem)


def filled(low: Lowering, vector: Vector, hint: str) -> ops.Value:
    """A fragment with the elements of a vector."""
    fragment = low.builder.fragment(_type(vector.dtype, len(vector.items)), hint)
    for position, item in enumerate(vector.items):
        low.builder.store(fragment, (low.builder.constant(Int32, position),), item.value)
    return fragment


def _elements(low: Lowering, fragment: ops.Value, count: int) -> Vector:
    """The vector of a fragment's elements."""
    places = (low.builder.constant(Int32, position) for position in range(count))
    return Vector((count,), tuple(Number(low.builder.load(fragment, (at,))) for at in places))


TABLE: Final[dict[Any, Intrinsic]] = {
    faces.mma: _mma,
    faces.ldmatrix: _ldmatrix,
    faces.stmatrix: _stmatrix,
}
"""The emitters of these functions."""

"""Tables: Python lists and NumPy arrays of numbers that are indexed at run time.

Their values are those at the place of the access, and become constant memory.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from ferrule.language.folding import scalars as folded
from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion
from ferrule.language.values import ComplexNumber, ConstantTable, Number
from ferrule.specs import (
    Boolean,
    DType,
    Float32,
    Int32,
    Numeric,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
)
from ferrule.specs.dtypes import as_dtype
from ferrule.specs.params import row_major_strides
from ferrule.specs.rounding import nearest

_MOST_BYTES: Final = {"cuda": 1 << 16, "cpu": 1 << 20}
"""The bytes of all tables of a program: constant memory of a GPU has 64 KiB."""
_ALIGN: Final = 16
_HINT: Final = "pass it as an argument: a tensor may have any size"


def chosen(low: Lowering, base: Any, index: Any, node: ast.Subscript) -> Any:
    """`base[index]` of a table with a run-time index.

    An item that is a tuple of different kinds of numbers is such a tuple.
    """
    name = ast.unparse(node.value)
    columns = _columns(base)
    if columns is not None and not isinstance(index, tuple):
        items = [item(low, _table(low, each, name, node), index, node) for each in columns]
        kind = type(base[0])
        return kind(*items) if hasattr(kind, "_fields") else tuple(items)
    return item(low, _table(low, base, name, node), index, node)


def item(low: Lowering, table: ConstantTable, index: Any, node: ast.AST) -> Any:
    """`table[index]`: a number, or a table of fewer dims."""
    at = index if isinstance(index, tuple) else (index,)
    if len(at) > len(table.shape):
        low.fail(
            node,
            f"{table.name} has {len(table.shape)} dims here, but {len(at)} coordinates are given",
        )
    found = [_index(low, table, *each, node) for each in enumerate(at)]
    indices = (*table.indices, *found)
    if len(at) < len(table.shape):
        return replace(table, indices=indices)
    if not table.is_complex:
        return Number(low.builder.load(table.value, indices))
    at_part = (low.builder.constant(Int32, part) for part in (0, 1))
    return ComplexNumber(*(Number(low.builder.load(table.value, (*indices, i))) for i in at_part))


def items(low: Lowering, table: ConstantTable, node: ast.AST) -> list[Any]:
    """All items of a table, in order."""
    return [item(low, table, index, node) for index in range(table.shape[0])]


def _index(low: Lowering, table: ConstantTable, axis: int, index: Any, node: ast.AST) -> ops.Value:
    """An index along a dim; a known one may count from the end, as in Python."""
    typed = isinstance(index, Numeric) and type(index).is_integer
    known, size = coercion.plain(index.value if typed else index), table.shape[axis]
    if isinstance(known, int) and not isinstance(known, bool):
        if not -size <= known < size:
            low.fail(node, f"index {known} of {table.name} is asked for, but it has {size} items")
        return coercion.as_number(low, known % size, node).value
    number = coercion.as_number(low, index, node) if isinstance(index, Number) else None
    if number is None or not number.dtype.is_integer:
        low.fail(
            node,
            f"{table.name} is indexed with {describe(index)}",
            expected="an integer",
            hint="convert it, fe.Int32(x)" if number is not None else None,
        )
    return number.value


# ---- from Python's values to memory ----


def _complex_parts(base: Any) -> np.ndarray[Any, Any] | None:
    """The parts of complex numbers, in one more dim; None for other values.

    A list of Python's is complex64, as its numbers are elsewhere; typed ones keep their dtype.
    """
    if not isinstance(base, np.ndarray):
        names = set(_complex_dtypes(base))
        if len(names) != 1:
            return None
        values = np.array(_as_python(base))
        base = values.astype(names.pop()) if values.dtype.kind == "c" else values
    if base.dtype.kind != "c":
        return None
    return np.stack((base.real, base.imag), -1)


def _complex_dtypes(base: Any) -> Iterator[str]:
    """The names of the dtypes of the complex numbers in a list."""
    if isinstance(base, (list, tuple)):
        for each in base:
            yield from _complex_dtypes(each)
    elif isinstance(base, Numeric) and base.dtype.kind == "complex":
        yield base.dtype.name
    elif isinstance(base, complex):
        yield "complex64"


def _as_python(base: Any) -> Any:
    if isinstance(base, (list, tuple)):
        return [_as_python(each) for each in base]
    return base.value if isinstance(base, Numeric) else base


def _columns(base: Any) -> list[list[Any]] | None:
    """The columns of a list of tuples whose items are not all of one kind."""
    if isinstance(base, np.ndarray) or not base or not isinstance(base[0], tuple):
        return None
    count = len(base[0])
    if not all(isinstance(row, tuple) and len(row) == count for row in base):
        return None
    columns = [list(column) for column in zip(*base, strict=True)]
    kinds = {frozenset(map(_kind, column)) for column in columns}
    return columns if len(kinds) > 1 else None


def _kind(value: Any) -> object:
    known = coercion.plain(value)
    return bool if isinstance(known, bool) else int if isinstance(known, int) else type(known)


def _table(low: Lowering, base: Any, name: str, node: ast.AST) -> ConstantTable:
    """The table of these values."""
    parts = _complex_parts(base)
    if parts is not None:
        return replace(_table(low, parts, name, node), is_complex=True)
    dtype, shape, data = _packed(low, base, name, node)
    known = low.state.tables
    known[data] = len(data)
    most = _MOST_BYTES[low.state.target]
    if sum(known.values()) > most:
        low.fail(
            node,
            f"{name} has {len(data)} bytes, and all tables of the function "
            f"{sum(known.values())}, but constant memory has {most}",
            hint=_HINT,
        )
    strides = row_major_strides(shape)
    type_ = TensorType(dtype, shape, strides, max(_ALIGN, dtype.itemsize))
    return ConstantTable(low.builder.table(type_, data, name), (), name)


def _packed(
    low: Lowering, base: Any, name: str, node: ast.AST
) -> tuple[DType, tuple[int, ...], bytes]:
    """The dtype, the shape and the bytes of a table."""
    if isinstance(base, np.ndarray):
        dtype = coercion.at_compile_time(low, node, partial(as_dtype, base.dtype))
        shape: tuple[int, ...] = base.shape
        data = base.tobytes()
    else:
        shape = _shape(low, base, name, node)
        leaves = list(_leaves(base, len(shape)))
        dtype = _dtype(low, leaves, name, node)
        data = _bytes(low, leaves, dtype, node)
    if not data:
        low.fail(node, f"{name} has no items, but one is asked for")
    return dtype, shape, data


def _shape(low: Lowering, base: Any, name: str, node: ast.AST) -> tuple[int, ...]:
    """The shape of nested lists.  A CompileError if they are not of one shape."""
    if isinstance(base, np.ndarray):
        return tuple(map(int, base.shape))
    if not isinstance(base, (list, tuple)):
        return ()
    shapes = {_shape(low, each, name, node) for each in base}
    if len(shapes) > 1:
        low.fail(
            node,
            f"{name} is indexed at run time, but its items have different lengths",
            expected="numbers, or lists of one length",
        )
    return (len(base), *(shapes.pop() if shapes else ()))


def _leaves(base: Any, depth: int) -> Iterator[Any]:
    found: Sequence[Any] = [base]
    for _ in range(depth):
        found = list(itertools.chain.from_iterable(found))
    return iter(found)


def _dtype(low: Lowering, leaves: list[Any], name: str, node: ast.AST) -> DType:
    """The dtype of a table: that of typed numbers in it, else that of Python numbers.

    A CompileError for values that are no numbers.
    """
    typed = {type(each): None for each in leaves if isinstance(each, Numeric)}
    plain = [coercion.plain(each) for each in leaves if not isinstance(each, Numeric)]
    wrong = next((each for each in plain if not isinstance(each, (bool, int, float))), None)
    if wrong is not None or len(typed) > 1:
        what = f"it holds {describe(wrong)}" if wrong is not None else "its items differ in dtype"
        low.fail(
            node,
            f"{name} is indexed at run time, but {what}",
            expected="numbers of one dtype, which become constant memory",
            hint="loop over it with fe.range_constexpr, or keep the values in a tensor",
        )
    kinds = {type(each) for each in plain}
    default = Float32 if float in kinds else Int32 if int in kinds else Boolean
    return next(iter(typed), None) or default


def _bytes(low: Lowering, leaves: list[Any], dtype: DType, node: ast.AST) -> bytes:
    """Numbers as they lie in memory, each converted as an assignment to an element is."""
    numbers = (leaf.value if isinstance(leaf, Numeric) else coercion.plain(leaf) for leaf in leaves)
    fitted = [coercion.fitted(low, each, dtype, node) for each in numbers]
    if dtype is Boolean:
        return bytes(map(bool, fitted))
    if dtype.kind == "float":
        fitted = [nearest(dtype, each) for each in fitted]
    words = (folded.bitcast(dtype, _UNSIGNED[dtype.bits], each) for each in fitted)
    return b"".join(int(word).to_bytes(dtype.itemsize, "little") for word in words)


_UNSIGNED: Final = {each.bits: each for each in (Uint8, Uint16, Uint32, Uint64)}

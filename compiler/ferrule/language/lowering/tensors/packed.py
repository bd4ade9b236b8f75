"""Elements of 4 bits, two in a byte: Int4, Uint4 and Float4E2M1FN; the first is the lower half.

They have no values of their own: one that is read is an Int8, a Uint8 or a Float32, exactly.  They
are written in pairs alone, as a vector whose bytes are whole: a thread that wrote half of a byte
would have to write the other half too, which may be another thread's.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ferrule.language import layouts
from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.numbers import scalars
from ferrule.language.lowering.tensors import access, views
from ferrule.language.promotion import stores_implicitly
from ferrule.language.values import Number, TensorView
from ferrule.specs import (
    Dim,
    DType,
    Float4E2M1FN,
    Int4,
    Int8,
    Int64,
    Uint4,
    Uint8,
    Uint32,
    divisibility_of,
)
from ferrule.specs.expr import INT64_MAX


def load(low: Lowering, tensor: ops.Value, indices: Sequence[ops.Value]) -> Number:
    """An element of a tensor."""
    b, dtype = low.builder, tensor.tensor.dtype
    offset = _offset(low, tensor.tensor, indices)
    one, two = b.constant(Int64, 1), b.constant(Uint8, 2)
    byte = b.load(bytes_of(low, tensor), (b.binary("shr", offset, one),))
    upper = b.compare("ne", b.binary("and", offset, one), b.constant(Int64, 0))
    lower = b.binary("and", byte, b.constant(Uint8, 15))
    half = b.select(upper, b.binary("shr", byte, b.binary("add", two, two)), lower)
    return Number(_value(low, dtype, half))


def bytes_of(low: Lowering, tensor: ops.Value) -> ops.Value:
    """The bytes from a tensor's first element on."""
    old = tensor.tensor
    type_ = TensorType(Uint8, (INT64_MAX,), (1,), old.align, old.space)
    return _viewed(low, tensor, type_)


def _viewed(
    low: Lowering, tensor: ops.Value, type_: TensorType, at: tuple[ops.Value, ...] = ()
) -> ops.Value:
    value = low.builder.view(tensor, type_, at) if at else low.builder.view(tensor, type_)
    return views.begins_with(low, value, tensor)


def _offset(low: Lowering, type_: TensorType, indices: Sequence[ops.Value]) -> ops.Value:
    """The number of an element, counted from the first in memory."""
    b = low.builder
    total = b.constant(Int64, 0)
    for index, stride in zip(indices, type_.strides, strict=True):
        step = b.binary("mul", b.cast(Int64, index), b.size(Int64, stride))
        total = b.binary("add", total, step)
    return total


def _value(low: Lowering, dtype: DType, half: ops.Value) -> ops.Value:
    """The number of 4 bits, which are in a Uint8."""
    b = low.builder
    if dtype is Uint4:
        return half
    if dtype is Int4:
        four = b.constant(Int8, 4)
        upper = b.binary("shl", b.bitcast(Int8, half), four)
        return b.binary("shr", upper, four)
    from ferrule.language.mathlib import narrow
    from ferrule.language.mathlib.formulas import Num

    return narrow.decoded(dtype, Num(b, b.cast(Uint32, half))).value


# ---- parts ----


def begin(
    low: Lowering,
    tensor: TensorView,
    found: tuple[Number | int, ...],
    indices: tuple[ops.Value, ...],
    type_: TensorType,
    node: ast.AST,
) -> ops.Value:
    """A part of a tensor that begins at an element with an even number."""
    if type_.dtype not in access.PACKED:
        low.fail(node, f"a part of {tensor.name} cannot be taken: {type_.dtype.name} has no bytes")
    if any(map(_may_be_odd, found, tensor.type.strides)):
        low.fail(
            node,
            f"a part of {tensor.name} may begin in the middle of a byte: two elements of "
            f"{type_.dtype.name} share one",
            expected="a part that begins at an even element, whatever the index is",
            hint="parts of an even size, fe.zipped_divide(a, (2,))[None, i], and strides that are "
            "even, such as of sym_int(divisibility=2)",
        )
    b = low.builder
    byte = b.binary("shr", _offset(low, tensor.type, indices), b.constant(Int64, 1))
    whole = bytes_of(low, tensor.value)
    there = _viewed(low, whole, replace(whole.tensor, align=1), (byte,))
    return _viewed(low, there, replace(type_, align=1))


def _may_be_odd(index: Number | int, stride: Dim) -> bool:
    known: Dim | None = index if isinstance(index, int) else index.dim
    times = 1 if known is None else divisibility_of(known)
    return times * divisibility_of(stride) % 2 != 0


# ---- pairs ----


def store(low: Lowering, tensor: TensorView, items: Sequence[Any], node: ast.AST) -> None:
    """Writes numbers to all elements of a tensor of constant layout, the first mode fastest."""
    offsets = _offsets(low, tensor, node)
    halves = dict(zip(offsets, (_half(low, tensor, item, node) for item in items), strict=True))
    b, bytes_ = low.builder, bytes_of(low, tensor.value)
    for offset in sorted(halves)[::2]:
        upper = b.binary("shl", halves[offset + 1], b.constant(Uint8, 4))
        pair = b.binary("or", halves[offset], upper)
        b.store(bytes_, (b.constant(Int64, offset // 2),), pair)


def _offsets(low: Lowering, tensor: TensorView, node: ast.AST) -> list[int]:
    """The number of each element in memory; both halves of each byte must be among them."""
    type_ = tensor.type
    if all(isinstance(stride, int) for stride in type_.strides):
        layout = layouts.Layout(type_.shape, type_.strides)
        found = [layouts.crd2idx(i, layout) for i in range(layouts.size(layout))]
        if len(set(found)) == len(found) and all(offset ^ 1 in set(found) for offset in found):
            return found
    low.fail(
        node,
        f"{tensor.name} has the layout {tensor.layout}: its elements of {type_.dtype.name} do not "
        "fill whole bytes",
        expected="elements in pairs, with the stride 1 between them",
        hint="fe.zipped_divide(a, (2,))[None, i].store(v), with a vector v of two numbers",
    )


def _half(low: Lowering, tensor: TensorView, value: Any, node: ast.AST) -> ops.Value:
    """A number as 4 bits in a Uint8."""
    dtype, b = tensor.type.dtype, low.builder
    if scalars.is_python_number(value) and isinstance(scalars.plain(value), (bool, int)):
        scalars.fitted(low, scalars.plain(value), dtype, node)
    number = scalars.as_number(low, value, node, access.PACKED[dtype])
    if not stores_implicitly(number.dtype, dtype):
        low.fail(
            node,
            f"a {number.dtype.name} is stored to {tensor.name}, whose elements are {dtype.name}",
            expected=f"a value that becomes {dtype.name} without losing its kind",
            hint=f"convert it, fe.{access.PACKED[dtype].__name__}(x)",
        )
    if dtype is Float4E2M1FN:
        from ferrule.language.mathlib import narrow
        from ferrule.language.mathlib.formulas import Num

        bits = narrow.encoded(dtype, Num(b, number.value)).value
        return b.cast(Uint8, bits)
    wrapped = scalars.convert(low, number, Uint8).value
    return b.binary("and", wrapped, b.constant(Uint8, 15))

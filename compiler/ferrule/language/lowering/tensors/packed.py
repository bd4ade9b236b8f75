"""Elements of 4 and 6 bits, packed: Int4, Uint4, Float4E2M1FN, and the two Float6.

Element i has the bits from i * 4 or i * 6 on, the lowest first, so two elements share a byte, and
four share three bytes: a group.  One that is read is an Int8, a Uint8 or a Float32, exactly.  They
are written in whole groups alone, as a vector or as a whole tensor: a thread that wrote a part of a
byte would have to write the rest too, which may be another thread's.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ferrule.language import layouts
from ferrule.language.ir import ops
from ferrule.language.ir.builder import OpenRegion
from ferrule.language.ir.types import TensorType
from ferrule.language.layouts.dims import quotient
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.numbers import coercion
from ferrule.language.promotion import PACKED, in_groups, stores_implicitly
from ferrule.language.values import Number, TensorView, Whole
from ferrule.specs import (
    Dim,
    DType,
    Int4,
    Int8,
    Int64,
    Uint4,
    Uint8,
    Uint32,
    divisibility_of,
)
from ferrule.specs.expr import INT64_MAX, make


def group_of(dtype: DType) -> tuple[int, int]:
    """How many elements fill whole bytes, and how many bytes."""
    return (2, 1) if dtype.bits == 4 else (4, 3)


def load(low: Lowering, tensor: ops.Value, indices: Sequence[ops.Value]) -> Number:
    """An element of a tensor."""
    dtype = tensor.tensor.dtype
    offset = _offset(low, tensor.tensor, indices)
    found = (_load_half if dtype.bits == 4 else _load_six)(low, tensor, offset)
    return Number(_value(low, dtype, found))


def _load_half(low: Lowering, tensor: ops.Value, offset: ops.Value) -> ops.Value:
    b = low.builder
    one, four = b.constant(Int64, 1), b.constant(Uint8, 4)
    byte = b.load(bytes_of(low, tensor), (b.binary("shr", offset, one),))
    upper = b.compare("ne", b.binary("and", offset, one), b.constant(Int64, 0))
    lower = b.binary("and", byte, b.constant(Uint8, 15))
    return b.select(upper, b.binary("shr", byte, four), lower)


def _load_six(low: Lowering, tensor: ops.Value, offset: ops.Value) -> ops.Value:
    """From the byte of the first bit and that of the last, which may be the same."""
    b, three = low.builder, low.builder.constant(Int64, 3)
    bit = b.binary("mul", offset, b.constant(Int64, 6))
    last = b.binary("add", bit, b.constant(Int64, 5))
    bytes_ = bytes_of(low, tensor)
    lower, upper = (
        b.cast(Uint32, b.load(bytes_, (b.binary("shr", each, three),))) for each in (bit, last)
    )
    both = b.binary("or", lower, b.binary("shl", upper, b.constant(Uint32, 8)))
    shift = b.cast(Uint32, b.binary("and", bit, b.constant(Int64, 7)))
    six = b.binary("and", b.binary("shr", both, shift), b.constant(Uint32, 63))
    return b.cast(Uint8, six)


def bytes_of(low: Lowering, tensor: ops.Value) -> ops.Value:
    """The bytes from a tensor's first element on."""
    old = tensor.tensor
    type_ = TensorType(Uint8, (INT64_MAX,), (1,), old.align, old.space)
    return _viewed(low, tensor, type_)


def _viewed(
    low: Lowering, tensor: ops.Value, type_: TensorType, at: tuple[ops.Value, ...] = ()
) -> ops.Value:
    value = low.builder.view(tensor, type_, at) if at else low.builder.view(tensor, type_)
    return low.state.with_beginning(value, tensor)


def _offset(low: Lowering, type_: TensorType, indices: Sequence[ops.Value]) -> ops.Value:
    """The number of an element, counted from the first in memory."""
    b = low.builder
    total = b.constant(Int64, 0)
    for index, stride in zip(indices, type_.strides, strict=True):
        step = b.binary("mul", b.cast(Int64, index), b.size(Int64, stride))
        total = b.binary("add", total, step)
    return total


def _value(low: Lowering, dtype: DType, half: ops.Value) -> ops.Value:
    """The number of these bits, which are in a Uint8."""
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
    """A part of a tensor that begins at a group of elements."""
    count, size = group_of(type_.dtype)
    if any(_is_inside(count, *each) for each in zip(found, tensor.type.strides, strict=True)):
        low.fail(
            node,
            f"a part of {tensor.name} may begin in the middle of a byte: {_shared(type_.dtype)}",
            expected=f"a part that begins at a multiple of {count} elements, whatever the index is",
            hint=f"parts of such a size, fe.zipped_divide(a, ({count},))[None, i], and strides "
            f"that are multiples of it, such as of sym_int(divisibility={count})",
        )
    b = low.builder
    group = b.binary("shr", _offset(low, tensor.type, indices), b.constant(Int64, count // 2))
    byte = b.binary("mul", group, b.constant(Int64, size))
    whole = bytes_of(low, tensor.value)
    there = _viewed(low, whole, replace(whole.tensor, align=1), (byte,))
    return _viewed(low, there, replace(type_, align=1))


def _is_inside(count: int, index: Number | int, stride: Dim) -> bool:
    """Whether such an index may lead into a group."""
    known: Dim | None = index if isinstance(index, int) else index.dim
    times = 1 if known is None else divisibility_of(known)
    return times * divisibility_of(stride) % count != 0


def _shared(dtype: DType) -> str:
    count, size = group_of(dtype)
    return f"{_WORDS[count]} elements of {dtype.name} share " + ("one" if size == 1 else "three")


_WORDS = {2: "two", 4: "four"}


# ---- groups ----


def store(low: Lowering, tensor: TensorView, items: Sequence[Any], node: ast.AST) -> None:
    """Writes numbers to all elements of a tensor of constant layout, the first mode fastest."""
    offsets = _offsets(low, tensor, node)
    found = dict(zip(offsets, (_bits(low, tensor, item, node) for item in items), strict=True))
    b, bytes_ = low.builder, bytes_of(low, tensor.value)
    count, size = group_of(tensor.type.dtype)
    for offset in sorted(found)[::count]:
        group = [found[offset + place] for place in range(count)]
        for place, byte in enumerate(_joined(low, group)):
            b.store(bytes_, (b.constant(Int64, offset // count * size + place),), byte)


def _joined(low: Lowering, group: list[ops.Value]) -> list[ops.Value]:
    """The bytes of a group of elements, whose bits are in Uint8s."""
    b = low.builder

    def shifted(op: ops.BinaryOp, value: ops.Value, by: int) -> ops.Value:
        return b.binary(op, value, b.constant(Uint8, by)) if by else value

    if len(group) == 2:
        return [b.binary("or", group[0], shifted("shl", group[1], 4))]
    return [
        b.binary("or", shifted("shr", group[i], 2 * i), shifted("shl", group[i + 1], 6 - 2 * i))
        for i in range(3)
    ]


def whole_tensor(
    low: Lowering, tensor: TensorView, value: Any, node: ast.AST
) -> tuple[tuple[ops.Value, ...], tuple[ops.Value, ...], OpenRegion]:
    """Indices, extents and body of `c[:] = expression`: one group of elements at a time."""
    count, size = group_of(tensor.type.dtype)
    axis = _axis(low, tensor, node)
    b, old = low.builder, tensor.type
    shape = [_over(n, count) if i == axis else n for i, n in enumerate(old.shape)]
    strides = [
        0 if n == 1 else make("mul", size, 1 if i == axis else _over(stride, count))
        for i, (n, stride) in enumerate(zip(old.shape, old.strides, strict=True))
    ]
    type_ = TensorType(Uint8, (*shape, size), (*strides, 1), 1, old.space)
    bytes_ = _viewed(low, tensor.value, type_)
    extents = tuple(b.size(Int64, dim) for dim in shape)
    indices = tuple(ops.Value(Int64, f"i{i}") for i in range(len(extents)))
    with b.region() as region:
        first = b.binary("mul", indices[axis], b.constant(Int64, count))
        group = []
        for place in range(count):
            at = b.binary("add", first, b.constant(Int64, place))
            own = (*indices[:axis], at, *indices[axis + 1 :])
            element = value.element(own) if isinstance(value, Whole) else value
            group.append(_bits(low, tensor, element, node))
        for place, byte in enumerate(_joined(low, group)):
            b.store(bytes_, (*indices, b.constant(Int64, place)), byte)
    return indices, extents, region


def _over(dim: Dim, count: int) -> Dim:
    """A size in groups; `_axis` has seen that it can be divided."""
    found = quotient(dim, count)
    assert found is not None
    return found


def _axis(low: Lowering, tensor: TensorView, node: ast.AST) -> int:
    """The dim along which elements lie next to each other, in whole groups."""
    type_, (count, _) = tensor.type, group_of(tensor.type.dtype)
    pairs = list(zip(type_.shape, type_.strides, strict=True))
    axes = [i for i, (n, stride) in enumerate(pairs) if stride == 1 and n != 1]
    wanted = [n if stride == 1 else stride for n, stride in pairs if n != 1]
    if len(axes) == 1 and all(quotient(dim, count) is not None for dim in wanted):
        return axes[0]
    low.fail(
        node,
        f"all of {tensor.name} is written, whose rows may end in the middle of a byte: "
        f"{_shared(type_.dtype)}",
        expected=f"one dim with stride 1, and its size and the other strides multiples of {count}",
        hint=f"sizes of sym_int(divisibility={count})",
    )


def _offsets(low: Lowering, tensor: TensorView, node: ast.AST) -> list[int]:
    """The number of each element in memory; both halves of each byte must be among them."""
    type_, (count, _) = tensor.type, group_of(tensor.type.dtype)
    if all(isinstance(stride, int) for stride in type_.strides):
        layout = layouts.Layout(type_.shape, type_.strides)
        found = [layouts.crd2idx(i, layout) for i in range(layouts.size(layout))]
        every = set(found)
        groups = {offset // count * count for offset in found}
        if len(every) == len(found) == count * len(groups):
            return found
    low.fail(
        node,
        f"{tensor.name} has the layout {tensor.layout}: its elements of {type_.dtype.name} do not "
        "fill whole bytes",
        expected="elements in pairs, with the stride 1 between them"
        if count == 2
        else "elements in fours, with the stride 1 between them",
        hint=in_groups(type_.dtype),
    )


def _bits(low: Lowering, tensor: TensorView, value: Any, node: ast.AST) -> ops.Value:
    """A number as an element's bits, in a Uint8."""
    dtype, b = tensor.type.dtype, low.builder
    if coercion.is_python_number(value) and isinstance(coercion.plain(value), (bool, int)):
        coercion.fitted(low, coercion.plain(value), dtype, node)
    number = coercion.as_number(low, value, node, PACKED[dtype])
    if not stores_implicitly(number.dtype, dtype):
        low.fail(
            node,
            f"a {number.dtype.name} is stored to {tensor.name}, whose elements are {dtype.name}",
            expected=f"a value that becomes {dtype.name} without losing its kind",
            hint=f"convert it, fe.{PACKED[dtype].__name__}(x)",
        )
    if dtype.is_narrow:
        from ferrule.language.mathlib import narrow
        from ferrule.language.mathlib.formulas import Num

        bits = narrow.encoded(dtype, Num(b, number.value)).value
        return b.cast(Uint8, bits)
    wrapped = coercion.convert(low, number, Uint8).value
    return b.binary("and", wrapped, b.constant(Uint8, 15))

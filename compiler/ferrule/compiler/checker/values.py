"""The last part of a program: checks sizes, strides, alignment and values of each parameter.

It stores the leaves that the first part did not store.
"""

from __future__ import annotations

import struct
from typing import Final

from typing_extensions import assert_never

from ferrule.compiler.checker.code import Code
from ferrule.compiler.checker.format import Float, Op
from ferrule.compiler.checker.kinds import over_elements
from ferrule.compiler.checker.nodes import Node
from ferrule.compiler.checker.sizes import SizeRows, numbers_of
from ferrule.compiler.messages.context import Order
from ferrule.specs import (
    BFloat16,
    DType,
    Float16,
    Float32,
    Float64,
    Tensor,
    TFloat32,
    compact_strides,
)
from ferrule.specs.params import (
    Constant,
    DataType,
    Device,
    Elements,
    EnvStream,
    Optional,
    Pairs,
    Param,
    Payload,
    Plain,
    Pointer,
    Scalar,
    Shape,
    Stream,
    Tuple,
    Union,
    WithTraits,
)
from ferrule.specs.text import kind_text

_FLOATS: Final[dict[DType, Float]] = {
    Float64: Float.F64,
    Float32: Float.F32,
    Float16: Float.F16,
    BFloat16: Float.BF16,
    TFloat32: Float.TF32,
}


class ValueRows:
    """Makes the rows of one signature."""

    def __init__(self, code: Code, sizes: SizeRows) -> None:
        self.code = code
        self.sizes = sizes

    def check(self, node: Node) -> None:
        """Rows that check a value and store its leaves."""
        if not has_values(node.param):
            return
        self.code.at(node.at)
        match node.param:
            case Tensor():
                self._check_tensor(node.param, node)
            case Shape():
                for number in numbers_of(node):
                    self.sizes.check(number)
            case Scalar(dtype=dtype):
                self.check_scalar(dtype, node.loops)
                self._store(node)
            case Pointer():
                self._check_pointer(node.param)
                self._store(node)
            case Stream():
                self.code.row(Op.ADDRESS, a=self.code.text("address"))
                self._store(node)
            case DataType() | Device():
                self._check_named(node.param)
                self._store(node)
            case Constant(value=value):
                self._check_constant(value)
            case Tuple():
                for child in node.children:
                    self.check(child)
            case Optional() | Union():
                self._check_guarded(node)
            case Elements() | Pairs():
                over_elements(self.code, node, lambda _, child: self.check(child))
            case WithTraits():
                kind = type(node.param).__name__
                raise TypeError(f"compiler/checker/values.py has no case for the kind {kind}")
            case _:
                assert_never(node.param)

    def _store(self, node: Node) -> None:
        if node.leaf >= 0:
            self.code.row(Op.STORE, a=node.leaf)

    def _check_guarded(self, node: Node) -> None:
        for child in node.children:
            if has_values(child.param):
                self.code.at(node.at)
                other = self.code.row(Op.UNLESS, **child.guards[-1][1].operands())
                self.check(child)
                self.code.here(other)

    # ---- tensors ----

    def _check_tensor(self, spec: Tensor, node: Node) -> None:
        code = self.code
        self._hint(spec)
        for number in numbers_of(node):
            self.sizes.check(number)
        code.at(node.at)
        code.row(Op.DATA)
        if spec.align > 1:
            code.row(Op.ALIGNED_DATA, b=spec.align)
        if 0 not in spec.shape:
            code.row(Op.ELEMENTS)
        self._store(node)

    def _hint(self, spec: Tensor) -> None:
        """A hint for the most frequent mistake: a tensor in the other of the two usual orders."""
        columns_first = tuple(range(len(spec.shape)))
        rows_first = tuple(reversed(columns_first))
        is_row_major = spec.strides == compact_strides(spec.shape, rows_first)
        is_column_major = spec.strides == compact_strides(spec.shape, columns_first)
        if is_row_major == is_column_major:
            return
        wanted, actual = "row-major", "column-major"
        shown, order = Order.COLUMN_MAJOR, columns_first
        if is_column_major:
            wanted, actual = actual, wanted
            shown, order = Order.ROW_MAJOR, rows_first
        text = (
            f"; hint: the parameter is {wanted} and this tensor looks {actual}, "
            f"which an example with stride_order={order} stands for"
        )
        self.code.row(Op.HINT, kind=shown, a=self.code.text(text))

    # ---- other kinds ----

    def check_scalar(self, dtype: DType, loops: int) -> None:
        """Rows that check a number of this type and load it."""
        code = self.code
        match dtype.kind, dtype.bits:
            case "bool", _:
                code.row(Op.BOOLEAN)
            case "float", _:
                inside = int(loops > 0)
                code.row(Op.FLOAT, kind=_FLOATS[dtype], axis=inside, a=code.text("int64"))
            case "uint", 64:
                code.row(Op.UNSIGNED, a=code.text(dtype.name))
            case kind, _:
                signed, name = int(kind == "int"), code.text(dtype.name)
                code.row(Op.INTEGER, kind=signed, a=name, b=dtype.range[1])

    def _check_pointer(self, spec: Pointer) -> None:
        code = self.code
        code.row(Op.ADDRESS, a=code.text("address"))
        if not spec.nullable:
            code.row(Op.NOT_NULL)
        if spec.align > 1:
            code.row(Op.ALIGNED, b=spec.align)

    def _check_named(self, spec: DataType | Device) -> None:
        match spec:
            case DataType():
                self.code.row(Op.DATA_TYPE, a=self.code.text("dtype"))
            case Device():
                self.code.row(Op.DEVICE_VALUE, a=self.code.text("device"))

    def _check_constant(self, value: bool | int | float | str) -> None:
        code = self.code
        expected = code.text(kind_text(Constant("x", value), {}, full=False)[len("Literal[") : -1])
        match value:
            case str():
                code.row(Op.CONSTANT_TEXT, a=expected, b=code.text(value))
            case float():
                (bits,) = struct.unpack("<q", struct.pack("<d", value))
                code.row(Op.CONSTANT, a=expected, b=bits)
            case _:
                code.row(Op.CONSTANT, a=expected, b=int(value))


def has_values(param: Param | None) -> bool:
    """Whether the last part has any rows for a parameter."""
    match param:
        case Tuple(items=items):
            return any(map(has_values, items))
        case Union(members=members):
            return any(map(has_values, members))
        case Optional(item=item) | Elements(item=item):
            return has_values(item)
        case Pairs(key=key, value=value):
            return has_values(key) or has_values(value)
        case Tensor() | Scalar() | Shape() | Constant():
            return True
        case None | EnvStream():
            return False
        case WithTraits(traits=traits):
            has_fields = isinstance(param, Plain) and bool(param.literal_fields())
            return has_fields or traits.payload in (Payload.ADDRESS, Payload.BITS)
        case _:
            assert_never(param)

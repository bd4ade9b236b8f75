"""C struct layouts by field name, for 64-bit targets.

Offsets and sizes follow from the fields' LLVM types by the rules of C, so code generators contain
no numeric offsets. A union is one field with *views*: other types at the same offset. A test pins
every offset against the C headers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from llvmlite import ir

from ferrule.runtime.abi import DeviceType, DTypeCode, TypeIndex
from ferrule.specs.deferred import dataclass

__all__ = [
    "ANY",
    "BYTE_ARRAY",
    "DLTENSOR",
    "ERROR_CELL",
    "F64",
    "I1",
    "I8",
    "I16",
    "I32",
    "I64",
    "MANAGED_TENSOR",
    "OBJECT",
    "PACKED",
    "PTR",
    "PY_ARRAY",
    "PY_ARRAY_DESCR",
    "PY_OBJECT",
    "SEQ",
    "SEQ_OBJECT",
    "SHAPE",
    "TENSOR_OBJECT",
    "VOID",
    "DTypeCode",
    "DeviceType",
    "Field",
    "Layout",
    "TypeIndex",
    "View",
    "align_of",
    "size_of",
]

I1 = ir.IntType(1)
I8 = ir.IntType(8)
I16 = ir.IntType(16)
I32 = ir.IntType(32)
I64 = ir.IntType(64)
F32 = ir.FloatType()
F64 = ir.DoubleType()
PTR = ir.PointerType()
VOID = ir.VoidType()

PACKED = ir.FunctionType(I32, [PTR, PTR, I32, PTR])
"""A TVM-FFI function: (handle, arguments, their number, result), 0 or -1 with an error raised."""

FieldType: TypeAlias = "ir.Type | Layout"


@dataclass(frozen=True, slots=True)
class Field:
    """A member of a struct; it follows the previous member."""

    name: str
    type: FieldType


@dataclass(frozen=True, slots=True)
class View:
    """Another type for the bytes at the start of the field `of`."""

    name: str
    of: str
    type: FieldType


class Layout:
    """A C struct: where each named field lies. Immutable; compared by identity."""

    __slots__ = ("_places", "align", "name", "size")

    def __init__(self, name: str, fields: Iterable[Field | View]) -> None:
        self.name = name
        self._places: dict[str, tuple[int, FieldType]] = {}
        self.size = 0
        self.align = 1
        for field in fields:
            if field.name in self._places:
                raise ValueError(f"layout {name} has two fields named {field.name}")
            self._place(field)
        self.size = _round_up(self.size, self.align)

    def _place(self, field: Field | View) -> None:
        match field:
            case View():
                offset = self.offset(field.of)
            case Field():
                align = align_of(field.type)
                offset = _round_up(self.size, align)
                self.size = offset + size_of(field.type)
                self.align = max(self.align, align)
        self._places[field.name] = (offset, field.type)

    @property
    def names(self) -> tuple[str, ...]:
        """Fields and views in the order in which they were written."""
        return tuple(self._places)

    def offset(self, path: str) -> int:
        """Bytes from the start of the struct; `path` may go on into a nested one: `dl.shape`."""
        return self._find(path)[0]

    def type_of(self, path: str) -> FieldType:
        """The LLVM type of a field, or the layout of a nested struct."""
        return self._find(path)[1]

    def _find(self, path: str) -> tuple[int, FieldType]:
        name, _, rest = path.partition(".")
        try:
            offset, kind = self._places[name]
        except KeyError:
            known = ", ".join(self._places)
            raise KeyError(f"layout {self.name} has no field {name!r}, only {known}") from None
        if not rest:
            return offset, kind
        if not isinstance(kind, Layout):
            raise KeyError(f"{self.name}.{name} is no struct, it has no field {rest!r}")
        inner, kind = kind._find(rest)
        return offset + inner, kind

    def __repr__(self) -> str:
        return f"<Layout {self.name}: {self.size} bytes>"


def size_of(kind: FieldType) -> int:
    """Bytes that a value of this type takes in memory."""
    match kind:
        case Layout():
            return kind.size
        case ir.IntType():
            return int(kind.width) // 8
        case ir.HalfType():
            return 2
        case ir.FloatType():
            return 4
        case ir.DoubleType() | ir.PointerType():
            return 8
        case ir.ArrayType():
            return int(kind.count) * size_of(kind.element)
        case _:
            raise TypeError(f"no C layout for the LLVM type {kind}")


def align_of(kind: FieldType) -> int:
    """Alignment in bytes that C gives this type on every 64-bit target that ferrule has."""
    match kind:
        case Layout():
            return kind.align
        case ir.ArrayType():
            return align_of(kind.element)
        case _:
            return size_of(kind)


def _round_up(value: int, step: int) -> int:
    # Division rounds down, so the negation on both sides rounds up.
    return -(-value // step) * step


ANY = Layout(
    "TVMFFIAny",
    [
        Field("type_index", I32),
        Field("zero_padding", I32),
        Field("v_int64", I64),
        View("small_str_len", "zero_padding", I32),
        View("head", "type_index", I64),  # index and padding in one store
        View("v_float64", "v_int64", F64),
        View("v_ptr", "v_int64", PTR),
        View("v_c_str", "v_int64", PTR),
        View("v_obj", "v_int64", PTR),
        View("v_dtype", "v_int64", I32),
        View("v_device", "v_int64", I64),
        View("v_bytes", "v_int64", ir.ArrayType(I8, 8)),
        View("v_uint64", "v_int64", I64),
    ],
)

OBJECT = Layout(
    "TVMFFIObject",
    [
        Field("combined_ref_count", I64),
        Field("type_index", I32),
        Field("__padding", I32),
        Field("deleter", PTR),
    ],
)

BYTE_ARRAY = Layout("TVMFFIByteArray", [Field("data", PTR), Field("size", I64)])

SHAPE = Layout("TVMFFIShapeCell", [Field("data", PTR), Field("size", I64)])

SEQ = Layout(
    "TVMFFISeqCell",
    [
        Field("data", PTR),
        Field("size", I64),
        Field("capacity", I64),
        Field("data_deleter", PTR),
    ],
)

SEQ_OBJECT = Layout("SeqObj", [Field("header", OBJECT), Field("cell", SEQ)])
"""An Array or a List of tvm-ffi."""

DLTENSOR = Layout(
    "DLTensor",
    [
        Field("data", PTR),
        Field("device_type", I32),
        Field("device_id", I32),
        Field("ndim", I32),
        Field("dtype_code", I8),
        Field("dtype_bits", I8),
        Field("dtype_lanes", I16),
        Field("shape", PTR),
        Field("strides", PTR),
        Field("byte_offset", I64),
        View("device", "device_type", I64),  # type and id, for one compare
        View("dtype", "dtype_code", I32),  # code, bits and lanes, for one compare
    ],
)

MANAGED_TENSOR = Layout(
    "DLManagedTensorVersioned",
    [
        Field("version_major", I32),
        Field("version_minor", I32),
        Field("manager_ctx", PTR),
        Field("deleter", PTR),
        Field("flags", I64),
        Field("dl", DLTENSOR),
    ],
)

TENSOR_OBJECT = Layout("TensorObj", [Field("header", OBJECT), Field("dl", DLTENSOR)])

ERROR_CELL = Layout(
    # Only what every version of tvm-ffi has; the struct has grown at its end.
    "TVMFFIErrorCell",
    [
        Field("kind", BYTE_ARRAY),
        Field("message", BYTE_ARRAY),
        Field("backtrace", BYTE_ARRAY),
        Field("update_backtrace", PTR),
    ],
)

PY_OBJECT = Layout("PyObject", [Field("ob_refcnt", I64), Field("ob_type", PTR)])

PY_ARRAY = Layout(
    "PyArrayObject",
    [
        Field("ob_base", PY_OBJECT),
        Field("data", PTR),
        Field("nd", I32),
        Field("dimensions", PTR),
        Field("strides", PTR),
        Field("base", PTR),
        Field("descr", PTR),
        Field("flags", I32),
    ],
)

# The part that is the same in NumPy 1 and NumPy 2 (ndarraytypes.h); behind `type_num` they differ.
PY_ARRAY_DESCR = Layout(
    "PyArray_Descr",
    [
        Field("ob_base", PY_OBJECT),
        Field("typeobj", PTR),
        Field("kind", I8),
        Field("type", I8),
        Field("byteorder", I8),
        Field("former_flags", I8),
        Field("type_num", I32),
    ],
)

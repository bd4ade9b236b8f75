"""Reflection of types that are registered with tvm-ffi: fields, methods and ancestors.

The structs are declared in tvm-ffi's C header; they have not changed since version 0.1.0, and a
test pins them.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator
from typing import Any, Final

from ferrule.runtime.abi import TypeIndex
from ferrule.specs.deferred import dataclass

# Flags of TVMFFIFieldInfo, as the C header of tvm-ffi has them.
_WRITABLE: Final = 1 << 0
_STATIC: Final = 1 << 2
_HAS_DEFAULT: Final = 1 << 1
_INIT_OFF: Final = 1 << 9
_KEYWORD_ONLY: Final = 1 << 10


class _Bytes(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]

    @property
    def text(self) -> str:
        """The UTF-8 text, empty for null."""
        return ctypes.string_at(self.data, self.size).decode() if self.data else ""


class _Any(ctypes.Structure):
    _fields_ = [
        ("type_index", ctypes.c_int32),
        ("zero_padding", ctypes.c_uint32),
        ("v_int64", ctypes.c_int64),
    ]


class CFieldInfo(ctypes.Structure):
    """TVMFFIFieldInfo."""

    _fields_ = [
        ("name", _Bytes),
        ("doc", _Bytes),
        ("metadata", _Bytes),
        ("flags", ctypes.c_int64),
        ("size", ctypes.c_int64),
        ("alignment", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("getter", ctypes.c_void_p),
        ("setter", ctypes.c_void_p),
        ("default_value_or_factory", _Any),
        ("field_static_type_index", ctypes.c_int32),
    ]


class CMethodInfo(ctypes.Structure):
    """TVMFFIMethodInfo."""

    _fields_ = [
        ("name", _Bytes),
        ("doc", _Bytes),
        ("metadata", _Bytes),
        ("flags", ctypes.c_int64),
        ("method", _Any),
    ]


class CTypeInfo(ctypes.Structure):
    """TVMFFITypeInfo."""


CTypeInfo._fields_ = [
    ("type_index", ctypes.c_int32),
    ("type_depth", ctypes.c_int32),
    ("type_key", _Bytes),
    ("type_ancestors", ctypes.POINTER(ctypes.POINTER(CTypeInfo))),
    ("type_key_hash", ctypes.c_uint64),
    ("num_fields", ctypes.c_int32),
    ("num_methods", ctypes.c_int32),
    ("fields", ctypes.POINTER(CFieldInfo)),
    ("methods", ctypes.POINTER(CMethodInfo)),
    ("metadata", ctypes.c_void_p),
]


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """A reflected field.

    `schema` is tvm-ffi's description of its type, `{"type": "int"}`; `offset` and `size` are in
    bytes, from the beginning of the object.  `is_positional`: the constructor that tvm-ffi
    generates takes the field by position; fields with a default come after fields without one.
    """

    name: str
    schema: dict[str, Any]
    offset: int
    size: int
    writable: bool
    doc: str = ""
    is_positional: bool = False
    has_default: bool = False

    @property
    def type(self) -> str:
        """The type of its values in words, `Optional[int]`."""
        return schema_text(self.schema)

    def __str__(self) -> str:
        return f"{self.name}: {self.type}" + ("" if self.writable else "  (read-only)")


@dataclass(frozen=True, slots=True)
class MethodInfo:
    """A reflected method; `params` are the types of its parameters, or None if they are unknown.

    If a method is not `static`, its first parameter is the object.
    """

    name: str
    params: tuple[dict[str, Any], ...] | None
    result: dict[str, Any] | None
    static: bool
    doc: str = ""

    def __str__(self) -> str:
        if self.params is None:
            return f"{self.name}(...)"
        given = ", ".join(map(schema_text, self.params if self.static else self.params[1:]))
        result = "Any" if self.result is None else schema_text(self.result)
        return f"{self.name}({given}) -> {result}" + ("  (static)" if self.static else "")


@dataclass(frozen=True, slots=True)
class TypeInfo:
    """A registered type: its fields and methods, with the inherited ones first.

    `ancestors` are the keys of its base types, direct and indirect, `ffi.Object` first.
    """

    type_key: str
    type_index: int
    ancestors: tuple[str, ...]
    fields: tuple[FieldInfo, ...]
    methods: tuple[MethodInfo, ...]

    def field(self, name: str) -> FieldInfo | None:
        """The field with this name, from the most derived type that defines it; else None."""
        return next((each for each in reversed(self.fields) if each.name == name), None)

    def method(self, name: str) -> MethodInfo | None:
        """The method with this name, from the most derived type that defines it; else None."""
        return next((each for each in reversed(self.methods) if each.name == name), None)

    def __repr__(self) -> str:
        line = " < ".join([self.type_key, *reversed(self.ancestors)])
        lines = [f"{line}  (type index {self.type_index})"]
        lines += [f"  {each}" for each in (*self.fields, *self.methods)]
        return "\n".join(lines)


_MOST_CLASSES: Final = 32


def classes_of(key: str) -> tuple[type, ...]:
    """The existing Python classes of a registered type and of types derived from it."""
    import tvm_ffi

    found: list[type] = []
    for cls in _below(tvm_ffi.Object):
        info = cls.__dict__.get("__tvm_ffi_type_info__")
        if getattr(info, "type_key", None) == key:
            found += [cls, *_below(cls)]
    return tuple(dict.fromkeys(found))[:_MOST_CLASSES]


def _below(cls: type[Any]) -> Iterator[type[Any]]:
    """The classes that are derived from a class."""
    subclasses: list[type[Any]] = cls.__subclasses__()
    for each in subclasses:
        yield each
        yield from _below(each)


def type_info(of: object) -> TypeInfo:
    """tvm-ffi's information about the type of a class, an object, or a type key ("ffi.Array").

    Raises TypeError for a value without a tvm-ffi type, and for a type that is not registered.
    """
    index = _registered_index(of) if isinstance(of, str) else _index_of(of)
    return _described(_c_info(index))


def _registered_index(key: str) -> int:
    index = registered_index(key)
    if index is None:
        raise TypeError(
            f"tvm-ffi has no type {key!r}: import the module or load the library that registers it"
        )
    return index


def registered_index(key: str) -> int | None:
    """The type index of a key in this process; None if the key is not registered."""
    from ferrule.runtime.host import libtvm_ffi

    data, found = key.encode(), ctypes.c_int32()
    named = _Bytes(ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p), len(data))
    library = libtvm_ffi()
    if library.TVMFFITypeKeyToIndex(ctypes.byref(named), ctypes.byref(found)) == 0:
        return found.value
    error = ctypes.c_void_p()
    library.TVMFFIErrorMoveFromRaised(ctypes.byref(error))
    if error:
        library.TVMFFIObjectDecRef(error)
    return None


def _index_of(of: object) -> int:
    """The type index of a tvm-ffi class, or of an object of such a class."""
    cls = of if isinstance(of, type) else type(of)
    info = getattr(cls, "__tvm_ffi_type_info__", None)
    index = getattr(info, "type_index", None)
    if index is None:
        raise TypeError(
            f"expected a class that is registered with tvm-ffi, an object of one, or a type key, "
            f"but got {of!r}"
        )
    return int(index)


def _c_info(index: int) -> CTypeInfo:
    from ferrule.runtime.host import libtvm_ffi

    find = libtvm_ffi().TVMFFIGetTypeInfo
    find.restype = ctypes.POINTER(CTypeInfo)
    found: CTypeInfo = find(ctypes.c_int32(index)).contents
    return found


def _described(info: CTypeInfo) -> TypeInfo:
    line = [info.type_ancestors[i].contents for i in range(info.type_depth)]
    return TypeInfo(
        info.type_key.text,
        info.type_index,
        tuple(each.type_key.text for each in line),
        tuple(field for each in (*line, info) for field in _fields(each)),
        tuple(method for each in (*line, info) for method in _methods(each)),
    )


def _fields(info: CTypeInfo) -> Iterator[FieldInfo]:
    for position in range(info.num_fields):
        each = info.fields[position]
        schema = _schema(each.metadata.text) or _static(each.field_static_type_index)
        writable = bool(each.flags & _WRITABLE)
        yield FieldInfo(
            *(each.name.text, schema, each.offset, each.size, writable, each.doc.text),
            is_positional=not each.flags & (_INIT_OFF | _KEYWORD_ONLY),
            has_default=bool(each.flags & _HAS_DEFAULT),
        )


def _methods(info: CTypeInfo) -> Iterator[MethodInfo]:
    for position in range(info.num_methods):
        each = info.methods[position]
        params, result = _function_schema(_schema(each.metadata.text))
        static = bool(each.flags & _STATIC)
        yield MethodInfo(each.name.text, params, result, static, each.doc.text)


def _schema(metadata: str) -> dict[str, Any] | None:
    """The type schema in the JSON of metadata, if there is one; C++ nests it as a JSON string."""
    try:
        found = json.loads(metadata).get("type_schema") if metadata else None
        found = json.loads(found) if isinstance(found, str) else found
    except (ValueError, AttributeError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("type"), str) else None


_STATIC_NAMES: Final = {
    TypeIndex.INT: "int",
    TypeIndex.BOOL: "bool",
    TypeIndex.FLOAT: "float",
    TypeIndex.DATA_TYPE: "DataType",
    TypeIndex.DEVICE: "Device",
}


def _static(index: int) -> dict[str, Any]:
    """The type of a field that has no metadata."""
    known = {int(number): name for number, name in _STATIC_NAMES.items()}
    return {"type": known.get(index, "Any")}


def _function_schema(
    schema: dict[str, Any] | None,
) -> tuple[tuple[dict[str, Any], ...] | None, dict[str, Any] | None]:
    """The types of parameters and result; older versions of tvm-ffi list the result first."""
    match schema:
        case {"named_args": {"return": [result], "params": [*given]}}:
            return tuple(given), result
        case {"type": "ffi.Function", "args": [result, *given]}:
            return tuple(given), result
    return None, None


def schema_text(schema: dict[str, Any]) -> str:
    """A type in words, `Map[str, Array[int]]`."""
    name: str = _WORDS.get(schema["type"], schema["type"])
    args = [schema_text(each) for each in schema.get("args", ()) if isinstance(each, dict)]
    if not args or set(args) == {"Any"}:
        return name
    return f"{name}[{', '.join(args)}]"


_WORDS: Final = {
    "ffi.String": "str",
    "ffi.Bytes": "bytes",
    "ffi.Array": "Array",
    "ffi.List": "List",
    "ffi.Map": "Map",
    "ffi.Dict": "Dict",
    "ffi.Shape": "Shape",
    "ffi.Tensor": "Tensor",
    "ffi.Function": "Function",
    "ffi.Module": "Module",
    "ffi.Object": "Object",
    "DataType": "dtype",
    "Variant": "Union",
}

"""From tvm-ffi's description of a type to a spec: for fields and results of methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ferrule.compiler.cache.keys import note_unkept
from ferrule.runtime.values.typeinfo import registered_index
from ferrule.specs import Boolean, Float64, Int64, params

_SCALARS: Final = {"int": Int64, "float": Float64, "bool": Boolean}
_PLAIN: Final[Mapping[str, Callable[[str], params.Param]]] = {
    "None": params.NoneValue,
    "ffi.String": params.String,
    "str": params.String,
    "ffi.Bytes": params.Bytes,
    "bytes": params.Bytes,
    "DataType": params.DataType,
    "dtype": params.DataType,
    "Device": params.Device,
    "ffi.Function": params.Function,
    "Callable": params.Function,
    "ffi.Module": params.Module,
    "Module": params.Module,
}
_ELEMENTS: Final[Mapping[str, type[params.Array | params.List]]] = {
    "ffi.Array": params.Array,
    "Array": params.Array,
    "ffi.List": params.List,
    "List": params.List,
}
_PAIRS: Final[Mapping[str, type[params.Map | params.Dict]]] = {
    "ffi.Map": params.Map,
    "Map": params.Map,
    "ffi.Dict": params.Dict,
    "Dict": params.Dict,
}


def spec_of_schema(schema: Mapping[str, Any] | None, name: str = "value") -> params.Param | None:
    """The spec of the values of a type; None if they can be anything."""
    try:
        return None if schema is None else _spec(schema, name)
    except ValueError:  # an element type that container specs do not support
        return None


def _spec(schema: Mapping[str, Any], name: str) -> params.Param | None:
    kind, args = schema["type"], schema.get("args", ())
    inner = [spec_of_schema(each, "item") for each in args if isinstance(each, Mapping)]
    if kind in _SCALARS:
        return params.Scalar(name, _SCALARS[kind])
    if kind in _PLAIN:
        return _PLAIN[kind](name)
    if kind in _ELEMENTS:
        return _ELEMENTS[kind](name, *inner[:1])
    if kind in _PAIRS:
        return _PAIRS[kind](name, *inner[:2])
    if kind == "Optional" and inner and inner[0] is not None:
        return params.Optional(name, inner[0])
    if kind in ("ffi.Object", "Object"):
        return params.Object(name, "ffi.Object")
    if "." in kind and known_index(kind) is not None:
        return params.Object(name, kind)
    return None


# ---- registered types, as a compilation asks for them ----


def known_index(key: str) -> int | None:
    """The index of a type, None if there is none.  What is registered is in no key."""
    note_unkept(f"it reads what tvm-ffi knows of the type {key}")
    return registered_index(key)

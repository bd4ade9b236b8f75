"""Signatures as tvm-ffi's type schemas, in the flat form: result first, then the arguments.

Newer versions of tvm-ffi write names too, in a form that older ones cannot read; the names are in
ferrule's own part of the metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from typing_extensions import assert_never

from ferrule.specs import Signature, params
from ferrule.specs.overloads import Overloads

Schema = dict[str, Any]


def type_schema(signature: Signature) -> Schema:
    """The schema of a function with this signature."""
    if isinstance(signature, Overloads):
        return _joined([type_schema(each) for each in signature.candidates])
    result = _type("None") if signature.result is None else param_schema(signature.result)
    arguments = [param_schema(param) for param in signature.arguments]
    return _type("ffi.Function", result, *arguments)


def _joined(schemas: Sequence[Schema]) -> Schema:
    """The schema of an overload, from the candidates with as many arguments as the first one."""
    same = [each for each in schemas if len(each["args"]) == len(schemas[0]["args"])]
    columns = zip(*(each["args"] for each in same), strict=True)
    return _type("ffi.Function", *map(_any_of, columns))


def _any_of(schemas: Sequence[Schema]) -> Schema:
    different = [each for i, each in enumerate(schemas) if each not in schemas[:i]]
    return different[0] if len(different) == 1 else _type("Variant", *different)


def param_schema(param: params.Param) -> Schema:
    """The schema of one parameter, or of a result."""
    match param:
        case params.Tensor(owning=owning):
            return _type("ffi.Tensor" if owning else "DLTensor*")
        case params.Scalar(dtype=dtype):
            return _type({"float": "float", "bool": "bool"}.get(dtype.kind, "int"))
        case params.Shape():
            return _type("ffi.Shape")
        case params.Tuple(items=items):
            return _type("Tuple", *map(param_schema, items))
        case params.Optional(item=item):
            return _type("Optional", param_schema(item))
        case params.Union(members=members):
            return _type("Variant", *map(param_schema, members))
        case params.Constant(value=value):
            return _type("ffi.String" if isinstance(value, str) else type(value).__name__)
        case params.Elements(item=item):
            return _type(param.traits.schema, _inner(item))
        case params.Pairs(key=key, value=value):
            return _type(param.traits.schema, _inner(key), _inner(value))
        case params.Object(type_key=type_key):
            return _type(type_key)
        case params.WithTraits():
            return _type(param.traits.schema)
        case _:
            assert_never(param)


def _inner(param: params.Param | None) -> Schema:
    return _type("Any") if param is None else param_schema(param)


def _type(origin: str, *args: Schema) -> Schema:
    return {"type": origin, "args": list(args)} if args else {"type": origin}

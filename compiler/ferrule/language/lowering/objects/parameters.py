"""A host function's parameters: the arguments of the body, and the values of their names.

The body receives the leaves that `compiler.artefacts.Body` documents; each is a parameter of the
IR's host function.  There is one handler for each kind of parameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from ferrule.language.faces import base as faces
from ferrule.language.ir import ops
from ferrule.language.ir.types import HandleType, TensorType, Type
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.numbers.coercion import convert
from ferrule.language.lowering.numbers.sizes import size_number
from ferrule.language.lowering.tensors import views
from ferrule.language.values import Handle, Maybe, Number, OneOf, TensorView
from ferrule.specs import Boolean, DType, Int32, Int64, params
from ferrule.specs.binding import Path
from ferrule.specs.deferred import dataclass


@dataclass(slots=True)
class Receiver:
    """Makes the leaves and values of parameters, in order.

    `classes` has the named tuple or dataclass of each tuple, that of each tag, which is a constant,
    and the dtype of each narrow float.
    """

    low: Lowering
    classes: Mapping[Path, Any]
    leaves: list[ops.Value]

    def leaf(self, type_: Type, name: str) -> ops.Value:
        """The next parameter of the body."""
        hint = "".join(c if c.isalnum() else "_" for c in name).strip("_")
        self.leaves.append(ops.Value(type_, hint))
        return self.leaves[-1]

    def receive(self, param: params.Param, path: Path, name: str) -> Any:
        """The value of a parameter, whose leaves are appended."""
        match param:
            case params.Tensor():
                type_ = TensorType(param.dtype, param.shape, param.strides, param.align)
                return TensorView(self.leaf(type_, name), name)
            case params.Scalar(dtype=dtype):
                number = Number(self.leaf(dtype, name))
                wanted = self.classes.get(path)
                return convert(self.low, number, wanted) if isinstance(wanted, DType) else number
            case params.Shape(dims=dims):
                return tuple(size_number(self.low, dim) for dim in dims)
            case params.NoneValue():
                return None
            case params.Constant(value=value):
                return self.classes[path]() if path in self.classes else value
            case params.Tuple(items=items):
                values = [
                    self.receive(item, (*path, i), f"{name}[{i}]") for i, item in enumerate(items)
                ]
                wanted = self.classes.get(path)
                if wanted is not None and not isinstance(wanted, type):
                    return self.made_by(wanted, values)
                return rebuild(wanted, [item.name for item in items], values)
            case params.Optional(item=item):
                present = Number(self.leaf(Boolean, f"{name}.present"))
                return Maybe(present, self.receive(item, path, name), name)
            case params.Union(members=members):
                tag = self.leaf(Int32, f"{name}.kind")
                found = {i: (m, self.receive(m, path, name)) for i, m in enumerate(members)}
                return OneOf(tag, found, name)
            case params.Pointer(dtype=DType() as dtype, align=align):
                (handle,) = _handle_types(param)
                return views.pointer_to(self.low, self.leaf(handle, name), dtype, align, name)
            case _:
                leaves = tuple(self.leaf(type_, name) for type_ in _handle_types(param))
                return Handle(param, leaves, name)

    def made_by(self, example: Any, values: list[Any]) -> Any:
        """The object that an example makes of its values, which were in memory of C."""
        node = self.low.frame.source.node
        make = example.__new_from_mlir_values__
        return self.low.call(make, [values], {}, node)  # type: ignore[arg-type]


def _handle_types(param: params.Param) -> tuple[Type, ...]:
    """The leaves of a parameter that is only passed on."""
    match param:
        case params.Pointer(dtype=dtype):
            return (HandleType("pointer" if dtype is None else f"pointer to {dtype.name}"),)
        case params.WithTraits(traits=traits):
            types: dict[str, Type] = {"i32": Int32, "i64": Int64}
            return tuple(types.get(leaf) or _address_type(param) for leaf in traits.leaves)
        case _:
            raise TypeError(f"a {type(param).__name__} has a value of its own")


def _address_type(param: params.WithTraits) -> HandleType:
    """The leaf with the address."""
    match param.traits.payload:
        case params.Payload.BYTES:
            return HandleType("bytes")
        case params.Payload.ADDRESS:
            return HandleType("stream")
        case _:
            return HandleType(param.traits.word.lower())


def rebuild(cls: type | None, names: list[str], values: list[Any]) -> Any:
    """The items of a tuple as its named tuple, dataclass or object of values.

    An object is filled without calling its constructor, whose checks could not read run-time
    values.
    """
    if cls is None:
        return tuple(values)
    if issubclass(cls, tuple):
        # The constructor of a named tuple takes its fields one by one, and may be the user's.
        return tuple.__new__(cls, values)
    instance = object.__new__(cls)
    given = dict(zip(names, values, strict=True))
    wanted = [field.name for field in fields(cls)] if is_dataclass(cls) else names
    for name in wanted:
        object.__setattr__(instance, name, given[name])
    return instance


def is_kind(param: params.Param, wanted: object) -> bool:
    """Whether a parameter is of the kind in an `isinstance`: a dtype class, `Tensor`, str, …"""
    if isinstance(wanted, tuple):
        return any(is_kind(param, each) for each in wanted)
    if isinstance(wanted, DType):
        return isinstance(param, params.Scalar) and param.dtype is wanted
    kinds: dict[object, tuple[type, ...]] = {
        faces.Tensor: (params.Tensor,),
        faces.Pointer: (params.Pointer,),
        str: (params.String,),
        bytes: (params.Bytes,),
        tuple: (params.Tuple, params.Shape),
        type(None): (params.NoneValue,),
    }
    return isinstance(param, kinds.get(wanted, ()))

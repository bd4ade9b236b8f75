"""Results of a host function, from its `return` statements to the `Return` of the program.

A returned value consists of numbers, so that branches join and loops carry it like any other: a
value that is not a number becomes `Parts`, such as the address and the length of a string.
"""

from __future__ import annotations

import ast
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from typing import Any, Literal

from ferrule.language.ir import ops
from ferrule.language.ir.types import HandleType, TensorType
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.control import exits
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.handles import is_object
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.python import return_annotations
from ferrule.language.lowering.tensors import whole_tensors
from ferrule.language.recognised import UNIONS
from ferrule.language.values import (
    Handle,
    Maybe,
    Number,
    OneOf,
    Parts,
    TensorView,
    Whole,
    is_record,
)
from ferrule.specs import DType, Float32, Int32, Int64, Numeric, format_dim, params
from ferrule.specs.copies import changed
from ferrule.specs.params import row_major_strides


def given_back(low: Lowering, value: Any, node: ast.Return) -> Any:
    """The value of a `return`, in the form that branches join and loops carry.

    A helper's value is unchanged; only results of the host function itself leave the program.
    """
    if low.kind != "host" or low.frame is not low.root:
        return value
    value = _computed(low, value, node)
    wanted = return_annotations.declared(low, value, low.state.returns, node)
    if low.state.returns is Any or typing.get_origin(low.state.returns) in UNIONS:
        return _any(low, wanted, node)
    return _packed(low, wanted, node)


def _computed(low: Lowering, value: Any, node: ast.AST) -> Any:
    """A value with reductions of everything as numbers, which the host computes."""
    if type(value) is tuple:
        return tuple(_computed(low, each, node) for each in value)
    if not isinstance(value, Whole) or value.shape:
        return value
    whole_tensors.check_current(low, value, node)
    if low.state.target != "cpu":
        low.fail(
            node,
            f"{_what(low, node)} returns {describe(value)}, which a GPU computes: the host would "
            "wait for it",
            hint="return a tensor: t = fe.empty((), dtype); t[()] = fe.sum(...); return t",
        )
    return value.element(())


def finish(low: Lowering, source_node: ast.AST, name: str) -> params.Param | None:
    """Emits the `Return` at the end of the host function; returns the spec of its result."""
    value = exits.result(low, source_node, name)
    if value is None:
        return_annotations.require_nothing(low, source_node, name)
        return None
    leaves: list[ops.Value] = []
    spec = _spec(low, value, "result", leaves, source_node)
    low.builder.append(ops.Return(tuple(leaves)))
    return spec


def _spec(
    low: Lowering, value: Any, name: str, leaves: list[ops.Value], node: ast.AST
) -> params.Param:
    """The spec of a value; appends its parts."""
    match value:
        case None:
            return params.NoneValue(name)
        case Parts():
            leaves += [part.value for part in value]
            if isinstance(type(value).param, params.AnyValue) and low.state.arrays == {"tuple"}:
                return params.AnyOrTuple(name)
            return changed(type(value).param, name=name)
        case tuple():
            items = [_spec(low, item, str(i), leaves, node) for i, item in enumerate(value)]
            return params.Tuple(name, tuple(items))
    number = coercion.as_number(low, value, node)
    leaves.append(number.value)
    return params.Scalar(name, number.dtype)


# ---- values as numbers ----


def _packed(low: Lowering, value: Any, node: ast.AST) -> Any:
    value = coercion.plain(value)
    match value:
        case Number() | Numeric() if value.dtype.is_narrow:
            wide = coercion.as_number(low, value, node)
            return coercion.convert(low, wide, Float32)  # exactly
        case _ if coercion.is_complex(value):
            low.fail(
                node,
                f"{_what(low, node)} returns a complex number, which no kind of result holds",
                expected="numbers of one part, strings, tensors that it makes, and tuples of these",
                hint="return (z.real, z.imag), or store it to a tensor",
            )
        case None | Number() | Parts():
            return value
        case _ if coercion.is_python_number(value):
            return value
        case tuple():
            return tuple(_packed(low, item, node) for item in value)
        case _ if is_record(value):
            return tuple(_packed(low, getattr(value, f.name), node) for f in fields(value))
        case str() | bytes():
            return _text(low, value)
        case DType():
            code = low.builder.constant(Int32, _signed(value.dlpack))
            return _parts(low, "dtype", lambda: params.DataType("result"), [Number(code)])
        case TensorView():
            return _tensor(low, value, node)
        case Handle():
            return _handle(low, value, node)
        case Maybe() | OneOf():
            return _any(low, value, node)
    low.fail(
        node,
        f"{_what(low, node)} returns {describe(value)}",
        expected="None, numbers, strings, dtypes, devices, tensors that it makes, objects, and "
        "tuples of these",
        hint=_hint(value),
    )


def _any(low: Lowering, value: Any, node: ast.AST) -> Parts:
    """A value whose kind is known only at run time."""
    _require_own(low, value, node)
    low.state.arrays.update(_arrays(value))
    from ferrule.language.lowering.objects import foreign_calls

    handle = foreign_calls.as_any(low, value, node)
    return _owned(low, Handle(params.AnyValue("result"), (handle,), "the result"), node)


def _arrays(value: Any) -> Iterator[Literal["tuple", "container"]]:
    """The possible origins of the Arrays in a value that becomes one of any kind."""
    match value:
        case Maybe(item=item):
            yield from _arrays(item)
        case OneOf(members=members):
            for _, member in members.values():
                yield from _arrays(member)
        case Handle(param=params.AnyValue() | params.Object() | params.Array()):
            yield "container"
        case tuple() | list():
            yield "tuple"
            for item in value:
                yield from _arrays(item)
        case _ if is_record(value):
            yield "tuple"
            for each in fields(value):
                yield from _arrays(getattr(value, each.name))


def _require_own(low: Lowering, value: Any, node: ast.AST) -> None:
    """Requires that no tensor in a value belongs to the caller, or is a view of one."""
    match value:
        case TensorView():
            _tensor(low, value, node)
        case Maybe(item=item):
            _require_own(low, item, node)
        case OneOf(members=members):
            for _, member in members.values():
                _require_own(low, member, node)
        case tuple() | list():
            for item in value:
                _require_own(low, item, node)
        case _ if is_record(value):
            for each in fields(value):
                _require_own(low, getattr(value, each.name), node)


def _what(low: Lowering, node: ast.AST) -> str:
    return low.location(node).function


def _hint(value: Any) -> str | None:
    if isinstance(value, Whole):
        return "assign it to a tensor: t = fe.empty(shape, dtype); t[:] = ...; return t"
    if isinstance(value, list):
        return "return a tuple, (x, y), or fe.List(x, y)"
    if isinstance(value, dict):
        return "return fe.Map({key: value}), or fe.Dict"
    return None


def _parts(
    low: Lowering, words: str, spec: Callable[[], params.Param], numbers: Sequence[Number]
) -> Parts:
    """The parts of a value; values with the same `words` are of one kind."""
    kinds = low.state.returned
    if words not in kinds:
        kinds[words] = type("Parts", (Parts,), {"param": spec(), "words": words})
    return tuple.__new__(kinds[words], numbers)


def _signed(bits: int) -> int:
    return bits - (1 << 32) if bits >= 1 << 31 else bits


def _address(low: Lowering, operand: ops.Value) -> Number:
    result = ops.Value(Int64, "address")
    low.builder.append(ops.Address(result, operand))
    return Number(result)


def _text(low: Lowering, value: str | bytes) -> Parts:
    value = low.known_text(value)
    data = value.encode() if isinstance(value, str) else value
    result = ops.Value(HandleType("bytes"), "text")
    low.builder.append(ops.Text(result, data))
    length = Number(low.builder.constant(Int64, len(data)))
    return _of_bytes(low, isinstance(value, str), [_address(low, result), length])


def _of_bytes(low: Lowering, is_text: bool, numbers: Sequence[Number]) -> Parts:
    if is_text:
        return _parts(low, "a string", lambda: params.String("result"), numbers)
    return _parts(low, "bytes", lambda: params.Bytes("result"), numbers)


def _tensor(low: Lowering, tensor: TensorView, node: ast.AST) -> Parts:
    """The object of a tensor that the function made, or got."""
    hint = "the first rows are fe.shrink(a, k); copy another part of it to a new tensor"
    from ferrule.language.lowering.tensors.allocation import require_object  # few programs need it

    require_object(low, tensor, f"{_what(low, node)} returns", hint, node)
    type_ = tensor.type
    spec = params.Tensor(
        "result",
        type_.shape,
        type_.dtype,
        strides=type_.strides,
        device=low.state.target,
        align=type_.align,
    )
    made = _parts(low, _tensor_words(low, type_), lambda: spec, [_address(low, tensor.value)])
    known = type(made).param
    if isinstance(known, params.Tensor) and known.align > type_.align:
        type(made).param = spec  # another way out returns a tensor that is aligned better
    return made


def _tensor_words(low: Lowering, type_: TensorType) -> str:
    shape, strides = (
        ", ".join(format_dim(dim, low.state.symbols) for dim in dims)
        for dims in (type_.shape, type_.strides)
    )
    words = f"a tensor of shape ({shape}) and dtype {type_.dtype.name}"
    row_major = row_major_strides(type_.shape)
    return words if type_.strides == row_major else f"{words} with strides ({strides})"


def _handle(low: Lowering, handle: Handle, node: ast.AST) -> Parts:
    """The object of a handle."""
    if isinstance(handle.param, params.AnyValue):
        low.state.arrays.add("container")
    return _owned(low, handle, node)


def _owned(low: Lowering, handle: Handle, node: ast.AST) -> Parts:
    param = handle.param
    match param:
        case params.String() | params.Bytes():
            address, length = handle.leaves
            numbers = [_address(low, address), Number(length)]
            return _of_bytes(low, isinstance(param, params.String), numbers)
        case params.DataType() | params.Device():
            spec = type(param)("result")
            words = param.traits.description
            return _parts(low, words, lambda: spec, [Number(handle.leaves[0])])
        case params.AnyValue():
            at = _address(low, handle.leaves[0])
            return _parts(low, "a value of any kind", lambda: params.AnyValue("result"), [at])
        case _ if isinstance(param, params.Pointer) or is_object(handle):
            kept = changed(param, name="result", default=params.REQUIRED)
            words = f"an object: {param!r}"
            return _parts(low, words, lambda: kept, [_address(low, handle.leaves[0])])
    low.fail(
        node,
        f"{_what(low, node)} returns {describe(handle)}",
        expected="a value that the caller can own",
    )

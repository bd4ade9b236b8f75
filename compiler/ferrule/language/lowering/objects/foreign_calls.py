"""`fe.call` and `f(x)`: calls of functions that are registered with tvm-ffi, are parameters, or are
in another object."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import field, fields
from typing import Any, Final, Literal

from ferrule.compiler.artefacts import Fault, literal
from ferrule.language.faces import calls
from ferrule.language.faces.calls import ExternFunction, ImportedFunction
from ferrule.language.ir import ops
from ferrule.language.ir.types import HandleType, Type
from ferrule.language.lowering.arguments import Intrinsic
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe, usage_hint
from ferrule.language.lowering.handles import is_object
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.objects import call_results
from ferrule.language.values import Handle, Maybe, Number, OneOf, PointerView, TensorView, is_record
from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.linking.links import Link
from ferrule.specs import Boolean, DType, Float64, Int32, Int64, Uint64, params
from ferrule.specs.deferred import dataclass

_EXPECTED: Final = (
    'fe.call("my.function", x, y), or with result=fe.Int32 where its result is needed'
)


def call(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`fe.call(function, arguments..., result=dtype)`."""
    if not args:
        low.fail(node, "call takes the name of a function", expected=_EXPECTED)
    callee, *given = args
    match callee:
        case str() if callee and "\0" not in callee and _is_unicode(callee):
            return _emit(low, callee, given, kwargs, node)
        case Handle(param=params.Function()):
            return _emit(low, callee.leaves[0], given, kwargs, node)
    low.fail(
        node,
        f"the function of call is {describe(callee)}",
        expected="the name of a registered function, known at compile time, or a parameter that "
        "is a function",
        hint=usage_hint(callee),
    )


def _is_unicode(name: str) -> bool:
    """Whether a name has no lone surrogates, which cannot be encoded."""
    return all(not 0xD800 <= ord(letter) < 0xE000 for letter in name)


def apply(
    low: Lowering,
    callee: ExternFunction | ImportedFunction | Handle,
    args: list[Any],
    kwargs: dict[str, Any],
    node: ast.Call,
) -> Any:
    """The call of a function from outside: one of C, of a module's imports, or a parameter."""
    match callee:
        case ExternFunction():
            return _call_extern(low, callee, args, kwargs, node)
        case ImportedFunction():
            return _call_imported(low, callee, args, kwargs, node)
        case Handle():
            return _call_handle(low, callee, args, kwargs, node)


def _call_handle(
    low: Lowering, callee: Handle, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Any:
    """`f(x)` of a parameter."""
    if not isinstance(callee.param, params.Function):
        low.fail(node, f"{describe(callee)} cannot be called")
    return _emit(low, callee.leaves[0], args, kwargs, node)


def _call_extern(
    low: Lowering, callee: ExternFunction, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Any:
    """`x(a, b)` of `fe.extern_func("x")`."""
    link = Link(SYMBOL_PREFIX + callee.name, callee.library)
    extern = ops.Extern(link, callee.name, callee.function)
    known = low.state.externs.setdefault(callee.name, callee)
    if known != callee or callee.name == low.state.name:
        low.fail(
            node,
            f"the extern function {callee.name!r} is "
            + ("the function that calls it" if known == callee else "said to be two functions"),
            hint="give the exported functions names that differ",
        )
    return _emit(low, extern, args, {"result": callee.result, **kwargs}, node)


def _call_imported(
    low: Lowering, callee: ImportedFunction, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Any:
    """`f(a, b)` of `fe.import_func("f")`."""
    given = {"result": callee.result, **kwargs}
    return _emit(low, ops.Imported(callee.name), args, given, node)


def _emit(
    low: Lowering, callee: ops.Callee, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Any:
    require_host(low, node)
    if kwargs.keys() - {"result"}:
        name = next(iter(kwargs.keys() - {"result"}))
        low.fail(node, f"a call of tvm-ffi has no argument {name!r}", expected=_EXPECTED)
    return emit_wanted(low, callee, args, kwargs.get("result"), node)


def emit_wanted(
    low: Lowering, callee: ops.Callee, args: list[Any], wanted: Any, node: ast.AST
) -> Any:
    """A call through the packed ABI, with the result as `wanted`; None for no result."""
    if wanted is None:
        emit_packed(low, callee, args, "nothing", node)
        return None
    kind = _number_kind(wanted)
    if kind is not None:
        number = emit_packed(low, callee, args, kind, node)
        return _converted(low, number, wanted, callee, node)
    spec = call_results.spec_of(low, wanted, node)
    value = emit_packed(low, callee, args, "any", node)
    return call_results.received(low, value, spec, _shown(callee), node)


def emit_packed(
    low: Lowering, callee: ops.Callee, args: list[Any], wanted: _Wanted, node: ast.AST
) -> ops.Value:
    """A call through the packed ABI; the value of the op."""
    outgoing = _Arguments(low, node)
    for position, value in enumerate(args):
        outgoing.add(value, position)
    types: dict[_Wanted, Type] = {"float": Float64, "any": HandleType("any")}
    result = ops.Value(types.get(wanted, Int64), "result")
    kinds, values = tuple(outgoing.kinds), tuple(outgoing.values)
    low.builder.append(ops.Call(result, callee, kinds, values, wanted, low.location(node)))
    low.state.writes += 1
    return result


def address(low: Lowering, value: Handle) -> ops.Value:
    """The address of an object, an Int64."""
    result = ops.Value(Int64, "address")
    low.builder.append(ops.Address(result, value.leaves[0]))
    return result


def as_any(low: Lowering, value: Any, node: ast.AST) -> ops.Value:
    """The handle of a value of any kind; the function owns an object that is made for it."""
    match value:
        case Handle(param=params.AnyValue()):
            return value.leaves[0]
        case Maybe(present=present, item=item):
            return _either(low, present.value, item, None, node)
        case OneOf(tag=tag, members=members):
            (position, (_, member)), *rest = members.items()
            if not rest:
                return as_any(low, member, node)
            here = low.builder.compare("eq", tag, low.builder.constant(Int32, position))
            return _either(low, here, member, OneOf(tag, dict(rest), value.name), node)
    return emit_packed(low, ops.Keep(), [value], "any", node)


def _either(low: Lowering, condition: ops.Value, left: Any, right: Any, node: ast.AST) -> ops.Value:
    sides = []
    for value in (left, right):
        with low.builder.region() as region:
            found = as_any(low, value, node)
        sides.append(region.freeze(found))
    return low.builder.if_(condition, sides[0], sides[1], ("value",))[0]


def require_host(low: Lowering, node: ast.AST) -> None:
    """A CompileError for a call outside of the host function itself."""
    if low.kind != "host" or low.elementwise:
        low.fail(
            node,
            "a function of tvm-ffi is called in a kernel or for each element of a tensor",
            expected="a call in the host function itself",
        )


def _shown(callee: ops.Callee) -> str:
    match callee:
        case str():
            return callee
        case ops.Value(hint=hint):
            return hint
        case ops.Keep() | ops.DTypeText():
            return type(callee).__name__
    return callee.name


def dtype_bits(low: Lowering, dtype: DType) -> ops.Value:
    """A dtype as its 4 bytes."""
    bits = dtype.dlpack
    return low.builder.constant(Int32, bits - (1 << 32) if bits >= 1 << 31 else bits)


def text_leaves(low: Lowering, text: str | bytes) -> list[ops.Value]:
    """The address and the length of a constant text."""
    text = low.known_text(text)
    data = text.encode() if isinstance(text, str) else text
    address = ops.Value(HandleType("bytes"), "text")
    low.builder.append(ops.Text(address, data))
    return [address, low.builder.constant(Int64, len(data))]


_Wanted = Literal["nothing", "int", "uint", "bool", "float", "any"]


def _number_kind(wanted: Any) -> _Wanted | None:
    """The kind of a number as a result; None for other results."""
    if not isinstance(wanted, DType):
        return None
    if wanted is Boolean:
        return "bool"
    if wanted.is_integer and wanted.bits >= 8:
        return "uint" if wanted is Uint64 else "int"
    return "float" if wanted.kind == "float" and wanted.bits >= 16 else None


def _converted(
    low: Lowering, result: ops.Value, dtype: DType, callee: ops.Callee, node: ast.AST
) -> Number:
    """The result in its dtype; a run-time error if an integer does not fit."""
    build = low.builder
    if dtype is Boolean:
        return Number(build.compare("ne", result, build.constant(Int64, 0)))
    if not dtype.is_integer or dtype in (Int64, Uint64):
        return coercion.convert(low, Number(result), dtype)
    smallest, largest = dtype.range
    fits = build.compare("ge", result, build.constant(Int64, smallest))
    if largest < Int64.range[1]:
        below = build.compare("le", result, build.constant(Int64, largest))
        fits = build.binary("and", fits, below)
    name = _shown(callee)
    name = f"the function {name}" if isinstance(callee, ops.Value) else f"`{name}`"
    message = f"Out of bound result of {literal(name)}, expected {dtype.name}, but got {{}}"
    build.check(fits, Fault("OverflowError", message, low.location(node)), result)
    return coercion.convert(low, Number(result), dtype)


@dataclass(slots=True)
class _Arguments:
    """The arguments of a call under construction."""

    low: Lowering
    node: ast.AST
    kinds: list[ops.ArgumentKind] = field(default_factory=list)
    values: list[ops.Value] = field(default_factory=list)

    def add(self, value: Any, position: int) -> None:
        """The next argument."""
        value = coercion.plain(value)
        match value:
            case None:
                self._append("none")
            case str() | bytes():
                self._text(value)
            case DType():
                self._append("dtype", dtype_bits(self.low, value))
            case Handle():
                self._handle(value, position)
            case TensorView() if not (value.type.is_own or value.nested):
                self.low.require_inside(value, self.node)
                self._append("tensor", value.value)
            case PointerView():
                self._append("pointer", value.value)
            case Number():
                self._number(value)
            case _ if coercion.is_python_number(value):
                self._number(self._constant(value))
            case Maybe() | OneOf():
                self._append("any", as_any(self.low, value, self.node))
            case tuple() | list():
                self._container("ffi.Array", value)
            case dict():
                self._container("ffi.Map", [each for pair in value.items() for each in pair])
            case _ if is_record(value):
                self._container("ffi.Array", [getattr(value, f.name) for f in fields(value)])
            case _:
                self._refuse(value, position)

    def _container(self, constructor: str, items: Sequence[Any]) -> None:
        """The tvm-ffi value of a Python tuple or dict."""
        made = emit_packed(self.low, constructor, list(items), "any", self.node)
        self._append("any", made)

    def _append(self, kind: ops.ArgumentKind, *values: ops.Value) -> None:
        self.kinds.append(kind)
        self.values += values

    def _constant(self, value: Any) -> Number:
        """A Python number, with tvm-ffi's width."""
        near: dict[type, DType] = {bool: Boolean, int: Int64, float: Float64}
        return coercion.as_number(self.low, value, self.node, near.get(type(value)))

    def _number(self, number: Number) -> None:
        low, dtype = self.low, number.dtype
        if dtype is Boolean:
            self._append("bool", number.value)
        elif dtype.kind == "float":
            self._append("float", coercion.convert(low, number, Float64).value)
        else:
            wide = coercion.convert(low, number, Int64).value
            self._append("unsigned" if dtype is Uint64 else "int", wide)

    def _text(self, text: str | bytes) -> None:
        self._append("text" if isinstance(text, str) else "bytes", *text_leaves(self.low, text))

    def _handle(self, handle: Handle, position: int) -> None:
        match handle.param:
            case params.String():
                self._append("text", *handle.leaves)
            case params.Bytes():
                self._append("bytes", *handle.leaves)
            case params.DataType():
                self._append("dtype", *handle.leaves)
            case params.Device():
                self._append("device", *handle.leaves)
            case params.WithTraits(traits=params.Traits(payload=params.Payload.ADDRESS)):
                self._append("pointer", *handle.leaves)
            case params.AnyValue():
                self._append("any", *handle.leaves)
            case _ if is_object(handle):
                self._append("object", *handle.leaves)
            case _:
                self._refuse(handle, position)

    def _refuse(self, value: Any, position: int) -> None:
        self.low.fail(
            self.node,
            f"the argument {position} of the call is {describe(value)}",
            expected="a number, a string, None, a tensor of plain modes, a dtype, a device, an "
            "object, or a tuple or dict of these",
            hint=usage_hint(value),
        )


TABLE: Final[dict[Any, Intrinsic]] = {calls.call: call}

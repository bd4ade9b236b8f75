"""Results of calls: the user's spec, and the value in the language."""

from __future__ import annotations

import ast
import typing
from typing import Any, Final, get_args

from ferrule.compiler.artefacts import Fault, literal
from ferrule.compiler.wrapper.leaves import leaves_of
from ferrule.language.faces import base as faces
from ferrule.language.faces.containers import type_key_of
from ferrule.language.ir import ops
from ferrule.language.ir.types import HandleType, TensorType, Type
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers.sizes import name_symbol
from ferrule.language.lowering.objects.parameters import Receiver
from ferrule.language.recognised import UNIONS
from ferrule.specs import (
    Boolean,
    DType,
    Float64,
    Int64,
    Signature,
    SupportsSpec,
    Sym,
    params,
)
from ferrule.specs.copies import changed, substituted
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import sym_int64

_EXPECTED: Final = (
    "a dtype, str, bytes, Any, a fake tensor, a spec such as fe.Array[str], the class of an "
    "object, Optional of one of these, or a tuple of them"
)
_CLASSES: Final[dict[object, DType]] = {bool: Boolean, int: Int64, float: Float64}
_TEXTS: Final[dict[object, type[params.String | params.Bytes]]] = {
    str: params.String,
    bytes: params.Bytes,
}
_NEVER: Final = (params.Stream, params.EnvStream, params.Constant)


def spec_of(low: Lowering, wanted: Any, node: ast.AST, name: str = "result") -> params.Param:
    """The spec of `result=`.  A CompileError if it is invalid."""
    if isinstance(wanted, DType) or (isinstance(wanted, type) and wanted in _CLASSES):
        return _scalar(low, wanted if isinstance(wanted, DType) else _CLASSES[wanted], node, name)
    if wanted is None or wanted is type(None):
        return params.NoneValue(name)
    if isinstance(wanted, type) and wanted in _TEXTS:
        return _TEXTS[wanted](name)
    if wanted is Any:
        return params.AnyValue(name)
    key = type_key_of(wanted)
    if key is not None:
        return params.Object(name, key)
    if typing.get_origin(wanted) in UNIONS:
        return _union(low, get_args(wanted), node, name)
    if typing.get_origin(wanted) is tuple:
        wanted = get_args(wanted)
    if isinstance(wanted, tuple):
        items = tuple(spec_of(low, item, node, str(i)) for i, item in enumerate(wanted))
        return params.Tuple(name, items)
    if isinstance(wanted, get_args(params.Param)) and not isinstance(wanted, _NEVER):
        return placed(low, changed(wanted, name=name))
    if isinstance(wanted, SupportsSpec) and not isinstance(wanted, type):
        return placed(low, wanted.__ferrule_spec__(name))
    low.fail(
        node,
        f"the result of a call is {describe(wanted)}",
        expected=_EXPECTED,
        hint="write fe.make_fake_tensor(dtype, shape) for a tensor"
        if wanted is faces.Tensor
        else None,
    )


def _scalar(low: Lowering, dtype: DType, node: ast.AST, name: str) -> params.Param:
    try:
        return params.Scalar(name, dtype)
    except ValueError as error:
        low.fail(node, f"the result of a call is {dtype.name}: {error}", expected=_EXPECTED)


def _union(low: Lowering, wanted: tuple[Any, ...], node: ast.AST, name: str) -> params.Param:
    """`X | None`, `X | Y`, and both."""
    kinds = [each for each in wanted if each is not type(None)]
    members = tuple(spec_of(low, each, node, name) for each in kinds)
    inner = members[0] if len(members) == 1 else params.Union(name, members)
    return inner if len(kinds) == len(wanted) else params.Optional(name, inner)


def placed(low: Lowering, param: params.Param) -> params.Param:
    """A spec whose tensors are objects on the target's device."""
    match param:
        case params.Tensor(device=device):
            return changed(param, device=device or low.state.target, owning=True)
        case params.Tuple(items=items):
            return changed(param, items=tuple(placed(low, item) for item in items))
        case params.Union(members=members):
            return changed(param, members=tuple(placed(low, each) for each in members))
        case params.Optional(item=item):
            return changed(param, item=placed(low, item))
    return param


def received(
    low: Lowering, value: ops.Value, param: params.Param, callee: str, node: ast.AST
) -> Any:
    """The received value in a `TVMFFIAny`, checked; `callee` is the function's name in messages.

    A symbol of the function's own parameters must have the same value here; other symbols get their
    values from the result.
    """
    try:
        signature = Signature("received", (param,))
    except ValueError as error:
        low.fail(node, str(error))
    _, _, kind = str(signature).partition(": ")
    first, known = len(leaves_of(param)), _given(low)
    slots = {symbol: first + i for i, symbol in enumerate(signature.symbols)}
    fresh = {
        symbol: sym_int64(symbol.divisibility, min=symbol.min, max=symbol.max)
        for symbol in signature.symbols
        if symbol not in known
    }
    made = tuple((new, slots[symbol]) for symbol, new in fresh.items())
    leaves, shown = ops.Value(HandleType("leaves"), "leaves"), f"{callee}(...) -> {kind[:-1]}"
    for symbol, new in fresh.items():
        name_symbol(low, new, signature.symbols[symbol])
    low.builder.append(ops.Receive(leaves, value, param, shown, made, low.location(node)))
    receiver = Parts(low, {}, [], leaves, owner=value)
    for symbol in signature.symbols:
        part = receiver.part(Int64, slots[symbol], signature.symbols[symbol])
        if symbol in fresh:
            low.state.made[part] = fresh[symbol]
        else:
            _require_size(low, part, symbol, shown, node)
    return receiver.receive(substituted(param, fresh), (0,), f"the result of {callee}")


def _given(low: Lowering) -> set[Sym]:
    return set(low.state.symbols) - set(low.state.made.values())


def _require_size(low: Lowering, part: ops.Value, symbol: Sym, shown: str, node: ast.AST) -> None:
    """Requires a symbol of the result to have its known value."""
    build, name = low.builder, low.state.symbols[symbol]
    size = build.size(Int64, symbol)
    where = literal(f"{name} in the result of `{shown}`, expected")
    fault = Fault("ValueError", f"Mismatched {where} {{}}, but got {{}}", low.location(node))
    build.check(build.compare("eq", part, size), fault, size, part)


@dataclass(slots=True)
class Parts(Receiver):
    """Makes the values of a result: its leaves are parts of a handle.

    `owner` is the value that owns the tensors, if the path to them is known: `way`.
    """

    parts: ops.Value
    owner: ops.Value | None = None
    position: int = 0
    way: tuple[int, ...] = ()

    def leaf(self, type_: Type, name: str) -> ops.Value:
        """The next part."""
        self.position += 1
        return self.part(type_, self.position - 1, name)

    def part(self, type_: Type, position: int, name: str) -> ops.Value:
        """One part."""
        hint = "".join(c if c.isalnum() else "_" for c in name).strip("_")
        value = ops.Value(type_, hint)
        owner = self.owner if isinstance(type_, TensorType) else None
        way = () if owner is None else self.way
        self.low.builder.append(ops.Received(value, self.parts, position, owner, way))
        if isinstance(type_, TensorType) and (owner or self.parts.type == HandleType("results")):
            self.low.state.allocated.add(value)
        return value

    def receive(self, param: params.Param, path: tuple[int, ...], name: str) -> Any:
        """The value of a part.  There is no path into optional items."""
        owner, self.way = self.owner, path[1:]
        inner = param.item if isinstance(param, params.Optional) else None
        if isinstance(param, params.Union) or not isinstance(inner, params.Tensor | None):
            self.owner = None
        found = Receiver.receive(self, param, path, name)
        self.owner = owner
        return found

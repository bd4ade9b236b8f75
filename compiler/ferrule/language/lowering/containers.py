"""Containers of tvm-ffi in host functions: parameters that are read, and new ones.

Elements of an Array or List are read where they lie, those of a Map or Dict through the functions
that tvm-ffi has registered for it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from ferrule.compiler.artefacts import Fault, literal
from ferrule.language.ir import ops
from ferrule.language.lowering import elements, loops, operators, outgoing, texts
from ferrule.language.lowering.anyvalues import ANY, Shown, peek, peek_object, typed
from ferrule.language.lowering.arguments import bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.faults import Message
from ferrule.language.lowering.joins import Clash, Sides, join
from ferrule.language.values import BoundMethod, Handle, Number
from ferrule.specs import Int64, params

SEQUENCES: Final = (params.Array, params.List)
MAPS: Final = (params.Map, params.Dict)

_Args = list[Any]
_Kwargs = dict[str, Any]


def is_container(value: Any) -> bool:
    """Whether this is a container that is known at the call."""
    return isinstance(value, Handle) and isinstance(value.param, (*SEQUENCES, *MAPS))


def length(low: Lowering, container: Handle, node: ast.AST) -> Number:
    """`len(x)`."""
    return Number(_size(low, container, node))


def truth(low: Lowering, container: Handle, node: ast.AST) -> Number:
    """Whether there is anything in it."""
    size = _size(low, container, node)
    return Number(low.builder.compare("ne", size, low.builder.constant(Int64, 0)))


def _size(low: Lowering, container: Handle, node: ast.AST) -> ops.Value:
    outgoing.require_host(low, node)
    return peek(low, container.leaves[0], "size")


# ---- Array and List ----


def item(low: Lowering, container: Handle, key: Any, node: ast.expr) -> Any:
    """`x[key]`: an element, or the value of a key."""
    name = _name(node)
    if isinstance(container.param, MAPS):
        return _value_of(low, container, key, name, node)
    index = _index(low, container, key, node)
    return _element(low, container, index, name, node)


def _name(node: ast.expr) -> str:
    return ast.unparse(node)


def _index(low: Lowering, container: Handle, key: Any, node: ast.expr) -> ops.Value:
    """The position that an index means, counted from the end if it is negative; an IndexError."""
    number = operators.as_number(low, key, node, Int64)
    if not number.dtype.is_integer:
        low.fail(
            node,
            f"{operators.describe(container)} is indexed by {operators.describe(key)}",
            expected="an integer",
        )
    build, size = low.builder, _size(low, container, node)
    given = operators.convert(low, number, Int64).value
    index, zero = given, build.constant(Int64, 0)
    if not (isinstance(number.dim, int) and number.dim >= 0):
        from_end = build.binary("add", given, size)
        index = build.select(build.compare("lt", given, zero), from_end, given)
    inside = build.compare("lt", index, size)
    if index is not given:
        inside = build.binary("and", build.compare("ge", index, zero), inside)
    name = literal(container.name)
    message = f"Out of bound index of {name}, which has {{}} elements, but got {{}}"
    build.check(inside, Fault("IndexError", message, low.location(node)), size, given)
    return index


def _element(low: Lowering, container: Handle, index: ops.Value, name: str, node: ast.expr) -> Any:
    """The element at a position that is in the container."""
    assert isinstance(container.param, SEQUENCES)
    value = ops.Value(ANY, "item")
    low.builder.append(ops.Item(value, container.leaves[0], index))
    shown = Shown(name, f"{literal(container.name)}[{{}}]", (index,))
    return typed(low, value, container.param.item, shown, node)


# ---- Map and Dict ----


def _kind(container: Handle) -> str:
    return type(container.param).__name__


def _keyed(low: Lowering, container: Handle, key: Any, node: ast.AST) -> Any:
    """A key as it is looked up: tvm-ffi tells 1 from True and from 1.0."""
    assert isinstance(container.param, MAPS)
    key = operators.plain(key)
    match container.param.key:
        case params.Scalar(dtype=dtype):
            return operators.convert(low, operators.as_number(low, key, node, dtype), dtype)
        case params.String() if not _is_text(key):
            low.fail(node, f"a key of {container.name} is a string, not {operators.describe(key)}")
    return key


def _is_text(key: Any) -> bool:
    return isinstance(key, str) or (
        isinstance(key, Handle) and isinstance(key.param, params.String)
    )


def contains(low: Lowering, key: Any, container: Handle, node: ast.AST) -> Number:
    """`key in x`."""
    if not isinstance(container.param, MAPS):
        low.fail(
            node,
            f"{operators.describe(container)} is searched",
            expected="a Map or Dict on the right of `in`",
            hint="compare its elements in a loop",
        )
    count = _count(low, container, _keyed(low, container, key, node), node)
    return Number(low.builder.compare("ne", count, low.builder.constant(Int64, 0)))


def _count(low: Lowering, container: Handle, key: Any, node: ast.AST) -> ops.Value:
    return outgoing.emit_packed(low, f"ffi.{_kind(container)}Count", [container, key], "int", node)


def _value_of(low: Lowering, container: Handle, key: Any, name: str, node: ast.AST) -> Any:
    """`x[key]`, or a KeyError."""
    key = _keyed(low, container, key, node)
    count = _count(low, container, key, node)
    there = low.builder.compare("ne", count, low.builder.constant(Int64, 0))
    text, values = _key_text(low, key, node)
    fault = Fault(
        "KeyError", f"Missing key {text} of {literal(container.name)}", low.location(node)
    )
    low.builder.check(there, fault, *values)
    return _found(low, container, key, name, node)


def _found(low: Lowering, container: Handle, key: Any, name: str, node: ast.AST) -> Any:
    """The value of a key that is there."""
    assert isinstance(container.param, MAPS)
    function = f"ffi.{_kind(container)}GetItem"
    value = outgoing.emit_packed(low, function, [container, key], "any", node)
    return typed(low, value, container.param.value, _shown(low, container, key, name, node), node)


def _shown(low: Lowering, container: Handle, key: Any, name: str, node: ast.AST) -> Shown:
    text, values = _key_text(low, key, node)
    return Shown(name, f"{literal(container.name)}[{text}]", values)


def _key_text(low: Lowering, key: Any, node: ast.AST) -> tuple[str, tuple[ops.Value, ...]]:
    """A key for the text of a `Fault`, and the values of its placeholders."""
    if isinstance(key, Handle) and not texts.compares(key):
        return literal(key.name), ()
    message = Message(low, node)
    message.value(key)
    text = f"'{message.text}'" if _is_text(key) else message.text
    return text, tuple(message.values)


def _get(low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call, *, container: Handle) -> Any:
    """`x.get(key, default)`; without a default None."""
    key, default = bound(low, "key default=", args, kwargs, node)
    key = _keyed(low, container, key, node)
    count = _count(low, container, key, node)
    there = Number(low.builder.compare("ne", count, low.builder.constant(Int64, 0)))
    name = ast.unparse(node)
    with low.builder.region() as then, low.in_region():
        found = _found(low, container, key, name, node)
    other = default
    if isinstance(found, Number) and operators.is_python_number(default):
        other = operators.as_number(low, default, node, found.dtype)
    sides = Sides(name, f"{name}: this value", found, other)
    with low.builder.region() as otherwise:
        pass
    try:
        return join(low, there, (then, otherwise), [sides], node)[0]
    except Clash as clash:
        raise clash.error from None


def attribute(low: Lowering, container: Handle, attr: str, node: ast.AST) -> Any:
    """`x.get`, `x.keys`, `x.values`, `x.items` of a Map or Dict."""
    is_map = isinstance(container.param, MAPS)
    if is_map and attr == "get":
        return BoundMethod(partial(_get, container=container), "get")
    if is_map and attr in _VIEWS:
        return BoundMethod(partial(_view, container=container, what=attr), attr)
    low.fail(
        node,
        f"{operators.describe(container)} has no attribute {attr!r}",
        expected="get, keys, values, items" if is_map else "x[i], len(x), for v in x",
    )


# ---- loops ----

_VIEWS: Final = ("keys", "values", "items")


@dataclass(frozen=True, slots=True, eq=False)
class MapView:
    """`m.keys()`, `m.values()` or `m.items()`, for a loop."""

    container: Handle
    what: str


def _view(
    low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call, *, container: Handle, what: str
) -> MapView:
    bound(low, "", args, kwargs, node)
    return MapView(container, what)


def is_iterable(value: Any) -> bool:
    """Whether a run-time loop goes over this."""
    return is_container(value) or isinstance(value, MapView)


def loop(low: Lowering, node: ast.For, over: Handle | MapView) -> None:
    """`for v in x`: a run-time loop over an Array, a List, or what is in a Map."""
    if isinstance(over, Handle) and isinstance(over.param, SEQUENCES):
        _loop_items(low, node, over)
        return
    view = over if isinstance(over, MapView) else MapView(over, "keys")
    if isinstance(view.container.param, params.Dict):
        _loop_dict(low, node, view)
    else:
        _loop_map(low, node, view)


def _loop_items(low: Lowering, node: ast.For, container: Handle) -> None:
    """Each element is read as `x[i]` is: a List may change while the loop runs."""

    def bind(index: Number) -> None:
        at = _index(low, container, index, node.iter)
        name = f"{container.name}[...]"
        elements.bind(low, node.target, _element(low, container, at, name, node.iter))

    loops.for_range(low, node, [length(low, container, node)], bind=bind)


@dataclass(frozen=True, slots=True)
class _Iteration:
    """tvm-ffi's own iteration: a function of 0 for the key, 1 for the value, 2 to go on."""

    low: Lowering
    step: ops.Value
    node: ast.expr

    @classmethod
    def of(cls, low: Lowering, container: Handle, node: ast.expr) -> _Iteration:
        """One of a Map or Dict."""
        function = f"ffi.{_kind(container)}ForwardIterFunctor"
        made = outgoing.emit_packed(low, function, [container], "any", node)
        step = peek_object(low, made, params.Function("step"), "step").leaves[0]
        return cls(low, step, node)

    def go_on(self, index: ops.Value) -> None:
        """To the next one, but for the first."""
        build = self.low.builder
        first = build.compare("eq", index, build.constant(Int64, 0))
        with build.region() as then:
            pass
        with build.region() as otherwise:
            outgoing.emit_packed(self.low, self.step, [2], "nothing", self.node)
        build.if_(first, then.freeze(), otherwise.freeze(), ())

    def part(self, number: int) -> ops.Value:
        """The key or the value."""
        return outgoing.emit_packed(self.low, self.step, [number], "any", self.node)


def _loop_map(low: Lowering, node: ast.For, view: MapView) -> None:
    steps = _Iteration.of(low, view.container, node.iter)

    def bind(index: Number) -> None:
        steps.go_on(index.value)
        parts = [_part(low, view, part, steps.part(part), node) for part in _PARTS[view.what]]
        elements.bind(low, node.target, parts[0] if len(parts) == 1 else tuple(parts))

    loops.for_range(low, node, [length(low, view.container, node)], bind=bind)


_PARTS: Final = {"keys": (0,), "values": (1,), "items": (0, 1)}


def _part(low: Lowering, view: MapView, part: int, value: ops.Value, node: ast.For) -> Any:
    """A key or a value as the container says that it is."""
    container = view.container
    assert isinstance(container.param, MAPS)
    spec = (container.param.key, container.param.value)[part]
    name = f"a {('key', 'value')[part]} of {container.name}"
    return typed(low, value, spec, Shown(name, literal(name)), node.iter)


def _loop_dict(low: Lowering, node: ast.For, view: MapView) -> None:
    """A Dict may change meanwhile, so the loop goes over what is in it at the beginning."""
    build, wanted = low.builder, _PARTS[view.what]
    size = _size(low, view.container, node.iter)
    copied = peek_object(
        low, outgoing.emit_packed(low, "ffi.List", [], "any", node.iter), params.List("items"), ""
    )
    steps, at = _Iteration.of(low, view.container, node.iter), ops.Value(Int64, "i")
    with build.region() as body:
        steps.go_on(at)
        for part in wanted:
            value = Handle(params.AnyValue("value"), (steps.part(part),), "")
            outgoing.emit_packed(low, "ffi.ListAppend", [copied, value], "nothing", node.iter)
    zero, one = build.constant(Int64, 0), build.constant(Int64, 1)
    build.append(ops.For((), at, zero, size, one, (), (), body.freeze()))

    def bind(index: Number) -> None:
        first = operators.arithmetic(low, "mul", index, len(wanted), node.iter).value
        parts = []
        for position, part in enumerate(wanted):
            value = ops.Value(ANY, "item")
            here = build.binary("add", first, build.constant(Int64, position))
            build.append(ops.Item(value, copied.leaves[0], here))
            parts.append(_part(low, view, part, value, node))
        elements.bind(low, node.target, parts[0] if len(parts) == 1 else tuple(parts))

    loops.for_range(low, node, [Number(size)], bind=bind)

"""Run-time loops over containers of tvm-ffi."""

from __future__ import annotations

import ast
from typing import Any, Final

from ferrule.compiler.artefacts import literal
from ferrule.language.ir import ops
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.control import loops
from ferrule.language.lowering.handles import MAPS, SEQUENCES, MapView
from ferrule.language.lowering.numbers import scalars
from ferrule.language.lowering.objects import foreign_calls
from ferrule.language.lowering.objects.any_values import ANY, Shown, peek_object, typed
from ferrule.language.lowering.objects.containers import element, kind_of, length, position, size
from ferrule.language.lowering.python import assignment
from ferrule.language.values import Handle, Number
from ferrule.specs import Int64, params
from ferrule.specs.deferred import dataclass


def loop(low: Lowering, node: ast.For, over: Handle | MapView) -> None:
    """`for v in x`: a run-time loop over an Array, a List, or the contents of a Map."""
    if isinstance(over, Handle) and isinstance(over.param, SEQUENCES):
        _loop_items(low, node, over)
        return
    view = over if isinstance(over, MapView) else MapView(over, "keys")
    if isinstance(view.container.param, params.Dict):
        _loop_dict(low, node, view)
    else:
        _loop_map(low, node, view)


def _loop_items(low: Lowering, node: ast.For, container: Handle) -> None:
    """Each element is read like `x[i]`: a List may change while the loop runs."""

    def bind(index: Number) -> None:
        at = position(low, container, index, node.iter)
        name = f"{container.name}[...]"
        assignment.bind(low, node.target, element(low, container, at, name, node.iter))

    loops.for_range(low, node, [length(low, container, node)], bind=bind)


@dataclass(frozen=True, slots=True)
class _Iteration:
    """tvm-ffi's own iterator: a function of 0 for the key, 1 for the value, 2 to advance."""

    low: Lowering
    step: ops.Value
    node: ast.expr

    @classmethod
    def of(cls, low: Lowering, container: Handle, node: ast.expr) -> _Iteration:
        """The iterator of a Map or Dict."""
        function = f"ffi.{kind_of(container)}ForwardIterFunctor"
        made = foreign_calls.emit_packed(low, function, [container], "any", node)
        step = peek_object(low, made, params.Function("step"), "step").leaves[0]
        return cls(low, step, node)

    def go_on(self, index: ops.Value) -> None:
        """Advances to the next entry, except before the first."""
        build = self.low.builder
        first = build.compare("eq", index, build.constant(Int64, 0))
        with build.region() as then:
            pass
        with build.region() as otherwise:
            foreign_calls.emit_packed(self.low, self.step, [2], "nothing", self.node)
        build.if_(first, then.freeze(), otherwise.freeze(), ())

    def part(self, number: int) -> ops.Value:
        """The key or the value."""
        return foreign_calls.emit_packed(self.low, self.step, [number], "any", self.node)


def _loop_map(low: Lowering, node: ast.For, view: MapView) -> None:
    steps = _Iteration.of(low, view.container, node.iter)

    def bind(index: Number) -> None:
        steps.go_on(index.value)
        parts = [_part(low, view, part, steps.part(part), node) for part in _PARTS[view.what]]
        assignment.bind(low, node.target, parts[0] if len(parts) == 1 else tuple(parts))

    loops.for_range(low, node, [length(low, view.container, node)], bind=bind)


_PARTS: Final = {"keys": (0,), "values": (1,), "items": (0, 1)}


def _part(low: Lowering, view: MapView, part: int, value: ops.Value, node: ast.For) -> Any:
    """A key or a value with the type in the container's spec."""
    container = view.container
    assert isinstance(container.param, MAPS)
    spec = (container.param.key, container.param.value)[part]
    name = f"a {('key', 'value')[part]} of {container.name}"
    return typed(low, value, spec, Shown(name, literal(name)), node.iter)


def _loop_dict(low: Lowering, node: ast.For, view: MapView) -> None:
    """A Dict may change meanwhile, so the loop iterates over a copy of its entries."""
    build, wanted = low.builder, _PARTS[view.what]
    count = size(low, view.container, node.iter)
    copied = peek_object(
        low,
        foreign_calls.emit_packed(low, "ffi.List", [], "any", node.iter),
        params.List("items"),
        "",
    )
    steps, at = _Iteration.of(low, view.container, node.iter), ops.Value(Int64, "i")
    with build.region() as body:
        steps.go_on(at)
        for part in wanted:
            value = Handle(params.AnyValue("value"), (steps.part(part),), "")
            foreign_calls.emit_packed(low, "ffi.ListAppend", [copied, value], "nothing", node.iter)
    zero, one = build.constant(Int64, 0), build.constant(Int64, 1)
    build.append(ops.For((), at, zero, count, one, (), (), body.freeze()))

    def bind(index: Number) -> None:
        first = scalars.arithmetic(low, "mul", index, len(wanted), node.iter).value
        parts = []
        for offset, part in enumerate(wanted):
            value = ops.Value(ANY, "item")
            here = build.binary("add", first, build.constant(Int64, offset))
            build.append(ops.Item(value, copied.leaves[0], here))
            parts.append(_part(low, view, part, value, node))
        assignment.bind(low, node.target, parts[0] if len(parts) == 1 else tuple(parts))

    loops.for_range(low, node, [Number(count)], bind=bind)

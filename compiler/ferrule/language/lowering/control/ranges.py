"""`range` at run time: its bounds in one dtype, and its number of iterations."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence
from typing import Any, Final, Literal

from ferrule.compiler.artefacts import Fault
from ferrule.language.faces import base as faces
from ferrule.language.ir import ops
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion
from ferrule.language.values import Number
from ferrule.specs import DType, Int32, Int64, Numeric, Uint32, Uint64
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Start, stop and step of a range, Int32 or Int64; `by` is the step if it is a constant."""

    start: ops.Value
    stop: ops.Value
    step: ops.Value
    by: int | None

    @property
    def dtype(self) -> DType:
        """The dtype of the three."""
        assert isinstance(self.start.type, DType)
        return self.start.type


_MOST_UNROLLED: Final = 1024
"""The largest number of iterations that are unrolled here; more are left to LLVM."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The arguments of `range(...)` or `fe.range(...)`: bounds, hints, and the fast-math flags of
    the loop."""

    bounds: list[Any]
    hints: ops.LoopHints | None = None
    flags: tuple[str, ...] = ()

    def is_unrolled(self, low: Lowering) -> bool:
        """Whether a kernel asks for all iterations, of a known number, one after the other.

        They are unrolled while compiling, so that the index is known: registers are indexed by it.
        """
        full = self.hints is not None and self.hints.unroll == "full"
        bounds = [coercion.plain(bound) for bound in self.bounds]
        if not full or low.kind != "kernel" or self.flags:
            return False
        known = all(type(bound) is int for bound in bounds) and 0 not in bounds[2:]
        return known and len(builtins.range(*bounds)) <= _MOST_UNROLLED


def of_call(low: Lowering, call: ast.Call) -> Counts | None:
    """The arguments of `range(...)` or `fe.range(...)`; None for another call.

    Python's `range` takes no keywords, so hints can only mean those of `fe.range`.
    """
    callee = low.evaluate(call.func)
    if callee is not builtins.range and callee is not faces.range:
        return None
    hints, flags = None, list[str]()
    hinted = bool(call.keywords) and all(each.arg in _HINTS for each in call.keywords)
    if callee is faces.range or hinted:
        given = {keyword.arg or "**": low.evaluate(keyword.value) for keyword in call.keywords}
        hints = _hints(low, given, call)
        flags += ["reassoc"] if coercion.plain(given.get("reassociate")) else []
    elif call.keywords:
        low.fail(
            call, "range takes no keyword arguments", hint="fe.range takes unroll= and vectorize="
        )
    return Counts([low.evaluate(argument) for argument in call.args], hints, tuple(flags))


_HINTS: Final = (
    *("unroll", "unroll_full", "vectorize", "reassociate"),
    *("prefetch_stages", "at_least_once"),
)


def _hints(low: Lowering, given: dict[str, Any], call: ast.Call) -> ops.LoopHints | None:
    """The hints in the keywords of `fe.range`."""
    for name, value in given.items():
        if name not in _HINTS:
            low.fail(call, f"range has no argument {name!r}", expected=", ".join(_HINTS))
        if value is not None and not isinstance(coercion.plain(value), int):
            low.fail(
                call,
                f"{name} of range is {describe(value)}",
                expected="an int or a bool known at compile time",
            )
        if value is not None and value < 0:
            low.fail(call, f"{name} of range is {value}", expected="0 (no wish) or more")
    count = coercion.plain(given.get("unroll") or 0)
    unroll: int | Literal["full"] | None = "full" if given.get("unroll_full") else int(count)
    width = coercion.plain(given.get("vectorize"))
    if width is not None and not isinstance(width, bool):
        width = int(width) or None
    return None if not unroll and width is None else ops.LoopHints(unroll or None, width)


def bounds(low: Lowering, given: Sequence[Any], node: ast.For) -> Limits:
    """Start, stop and step in one integer dtype."""
    if not 1 <= len(given) <= 3:
        low.fail(node.iter, f"range takes 1 to 3 arguments, but got {len(given)}")
    full = [coercion.plain(v) for v in ((0, *given, 1) if len(given) == 1 else (*given, 1)[:3])]
    step = full[2].value if isinstance(full[2], Numeric) else full[2]
    if not isinstance(step, Number) and step == 0:
        low.fail(node.iter, "the step of range must not be 0")
    dtype = Int64 if any(map(_is_wide, full)) else Int32
    values = []
    for value in full:
        number = coercion.as_number(low, value, node.iter, dtype)
        if not number.dtype.is_integer:
            low.fail(
                node.iter,
                f"range takes integers, but got {describe(value)}",
                hint="divide with //, or convert it, fe.Int32(x)",
            )
        values.append(coercion.convert(low, _within(low, value, number, node), dtype).value)
    if isinstance(step, Number) and low.kind == "host":
        _check_step(low, values[2], node)
    return Limits(values[0], values[1], values[2], step if isinstance(step, int) else None)


def _is_wide(value: Any) -> bool:
    """Whether a bound may not fit into 32 signed bits."""
    if isinstance(value, Number):
        return value.dtype.bits > 32 or value.dtype is Uint32
    if isinstance(value, Numeric):
        return value.dtype.bits > 32 or value.dtype is Uint32
    return isinstance(value, int) and not -(1 << 31) <= value < 1 << 31


def _within(low: Lowering, value: Any, number: Number, node: ast.For) -> Number:
    """A Uint64 bound as an Int64: if it does not fit, it is an error in host code.

    A kernel cannot raise: there such a bound counts as the largest Int64.
    """
    if number.dtype is not Uint64:
        return number
    if not isinstance(value, Number):
        if _plain(value) > Int64.range[1]:
            low.fail(node.iter, f"range gets {_plain(value)}", expected="less than 2**63")
        return number
    most = low.builder.constant(Uint64, Int64.range[1])
    if low.kind != "host":
        return Number(low.builder.binary("min", number.value, most))
    fault = Fault(
        "ValueError", "range() is expected to get less than 2**63", low.location(node.iter)
    )
    low.builder.check(low.builder.compare("le", number.value, most), fault)
    return number


def _plain(value: Any) -> int:
    """A compile-time integer as a Python int."""
    return int(value.value if isinstance(value, Numeric) else value)


def _check_step(low: Lowering, step: ops.Value, node: ast.For) -> None:
    assert isinstance(step.type, DType)
    zero = low.builder.constant(step.type, 0)
    fault = Fault("ValueError", "range() arg 3 must not be zero", low.location(node.iter))
    low.builder.check(low.builder.compare("ne", step, zero), fault)


def count(low: Lowering, limits: Limits) -> ops.Value:
    """The number of iterations, a Uint64; 0 for a step of 0.

    Distances are unsigned: the distance of two Int64 may need all 64 bits, and so may the size of
    the smallest step.
    """
    build = low.builder
    start, stop, step = (build.cast(Int64, v) for v in (limits.start, limits.stop, limits.step))
    zero, none, one = build.constant(Int64, 0), build.constant(Uint64, 0), build.constant(Uint64, 1)
    upwards = build.binary("sub", stop, start)
    if limits.by == 1:
        goes = build.compare("lt", start, stop)
        return build.select(goes, build.cast(Uint64, upwards), none)
    up, down = build.compare("gt", step, zero), build.compare("lt", step, zero)
    distance = build.select(up, upwards, build.binary("sub", start, stop))
    size = build.select(up, step, build.unary("neg", step))
    below = build.binary("and", up, build.compare("lt", start, stop))
    above = build.binary("and", down, build.compare("gt", start, stop))
    last = build.binary("sub", build.cast(Uint64, distance), one)
    steps = build.binary("floordiv", last, build.cast(Uint64, size))
    trips = build.binary("add", steps, one)
    return build.select(build.binary("or", below, above), trips, none)


def at(low: Lowering, limits: Limits, trip: ops.Value, hint: str) -> ops.Value:
    """The index of an iteration from its number."""
    build = low.builder
    distance = build.cast(limits.dtype, trip)
    if limits.by != 1:
        distance = build.binary("mul", distance, limits.step)
    result = ops.Value(limits.dtype, hint)
    build.append(ops.Binary(result, "add", limits.start, distance))
    return result

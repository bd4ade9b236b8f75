"""The functions of phases that are alike, and their calls."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TypeAlias

from llvmlite import ir

from ferrule.language.codegen.cpu.alike import Alike
from ferrule.language.codegen.cpu.cooperate.team import Team
from ferrule.language.codegen.cpu.kernels import emit_phase
from ferrule.language.codegen.functions import hints
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.codegen.values.scalars import constant, dtype_of, value_type
from ferrule.language.ir import ops
from ferrule.language.ir.facts import all_ops
from ferrule.runtime.llvm.layouts import I64, VOID
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Stage:
    """A function of phases that are alike, and what it gets besides the integers: values, those
    that are `wide` in 64 bits, and coordinates."""

    function: ir.Function
    values: tuple[ops.Value, ...]
    wide: frozenset[ops.Value]
    places: tuple[tuple[ops.Register, int], ...]

    def given(self, lowering: FunctionLowering) -> list[ir.Value]:
        """The arguments for a call, where the kernel stands."""
        found = (
            lowering.as_i64(each) if each in self.wide else lowering.values[each]
            for each in self.values
        )
        return [*found, *(lowering.coordinates[place] for place in self.places)]


Made: TypeAlias = "dict[Alike, Stage]"


def call(
    lowering: FunctionLowering,
    team: Team,
    fit: Collection[ops.Value],
    alike: Alike,
    phase: ops.Op,
    made: Made,
) -> None:
    """Emits the call of a phase's function, which is emitted for the first of them."""
    stage = made.get(alike)
    if stage is None:
        stage = made[alike] = _stage(lowering, team, fit, alike)
    numbers = (
        constant(dtype_of(value), number)
        for value, number in zip(alike.parameters, alike.numbers[phase], strict=True)
    )
    lowering.emitter.call(stage.function, [*stage.given(lowering), *numbers])


def _stage(
    lowering: FunctionLowering, team: Team, fit: Collection[ops.Value], alike: Alike
) -> Stage:
    """The function; constants of the kernel are constants in it."""
    e, known = lowering.emitter, lowering.values
    values = tuple(each for each in alike.outside if not isinstance(known[each], ir.Constant))
    wide = frozenset(each for each in values if each in lowering.wide)
    places = _places(lowering, alike.body)
    types = [I64 if each in wide else known[each].type for each in values]
    types += [I64] * len(places)
    types += [value_type(dtype_of(value)) for value in alike.parameters]
    name = e.module.get_unique_name(f"stage_{team.kernel.name}")
    attributes = ("nounwind", "noinline")
    with e.define(name, VOID, types, linkage="internal", attributes=attributes) as function:
        hints.prefer_wide_vectors(function)
        hints.begin_at_a_line(function)
        stage = Stage(function, values, wide, places)
        inner = _inner(lowering, stage, alike)
        outside = (*alike.outside, *alike.parameters)
        phase = ops.Function(team.kernel.name, "kernel", outside, alike.body)
        emit_phase(inner, phase, team.shape, fit)
        e.builder.ret_void()
    return stage


def _inner(lowering: FunctionLowering, stage: Stage, alike: Alike) -> FunctionLowering:
    """The state at the beginning of the function."""
    inner, arguments = _empty(lowering), iter(stage.function.args)
    for value in stage.values:
        argument = next(arguments)
        if value in stage.wide:
            inner.define_integer(value, argument)
        else:
            inner.values[value] = argument
    for value in alike.outside:
        inner.values.setdefault(value, lowering.values[value])
    inner.coordinates.update((place, next(arguments)) for place in stage.places)
    inner.values.update(zip(alike.parameters, arguments, strict=True))
    columns = zip(*alike.numbers.values(), strict=True)
    inner.numbers = dict(zip(alike.parameters, columns, strict=True))
    return inner


def _places(lowering: FunctionLowering, body: ops.Region) -> tuple[tuple[ops.Register, int], ...]:
    """The coordinates that a phase reads, except those of its threads, and constants."""
    used = (op for op in all_ops(body) if isinstance(op, ops.Special))
    read = dict.fromkeys((op.register, op.axis) for op in used if op.register != "thread_idx")
    return tuple(
        place for place in read if not isinstance(lowering.coordinates[place], ir.Constant)
    )


def _empty(lowering: FunctionLowering) -> FunctionLowering:
    """The state of a function that has nothing yet but constant coordinates."""
    known = {
        place: value
        for place, value in lowering.coordinates.items()
        if isinstance(value, ir.Constant)
    }
    return replace(
        lowering,
        symbols={},
        coordinates=known,
        values={},
        wide={},
        group=None,
        leave=None,
        fault_values=None,
        objects={},
        made={},
        masks={},
        unmasked={},
        _sizes=None,
    )

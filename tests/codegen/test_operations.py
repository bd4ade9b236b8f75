"""What ops say about themselves, and that passes take one that says nothing for the worst."""

from __future__ import annotations

import dataclasses
import types
from dataclasses import dataclass
from typing import Any, Final, get_args
from unittest.mock import patch

import numpy as np
import pytest

import ferrule as fe
from ferrule.compiler.artefacts import Fault
from ferrule.language.codegen.cpu.steady import without_effect
from ferrule.language.codegen.facts.spine import Spine
from ferrule.language.codegen.facts.uniform import Divergent, Uniform, has_effect
from ferrule.language.ir import ops, scalars
from ferrule.language.ir.effects import written_params
from ferrule.language.ir.operation import EVERY, Facts, Operation, Result
from ferrule.language.ir.passes.cleanup import remove_unused
from ferrule.language.ir.types import TensorType
from ferrule.language.ir.values import Value
from ferrule.specs import Boolean, Float32, Int32

KINDS: Final[tuple[Any, ...]] = (
    *get_args(ops.SimpleOp),
    *get_args(ops.EffectOp),
    *get_args(ops.RegionOp),
)


@dataclass(frozen=True, slots=True, eq=False)
class Mystery(Operation):
    """An op that says nothing of itself."""

    result: Result
    operand: Value


def number(hint: str = "x") -> ops.Value:
    """A value of 32 bits."""
    return ops.Value(Int32, hint)


def kernel(*inside: Any, params: tuple[ops.Value, ...] = ()) -> ops.Function:
    """A kernel of these ops."""
    return ops.Function("k", "kernel", params, ops.Region(inside))


# ---- what each class says ----


@pytest.mark.parametrize("kind", KINDS)
def test_each_op_says_what_it_does(kind: type[Operation]) -> None:
    assert kind.facts.effects < EVERY
    assert ("writes" in kind.facts.effects) or kind.facts.writes is None
    assert set(kind.facts.writes or ()) <= set(kind.fields["operands"])
    assert not kind.facts.speculative or kind.facts.effects == frozenset()


@pytest.mark.parametrize("kind", KINDS)
def test_each_value_of_an_op_has_one_role(kind: type[Operation]) -> None:
    fields = [name for role in kind.fields.values() for name in role]
    assert len(fields) == len(set(fields))
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        text = str(field.type)
        if field.name in kind.fields["regions"]:
            values[field.name] = ops.Region()
        elif field.name in fields:
            many = (number(field.name), number(field.name))
            values[field.name] = many if text.startswith("tuple") else many[0]
        else:
            values[field.name] = None
    op = kind(**values)
    for role, names in kind.fields.items():
        wanted: list[Any] = []
        for name in names:
            value = values[name]
            wanted += value if isinstance(value, tuple) else [value]
        assert list(getattr(op, role)) == wanted


def test_kinds_of_ops_are_what_their_fields_say() -> None:
    assert {kind for kind in KINDS if kind.fields["regions"]} == set(get_args(ops.RegionOp))
    assert {kind for kind in KINDS if "result" in kind.fields["defined"]} == set(
        get_args(ops.SimpleOp)
    )
    assert {kind for kind in KINDS if "waits" in kind.facts.effects} == {
        kind for kind in KINDS if issubclass(kind, ops.Synchronising)
    }


def test_effects_of_an_instance() -> None:
    assert ops.Size(number(), 3).effects == frozenset()
    assert ops.Size(number(), 3, Fault("ValueError", "too large")).effects == {"fails"}
    assert not ops.Special(number(), "thread_idx", 0).is_uniform
    assert ops.Special(number(), "block_idx", 0).is_uniform


# ---- an op that says nothing ----


def test_an_unknown_op_is_not_removed() -> None:
    host = ops.Function("f", "host", (), ops.Region())
    unknown = Mystery(number(), number())
    program = ops.Program("f", (kernel(unknown),), host, {})
    assert remove_unused(program).kernels[0].body.ops == (unknown,)


def test_an_unknown_op_ends_what_comes_before_the_first_effect() -> None:
    first, after = ops.Constant(number(), 1), ops.Constant(number(), 2)
    operand = ops.Constant(number(), 3)
    body = kernel(first, operand, Mystery(number(), operand.result), after)
    assert Spine(body, ((), (), ())).order == [first, operand]


def test_an_unknown_op_is_not_uniform_and_makes_loads_differ() -> None:
    tensor = ops.Value(TensorType(Int32, (4,), (1,), 4), "a")
    zero = ops.Constant(number(), 0)
    load = ops.Load(number(), tensor, (zero.result,))
    unknown = Mystery(number(), zero.result)
    alone = Uniform.of(kernel(zero, load, params=(tensor,)))
    assert load.result in alone
    found = Uniform.of(kernel(zero, ops.Barrier(), load, params=(tensor,)))
    assert load.result in found
    with pytest.raises(Divergent):
        Uniform.of(kernel(zero, unknown, load, params=(tensor,)))
    with patch.object(Mystery, "facts", Facts(EVERY - {"waits"})):
        stale = Uniform.of(kernel(zero, unknown, load, params=(tensor,)))
    assert unknown.result not in stale
    assert load.result not in stale


def test_an_unknown_op_is_not_done_again_or_earlier() -> None:
    unknown = Mystery(number(), number())
    assert not without_effect(unknown)  # type: ignore[arg-type]
    assert not unknown.is_speculative
    assert has_effect(ops.Region((unknown,)))  # type: ignore[arg-type]


def test_an_unknown_op_writes_to_its_operands() -> None:
    tensor = ops.Value(TensorType(Float32, (4,), (1,), 4), "a")
    host = ops.Function("f", "host", (tensor,), ops.Region((Mystery(number(), tensor),)))  # type: ignore[arg-type]
    assert written_params(ops.Program("f", (), host, {})) == {tensor}


# ---- a fact that is wrong is wrong code ----


@fe.kernel
def count(c: fe.Tensor, out: fe.Tensor):
    t = fe.arch.thread_idx()[0]
    s = fe.arch.alloc_smem(fe.Int32, 64)
    s[t] = t
    fe.arch.sync_threads()
    fe.arch.atomic_add(c.iterator, 1)
    fe.arch.sync_threads()
    out[t] = s[63 - t]


@fe.jit
def launch_count(c: fe.Tensor, out: fe.Tensor):
    count(c, out).launch(grid=1, block=64)


def counted() -> tuple[int, list[int]]:
    """What 64 threads count, and what they write."""
    c, out = np.zeros(1, np.int32), np.zeros(64, np.int32)
    fe.compile(launch_count, c, out, options="--target cpu --no-cache")(c, out)
    return int(c[0]), out.tolist()


def test_each_thread_does_its_own_atomic() -> None:
    assert counted() == (64, list(range(63, -1, -1)))


@pytest.mark.parametrize(
    "facts",
    [
        Facts(frozenset(), uniform=True),
        Facts(frozenset(("reads",)), uniform=True),
        Facts(frozenset()),
    ],
)
def test_a_wrong_fact_of_atomics_is_noticed(facts: Facts) -> None:
    with patch.object(ops.Atomic, "facts", facts):
        assert counted() != (64, list(range(63, -1, -1)))


# ---- the operators ----


def test_a_table_without_an_operator_is_told_by_name() -> None:
    with pytest.raises(TypeError, match=r"some\.table has no row for clz, popc"):
        scalars.require_all("some.table", ["neg"], ["popc", "neg", "clz"])


def test_rows_are_of_the_operators_that_there_are() -> None:
    assert set(scalars.UNARY) == set(get_args(ops.UnaryOp))
    assert set(scalars.BINARY) == set(get_args(ops.BinaryOp))
    assert isinstance(scalars.EVERY, types.MappingProxyType)
    assert all(Boolean.kind not in row.kinds or not row.library for row in scalars.EVERY.values())

"""Facts of ops that are wrong: the interpreter notices each where a program shows it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from agreement import Lowered, interpreted, lowered
from interpreter import downwards
from interpreter.declared import Undeclared

import ferrule as fe
from ferrule import arch
from ferrule.language.ir import ops
from ferrule.language.ir.operation import Effect, Operation


@fe.kernel
def work(a: fe.Tensor):
    t = arch.thread_idx()[0]
    shared = arch.alloc_smem(fe.Int32, 64)
    shared[t] = a[t]
    arch.sync_threads()
    near = arch.shuffle_sync_down(shared[63 - t], 1)
    arch.atomic_add(a.iterator, near)
    arch.sync_warp()
    assert arch.vote_any_sync(near > -1), "no lane"
    own = fe.make_fragment(2, fe.Int32)
    own[0] = near
    a[t] = own[0]


@fe.jit
def host(a: fe.Tensor):
    assert a.shape[0] == 64
    fe.printf("{}", a.shape[0])
    work(a).launch(grid=1, block=64)


VECTOR = fe.make_fake_tensor(fe.Int32, (fe.sym_int(),), stride=(1,))


@pytest.fixture(scope="module")
def program() -> Lowered:
    """Lowered with the right facts: a wrong one would change it."""
    return lowered(host, VECTOR).expanded()


def run(program: Lowered, count: int) -> None:
    interpreted(program, downwards, np.arange(count, dtype=np.int32))


EFFECTS: list[tuple[type[Operation], Effect]] = [
    (ops.Load, "reads"),
    (ops.Store, "writes"),
    (ops.Atomic, "reads"),
    (ops.Atomic, "writes"),
    (ops.Barrier, "waits"),
    (ops.WarpBarrier, "waits"),
    (ops.Shuffle, "waits"),
    (ops.Vote, "waits"),
    (ops.Fragment, "makes"),
    (ops.Print, "shows"),
    (ops.Check, "fails"),
]


@pytest.mark.parametrize(("kind", "effect"), EFFECTS)
def test_an_effect_that_is_not_declared_is_noticed(
    kind: type[Operation], effect: Effect, program: Lowered, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = dataclasses.replace(kind.facts, effects=kind.facts.effects - {effect})
    monkeypatch.setattr(kind, "facts", facts)
    with pytest.raises(Undeclared, match=f"{kind.__name__} {effect}"):
        run(program, 63 if effect == "fails" else 64)


def test_an_op_that_is_not_uniform_is_noticed(
    program: Lowered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ops.Special, "is_uniform", True)
    with pytest.raises(Undeclared, match="Special is not uniform"):
        run(program, 64)

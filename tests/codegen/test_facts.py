"""What a function is made of: gathered once, and anew for the function that a pass makes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support import cpu_machine

import ferrule as fe
from ferrule.language.ir import ops
from ferrule.language.ir.facts import Facts
from ferrule.language.ir.values import Region
from ferrule.specs import Float32

N = fe.sym_int()
VECTOR = fe.make_fake_compact_tensor(fe.Float32, (N,))


def test_every_op_is_there_in_the_order_of_the_text() -> None:
    (kernel,) = cpu_machine.add_one(Float32).kernels
    facts = kernel.facts
    assert facts is kernel.facts
    (guard,) = facts.each(ops.If)
    inside = guard.then.ops
    assert inside and facts.ops[-len(inside) :] == inside
    assert set(facts.each(ops.Special)) == {op for op in facts.ops if type(op) is ops.Special}
    assert facts.has(ops.While, ops.Load) and not facts.has(ops.While)
    assert facts.has(ops.RegionOp), "an If is derived from it"
    assert not facts.each(ops.While)


def test_a_function_that_was_changed_has_other_facts() -> None:
    (kernel,) = cpu_machine.add_one(Float32).kernels
    assert kernel.facts.ops
    empty = replace(kernel, body=Region())
    assert empty.facts.ops == () and kernel.facts.ops
    assert replace(empty, body=kernel.body) == kernel


@fe.kernel
def _add(a: fe.Tensor, b: fe.Tensor):  # type: ignore[no-untyped-def]
    i = fe.arch.thread_idx()[0] + fe.arch.block_idx()[0] * fe.arch.block_dim()[0]
    if i < a.shape[0]:
        b[i] = a[i] + 1.0


@fe.jit
def add_one(a: fe.Tensor, b: fe.Tensor):  # type: ignore[no-untyped-def]
    _add(a, b).launch(grid=(fe.ceil_div(a.shape[0], 256), 1, 1), block=(256, 1, 1))


def test_a_compilation_gathers_them_once_for_each_form_of_a_function(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gathered, of = [], Facts.of
    monkeypatch.setattr(Facts, "of", lambda body: gathered.append(body) or of(body))
    fe.compile(add_one, VECTOR, VECTOR, options="--no-cache --target cpu")
    assert len({id(body) for body in gathered}) == len(gathered) <= 6

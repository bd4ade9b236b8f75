"""Tensors in registers and wide parts: the rules of the IR, and what code generation knows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cpu_machine import EMPTY, add_one, host, vector
from hypothesis import given
from hypothesis import strategies as st
from interpreter import scalars

from ferrule.language.codegen.facts import guards, lanes
from ferrule.language.codegen.facts.alignment import Multiples
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.rules.verifier import VerifierError, verify
from ferrule.language.ir.types import TensorType
from ferrule.specs import AddressSpace, Float32, Int8, Int32, Int64, sym_int

OWN = TensorType(Float32, (4,), (1,), 16, AddressSpace.rmem)
SHARED = replace(OWN, space=AddressSpace.gmem)

# ---- rules ----


def refused(rule: str, body: ops.Region, *kernels: ops.Function) -> None:
    program = replace(host("broken", (), body), kernels=kernels)
    with pytest.raises(VerifierError, match=rule):
        verify(program)


@pytest.mark.parametrize(
    ("type_", "rule"),
    [
        (SHARED, "a fragment is in registers"),
        (replace(OWN, strides=(-1,)), "constant sizes and strides, none negative"),
    ],
    ids=["shared", "negative"],
)
def test_a_fragment_is_in_registers_and_constant(type_: TensorType, rule: str) -> None:
    b = Builder()
    with b.region() as body:
        b.fragment(type_)
    refused(rule, body.freeze())


def test_a_fragment_has_no_symbols() -> None:
    n, b = sym_int(), Builder()
    with b.region() as body:
        b.fragment(replace(OWN, shape=(n,)))
    program = replace(host("broken", (), body.freeze()), symbols={n: "n"})
    with pytest.raises(VerifierError, match="constant sizes"):
        verify(program)


def test_a_view_stays_where_its_tensor_is() -> None:
    b = Builder()
    with b.region() as body:
        b.view(b.fragment(OWN), SHARED)
    refused("a view is where its tensor is", body.freeze())


def test_a_parallel_has_no_fragments() -> None:
    b = Builder()
    with b.region() as body:
        own, zero = b.fragment(OWN), b.constant(Int32, 0)
        with b.region() as inner:
            b.load(own, (zero,))
        b.append(ops.Parallel((), (), inner.freeze()))
    refused("a Parallel has no tensors in registers", body.freeze())


def test_a_launch_takes_no_fragments() -> None:
    kernel = ops.Function("k", "kernel", (ops.Value(OWN, "own"),), EMPTY)
    b = Builder()
    with b.region() as body:
        own, one = b.fragment(OWN), b.constant(Int64, 1)
        b.append(ops.Launch("k", (one,) * 3, (one,) * 3, (own,)))
    refused("a launch takes no tensor in registers", body.freeze(), kernel)


# ---- alignment ----

NAMES = ("add", "sub", "mul", "and", "or", "xor", "shl", "mod", "max", "min")


@given(st.data())
def test_the_zero_bits_that_are_known_are_there(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([Int8, Int32, Int64]))
    numbers, known = {}, Multiples()
    for number in data.draw(st.lists(st.integers(*dtype.range), min_size=2, max_size=3)):
        result = ops.Value(dtype)
        numbers[result] = number
        if data.draw(st.booleans()):
            known.note(ops.Constant(result, number))
    for _ in range(data.draw(st.integers(1, 5))):
        lhs, rhs = (data.draw(st.sampled_from(list(numbers))) for _ in range(2))
        name = data.draw(st.sampled_from(NAMES))
        result = ops.Value(dtype)
        known.note(ops.Binary(result, name, lhs, rhs))
        numbers[result] = int(scalars.binary(name, dtype, numbers[lhs], numbers[rhs]))
    for value, number in numbers.items():
        assert number % 2 ** known.zeros.get(value, 0) == 0


def test_the_alignment_of_an_element_comes_from_indices_and_strides() -> None:
    n, m = sym_int(divisibility=8), sym_int(divisibility=2)
    known, b = Multiples(), Builder()
    rows = ops.Value(TensorType(Float32, (n, n), (n, 1), 64), "rows")
    narrow = ops.Value(TensorType(Float32, (n, m), (m, 1), 64), "narrow")
    with b.region() as region:
        i = b.special("thread_idx", 0)
        four, zero, three = (b.constant(Int32, k) for k in (4, 0, 3))
        j = b.binary("mul", i, four)
    for op in region.ops:
        assert not isinstance(op, ops.RegionOp | ops.EffectOp)
        known.note(op)
    assert known.address(rows, (zero, zero)) == 64
    assert known.address(rows, (i, zero)) == 32
    assert known.address(rows, (i, j)) == 16
    assert known.address(rows, (i, three)) == 4
    assert known.address(narrow, (i, j)) == 8
    part = ops.Value(TensorType(Float32, (4,), (1,), 4), "part")
    known.note(ops.View(part, rows, (i, j)))
    assert known.address(part, (zero,)) == 16
    assert known.address(part, (i,)) == 4


def test_a_pointer_that_is_less_aligned_than_its_elements_stays_so() -> None:
    packed = ops.Value(replace(SHARED, align=2), "packed")
    known, index = Multiples(), ops.Value(Int32)
    assert known.address(packed, (index,)) == 2


def test_the_index_of_a_loop_is_a_multiple_of_start_and_step() -> None:
    known, b = Multiples(), Builder()
    with b.region() as region:
        eight, four = b.constant(Int32, 8), b.constant(Int32, 4)
    for op in region.ops:
        assert isinstance(op, ops.Constant)
        known.note(op)
    index, end = ops.Value(Int32), ops.Value(Int32)
    known.note_index(ops.For((), index, eight, end, four, (), (), EMPTY))
    assert known.address(ops.Value(SHARED), (index,)) == 16


# ---- threads ----


def copy_kernel(width: int, step: int) -> ops.Function:
    """Copies `width` neighbours a thread, those of the next thread `step` elements on."""
    n, b = sym_int(), Builder()
    a, c = (ops.Value(vector(Float32, n), name) for name in "ac")
    tiled = TensorType(Float32, (width, n), (1, step), 4)
    with b.region() as body:
        i, zero = b.special("thread_idx", 0), b.constant(Int32, 0)
        indices = [b.constant(Int32, k) for k in range(width)]
        part_type = replace(tiled, shape=(width,), strides=(1,))
        source, target = (b.view(b.view(t, tiled), part_type, (zero, i)) for t in (a, c))
        values = [b.load(source, (k,)) for k in indices]
        for k, value in zip(indices, values, strict=True):
            b.store(target, (k,), value)
    return ops.Function("copy", "kernel", (a, c), body.freeze())


@pytest.mark.parametrize(
    ("width", "step", "wide"), [(4, 4, False), (8, 8, False), (16, 16, True), (16, 1, False)]
)
def test_a_part_that_llvm_would_gather_is_wide(width: int, step: int, wide: bool) -> None:
    assert lanes.has_wide_parts(copy_kernel(width, step)) == wide


def test_what_a_thread_writes_to_a_fragment_is_no_effect_before_the_guard() -> None:
    program = add_one(Float32)
    kernel = program.kernels[0]
    b = Builder()
    with b.region() as body:
        own = b.fragment(OWN)
        b.store(own, (b.constant(Int32, 0),), b.constant(Float32, 1.0))
        for op in kernel.body.ops:
            b.append(op)
    plain = guards.plan(kernel, (128, 1, 1))
    found = guards.plan(replace(kernel, body=body.freeze()), (128, 1, 1))
    assert [plan.bounds for plan in found] == [plan.bounds for plan in plain]
    assert found[0].bounds

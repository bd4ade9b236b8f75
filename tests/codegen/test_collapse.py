"""Axes that become one: which do, which must not, and that the same elements are touched."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from cpu_machine import BASELINE, compile_program, host, vector
from hypothesis import given
from hypothesis import strategies as st
from lowered import lower

import ferrule as fe
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.passes.collapse import collapse, known_sizes
from ferrule.language.ir.rules.verifier import verify
from ferrule.language.ir.types import TensorType
from ferrule.specs import Dim, Float32, Int64, Sym, evaluate, sym_int

M, N, K, LD = (sym_int(symbol=name) for name in ("m", "n", "k", "ld"))
SYMBOLS = (M, N, K, LD)


def elementwise(shape: Sequence[Dim], *strides: Sequence[Dim]) -> ops.Program:
    """Stores to the first tensor what is in the others, all of one shape and any strides."""
    b = Builder()
    types = [TensorType(Float32, tuple(shape), tuple(each), 4) for each in strides]
    out, *inputs = (ops.Value(type_, f"t{i}") for i, type_ in enumerate(types))
    indices = tuple(ops.Value(Int64, f"i{axis}") for axis in range(len(shape)))
    with b.region() as body:
        extents = tuple(b.size(Int64, dim) for dim in shape)
        with b.region() as inner:
            result = b.constant(Float32, 1.0)
            for tensor in inputs:
                result = b.binary("add", result, b.load(tensor, indices))
            b.store(out, indices, result)
        b.append(ops.Parallel(indices, extents, inner.freeze()))
    return host("elementwise", [out, *inputs], body.freeze(), *SYMBOLS)


def parallels(program: ops.Program) -> list[ops.Parallel]:
    return list(program.host.facts.each(ops.Parallel))


def extents(program: ops.Program) -> list[Dim]:
    """The extents of the one Parallel of a program, after it was verified."""
    verify(program)
    sizes, (parallel,) = known_sizes(program.host), parallels(program)
    return [sizes[extent] for extent in parallel.extents]


# ---- what becomes one ----


@pytest.mark.parametrize(
    ("shape", "strides", "wanted"),
    [
        ((M, N), (N, 1), [M * N]),
        ((M, N), (1, M), [N * M]),
        ((M, N, K), (N * K, K, 1), [M * N * K]),
        ((M, N, K), (1, M, N * M), [K * N * M]),
        ((M, N, K), (K, M * K, 1), [N * M * K]),
        ((M, 3), (3, 1), [M * 3]),
        ((4, 3), (3, 1), [12]),
        ((M, N), (N * 2, 2), [M * N]),
        ((M, N), (0, 0), [M * N]),
        ((M, N, K), (LD, K, 1), [M, N * K]),
        ((M, N, K), (N * LD, LD, 1), [M * N, K]),
        ((M, N, K), (LD, 1, LD * M), [K * M, N]),
        ((M + 1, N - 1), (N - 1, 1), [(M + 1) * (N - 1)]),
    ],
)
def test_axes_that_become_one(
    shape: Sequence[Dim], strides: Sequence[Dim], wanted: list[Dim]
) -> None:
    assert extents(collapse(elementwise(shape, strides))) == wanted


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((M,), [(1,)]),
        ((), [()]),
        ((M, N), [(LD, 1)]),
        ((M, N), [(N, 1), (1, M)]),
        ((M, N), [(N, 1), (0, 1)]),
        ((M, N), [(N, 1), (1, 0)]),
        ((M, N), [(N, 1), (LD, 1)]),
        ((M, N), [(N, 2)]),
        ((4, 3), [(4, 1)]),
        ((M, N), [(N + 1, 1)]),
        ((M, N), [(K, 1)]),
    ],
)
def test_axes_that_stay(shape: Sequence[Dim], strides: Sequence[Sequence[Dim]]) -> None:
    program = elementwise(shape, *strides)
    collapsed = collapse(program)
    assert extents(collapsed) == extents(program)
    assert parallels(collapsed)[0].body == parallels(program)[0].body


def add(c, a, b):
    c[:] = a[:] + b[:]


def test_sizes_that_a_relation_makes_equal_are_equal() -> None:
    def example(*sizes: Any) -> Any:
        return fe.make_fake_compact_tensor(fe.Float32, sizes, stride_order=(2, 1, 0))

    free = [sym_int() for _ in range(8)]
    program = lower(add, example(*free[:3]), example(*free[3:6]), example(free[6], 7, free[7]))
    (extent,) = extents(collapse(program))
    assert extent == free[0] * free[1] * free[2]


def test_sizes_without_a_relation_are_not_equal() -> None:
    out, a = TensorType(Float32, (M, N), (N, 1), 4), TensorType(Float32, (M, K), (K, 1), 4)
    program = elementwise((M, N), out.strides, a.strides)
    assert extents(collapse(program)) == [M, N]


def test_two_known_sizes_that_differ_do_no_harm() -> None:
    """Such a call is refused before the body runs."""
    three = fe.make_fake_compact_tensor(fe.Float32, (sym_int(), 3), stride_order=(1, 0))
    n = sym_int()
    other = fe.make_fake_compact_tensor(fe.Float32, (sym_int(), n), stride_order=(1, 0))
    four = fe.make_fake_compact_tensor(fe.Float32, (sym_int(), sym_int()), stride_order=(1, 0))
    assert len(extents(collapse(lower(add, three, other, four)))) == 1


# ---- what keeps axes apart ----


def indexed(make: Callable[[Builder, tuple[ops.Value, ...]], None]) -> ops.Program:
    """A program over m, n with a body of its own over compact `out`."""
    b = Builder()
    indices = (ops.Value(Int64, "i"), ops.Value(Int64, "j"))
    with b.region() as body:
        sizes = tuple(b.size(Int64, dim) for dim in (M, N))
        with b.region() as inner:
            make(b, indices)
        b.append(ops.Parallel(indices, sizes, inner.freeze()))
    return host("indexed", [OUT, LINE, *DIAGONALS], body.freeze(), *SYMBOLS)


OUT = ops.Value(TensorType(Int64, (M, N), (N, 1), 8), "out")
LINE = ops.Value(vector(Int64, N), "line")
DIAGONALS = tuple(
    ops.Value(TensorType(Int64, (M, N, N), (step, 1, 1), 8), "diagonal") for step in (N, N * 2)
)


def test_an_index_that_is_a_number_too_stays() -> None:
    def stored(b: Builder, indices: tuple[ops.Value, ...]) -> None:
        b.store(OUT, indices, indices[1])

    def computed(b: Builder, indices: tuple[ops.Value, ...]) -> None:
        b.store(OUT, indices, b.binary("mul", indices[0], indices[0]))

    def yielded(b: Builder, indices: tuple[ops.Value, ...]) -> None:
        zero = b.constant(Int64, 0)
        flag = b.compare("lt", zero, zero)
        (chosen,) = b.if_(flag, ops.Region((), (indices[0],)), ops.Region((), (zero,)), ("v",))
        b.store(OUT, indices, chosen)

    for make in (stored, computed, yielded):
        assert extents(collapse(indexed(make))) == [M, N]


def test_a_tensor_that_moves_over_one_axis_only_keeps_them_apart() -> None:
    for axis in (0, 1):

        def make(b: Builder, indices: tuple[ops.Value, ...], axis: int = axis) -> None:
            b.store(OUT, indices, b.load(LINE, (indices[axis],)))

        assert extents(collapse(indexed(make))) == [M, N]


def test_an_index_that_stands_twice_moves_by_both_strides() -> None:
    for diagonal, wanted in zip(DIAGONALS, ([M, N], [M * N]), strict=True):

        def make(b: Builder, indices: tuple[ops.Value, ...], tensor: ops.Value = diagonal) -> None:
            b.store(OUT, indices, b.load(tensor, (*indices, indices[1])))

        assert extents(collapse(indexed(make))) == wanted


def test_an_element_that_does_not_move_lets_axes_become_one() -> None:
    def make(b: Builder, indices: tuple[ops.Value, ...]) -> None:
        with b.region() as then:
            b.store(OUT, indices, b.load(LINE, (b.constant(Int64, 0),)))
        one = b.constant(Int64, 1)
        b.if_(b.compare("eq", one, one), then.freeze(), ops.Region(), ())

    assert extents(collapse(indexed(make))) == [M * N]


def test_an_extent_that_is_no_size_keeps_axes_apart() -> None:
    program = elementwise((M, N), (N, 1))
    (parallel,) = parallels(program)
    many = ops.Value(Int64, "many")
    for mixed in ((many, parallel.extents[1]), (parallel.extents[0], many)):
        changed = ops.Parallel(parallel.indices, mixed, parallel.body)
        body = ops.Region((*program.host.body.ops[:-1], changed))
        found = parallels(collapse(host("f", [*program.host.params, many], body, *SYMBOLS)))
        assert found[0].extents == mixed


# ---- that nothing else changes ----


def touched(program: ops.Program, values: Mapping[Sym, int]) -> list[tuple[int, ...]]:
    """Where in each tensor the iterations of a program's Parallel load and store."""
    (parallel,) = parallels(program)
    accesses = [op for op in parallel.body.ops if isinstance(op, (ops.Load, ops.Store))]
    sizes = {value: evaluate(d, values) for value, d in known_sizes(program.host).items()}
    found = []
    for coordinates in itertools.product(*(range(sizes[extent]) for extent in parallel.extents)):
        at = sizes | dict(zip(parallel.indices, coordinates, strict=True))
        found.append(
            tuple(
                sum(
                    at[index] * evaluate(stride, values)
                    for index, stride in zip(op.indices, op.tensor.tensor.strides, strict=True)
                )
                for op in accesses
            )
        )
    return sorted(found)


@st.composite
def layouts(draw: st.DrawFn) -> ops.Program:
    """A program over tensors of one shape, each compact in some order, with gaps here and there."""
    shape = draw(st.lists(st.sampled_from([1, 2, 3, M, N, N + 1]), min_size=0, max_size=4))
    axes = range(len(shape))
    order = draw(st.permutations(axes))
    tensors = []
    for _ in range(draw(st.integers(1, 3))):
        own = draw(st.one_of(st.just(order), st.permutations(axes)))
        strides: dict[int, Dim] = {}
        step: Dim = draw(st.sampled_from([1, 1, 2, K]))
        for axis in own:
            strides[axis] = draw(st.sampled_from([step] * 6 + [0]))
            step = step * shape[axis] * draw(st.sampled_from([1, 1, 1, 2, K]))
        tensors.append([strides[axis] for axis in axes])
    return elementwise(shape, *tensors)


@given(layouts(), st.integers(0, 3), st.integers(0, 3), st.integers(1, 3))
def test_the_same_elements_are_touched(program: ops.Program, m: int, n: int, k: int) -> None:
    values = {M: m, N: n, K: k}
    collapsed = collapse(program)
    verify(collapsed)
    assert len(extents(collapsed)) <= len(extents(program))
    assert touched(collapsed, values) == touched(program, values)


@pytest.mark.parametrize("shape", [(5, 3), (2, 0), (2, 3, 2), (3, 1, 2, 2)])
def test_collapsed_loops_compute_the_same(shape: tuple[int, ...]) -> None:
    sizes, order = tuple(sym_int() for _ in shape), tuple(reversed(range(len(shape))))
    example = fe.make_fake_compact_tensor(fe.Float32, sizes, stride_order=order)
    program = collapse(lower(add, example, example, example))
    (parallel,) = parallels(program)
    assert len(parallel.indices) == 1
    a, b = (np.random.default_rng(seed).random(shape, np.float32) for seed in range(2))
    c = np.zeros_like(a)
    assert compile_program(program)(c, a, b, *shape) == 0
    np.testing.assert_array_equal(c, a + b)


def test_short_rows_with_gaps_become_vectors() -> None:
    program = collapse(elementwise((M, 8), *[(LD, 1)] * 3))
    assert extents(program) == [M, 8]
    assert "fadd <4 x float>" in compile_program(program, BASELINE).optimised

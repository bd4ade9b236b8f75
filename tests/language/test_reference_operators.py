"""Every operator and conversion of the kernel IR: compiled and interpreted, to the last bit."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, get_args

import interpreter
import numpy as np
import pytest
from cpu_machine import compile_program, host, vector
from interpreter import Memory, functions, scalars
from interpreter.functions import EXACT
from random_programs.promotion import DTYPES

from ferrule import specs
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.scalars import BINARY, UNARY
from ferrule.language.mathlib import expand_maths
from ferrule.specs import DType, Float32, Int64, sym_int

NARROW = (specs.Float8E4M3FN, specs.Float8E5M2FNUZ, specs.Float8E8M0FNU)
IN_IR = (*DTYPES, specs.TFloat32, *NARROW)


def edges(dtype: DType) -> list[Any]:
    """Numbers at which an operator can go wrong, as they are in memory."""
    match dtype.kind:
        case "bool":
            return [0, 1, 2, 255]
        case "int" | "uint":
            low, high = dtype.range
            numbers = [low, low + 1, low // 2, -7, -2, -1, 0, 1, 2, 3, 8, 31, 64, high - 1, high]
            return sorted({x for x in numbers if low <= x <= high})
    reals = [0.0, 0.5, 1.0, 1.5, 2.5, 127.5, 1e-7, 6e-8, 1e-40, 5e-324, 65519.0, 65520.0, 3e38]
    reals += [2.0**31, 2.0**63, 2.0**64, 1 + 2.0**-8 + 2.0**-30, 1e300, np.inf]
    with np.errstate(all="ignore"):
        kept = [scalars.number(dtype, x) for x in (*reals, *(-x for x in reals), np.nan)]
    return [scalars.to_memory(dtype, x) for x in kept]


def same_both_ways(
    program: ops.Program,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    meaning: ops.Program | None = None,
) -> None:
    """Runs a program whose one symbol is the size of its arrays, compiled and interpreted.

    `meaning`: what is interpreted, if not the program itself.
    """
    (size,) = program.symbols
    count = len(inputs[0])
    theirs = [out.copy() for out in outputs]
    assert compile_program(program)(*inputs, *outputs, count) == 0
    params = program.host.params
    memories = [Memory.of(array) for array in (*inputs, *theirs)]
    interpreter.run(meaning or program, memories, {size: count})
    for param, found, wanted in zip(params[len(inputs) :], outputs, theirs, strict=True):
        dtype = param.tensor.dtype
        words = [x.view(f"u{x.itemsize}").tolist() for x in (found, wanted)]
        for i, pair in enumerate(zip(*words, strict=True)):
            numbers = [scalars.from_memory(dtype, x[i]) for x in (found, wanted)]
            both_nan = dtype.kind == "float" and all(map(np.isnan, numbers))
            what = f"{param.hint} of {[x[i] for x in inputs]} is {found[i]}, not {wanted[i]}"
            assert pair[0] == pair[1] or both_nan, what


def many(sources: Sequence[DType], made: dict[str, tuple[DType, Any]]) -> ops.Program:
    """`out[i] = make(builder, a[i], …)` for many outputs at once."""
    n, b = sym_int(symbol="n"), Builder()
    inputs = [ops.Value(vector(dtype, n), f"in{i}") for i, dtype in enumerate(sources)]
    outputs = [ops.Value(vector(dtype, n), name) for name, (dtype, _) in made.items()]
    index = ops.Value(Int64, "i")
    with b.region() as body:
        extent = b.size(Int64, n)
        with b.region() as inner:
            loaded = [b.load(tensor, (index,)) for tensor in inputs]
            for out, (_, make) in zip(outputs, made.values(), strict=True):
                b.store(out, (index,), make(b, *loaded))
        b.append(ops.Parallel((index,), (extent,), inner.freeze()))
    return host("many", [*inputs, *outputs], body.freeze(), n)


def arrays(dtypes: Sequence[DType], count: int) -> list[Any]:
    return [np.zeros(count, scalars.memory(dtype)) for dtype in dtypes]


def is_exact(op: str) -> bool:
    """Whether the interpreter knows an operator, and not only about what it gives."""
    return op in EXACT or op not in {**functions.UNARY, **functions.BINARY}


@pytest.mark.parametrize("dtype", IN_IR, ids=lambda d: d.name)
def test_every_operator(dtype: DType) -> None:
    made: dict[str, tuple[DType, Any]] = {}
    for op in filter(is_exact, get_args(ops.BinaryOp)):
        if dtype.kind in BINARY[op].kinds:
            made[op] = dtype, lambda b, x, y, op=op: b.binary(op, x, y)
    for op in get_args(ops.CompareOp):
        made[op] = specs.Boolean, lambda b, x, y, op=op: b.compare(op, x, y)
    for op in filter(is_exact, get_args(ops.UnaryOp)):
        if dtype.kind in UNARY[op].kinds:
            made[op] = dtype, lambda b, x, y, op=op: b.unary(op, x)
    made["select"] = dtype, lambda b, x, y: b.select(b.compare("lt", x, y), x, y)
    numbers = edges(dtype)[:: 2 if dtype.kind == "float" else 1]
    pairs = zip(*itertools.product(numbers, numbers), strict=True)
    inputs = [np.array(column, scalars.memory(dtype)) for column in pairs]
    results = arrays([kind for kind, _ in made.values()], len(inputs[0]))
    same_both_ways(many([dtype, dtype], made), inputs, results)


@pytest.mark.parametrize("dtype", [specs.Float32, specs.Float64], ids=lambda d: d.name)
def test_expanded_maths_is_the_same_in_every_bit(dtype: DType) -> None:
    made: dict[str, tuple[DType, Any]] = {}
    for op in itertools.filterfalse(is_exact, get_args(ops.UnaryOp)):
        made[op] = dtype, lambda b, x, y, op=op: b.unary(op, x)
    for op in itertools.filterfalse(is_exact, get_args(ops.BinaryOp)):
        made[op] = dtype, lambda b, x, y, op=op: b.binary(op, x, y)
    numbers = edges(dtype)
    inputs = [np.array(x, dtype.name) for x in (numbers, numbers[3:] + numbers[:3])]
    results = arrays([kind for kind, _ in made.values()], len(inputs[0]))
    program = many([dtype, dtype], made)
    same_both_ways(program, inputs, results, expand_maths(program))


@pytest.mark.parametrize("dtype", [specs.Float32, specs.Float64], ids=lambda d: d.name)
def test_fma_rounds_once(dtype: DType) -> None:
    eps = 2.0 ** -(23 if dtype is Float32 else 52)
    x = [1 + eps, 1 + eps, 3.0, np.inf, np.inf, 0.0, -0.0, 2.0, 1e30, 1e-30]
    y = [1 + eps, 1 - eps, 1 / 3, 0.0, 1.0, 5.0, 5.0, 3.0, 1e30, 1e-30]
    z = [-(1 + 2 * eps), -1.0, -1.0, 1.0, -np.inf, -0.0, -0.0, -6.0, -np.inf, 5e-324]
    program = many([dtype] * 3, {"fma": (dtype, lambda b, x, y, z: b.fma(x, y, z))})
    inputs = [np.array(column, dtype.name) for column in (x, y, z)]
    results = arrays([dtype], len(x))
    same_both_ways(program, inputs, results)
    assert results[0][0] == eps**2 and results[0][1] == -(eps**2)


@pytest.mark.parametrize("source", IN_IR, ids=lambda d: d.name)
def test_every_cast(source: DType) -> None:
    made: dict[str, tuple[DType, Any]] = {
        f"cast_{target.name}": (target, lambda b, x, target=target: b.cast(target, x))
        for target in IN_IR
    }
    for target in IN_IR:
        if target.is_narrow:
            saturate = lambda b, x, target=target: b.cast(target, x, saturate=True)  # noqa: E731
            made[f"saturated_{target.name}"] = target, saturate
        if source.bits == target.bits and "bool" not in (source.kind, target.kind):
            made[f"bits_{target.name}"] = target, lambda b, x, target=target: b.bitcast(target, x)
    inputs = [np.array(edges(source), scalars.memory(source))]
    results = arrays([kind for kind, _ in made.values()], len(inputs[0]))
    same_both_ways(many([source], made), inputs, results)

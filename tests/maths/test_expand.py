"""The pass `expand_maths`: what it leaves, what it calls, and what becomes of narrow floats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from cpu_machine import BASELINE, compile_program, elementwise
from maths_reference import NUMPY, compiled, run

import ferrule as fe
from ferrule.compiler.assemble import with_instructions
from ferrule.compiler.support.library import THREADS
from ferrule.compiler.targets import HostTarget
from ferrule.language import mathlib
from ferrule.language.codegen import CodegenError, lower_cpu
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.facts import all_ops
from ferrule.language.ir.rules.verifier import verify
from ferrule.language.mathlib import expand_maths
from ferrule.language.mathlib.expand import BINARY, SAME_BY_FMA, UNARY
from ferrule.runtime.binaries.objectfile import read_object
from ferrule.specs import BFloat16, DType, Float16, Float32, Float64

DTYPES = pytest.mark.parametrize("dtype", [Float32, Float64], ids=lambda d: d.name)
NAMES = [*UNARY, *BINARY, "fma"]
NOT_VECTORISED = ("fmod",)


def everything(dtype: DType) -> ops.Program:
    """All functions of the library, one after the other."""

    def make(b: Builder, x: ops.Value, y: ops.Value) -> ops.Value:
        for unary in UNARY:
            x = b.unary(unary, x)
        for binary in BINARY:
            x = b.binary(binary, x, y)
        return b.fma(x, y, x)

    return elementwise(make, [dtype, dtype], dtype)


@pytest.mark.parametrize("dtype", [Float16, Float32, Float64], ids=lambda d: d.name)
def test_no_op_of_the_library_is_left(dtype: DType) -> None:
    expanded = expand_maths(everything(dtype))
    verify(expanded)
    found = list(all_ops(expanded.host.body))
    assert any(isinstance(op, ops.Fma) for op in found) == (dtype is not Float16)
    names = {op.op for op in found if isinstance(op, (ops.Unary, ops.Binary))}
    assert names.isdisjoint({*UNARY, *BINARY})


def test_a_target_keeps_what_its_kernels_have() -> None:
    def keep(op: ops.Unary | ops.Binary) -> bool:
        return op.op in ("floor", "copysign")

    def library(function: ops.Function) -> set[str]:
        found = all_ops(function.body)
        names = {op.op for op in found if isinstance(op, (ops.Unary, ops.Binary))}
        return names & {*UNARY, *BINARY}

    host = everything(Float32).host
    kernel = replace(host, name="k", kind="kernel")
    expanded = expand_maths(replace(everything(Float32), kernels=(kernel,), host=host), keep)
    assert library(expanded.kernels[0]) == {"floor", "copysign"}
    assert library(expanded.host) == set()


def test_fast_is_the_same_on_a_cpu() -> None:
    def texts(fast: bool) -> str:
        made = elementwise(lambda b, x: b.unary("exp", x, fast=fast), [Float32], Float32)
        return lower_cpu(expand_maths(made)).text

    assert texts(fast=True) == texts(fast=False)


@pytest.mark.parametrize("cpu", [None, BASELINE])
@pytest.mark.parametrize("dtype", [Float16, Float32, Float64], ids=lambda d: d.name)
def test_nothing_calls_a_library(dtype: DType, cpu: str | None) -> None:
    found = read_object(compile_program(everything(dtype), cpu).data)
    assert set(found.undefined) <= set(THREADS.entries)


@DTYPES
@pytest.mark.parametrize("name", [name for name in NAMES if name not in NOT_VECTORISED])
def test_loops_are_vectorised(name: str, dtype: DType) -> None:
    assert "vector.body" in compiled(name, dtype).optimised


@DTYPES
def test_fma_is_an_instruction_where_the_cpu_has_it(dtype: DType) -> None:
    kind = "f32" if dtype is Float32 else "f64"
    text = compiled("fma", dtype).body.text
    for cpu, features, wanted in (
        (BASELINE, "", False),
        ("x86-64-v2", "", False),
        ("x86-64-v3", "", True),
        ("znver4", "+avx2,+fma", True),
        ("znver4", "+avx2,-fma", False),
    ):
        made = with_instructions(text, HostTarget("x86_64-unknown-linux-gnu", cpu, features))
        assert (f'@"llvm.fma.{kind}"(' in made) == wanted
        assert (made == text) == (not wanted)
    made = with_instructions(text, HostTarget("aarch64-unknown-linux-gnu", "generic", ""))
    assert f'@"llvm.fma.{kind}"(' in made


def test_the_cpu_target_takes_only_expanded_programs() -> None:
    program = elementwise(lambda b, x: b.unary("exp", x), [Float32], Float32)
    with pytest.raises(CodegenError, match="exp"):
        lower_cpu(program)


def test_values_keep_their_identity() -> None:
    before = elementwise(lambda b, x: b.unary("exp", x), [Float32], Float32)
    after = expand_maths(before)
    assert after.host.params == before.host.params
    (parallel,) = (op for op in after.host.body.ops if isinstance(op, ops.Parallel))
    original = before.host.body.ops[-1]
    assert isinstance(original, ops.Parallel)
    assert parallel.body.ops[-1] is original.body.ops[-1]


# ---- narrow floats ----


def every_half() -> Any:
    return np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)


@pytest.mark.parametrize("op", ["exp", "log", "sin", "tanh", "erf", "rsqrt"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_float16(op: str) -> None:
    values = every_half().view(np.float16)
    found, exact = run(op, Float16, values), NUMPY[op](values.astype("f8")).astype(np.float16)
    differ = ~((found == exact) | (np.isnan(found) & np.isnan(exact)))
    assert differ.sum() <= 16  # where float32 was just on the other side of a middle
    neighbours = found.view(np.int16).astype(int) - exact.view(np.int16).astype(int)
    assert np.abs(neighbours[differ]).max(initial=0) <= 1


def widened(bits: Any) -> Any:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def check_bfloat16(op: str, function: Callable[[Any], Any]) -> None:
    values = widened(every_half())
    found, exact = widened(run(op, BFloat16, every_half())), function(values.astype("f8"))
    known = np.isfinite(exact) & (np.abs(exact) > 1e-37) & (np.abs(exact) < 1e38)
    np.testing.assert_allclose(found[known], exact[known], rtol=2.0**-8)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(exact))


@pytest.mark.parametrize("op", ["exp", "cos", "sigmoid"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_bfloat16(op: str) -> None:
    check_bfloat16(op, NUMPY[op])


@pytest.mark.parametrize("dtype", [Float16, BFloat16], ids=lambda d: d.name)
def test_the_sign_of_a_nan_is_not_converted(dtype: DType) -> None:
    """A GPU converts each NaN to the same one, so that a sign would be lost in float32."""
    program = elementwise(lambda b, x, y: b.binary("copysign", x, y), [dtype, dtype], dtype)
    assert not [op for op in all_ops(expand_maths(program).host.body) if isinstance(op, ops.Cast)]


def expanding(program: ops.Program, *, rests: bool, with_rests: bool) -> ops.Program:
    """The pass as the CPU's stages call it, with rests of products or without."""
    assert rests
    return expand_maths(program, rests=with_rests)


@pytest.mark.parametrize("name", SAME_BY_FMA)
def test_an_fma_changes_no_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a 1021st of all floats; all of them take minutes."""
    numbers = np.arange(0, 1 << 32, 1021, dtype=np.uint64).astype(np.uint32).view(np.float32)

    @fe.kernel
    def kernel(a: fe.Tensor, b: fe.Tensor):
        i = fe.arch.block_idx()[0] * 1024 + fe.arch.thread_idx()[0]
        if i < a.shape[0]:
            b[i] = getattr(fe.math, name)(a[i])

    @fe.jit
    def function(a: fe.Tensor, b: fe.Tensor):
        kernel(a, b).launch(grid=fe.ceil_div(a.shape[0], 1024), block=1024)

    results = []
    for rests, cpu in ((False, "native"), (True, "native"), (True, "baseline")):
        monkeypatch.setattr(mathlib, "expand_maths", partial(expanding, with_rests=rests))
        out = np.zeros_like(numbers)
        how = f"--target cpu --no-cache --host-cpu {cpu}"
        made = fe.compile(function, numbers, out, options=how)
        assert ("@ferrule_rest_f32(" in made.inspect_llvm().replace('"', "")) == rests
        made(numbers, out)
        results.append(np.where(np.isnan(out), 0, out).tobytes())
    assert results[0] == results[1] == results[2]

"""`fast=True` on a GPU: PTX's approximations, where they were asked for and nowhere else."""

from pathlib import Path
from typing import Any

import pytest
from ptxas import assemble

import ferrule as fe
from ferrule.runtime import make_fake_compact_tensor

INSTRUCTIONS = {
    "exp": {"ex2"},
    "exp2": {"ex2"},
    "log": {"lg2"},
    "log2": {"lg2"},
    "log10": {"lg2"},
    "sin": {"sin"},
    "cos": {"cos"},
    "tan": {"sin", "cos", "rcp"},
    "sqrt": {"sqrt"},
    "rsqrt": {"rsqrt"},
    "tanh": {"ex2", "rcp"},
    "sigmoid": {"ex2", "rcp"},
}
"""Functions of one operand, and what they are made of."""


@fe.kernel
def apply_kernel(a: fe.Tensor, b: fe.Tensor, function: fe.Constexpr, fast: fe.Constexpr):
    tx, _, _ = fe.arch.thread_idx()
    b[tx] = function(a[tx], fast=fast)


@fe.jit
def apply(a: fe.Tensor, b: fe.Tensor, function: fe.Constexpr, fast: fe.Constexpr):
    apply_kernel(a, b, function, fast).launch(grid=(1,), block=(32,))


@fe.jit
def whole(a: fe.Tensor, b: fe.Tensor):
    b[:] = fe.math.pow(a[:], 2.5, fast=True)


def ptx(name: str, *, fast: bool, dtype: Any = fe.Float32, fmad: str = "true") -> str:
    vector = make_fake_compact_tensor(dtype, (fe.sym_int(),))
    options = f"--target cuda --gpu-arch sm_80 --fmad={fmad}"
    function = getattr(fe.math, name)
    return fe.compile(apply, vector, vector, function, fast, options=options).inspect_ptx()


def approximations(text: str) -> set[str]:
    """The instructions that are approximate."""
    words = (line.split()[0] for line in text.splitlines() if line.strip())
    return {word.partition(".")[0] for word in words if ".approx" in word}


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_fast_functions_are_approximations(name: str) -> None:
    assert approximations(ptx(name, fast=True)) == INSTRUCTIONS[name]
    assert ".ftz" not in ptx(name, fast=True)


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_others_are_not(name: str) -> None:
    """Formulas with fma may start from an approximation, and end at exact bits."""
    assert approximations(ptx(name, fast=False, fmad="false")) == set()
    assert approximations(ptx(name, fast=False)) <= {"rcp", "rsqrt"}


def test_float16_is_computed_in_float32() -> None:
    assert approximations(ptx("exp", fast=True, dtype=fe.Float16)) == {"ex2"}


def test_float64_and_functions_without_an_instruction_ignore_it() -> None:
    assert approximations(ptx("exp", fast=True, dtype=fe.Float64)) == set()
    assert approximations(ptx("erf", fast=True)) == set()


@pytest.mark.needs_ptxas
def test_ptxas_takes_them(tmp_path: Path) -> None:
    for name in INSTRUCTIONS:
        assemble(ptx(name, fast=True), "sm_80", tmp_path)


def test_a_whole_tensor_expression_is_fast_too() -> None:
    vector = make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))
    function = fe.compile(whole, vector, vector, options="--target cuda --gpu-arch sm_80")
    assert approximations(function.inspect_ptx()) == {"ex2", "lg2"}

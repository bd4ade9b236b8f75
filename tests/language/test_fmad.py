"""Contraction of products and sums: which ones, by whose word, and the same on all targets."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from agreement import interpreted, lowered
from interpreter import upwards

import ferrule as fe
from ferrule.compiler.errors import CompileError

CPU, GPU = "--target cpu", "--target cuda --gpu-arch sm_80"


def vector(dtype: Any = fe.Float32) -> Any:
    return fe.make_fake_compact_tensor(dtype, (fe.sym_int(symbol="n"),))


def compiled(function: Any, options: str = "--target cpu --fmad", dtype: Any = fe.Float32) -> Any:
    return fe.compile(function, vector(dtype), vector(dtype), options=options)


def operations(function: Any, options: str = "--target cpu --fmad", dtype: Any = fe.Float32) -> str:
    """The arithmetic on floats in a function's kernel IR, in order."""
    text = compiled(function, options, dtype).inspect_ir()
    found = re.findall(r"= (fma|add[\w.]*|sub[\w.]*|mul[\w.]*|neg) .*: float\d+", text)
    return " ".join(found)


def of(value: Callable[..., Any], **said: Any) -> Any:
    """A host function that computes with the first three elements of `a`."""

    @fe.jit(**said)
    def computed(a, o):
        o[0] = value(a[0], a[1], a[2])

    return computed


@pytest.mark.parametrize("inner", [True, False])
def test_a_whole_tensor_has_the_settings_of_the_function_that_writes_it(inner: bool) -> None:
    """Also where another function stores it, which is when its numbers are computed."""

    @fe.jit(fmad=inner)
    def written(x):
        return x * x - 1.0

    @fe.jit(fmad=not inner)
    def stored(a: fe.Tensor, o: fe.Tensor):
        o[:] = written(a[:])
        o[0] = fe.sum(written(a[:]) * 0.0)

    assert operations(stored).split()[:2] == (["neg", "fma"] if inner else ["mul", "sub"])

    @fe.jit(fast_math={"arcp"})
    def fast(x):
        return x / 3.0

    @fe.jit
    def stores(a: fe.Tensor, o: fe.Tensor):
        o[:] = fast(a[:]) / 7.0

    text = compiled(stores, "--target cpu").inspect_ir()
    assert re.findall(r"= (div[\w.]*) ", text) == ["div.arcp", "div"]


def helper(x, y):
    return x * y


def branch(x, y, z):
    p = x * y
    if z > 0:
        z += p
    return z


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (lambda x, y, z: x * y + z, "fma"),
        (lambda x, y, z: z + x * y, "fma"),
        (lambda x, y, z: x * y - z, "neg fma"),
        (lambda x, y, z: z - x * y, "neg fma"),
        (lambda x, y, z: x * y + y * z, "mul fma"),
        (lambda x, y, z: x * 2.0 + 1.0, "fma"),
        (lambda x, y, z: helper(x, y) + z, "fma"),
        (lambda x, y, z: x * y + z * x * y, "mul mul fma"),
        (lambda x, y, z: -(x * y) + z, "mul neg add"),
        (lambda x, y, z: x * y * z, "mul mul"),
        (lambda x, y, z: (lambda p: p + p * z)(x * y), "mul fma"),
        (lambda x, y, z: (lambda p: p + p)(x * y), "mul add"),
        (branch, "mul add"),
        (lambda x, y, z: fe.math.mul(x, y) + z, "mul add"),
        (lambda x, y, z: fe.math.add(x * y, z), "mul add"),
        (lambda x, y, z: (fe.Complex64(x, y) * fe.Complex64(y, z)).real, "mul mul sub"),
    ],
)
def test_sums_of_products_that_nothing_else_reads(value: Any, wanted: str) -> None:
    assert operations(of(value)) == wanted


def test_functions_of_ferrule_are_computed_as_before() -> None:
    value = of(lambda x, y, z: fe.math.asinh(x) + x % y + (fe.Complex128(x, y) / z).imag)
    assert operations(value) == operations(value, CPU)


def test_dtypes() -> None:
    value = of(lambda x, y, z: x * y + z)
    assert operations(value, dtype=fe.Float64) == "fma"
    assert operations(value, dtype=fe.Float16) == "mul add"
    assert "fma" not in compiled(value, dtype=fe.Int32).inspect_ir()


@pytest.mark.parametrize("target", [CPU, GPU])
def test_options(target: str) -> None:
    value = kernel_of(lambda x, y, z: x * y + z)
    assert operations(value, target) == ("fma" if target == GPU else "mul add")
    assert operations(value, f"{target} --fmad") == "fma"
    assert operations(value, f"{target} --fmad=true") == "fma"
    assert operations(value, f"{target} --fmad=false") == "mul add"
    ptx = compiled(value, f"{GPU} --fast-math --fmad false").inspect_ptx()
    assert "mul.rn.f32" in ptx and "add.rn.f32" in ptx and "fma" not in ptx


def kernel_of(value: Callable[..., Any], **said: Any) -> Any:
    """The same in a kernel."""

    @fe.kernel(**said)
    def device_computed(a: fe.Tensor, o: fe.Tensor):
        o[0] = value(a[0], a[1], a[2])

    @fe.jit
    def computed(a, o):
        device_computed(a, o).launch(grid=1, block=1)

    return computed


exact = fe.jit(fmad=False)(helper)


@fe.jit(fmad=False)
def rounded_twice(x, y, z):
    return x * y + z


def test_functions_have_the_last_word() -> None:
    def value(x, y, z):
        return x * y + rounded_twice(x, y, z)

    assert operations(of(value)) == "mul add fma"
    assert operations(of(value, fmad=False)) == "mul mul add add"
    assert operations(of(value, fmad=True), CPU) == "mul add fma"
    assert operations(kernel_of(value, fmad=False), GPU) == "mul mul add add"
    # A product or a sum that rounds by itself stays one.
    assert operations(of(lambda x, y, z: exact(x, y) + z)) == "mul add"


def test_flags_leave_it_to_llvm() -> None:
    def value(x, y, z):
        return x * y + z

    assert operations(of(value, fast_math="nsz")) == "mul.contract.nsz add.contract.nsz"
    relaxed = of(value, fast_math=True, fmad=False)
    assert "contract" not in operations(relaxed, CPU)
    assert "contract" not in operations(of(value), "--target cpu --fast-math --fmad=false")
    assert "contract" in operations(of(value), "--target cpu --fast-math")


@pytest.mark.parametrize("fmad", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_is_interpreted_bit_by_bit(fmad: bool, dtype: Any) -> None:
    @fe.jit
    def sums(a, o):
        total = a[0] * 0
        for i in range(o.shape[0]):
            total = a[i] * a[i + 1] - total * a[i + 2]
            o[i] = total + a[i] * (a[i] + a[i + 1] * total)

    rng = np.random.default_rng(0)
    a = (rng.standard_normal(259) * 10.0 ** rng.integers(-3, 3, 259)).astype(dtype)
    found, wanted, other = (np.zeros(257, dtype) for _ in range(3))
    fe.compile(sums, a, found, options=f"--target cpu --fmad={str(fmad).lower()}")(a, found)
    fe.compile(sums, a, other, options=f"--target cpu --fmad={str(not fmad).lower()}")(a, other)
    form = lowered(sums, a, wanted, fmad=fmad)
    interpreted(form, upwards, a, wanted)
    assert found.tobytes() == wanted.tobytes() != other.tobytes()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"fmad": 1}, "fmad of helper is 1\n  expected: True, False, None"),
        (
            {"fmad": False, "fast_math": "contract"},
            "fmad of helper is False, but its fast_math has 'contract', the opposite\n"
            "  hint: leave one of them out",
        ),
    ],
)
def test_wrong_words_of_a_function(said: Any, words: str) -> None:
    for decorator in (fe.jit, fe.kernel):
        with pytest.raises(CompileError) as caught:
            decorator(**said)(helper)
        assert str(caught.value) == words


def test_wrong_options() -> None:
    with pytest.raises(CompileError, match="--fmad must be true or false, but got 'maybe'"):
        compiled(of(helper), "--fmad=maybe")
    with pytest.raises(CompileError, match="fmad must be True, False or None, but got 'yes'"):
        fe.Options(fmad="yes")  # type: ignore[arg-type]


def test_an_export_says_that_it_needs_an_instruction(tmp_path: Any) -> None:
    value = of(lambda x, y, z: x * y + z)
    with pytest.raises(CompileError) as caught:
        compiled(value, "--target cpu --fmad --host-target x86_64-linux-gnu").export_to_c(
            str(tmp_path / "a.o")
        )
    assert str(caught.value) == (
        "computed was compiled with fmad, which makes one operation of a multiplication and an "
        "addition, and x86-64 has no instruction for that\n  expected: a CPU with FMA\n"
        "  hint: add --host-cpu x86-64-v3 or native, or compile without --fmad"
    )
    for options in ("--fmad --host-cpu x86-64-v3", ""):
        options = f"--target cpu --host-target x86_64-linux-gnu {options}"
        compiled(value, options).export_to_c(str(tmp_path / "a.o"))

"""`--fast-math` and `--libdevice`: which instructions and functions kernels have."""

import re
from pathlib import Path
from typing import Any

import pytest
from gpu_functions import compiled, vector
from ptxas import ARCHS, assemble

import ferrule as fe
from ferrule.compiler.cuda import libdevice
from ferrule.compiler.errors import CompileError

CUDA = "--target cuda --gpu-arch sm_90a"
SEVERAL = "--target cuda --gpu-arch " + ",".join(ARCHS)


@fe.kernel
def arithmetic_kernel(a: fe.Tensor, b: fe.Tensor):
    i, _, _ = fe.arch.thread_idx()
    b[i] = (a[i] * b[i] + a[i]) / b[i]


@fe.jit
def arithmetic(a: fe.Tensor, b: fe.Tensor):
    arithmetic_kernel(a, b).launch(grid=1, block=32)


@fe.kernel
def functions_kernel(a: fe.Tensor, b: fe.Tensor):
    i, _, _ = fe.arch.thread_idx()
    b[i] = fe.math.exp(a[i]) + fe.math.atan2(a[i], b[i])


@fe.jit
def functions(a: fe.Tensor, b: fe.Tensor):
    functions_kernel(a, b).launch(grid=1, block=32)


@fe.jit
def whole(a: fe.Tensor, b: fe.Tensor):
    b[:] = fe.math.exp(a[:]) * 2.0 + b[:]


def ptx(function: Any, options: str, dtype: Any = fe.Float32) -> str:
    text = compiled(function, vector(dtype), vector(dtype), options=options).inspect_ptx()
    assert isinstance(text, str)
    return text


def test_fast_math_divides_approximately() -> None:
    plain, fast = ptx(arithmetic, CUDA), ptx(arithmetic, CUDA + " --fast-math")
    assert "div.rn.f32" in plain
    assert "div.approx.f32" in fast
    assert "fma.rn.f32" in plain and "fma.rn.f32" in fast
    assert ".ftz" not in fast


def test_fast_math_of_float64_divides_as_before() -> None:
    fast = ptx(arithmetic, CUDA + " --fast-math", fe.Float64)
    assert "fma.rn.f64" in fast
    assert "div.rn.f64" in fast


def test_fast_math_means_fast_for_every_function() -> None:
    assert "ex2.approx.f32" not in ptx(functions, CUDA)
    assert "ex2.approx.f32" in ptx(functions, CUDA + " --fast-math")
    assert "ex2.approx.f32" in ptx(whole, CUDA + " --fast-math")


@pytest.mark.needs_ptxas
@pytest.mark.parametrize("dtype", [fe.Float16, fe.BFloat16, fe.Float32, fe.Float64])
def test_ptxas_takes_fast_math(dtype: Any, tmp_path: Path) -> None:
    for function in (arithmetic, functions):
        options = SEVERAL + " --fast-math"
        texts: Any = compiled(function, vector(dtype), vector(dtype), options=options).inspect_ptx()
        for arch, text in texts.items():
            assemble(text, arch, tmp_path)


@pytest.fixture
def needs_libdevice() -> None:
    try:
        libdevice.libdevice()
    except CompileError as error:
        pytest.skip(str(error.diagnostic.message))


@pytest.mark.usefixtures("needs_libdevice")
@pytest.mark.parametrize("dtype", [fe.Float16, fe.BFloat16, fe.Float32, fe.Float64])
def test_libdevice_is_linked_to_what_calls_it(dtype: Any, tmp_path: Path) -> None:
    options = (SEVERAL if dtype is fe.Float32 else CUDA + ",sm_80") + " --libdevice"
    texts: Any = compiled(functions, vector(dtype), vector(dtype), options=options).inspect_ptx()
    for arch, text in texts.items():
        assert text != ptx(functions, f"--target cuda --gpu-arch {arch}", dtype)
        assert not re.search(r"\.extern|__nv_|nvvm_reflect", text)
        assert text.count(".entry") == 1


@fe.jit
def sigmoids(a: fe.Tensor, b: fe.Tensor):
    b[:] = fe.math.sigmoid(a[:])


@pytest.mark.usefixtures("needs_libdevice")
@pytest.mark.parametrize("dtype", [fe.Float16, fe.Float32, fe.Float64])
def test_sigmoid_is_made_of_the_exponential_of_libdevice(dtype: Any) -> None:
    ours, theirs = (ptx(sigmoids, CUDA + more, dtype) for more in ("", " --libdevice"))
    assert len(theirs.splitlines()) < len(ours.splitlines()) / (1 if dtype is fe.Float64 else 1.5)
    assert ("ex2.approx" in theirs) == (dtype is not fe.Float64)


@pytest.mark.needs_ptxas
@pytest.mark.usefixtures("needs_libdevice")
def test_ptxas_takes_every_function_of_libdevice(tmp_path: Path) -> None:
    @fe.kernel
    def kernel(a: fe.Tensor, b: fe.Tensor):
        i, _, _ = fe.arch.thread_idx()
        x = a[i]
        for f in NAMES:
            x = x + f(a[i])
        b[i] = x + fe.math.pow(x, a[i]) + fe.math.atan2(x, a[i])

    @fe.jit
    def every(a: fe.Tensor, b: fe.Tensor):
        kernel(a, b).launch(grid=1, block=32)

    for dtype in (fe.Float32, fe.Float64):
        assemble(ptx(every, CUDA + " --libdevice", dtype), "sm_90a", tmp_path)


NAMES = (
    *(fe.math.exp, fe.math.exp2, fe.math.expm1, fe.math.log, fe.math.log2, fe.math.log10),
    *(fe.math.log1p, fe.math.rsqrt, fe.math.cbrt, fe.math.sin, fe.math.cos, fe.math.tan),
    *(fe.math.asin, fe.math.acos, fe.math.atan, fe.math.sinh, fe.math.cosh, fe.math.tanh),
    *(fe.math.erf, fe.math.erfc),
)


def test_what_calls_no_function_needs_no_libdevice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libdevice, "_places", list)
    libdevice.libdevice.cache_clear()
    assert ptx(arithmetic, CUDA + " --libdevice") == ptx(arithmetic, CUDA)


def test_without_libdevice_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libdevice, "_places", list)
    libdevice.libdevice.cache_clear()
    with pytest.raises(CompileError, match=r"there is no libdevice\.10\.bc") as caught:
        compiled(functions, vector(), vector(), options=CUDA + " --libdevice")
    assert "nvidia-cuda-nvcc" in str(caught.value.diagnostic.hint)

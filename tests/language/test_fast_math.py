"""Fast-math flags of functions, kernels and loops: where they are, and what they allow."""

from __future__ import annotations

import copy
import re
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.compiler.errors import CompileError

CPU = "--target cpu"
GPU = "--target cuda --gpu-arch sm_80"
RELAXED = ".reassoc.contract.arcp.afn.nsz"


def vector(dtype: Any = fe.Float32, size: Any = None) -> Any:
    return fe.make_fake_compact_tensor(dtype, (size or fe.sym_int(symbol="n"),))


def dot(a, b, o):
    s = fe.Float32(0)
    for i in range(a.shape[0]):
        s += a[i] * b[i]
    o[0] = s


def compiled(function: Any, options: str = CPU) -> Any:
    return fe.compile(function, vector(), vector(), vector(size=1), options=options)


def flags(function: Any, options: str = CPU) -> set[str]:
    """The flags of the arithmetic on floats in a function's kernel IR, kernels included."""
    found = re.findall(
        r"= (?:add|sub|mul|div|neg)((?:\.\w+)*) ", compiled(function, options).inspect_ir()
    )
    return set(found)


def test_without_a_word_there_are_none() -> None:
    assert flags(fe.jit(dot)) == {""}
    assert "reassoc" not in compiled(fe.jit(dot)).inspect_llvm()


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (True, RELAXED),
        (False, ""),
        ("contract", ".contract"),
        ({"ninf", "reassoc", "nnan"}, ".reassoc.nnan.ninf"),
        (["nsz", "nsz"], ".nsz"),
        ((), ""),
    ],
)
def test_a_function_has_the_flags_that_it_is_given(given: Any, wanted: str) -> None:
    assert flags(fe.jit(fast_math=given)(dot)) == {wanted}


def test_the_same_function_is_there_without_them() -> None:
    fast, plain = fe.jit(fast_math=True)(dot), fe.jit(dot)
    assert (flags(fast), flags(plain)) == ({RELAXED}, {""})
    assert fast.__name__ == "dot" and copy.deepcopy(fast) is fast
    assert flags(plain, "--target cpu --fast-math") == {RELAXED}


@fe.jit
def sums(a, b, o):
    s, t = fe.Float32(0), fe.Float32(0)
    for i in fe.range(a.shape[0], reassociate=True):
        s += a[i]
    else:
        t += 1
    for i in fe.range(a.shape[0], reassociate=False):
        t -= a[i]
    o[0] = s * t


def test_a_loop_has_one_for_its_body() -> None:
    text = compiled(sums).inspect_ir()
    assert len(re.findall(r"add\.reassoc ", text)) == 1
    assert flags(sums) == {".reassoc", ""}
    assert re.search(r"= (sub|mul) ", text)


def helper(x):
    return x + x


def fast_twice(x):
    return x * 2.0


fast_helper = fe.jit(fast_math="contract")(fast_twice)


@fe.jit
def calling(a, b, o):
    for i in fe.range(a.shape[0], reassociate=True):
        o[0] += helper(a[i])
    o[0] = o[0] / fast_helper(b[0])
    o[0] = -o[0]


def test_what_a_loop_calls_has_them_and_what_is_called_has_its_own() -> None:
    text = compiled(calling).inspect_ir()
    assert text.count("add.reassoc") == 2
    assert text.count("mul.contract") == 1
    assert re.search(r"= div ", text) and re.search(r"= neg ", text)


@fe.kernel(fast_math={"contract"})
def scale_kernel(a, b, o):
    i = fe.arch.thread_idx()[0]
    o[i] = a[i] * b[i] + 1.0


@fe.jit(fast_math="reassoc")
def scaled(a, b, o):
    o[0] = a[0] - b[0]
    scale_kernel(a, b, o).launch(grid=1, block=1)


@fe.kernel
def exact_kernel(a, b, o):
    i = fe.arch.thread_idx()[0]
    o[i] = a[i] * b[i] + 1.0


@fe.jit(fast_math=True)
def unscaled(a, b, o):
    exact_kernel(a, b, o).launch(grid=1, block=1)


@fe.jit
def launched(a, b, o):
    scale_kernel(a, b, o).launch(grid=1, block=1)


def test_kernels_have_their_own() -> None:
    assert flags(scaled) == {".contract", ".reassoc"}
    both = compiled(scaled, "--target cpu --fast-math").inspect_ir()
    assert both.count(RELAXED) == 3


def test_a_gpu_uses_them() -> None:
    assert "fma.rn.f32" in compiled(launched, GPU).inspect_ptx()
    assert "fma.rn.f32" not in compiled(unscaled, GPU + " --fmad=false").inspect_ptx()


def test_mlir_has_them() -> None:
    text = compiled(fe.jit(fast_math={"reassoc", "nsz"})(dot)).inspect_mlir()
    assert "fastmath<reassoc,nsz>" in text


def test_sums_become_vectors_where_they_may() -> None:
    """1 is lost beside 1e8 in order; in vectors, most of them are added to each other first."""
    a = np.array([1e8] + [1.0] * 9999 + [-1e8], np.float32)
    ones, out = np.ones_like(a), np.zeros(1, np.float32)
    compiled(fe.jit(dot))(a, ones, out)
    assert out[0] == 0
    for function in (fe.jit(fast_math={"reassoc"})(dot), fe.jit(fast_math=True)(dot)):
        compiled(function)(a, ones, out)
        assert out[0] > 5000
        assert re.search(r"fadd (\w+ )*reassoc", compiled(function).inspect_llvm())


def test_masks_and_tests_for_nan_work_with_true() -> None:
    @fe.jit(fast_math=True)
    def largest(a, b, o):
        m = fe.Float32(float("-inf"))
        for i in range(a.shape[0]):
            x = a[i] - b[i]
            if not fe.math.isnan(x):
                m = fe.math.max(m, x)
        o[0] = m

    inf, nan = np.inf, np.nan
    out = np.zeros(1, np.float32)
    for values, wanted in (([nan, 2, -inf], 2), ([nan, -inf], -inf), ([inf, nan], inf)):
        a = np.array(values, np.float32)
        compiled(largest)(a, np.zeros_like(a), out)
        assert out[0] == wanted


@pytest.mark.parametrize("dtype", [fe.Float16, fe.BFloat16, fe.Float64, fe.Int32])
def test_other_dtypes_are_computed(dtype: Any) -> None:
    @fe.jit(fast_math=True)
    def both(a):
        a[0] = -(a[0] + a[1] * a[1]) - a[1]

    function = fe.compile(both, vector(dtype), options=CPU)
    assert (RELAXED in function.inspect_ir()) == (dtype.kind == "float")
    if dtype is not fe.BFloat16:
        x = np.array([3, 4], dtype.name)
        function(x)
        assert x[0] == -23


def test_fast_rsqrt_is_a_quotient() -> None:
    def roots(a, b, o):
        o[0] = fe.math.rsqrt(a[0], fast=True)
        o[0] += fe.math.rsqrt(b[0])

    fast = compiled(fe.jit(roots))
    out = np.zeros(1, np.float32)
    fast(np.full(1, 4, np.float32), np.full(1, 16, np.float32), out)
    assert out[0] == 0.75
    for values in (0.0, np.inf, np.nan, 1e-40, 3.0, 1e38):
        x = np.full(1, values, np.float32)
        fast(x, np.full(1, np.inf, np.float32), out)
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(out, 1 / np.sqrt(x.astype("f8")), rtol=2e-7)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("fast", "fast_math of dot has 'fast'"),
        ({"nnan", "unsafe"}, "fast_math of dot has 'unsafe'"),
        (3, "fast_math of dot is 3"),
        ([1], r"fast_math of dot is \[1\]"),
        (None, "fast_math of dot is None"),
    ],
)
@pytest.mark.parametrize("decorator", [fe.jit, fe.kernel])
def test_wrong_flags_are_named(decorator: Any, given: Any, message: str) -> None:
    with pytest.raises(CompileError, match=message) as caught:
        decorator(fast_math=given)(dot)
    assert "reassoc, contract, arcp, afn, nsz, nnan, ninf" in str(caught.value)


def test_what_is_marked_is_a_function() -> None:
    with pytest.raises(CompileError, match="marks a function, but got 3"):
        fe.jit(fast_math=True)(3)
    with pytest.raises(CompileError, match="marks a function, but got None"):
        fe.jit(None)  # type: ignore[arg-type]


def test_reassociate_is_known_while_compiling() -> None:
    def wrong(a, b, o):
        for i in fe.range(3, reassociate=a[0] > 1):
            o[0] += a[i]

    with pytest.raises(CompileError, match="reassociate of range is a run-time bool"):
        compiled(fe.jit(wrong))

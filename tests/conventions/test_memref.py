"""Calls of functions that take memref descriptors, as MLIR's lowering does."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from c_objects import c_object
from cuda_device import FakeCuda

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import CudaLaunch, HostCode, Memref, Sequence, Unranked
from ferrule.compiler.errors import CompileError
from ferrule.specs import Signature
from ferrule.specs.params import Optional, Scalar, Tensor

N, M = specs.sym_int(symbol="n"), specs.sym_int(symbol="m")
PITCH = specs.sym_int64(symbol="pitch")
P, Q = specs.sym_int64(symbol="p"), specs.sym_int64(symbol="q")
A = Tensor("a", (N, M), "float32", strides=(PITCH, 1))
B = Tensor("b", (N, M), "float32")
K = Scalar("k", "float32")
GIVEN = np.arange(12, dtype=np.float32).reshape(3, 4)[:, :2]

# What MLIR's C interface declares, written by hand: the struct of a memref of rank 2.
SOURCE = """
#include <stdint.h>
#include <stdlib.h>
typedef struct { float *allocated, *aligned; int64_t offset, sizes[2], strides[2]; } Memref;
typedef struct { int64_t rank; Memref* descriptor; } Unranked;
typedef struct { char flag; Memref memref; float number; } Several;

static void scaled(const float* a, int64_t s0, int64_t s1, float* b, int64_t t0, int64_t t1,
                   int64_t n, int64_t m, float k) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) b[i * t0 + j * t1] = k * a[i * s0 + j * s1];
}
void _mlir_ciface_scale(Memref* a, Memref* b, float k) {
    scaled(a->aligned + a->offset, a->strides[0], a->strides[1], b->aligned + b->offset,
           b->strides[0], b->strides[1], a->sizes[0], a->sizes[1], k);
}
void scale(float* aa, float* a, int64_t ao, int64_t n, int64_t m, int64_t s0, int64_t s1,
           float* bb, float* b, int64_t bo, int64_t n2, int64_t m2, int64_t t0, int64_t t1,
           float k) {
    scaled(a + ao, s0, s1, b + bo, t0, t1, n, m, k);
}
void scale6(float* a, float* b, float k) { scaled(a, 4, 1, b, 2, 1, 3, 2, k); }
int64_t _mlir_ciface_area(Unranked* a) {
    return a->rank * 100 + a->descriptor->sizes[0] * a->descriptor->sizes[1];
}
int64_t area(int64_t rank, Memref* a) { return rank * 100 + a->sizes[0] * a->sizes[1]; }
int64_t _mlir_ciface_index(int64_t i, int64_t j) { return i * 10 + j; }
int64_t _mlir_ciface_positive(int64_t i, const char** failed) {
    if (i <= 0) *failed = "not {positive}";
    return i;
}

void _mlir_ciface_transpose(Memref* out, Memref* a) {
    int64_t n = a->sizes[0], m = a->sizes[1];
    float* data = malloc(sizeof(float) * (n * m + 4));
    Memref made = {data, data + 3, 1, {m, n}, {1, m}};
    scaled(a->aligned, a->strides[0], a->strides[1], data + 4, m, 1, n, m, 1);
    *out = made;
}
void _mlir_ciface_same(Memref* out, Memref* a) { *out = *a; }
static float constant[4] = {1, 2, 3, 4};
void _mlir_ciface_constant(Memref* out) {
    Memref made = {(float*)0xdeadbeef, constant, 0, {2, 2}, {2, 1}};
    *out = made;
}
void _mlir_ciface_several(Several* out, Memref* a) {
    out->flag = 1;
    out->number = 2.5f;
    _mlir_ciface_transpose(&out->memref, a);
}
typedef struct { Memref first, second; } Twice;
void _mlir_ciface_twice(Twice* out, Memref* a) {
    _mlir_ciface_transpose(&out->first, a);
    out->second = out->first;
}
"""

pytestmark = pytest.mark.needs_cc


def code() -> HostCode:
    return HostCode.from_object(c_object(SOURCE))


def built(name: str, *params: Any, **more: Any) -> Any:
    return compiler.build(Signature(name, params), Memref(name, params, code=code(), **more))


@pytest.mark.parametrize("interface", ["c", "expanded"])
def test_a_descriptor_has_address_sizes_and_strides(interface: Any) -> None:
    out = np.zeros((3, 2), np.float32)
    built("scale", A, B, K, interface=interface)(GIVEN, out, 2.0)
    np.testing.assert_array_equal(out, 2 * GIVEN)


def test_bare_pointers() -> None:
    out = np.zeros((3, 2), np.float32)
    built("scale6", A, B, K, interface="bare")(GIVEN, out, 2.0)
    np.testing.assert_array_equal(out, 2 * GIVEN)


@pytest.mark.parametrize("interface", ["c", "expanded"])
def test_a_memref_without_a_rank(interface: Any) -> None:
    call = Memref("area", [Unranked(A)], interface=interface, returns="int64", code=code())
    assert compiler.build(Signature("area", [A]), call)(GIVEN) == 206


def test_a_size_is_an_index() -> None:
    call = Memref("index", [N, M], returns="int64", code=code())
    assert compiler.build(Signature("index", [A]), call)(GIVEN) == 32


def test_a_text_that_the_function_leaves_is_an_error() -> None:
    number = Scalar("i", "int64")
    call = Memref("positive", [number], returns="int64", code=code(), raises=True)
    fn = compiler.build(Signature("positive", [number]), call)
    assert fn(3) == 3
    with pytest.raises(RuntimeError, match="^positive: not {positive}$"):
        fn(-1)


def test_a_tensor_of_the_results_is_a_parameter() -> None:
    call = Memref("scale", [A, B, K], code=code())
    fn = compiler.build(Signature("scale", [A, K]), call, results=[B])
    np.testing.assert_array_equal(np.from_dlpack(fn(GIVEN, 3.0)), 3 * GIVEN)


def test_a_memref_that_the_function_made_becomes_a_tensor() -> None:
    fn = built("transpose", A, returns=[Tensor("t", (M, N), "float32")])
    made = fn(GIVEN)
    del fn
    np.testing.assert_array_equal(np.from_dlpack(made), GIVEN.T)
    assert made.strides == (3, 1), "without gaps"


def test_sizes_that_only_the_function_knows() -> None:
    fn = built("transpose", A, returns=Tensor("t", (P, Q), "float32"))
    assert str(fn.signature).endswith("-> Tensor([p, q], float32)")
    assert np.from_dlpack(fn(GIVEN)).shape == (2, 3)


def test_sizes_that_are_not_those_of_the_spec() -> None:
    fn = built("transpose", A, returns=[Tensor("t", (N, N), "float32")])
    with pytest.raises(RuntimeError, match=r"returned shape\[0\] of t = 2, expected 3"):
        fn(GIVEN)


@pytest.mark.parametrize("name", ["same", "constant"])
def test_what_is_not_the_functions_to_give_away_is_not_freed(name: str) -> None:
    params = [A] if name == "same" else []
    fn = built(name, *params, returns=[Tensor("t", (P, Q), "float32")])
    for _ in range(3):
        made = np.from_dlpack(fn(*[GIVEN] * len(params)))
    wanted = GIVEN if params else [[1, 2], [3, 4]]
    np.testing.assert_array_equal(made, wanted)


def test_several_results_come_back_as_a_tuple() -> None:
    returns = ["bool", Tensor("t", (P, Q), "float32"), "float32"]
    flag, made, number = built("several", A, returns=returns)(GIVEN)
    assert (flag, number) == (True, 2.5)
    np.testing.assert_array_equal(np.from_dlpack(made), GIVEN.T)


def test_one_memref_given_twice_is_freed_once() -> None:
    spec = Tensor("t", (P, Q), "float32")
    first, second = built("twice", A, returns=[spec, spec])(GIVEN)
    np.testing.assert_array_equal(np.from_dlpack(first), np.from_dlpack(second))


def test_memory_of_results_is_freed() -> None:
    """Eight megabytes a call: twenty calls that leaked would show."""
    resource = pytest.importorskip("resource")
    fn = built("transpose", A, returns=[Tensor("t", (M, N), "float32")])
    given = np.ones((1000, 2000), np.float32)
    for _ in range(3):
        fn(given)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(20):
        fn(given)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 80_000, f"{grown} KiB"


def test_a_memref_is_on_the_cpu_also_beside_a_launch(fake_cuda: FakeCuda) -> None:
    ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry f() { ret; }"
    launch = CudaLaunch(fe.DeviceCode.from_ptx(ptx), "f", [], 1, 1)
    memref = Memref("constant", returns=[Tensor("t", (P, Q), "float32")], code=code())
    fn = compiler.build(Signature("f", []), Sequence([launch, memref]))
    assert np.from_dlpack(fn()).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match="of 't' comes from malloc, but its device is 'cuda'"):
        Memref("constant", returns=[Tensor("t", (P, Q), "float32", device="cuda")])


def test_flags_halves_and_indices_of_mlirs_own_ir() -> None:
    """As MLIR translates `func.func @pick(%f: i1, %a: f16, %i: index) -> f16`."""
    text = """
define half @pick(i1 %f, half %a, i64 %i) {
  %z = sitofp i64 %i to half
  %r = select i1 %f, half %a, half %z
  ret half %r
}
define half @_mlir_ciface_pick(i1 %f, half %a, i64 %i) {
  %r = call half @pick(i1 %f, half %a, i64 %i)
  ret half %r
}
"""
    flag, half, shape = Scalar("f", "bool"), Scalar("a", "float16"), specs.params.Shape("s", (N,))
    call = Memref("pick", [flag, half, N], returns="float16", code=HostCode.from_llvm(text))
    fn = compiler.build(Signature("pick", [flag, half, shape]), call)
    assert [fn(True, 1.5, (7,)), fn(False, 1.5, (7,))] == [1.5, 7.0]


def test_what_cannot_be_handed_over() -> None:
    with pytest.raises(ValueError, match="expected interface='c', 'expanded' or 'bare'"):
        Memref("f", [A], interface="d")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no bare pointers of memrefs without a rank"):
        Memref("f", [Unranked(A)], interface="bare")
    with pytest.raises(TypeError, match="argument #0 of _mlir_ciface_f: a memref is always there"):
        Memref("f", [Optional("o", A)])
    with pytest.raises(ValueError, match=r"interface='c' alone: .* llvm\.emit_c_interface"):
        Memref("f", [], interface="expanded", returns=[B])
    with pytest.raises(ValueError, match="depends on a condition can give nothing back"):
        Memref("f", [], returns=[B], when=N > 3)
    with pytest.raises(TypeError, match="Unranked: expected a Tensor, but got Scalar 'n'"):
        Unranked(Scalar("n", "int32"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected the name of a function"):
        Memref(ctypes.CFUNCTYPE(None)())  # type: ignore[arg-type]


def test_a_function_without_the_c_interface() -> None:
    with pytest.raises(CompileError, match="no function _mlir_ciface_scale6; there are:"):
        built("scale6", A, B, K)

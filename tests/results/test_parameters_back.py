"""`return a` of a tensor that is a parameter: the same memory, which the result keeps alive."""

from __future__ import annotations

import gc
import itertools
import sys
import weakref
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from lowered import vector

import ferrule as fe
from ferrule import specs

CPU = "--target cpu"
OWNING = "Tensor([n], float32, device=cpu, owning=True)"
N = fe.sym_int(symbol="n")


def tensor(**more: Any) -> specs.Tensor:
    return specs.Tensor("a", (N,), "float32", **more)


def shares(result: Any, array: np.ndarray) -> bool:
    return np.from_dlpack(result).ctypes.data == array.ctypes.data


@fe.kernel
def double_kernel(a: fe.Tensor):
    i = fe.arch.block_idx()[0] * 32 + fe.arch.thread_idx()[0]
    if i < a.shape[0]:
        a[i] = a[i] * 2


@fe.jit
def doubled(a: fe.Tensor):
    double_kernel(a).launch(grid=fe.ceil_div(a.shape[0], 32), block=32)
    return a


@fe.jit
def whole(a: fe.Tensor):
    return a


@pytest.mark.parametrize(
    "options", [CPU, "--target cpu --enable-checks", "--target cpu --opt-level 0"]
)
def test_the_memory_is_the_callers_and_kept(options: str) -> None:
    f = fe.compile(doubled, tensor(), options=options)
    assert f.signature.text() == (
        f"doubled(a: {OWNING}) -> Tensor([n], float32, device=cpu) where n: int32"
    )
    array = np.ones(100, np.float32)
    before = sys.getrefcount(array)
    for _ in range(5):
        result = f(array)
    assert shares(result, array) and (array == 32).all()
    given = tvm_ffi.from_dlpack(array)
    assert f(given).same_as(given)
    gone, given = weakref.ref(array), None
    del array
    assert gone() is not None and np.from_dlpack(result)[99] == 64
    del result
    gc.collect()
    assert gone() is None and before


def test_in_tuples_and_on_the_other_way_out() -> None:
    @fe.jit
    def chosen(a: fe.Tensor, b: fe.Tensor, k: fe.Int32):
        if k > 0:
            return a, (b, a.shape[0])
        return fe.zeros(a.shape, a.element_type), (a, k)

    f = fe.compile(chosen, tensor(), specs.Tensor("b", (N,), "float32"), fe.Int32, options=CPU)
    a, b = np.ones(3, np.float32), np.full(3, 7, np.float32)
    first, (second, size) = f(a, b, 1)
    assert shares(first, a) and shares(second, b) and size == 3
    first, (second, k) = f(a, b, -2)
    assert not np.from_dlpack(first).any() and shares(second, a) and k == -2


def test_the_result_promises_no_more_alignment_than_each_way_has() -> None:
    @fe.jit
    def chosen(a: fe.Tensor, k: fe.Int32):
        if k > 0:
            return fe.empty_like(a)
        return a

    assert fe.compile(chosen, tensor(), fe.Int32, options=CPU).signature.result.align == 4
    exact = fe.compile(whole, tensor(align=32), options=CPU)
    assert exact.signature.result.align == 32


@pytest.mark.parametrize("target", ["cpu", "cuda --gpu-arch sm_80"])
def test_branches_and_loops_choose_one(target: str) -> None:
    @fe.jit
    def chosen(a: fe.Tensor, b: fe.Tensor, k: fe.Int32):
        x, y, z = a, b, a
        for _ in range(k):
            x, y = y, x
        if k > 1:
            z = fe.full(a.shape, 5, fe.Float32)
        return x, y, z

    examples = tensor(), specs.Tensor("b", (N,), "float32"), fe.Int32
    f = fe.compile(chosen, *examples, options=f"--target {target}")
    assert all(param.owning for param in f.signature.params[:2])
    if target != "cpu":
        return  # LLVM has verified it
    a, b = np.ones(3, np.float32), np.full(3, 7, np.float32)
    for k in range(4):
        x, y, z = f(a, b, k)
        assert shares(x, b if k % 2 else a) and shares(y, a if k % 2 else b)
        assert (np.from_dlpack(z) == (5 if k > 1 else 1)).all()
        assert shares(z, a) == (k < 2)


def test_a_tuples_item_its_first_rows_and_any() -> None:
    @fe.jit
    def item(p, k: fe.Int32):
        return fe.shrink(p[1], k)

    @fe.jit
    def anything(a: fe.Tensor, k: fe.Int32) -> Any:
        if k > 0:
            return a
        return k

    array = np.arange(4, dtype=np.float32)
    pair = specs.Tuple("p", [specs.Scalar("x", "int32"), tensor()])
    first = fe.compile(item, pair, fe.Int32, options=CPU)((1, array), 3)
    assert first.shape == (3,) and shares(first, array)
    f = fe.compile(anything, tensor(), fe.Int32, options=CPU)
    assert f(array, 0) == 0 and shares(f(array, 1), array)


def test_strides_stay_and_what_is_read_only_is_refused() -> None:
    f = fe.compile(whole, tensor(strides=(fe.sym_int64(symbol="s"),)), options=CPU)
    array = np.arange(6, dtype=np.float32)
    assert np.from_dlpack(f(array[::2])).strides == (8,)
    assert "strides=[s]" in f.signature.text().partition("->")[2]
    f = fe.compile(whole, tensor(read_only=True), options=CPU)
    array.flags.writeable = False
    with pytest.raises(BufferError, match="expected an array that can be written"):
        f(array)


def test_inside_of_other_programs() -> None:
    """Called as a program, compiled, and from a file: the outer function gives it back, too."""
    inner = fe.compile(doubled, vector(), options=CPU)

    @fe.jit
    def by_program(a: fe.Tensor):
        return doubled(doubled(a))

    @fe.jit
    def by_function(a: fe.Tensor):
        b = inner(inner(a))
        return b

    @fe.jit
    def of_its_own(a: fe.Tensor):
        t = fe.full(a.shape, 3, fe.Float32)
        return inner(t)

    for outer in (by_program, by_function):
        f, array = fe.compile(outer, tensor(), options=CPU), np.ones(40, np.float32)
        assert f.signature.params[0].owning
        for _ in range(3):
            result = f(array)
        assert shares(result, array) and (array == 64).all()
    made = fe.compile(of_its_own, tensor(), options=CPU)
    assert not made.signature.params[0].owning
    assert (np.from_dlpack(made(np.ones(3, np.float32))) == 6).all()


def test_files_say_so(tmp_path: Any) -> None:
    f = fe.compile(doubled, tensor(), options=CPU)
    f.export_library(tmp_path / "doubled.so")
    f.export_header(tmp_path / "doubled.h")
    loaded = fe.runtime.load_module(tmp_path / "doubled.so").doubled
    assert loaded.signature.text() == f.signature.text()
    array = np.ones(40, np.float32)
    assert shares(loaded(array), array)
    header = (tmp_path / "doubled.h").read_text()
    assert "owning=True" in header and "int doubled(TVMFFIAny a, TVMFFIAny* result)" in header
    assert "memref<?xf32>) -> memref<?xf32>" in f.inspect_mlir()


def test_a_torch_tensor_comes_back_as_one() -> None:
    torch = pytest.importorskip("torch")
    given = torch.ones(40)
    for f in (fe.compile(doubled, tensor(), options=CPU), doubled):
        result = f(given)
        assert isinstance(result, torch.Tensor) and result.data_ptr() == given.data_ptr()


def test_other_tensors_are_refused_with_what_to_write() -> None:
    @fe.jit
    def column(a: fe.Tensor):
        return a[None, 0]

    @fe.jit
    def perhaps(b):
        if b is not None:
            return b
        return fe.zeros((1,), fe.Float32)

    @fe.jit
    def carried(a: fe.Tensor, k: fe.Int32):
        x = a
        for _ in range(k):
            x = fe.empty_like(a)
        return x

    matrix = specs.Tensor("a", (N, 4), "float32")
    half = specs.Tensor("a", (N,), "int4")
    maybe = specs.Optional("b", specs.Tensor("b", (N,), "float32"))
    for function, given, message in (
        (column, (matrix,), "returns the tensor a[None, 0], which has no object of its own"),
        (perhaps, (maybe,), "returns the tensor b, which has no object of its own"),
        (whole, (half,), "whose elements have less than a byte"),
        (carried, (tensor(), fe.Int32), "a part of a tensor that this loop makes, or such a"),
    ):
        with pytest.raises(fe.CompileError) as caught:
            fe.compile(function, *given, options=CPU)
        assert message in str(caught.value)


def test_many_calls_leave_nothing_behind() -> None:
    f = fe.compile(doubled, tensor(), options=CPU)
    array = np.zeros(4, np.float32)
    before = sys.getrefcount(array)
    for _ in itertools.repeat(None, 1000):
        f(array)
    gc.collect()
    assert sys.getrefcount(array) == before

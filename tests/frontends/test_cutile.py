"""Kernels of cuTile on the stand-in of the driver: constraints, and the calls that break them."""

from __future__ import annotations

import importlib.util
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bare_python import called_bare
from cuda_device import FakeCuda, forged
from pages import run_page

import ferrule as fe
from ferrule import specs
from ferrule.compiler.errors import CompileError
from ferrule.frontends import cutile as frontend
from ferrule.frontends.told import fixed
from ferrule.specs import Tensor, Tuple

if importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.tile") is None:
    pytest.skip("cuTile is not installed", allow_module_level=True)

import cuda.tile as ct
from cuda.tile.compilation import (
    ArrayConstraint,
    CallingConvention,
    ConstantConstraint,
    KernelSignature,
    ListConstraint,
    ScalarConstraint,
)

TILE = 64


@ct.kernel
def axpy(x, y, alpha, TILE: ct.Constant[int]):
    """Adds alpha times x to y."""
    block = ct.bid(0)
    added = ct.load(x, index=(block,), shape=(TILE,)) * alpha
    ct.store(y, index=(block,), tile=ct.load(y, index=(block,), shape=(TILE,)) + added)


@ct.kernel
def shifted(x, outs, n, TILE: ct.Constant[int]):
    block = ct.bid(0)
    tile = ct.load(x, index=(block, 0), shape=(TILE, TILE))
    ct.store(outs[0], index=(block, 0), tile=tile + ct.astype(n, ct.float16))


def array(**more: Any) -> Any:
    given = {
        "index_dtype": ct.int32,
        "stride_lower_bound_incl": 0,
        "alias_groups": (),
        "may_alias_internally": False,
        "base_addr_divisible_by": 16,
    }
    return ArrayConstraint(ct.float32, 1, **(given | more))


def compiled(x: Any, y: Any, **more: Any) -> fe.Function:
    rows = [x, y, ScalarConstraint(ct.float32), ConstantConstraint(TILE)]
    signature = KernelSignature(rows, CallingConvention.cutile_python_v2())
    given = {"grid": lambda sig: fe.ceil_div(sig["x"].shape[0], TILE), "target": "sm_90"} | more
    return frontend.compile(axpy, signature, **given)


def vector(size: int = 1000, dtype: str = "float32") -> np.ndarray[Any, Any]:
    item = np.dtype(dtype).itemsize
    room = np.zeros(size * item + 64, np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + size * item].view(dtype)


def test_an_array_is_its_address_sizes_and_strides(fake_cuda: FakeCuda) -> None:
    fn = compiled(array(stride_constant=(1,)), array(index_dtype=ct.int64))
    assert str(fn.signature) == (
        "axpy(x: Tensor([n0], float32), y: Tensor([n1], float32), alpha: float32)"
    )
    x, y = vector(), vector(2000)
    fn(forged(x), forged(y[::2]), 2.5)
    (launch,) = fake_cuda.launches()
    assert (launch.kernel, launch.grid, launch.block) == ("axpy_kernel", (16, 1, 1), (1, 1, 1))
    wanted = struct.pack("<QiiQqqf", x.ctypes.data, 1000, 1, y.ctypes.data, 1000, 2, 2.5)
    assert b"".join(launch.parameters) == wanted


def test_examples_become_constraints(fake_cuda: FakeCuda) -> None:
    n, step = fe.sym_int(divisibility=16), specs.sym_int64(8)
    x = fe.make_fake_tensor(fe.Float16, (n, 64), (step, 1), assumed_align=16)
    outs = Tuple("outs", (Tensor("0", (n, 64), "float16"),))
    fn = frontend.compile(shifted, [x, outs, fe.Int8, 16], grid=n // 16, target="sm_90")
    given, out = vector(32 * 128, "float16").reshape(32, 128)[:, :64], vector(2048, "float16")
    fn(forged(given), (forged(out.reshape(32, 64)),), -3)
    (launch,) = fake_cuda.launches()
    assert [len(each) for each in launch.parameters] == [8, 4, 4, 4, 4] * 2 + [1]
    assert [struct.unpack("<i", each)[0] for each in launch.parameters[1:5]] == [32, 64, 128, 1]
    with pytest.raises(ValueError, match=r"Invalid x.shape\[0\]|x.shape\[0\].* divisible by 16"):
        fn(forged(given[:8]), (forged(out.reshape(32, 64)[:8]),), 0)


@ct.kernel
def multiplied(a, b, out, parts: ct.Constant[int]):
    row, column = ct.bid(0), ct.bid(1)
    total = ct.full((32, 32), 0.0, dtype=ct.float32)
    for part in range(parts):
        left = ct.load(a, index=(row, part), shape=(32, 32))
        total = ct.mma(left, ct.load(b, index=(part, column), shape=(32, 32)), total)
    ct.store(out, index=(row, column), tile=total)


def test_a_matrix_product_of_aligned_rows_is_launched(fake_cuda: FakeCuda) -> None:
    n, m = fe.sym_int(), fe.sym_int()
    halves = fe.make_fake_tensor(fe.Float16, (n, m), (fe.sym_int64(8), 1), assumed_align=16)
    floats = fe.make_fake_tensor(fe.Float32, (n, m), (fe.sym_int64(), 1))
    fn = frontend.compile(
        multiplied, [halves, halves, floats, 2], grid=fixed((2, 2)), target="sm_90"
    )
    a, b = (vector(64 * 64, "float16").reshape(64, 64) for _ in range(2))
    fn(forged(a), forged(b), forged(vector(64 * 64).reshape(64, 64)))
    (launch,) = fake_cuda.launches()
    assert [len(each) for each in launch.parameters] == [8, 4, 4, 4, 4] * 3


def test_a_tuple_of_examples_and_constants_is_a_tuple() -> None:
    @ct.kernel
    def copied(arrays, size: ct.Constant[int]):
        ct.store(arrays[1], index=(0,), tile=ct.load(arrays[0], index=(0,), shape=(size,)))

    given = fe.make_fake_tensor(fe.Float32, (fe.sym_int(symbol="n"),), (1,))
    fn = frontend.compile(copied, [(given, given), np.int32(16)], grid=fixed(1), target="sm_90")
    assert str(fn.signature) == (
        "copied(arrays: Tuple[Tensor([n], float32), Tensor([n], float32)])"
    )


X, Y = vector(1000), vector(1000)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((X, X), "x and y overlap in memory, expected arrays apart"),
        ((X[4:], X[:500]), "x and y overlap in memory"),
        ((X[1:], Y), "Misaligned Tensor data on argument #0"),
        ((X, Y[::-1][3:]), r"Mismatched y.strides\[0\], expected at least 0, got -1"),
        (
            (X, np.broadcast_to(Y[:1], (10,))),
            "Mismatched strides of y, expected a place of its own",
        ),
        ((X[::2], Y), r"Mismatched x.strides\[0\].*expected to be 1"),
    ],
)
def test_what_cutile_calls_undefined_is_an_error(
    fake_cuda: FakeCuda, arguments: Any, said: str
) -> None:
    fn = compiled(array(stride_constant=(1,)), array())
    with pytest.raises(ValueError, match=said):
        fn(*map(forged, arguments), 1.0)
    assert fake_cuda.launches() == []


def test_what_constraints_allow_is_launched(fake_cuda: FakeCuda) -> None:
    loose = {"alias_groups": ("g",), "may_alias_internally": True}
    fn = compiled(array(**loose), array(**loose))
    fn(forged(X), forged(X), 1.0)
    fn(forged(X), forged(np.broadcast_to(Y[:1], (10,))), 1.0)
    apart = compiled(array(), array())
    apart(forged(X[:500]), forged(X[500:]), 1.0)
    apart(forged(X[:0]), forged(X), 1.0)
    assert len(fake_cuda.launches()) == 3


def test_elements_of_a_transposed_matrix_have_their_own_places(fake_cuda: FakeCuda) -> None:
    step = [specs.sym_int64(), specs.sym_int64()]
    n, m = fe.sym_int(), fe.sym_int()
    x = Tensor("x", (n, m), "float16", strides=step, align=16)
    outs = Tuple("outs", (Tensor("0", (n, m), "float16"),))
    fn = frontend.compile(shifted, [x, outs, fe.Int8, 16], grid=fixed(1), target="sm_90")
    given, out = vector(1024, "float16").reshape(32, 32), vector(1024, "float16").reshape(32, 32)
    fn(forged(given.T), (forged(out),), 0)
    assert len(fake_cuda.launches()) == 1
    windows = np.lib.stride_tricks.sliding_window_view(vector(63, "float16"), 32)
    with pytest.raises(ValueError, match="Mismatched strides of x"):
        fn(forged(windows), (forged(out),), 0)


def test_a_cubin_for_each_architecture(fake_cuda: FakeCuda) -> None:
    fn = compiled(array(), array(), target=["sm_90", "sm_100"])
    fake_cuda.set_capability(0, 100)
    fn(forged(X), forged(Y), 1.0)
    assert len(fake_cuda.launches()) == 1


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ([1, 2], "axpy has 4 parameters, but there are 2\n  expected: one for each of x, y, alpha"),
        ([array(), array(), fe.Float32, fe.Int32], "cuTile cannot compile axpy for sm_90"),
        (
            [array(base_addr_divisible_by=24), array(), fe.Float32, 4],
            "'x' is to be divisible by 24",
        ),
        (
            [ListConstraint(array(), alias_groups=(), elements_may_alias=False), 1, 1, 1],
            "the parameter 'x' has a ListConstraint",
        ),
        ([object(), 1, 1, 1], "the example of the parameter 'x' is"),
    ],
)
def test_what_does_not_fit_is_refused(parameters: Any, said: str) -> None:
    with pytest.raises(CompileError, match=said):
        frontend.compile(axpy, parameters, grid=fixed(1), target="sm_90")


def test_what_is_no_kernel_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="parameters must be a list, with an example"):
        frontend.compile(axpy, {"x": array()}, grid=fixed(1), target="sm_90")
    with pytest.raises(CompileError, match="cuTile has no architecture sm_90a"):
        frontend.compile(axpy, [array(), array(), fe.Float32, 4], grid=fixed(1), target="sm_90a")
    with pytest.raises(TypeError, match="expected a kernel, a function with @cuda.tile.kernel"):
        frontend.compile(len, [], grid=fixed(1), target="sm_90")


@pytest.mark.needs_cc
def test_what_is_exported_needs_neither_ferrule_nor_cutile(tmp_path: Path) -> None:
    compiled(array(), array()).export_to_c(tmp_path / "axpy.o")
    code = "print(module.get_function('axpy') is not None)"
    assert called_bare([tmp_path / "axpy.o"], "cuda", code) == "True\n"


def test_the_page_runs(tmp_path: Path) -> None:
    run_page("frontends_cutile.md", tmp_path)

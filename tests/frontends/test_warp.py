"""Kernels of Warp: on the CPU against Warp's own launch, for GPUs on the stand-in of the driver."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bare_python import called_bare
from benchmark_runs import quick_run
from cuda_device import FakeCuda, forged
from pages import run_page

import ferrule as fe
from ferrule.compiler import BuildWarning
from ferrule.compiler.errors import CompileError
from ferrule.frontends import warp as frontend
from ferrule.specs import Scalar, Tensor, Tuple

wp = pytest.importorskip("warp", reason="Warp is not installed")


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    wp.config.kernel_cache_dir = str(tmp_path_factory.mktemp("warp"))
    wp.config.log_level = wp.LOG_WARNING


@wp.struct
class Options:
    scale: wp.float32
    shift: wp.vec3
    weights: wp.array(dtype=wp.float32)
    power: wp.int8


@wp.kernel(module="unique")
def saxpy(x: wp.array(dtype=wp.float32), y: wp.array(dtype=wp.float32), alpha: wp.float32):
    """Adds alpha times x to y."""
    i = wp.tid()
    y[i] = alpha * x[i] + y[i]


@wp.kernel(module="unique")
def curves(
    x: wp.array2d(dtype=wp.float64),
    y: wp.array2d(dtype=wp.float64),
    turn: wp.quat,
    flag: bool,
    half: wp.float16,
):
    i, j = wp.tid()
    turned = wp.quat_rotate(turn, wp.vec3(1.0, 2.0, 3.0))
    y[i, j] = wp.sin(x[i, j]) + wp.pow(x[i, j], wp.float64(2.5)) + wp.erf(x[i, j])
    if flag:
        y[i, j] += wp.float64(turned[0]) + wp.float64(float(half))


@wp.kernel(module="unique")
def shifted(options: Options, out: wp.array(dtype=wp.vec3), count: wp.int64, small: wp.uint16):
    i = wp.tid()
    more = wp.vec3(float(options.power), float(count), float(small))
    out[i] = options.shift * options.scale * options.weights[i] + more


@wp.kernel(module="unique")
def total(x: wp.array(dtype=wp.float32), out: wp.array(dtype=wp.float32)):
    wp.atomic_add(out, 0, x[wp.tid()])


@wp.kernel
def multiplied(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float)):
    part = wp.tile_load(a, shape=(16, 16))
    product = wp.tile_zeros(shape=(16, 16), dtype=float)
    wp.tile_matmul(part, part, product)
    wp.tile_store(b, product)


@wp.kernel(module="unique")
def tile_sums(a: wp.array2d(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    part = wp.tile_load(a[i], shape=16)
    wp.tile_store(out, wp.tile_sum(part), offset=i)


@wp.kernel(module="unique")
def tiles_turned(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float)):
    i, j, t = wp.tid()
    part = wp.tile_load(a, shape=(8, 4), offset=(i * 8, j * 4))
    wp.tile_store(b, wp.tile_transpose(part), offset=(j * 4, i * 8))


@wp.kernel
def beside(x: wp.array(dtype=wp.float32)):
    x[wp.tid()] = 2.0


@wp.kernel
def generic(x: wp.array(dtype=wp.Float)):
    x[wp.tid()] = x.dtype(1.0)


def pair(size: int = 8) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    return np.arange(size, dtype=np.float32), np.ones(size, np.float32)


# ---- on the CPU ----


def test_a_kernel_does_what_warp_launches() -> None:
    fn = frontend.compile(curves, dim="x")
    x = np.random.default_rng(1).random((3, 5))
    mine, others = np.zeros((3, 5)), np.zeros((3, 5))
    turn = (0.5, 0.5, 0.5, 0.5)
    fn(x, mine, turn, True, 0.3)
    arrays = [wp.array(each, dtype=wp.float64, device="cpu", copy=False) for each in (x, others)]
    wp.launch(curves, (3, 5), [*arrays, wp.quat(*turn), True, 0.3], device="cpu")
    np.testing.assert_array_equal(mine, others)


def test_arrays_have_any_strides() -> None:
    fn = frontend.compile(saxpy, dim="x")
    assert str(fn.signature) == (
        "saxpy(x: Tensor([n0], float32), y: Tensor([n1], float32), alpha: float32)"
    )
    x, y = pair()
    fn(x[::-2], y[:4], 2.0)
    assert y.tolist() == [15, 11, 7, 3, 1, 1, 1, 1]
    assert fn.__doc__ is not None and "Adds alpha times x to y." in fn.__doc__


def test_structs_vectors_and_numbers_come_as_they_are() -> None:
    fn = frontend.compile(shifted, dim="out")
    out, weights = np.zeros((3, 3), np.float32), np.arange(3, dtype=np.float32)
    fn((2.0, (1.0, 2.0, 3.0), weights, -5), out, 7, 65535)
    wanted = [[2 * w - 5, 4 * w + 7, 6 * w + 65535] for w in range(3)]
    np.testing.assert_array_equal(out, np.array(wanted, np.float32))


def test_values_of_warp_are_tuples_of_their_items() -> None:
    @wp.kernel(module="unique")
    def moved(options: Options, turn: wp.mat22, out: wp.array(dtype=wp.float32)):
        i = wp.tid()
        out[i] = options.shift[2] * options.weights[i] * turn[0, 1]

    options, out = Options(), np.zeros(3, np.float32)
    options.shift, options.power = wp.vec3(1.0, 2.0, 3.0), 1
    options.weights = wp.array(np.arange(3, dtype=np.float32), device="cpu")
    frontend.compile(moved, dim="out")(options, wp.mat22(1.0, 2.0, 3.0, 4.0), out)
    assert out.tolist() == [0, 6, 12]


def test_specs_narrow_and_results_are_allocated() -> None:
    n = fe.sym_int(symbol="n")
    vector = fe.make_fake_tensor(fe.Float32, (n,), (1,))
    fn = frontend.compile(saxpy, dim="x", specs={"x": vector, "y": vector})
    with pytest.raises(ValueError, match=r"Mismatched y.shape\[0\] on argument #1"):
        fn(pair(8)[0], pair(9)[1], 1.0)
    given = {name: fe.make_fake_tensor(fe.Float64, (n, n), (n, 1)) for name in ("x", "y")}
    fn = frontend.compile(curves, dim=lambda sig: sig["x"].shape, specs=given, results=["y"])
    x = np.random.default_rng(2).random((4, 4))
    made = np.from_dlpack(fn(x, (0.0, 0.0, 0.0, 1.0), False, 0.0))
    mine = np.zeros((4, 4))
    frontend.compile(curves, dim="x")(x, mine, (0.0, 0.0, 0.0, 1.0), False, 0.0)
    np.testing.assert_array_equal(made, mine)


def test_real_arrays_are_examples_and_elements_keep_their_dims() -> None:
    specs = {"out": np.zeros((4, 6), np.float32)[:, :3]}
    fn = frontend.compile(shifted, dim="out", specs=specs)
    assert "out: Tensor([n1, 3], float32)" in str(fn.signature)
    given = {"out": wp.zeros(2, dtype=wp.vec3, device="cpu")}
    assert str(frontend.compile(shifted, dim="out", specs=given).signature) == str(fn.signature)
    for wrong in (np.zeros((4, 4), np.float32), np.zeros((4, 6), np.float32)[:, ::2]):
        with pytest.raises(CompileError, match=r"specs\['out'\] does not fit"):
            frontend.compile(shifted, dim="out", specs={"out": wrong})


def test_more_dims_than_the_kernel_has_indices_share_them() -> None:
    fn = frontend.compile(total, dim=("x", 3))
    out = np.zeros(1, np.float32)
    fn(np.ones(10, np.float32), out)
    assert out[0] == 30


def test_an_overload_of_a_generic_kernel_is_one_of_its_own() -> None:
    with pytest.raises(CompileError, match="the kernel generic is generic"):
        frontend.compile(generic, dim=1)
    overload = wp.overload(generic, [wp.array(dtype=wp.float64)])
    x = np.zeros(3)
    frontend.compile(overload, dim="x")(x)
    assert x.tolist() == [1, 1, 1]


def test_what_a_kernel_needs_is_missing_in_no_other_of_its_module() -> None:
    with pytest.raises(CompileError, match="multiplied needs _wp_assert of Warp's library"):
        frontend.compile(multiplied, dim=1)
    x = np.zeros(2, np.float32)
    frontend.compile(beside, dim="x")(x)
    assert x.tolist() == [2, 2]


def test_options_of_the_module_stay_and_warp_still_launches() -> None:
    before = dict(saxpy.module.options)
    frontend.compile(saxpy, dim="x")
    assert saxpy.module.options == before
    x, y = (wp.array(each, device="cpu") for each in pair())
    wp.launch(saxpy, 8, [x, y, 2.0], device="cpu")
    assert y.numpy().tolist() == [1, 3, 5, 7, 9, 11, 13, 15]


def test_a_launch_beyond_what_an_index_can_be_is_refused() -> None:
    dim = fe.specs.Scalar("alpha", "float32")
    with pytest.raises(TypeError, match="dim must be a size"):
        frontend.compile(saxpy, dim=dim)
    fn = frontend.compile(saxpy, dim=lambda sig: sig["x"].shape[0] - 10)
    with pytest.raises(fe.LaunchError, match=r"expected dim 0 to be in \[0, .*\], but got -2"):
        fn(*pair(8), 1.0)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"dim": "z"}, "dim names 'z'\n  expected: an array: x, y"),
        ({"dim": (1, 1, 1, 1, 1)}, "dim takes 1 to 4 sizes, but got 5"),
        ({"dim": 1, "specs": {"z": fe.Int32}}, "specs names z, which saxpy does not have"),
        ({"dim": 1, "specs": {"alpha": fe.Float64}}, r"specs\['alpha'\] does not fit"),
        ({"dim": 1, "results": ["alpha"]}, "results names 'alpha'"),
        ({"dim": 1, "target": "sm"}, "target 'sm' is no architecture"),
        ({"dim": 1, "target": []}, "target names no architecture"),
    ],
)
def test_what_does_not_fit_is_refused(more: Any, said: str) -> None:
    with pytest.raises(CompileError, match=said):
        frontend.compile(saxpy, **more)


def test_options_of_a_launch_are_checked() -> None:
    for more, said in (
        ({"block_dim": 0}, r"block_dim must be in \[1, 1024\], but got 0"),
        ({"max_blocks": 0}, "max_blocks must be at least 1"),
        ({"block_dim": "64"}, "block_dim must be an int"),
        ({"cpu_flags": 3}, "cpu_flags must be a text"),
    ):
        with pytest.raises((TypeError, ValueError), match=said):
            frontend.compile(saxpy, dim="x", **more)


def test_a_negative_launch_is_refused() -> None:
    with pytest.raises(ValueError, match="dim must not be negative, but got -1"):
        frontend.compile(saxpy, dim=-1)


def test_types_that_no_call_has_are_refused() -> None:
    @wp.kernel(module="unique")
    def indexed(x: wp.indexedarray(dtype=wp.float32)):
        x[wp.tid()] = 1.0

    @wp.kernel(module="unique")
    def of_structs(x: wp.array(dtype=Options)):
        x[wp.tid()].scale = 1.0

    with pytest.raises(CompileError, match="the parameter 'x' of the kernel is of type"):
        frontend.compile(indexed, dim=1)
    with pytest.raises(CompileError, match="the elements of the array 'x' are of type"):
        frontend.compile(of_structs, dim=1)
    with pytest.raises(TypeError, match="expected a kernel of Warp"):
        frontend.compile(len, dim=1)


@pytest.mark.needs_cc
def test_what_is_exported_needs_neither_ferrule_nor_warp(tmp_path: Path) -> None:
    frontend.compile(curves, dim="x").export_to_c(tmp_path / "curves.o")
    code = """
x, y = numpy.ones((2, 2)), numpy.zeros((2, 2))
module.get_function("curves")(x, y, (0.0, 0.0, 0.0, 1.0), True, 0.5)
print(round(y[1, 1], 4))
"""
    wanted = np.sin(1) + 1 + 0.8427007929497149 + 1 + 0.5
    assert called_bare([tmp_path / "curves.o"], "warp", code) == f"{round(wanted, 4)}\n"


def test_the_page_runs(tmp_path: Path) -> None:
    run_page("frontends_warp.md", tmp_path)


def test_its_benchmark_runs(tmp_path: Path) -> None:
    content = quick_run("launch", tmp_path / "launch.json", only="warp")
    assert [goal["unit"] for goal in content["goals"]] == ["times"] * 3


# ---- on the stand-in of the driver ----


def test_arrays_and_bounds_come_as_structs_by_value(fake_cuda: FakeCuda) -> None:
    fn = frontend.compile(saxpy, dim="x", target=["sm_80", "sm_90"])
    x, y = np.zeros(1000, np.float32), np.zeros(2000, np.float32)
    fn(forged(x), forged(y[::2]), 2.5)
    (launch,) = fake_cuda.launches()
    assert launch.kernel == f"{saxpy.get_mangled_name()}_cuda_kernel_forward"
    assert (launch.grid, launch.block, launch.smem) == ((4, 1, 1), (256, 1, 1), 0)
    bounds, *arrays, alpha = launch.parameters
    assert struct.unpack("<I4xQQ", bounds) == (1000, 1000, 1)
    found = [struct.unpack("<QQ4i4iHH4x", each) for each in arrays]
    assert found == [
        (x.ctypes.data, 0, 1000, 0, 0, 0, 4, 0, 0, 0, 1, 0),
        (y.ctypes.data, 0, 1000, 0, 0, 0, 8, 0, 0, 0, 1, 0),
    ]
    assert alpha == struct.pack("<f", 2.5)


def test_the_number_of_blocks_has_a_limit(fake_cuda: FakeCuda) -> None:
    fn = frontend.compile(shifted, dim="out", target="sm_90", block_dim=128, max_blocks=3)
    weights, out = np.zeros(1000, np.float32), np.zeros((1000, 3), np.float32)
    fn((2.0, (1.0, 2.0, 3.0), forged(weights), -5), forged(out), 7, 9)
    (launch,) = fake_cuda.launches()
    assert (launch.grid, launch.block) == ((3, 1, 1), (128, 1, 1))
    struct_, array = launch.parameters[1], launch.parameters[2]
    assert struct.unpack_from("<4f", struct_) == (2.0, 1.0, 2.0, 3.0)
    assert struct.unpack_from("<QQi", struct_, 16) == (weights.ctypes.data, 0, 1000)
    assert struct.unpack_from("<b", struct_, 72) == (-5,)
    assert struct.unpack_from("<QQ4i4iH", array)[6] == 12
    assert launch.parameters[3:] == (struct.pack("<q", 7), struct.pack("<H", 9))


def test_nothing_is_launched_for_empty_arrays(fake_cuda: FakeCuda) -> None:
    fn = frontend.compile(saxpy, dim="x", target="sm_90")
    fn(*(forged(np.zeros(0, np.float32)) for _ in range(2)), 1.0)
    assert fake_cuda.launches() == []


def test_arrays_are_as_large_as_what_is_launched() -> None:
    fn = frontend.compile(saxpy, dim="x")
    with pytest.raises(ValueError, match=r"Mismatched y.shape\[0\], expected at least 8, .* got 7"):
        fn(pair(8)[0], pair(7)[1], 1.0)
    assert fn.notes["assumes"] == ["y.shape[0] is at least size 0 of the launch"]
    fn(pair(8)[0], pair(9)[1], 1.0)


def test_arrays_that_may_be_smaller_are_named_or_indexed_with_numbers() -> None:
    fn = frontend.compile(saxpy, dim=lambda sig: sig["x"].shape[0] + 2, smaller=["x", "y"])
    assert "assumes" not in fn.notes
    fn = frontend.compile(total, dim="x")
    assert fn.notes["assumes"] == [
        f"{next(reversed(fn.signature.params)).name}.shape[0] is at least 1"
    ]
    with pytest.raises(CompileError, match="smaller names 'alpha'"):
        frontend.compile(saxpy, dim="x", smaller="alpha")


@wp.kernel(module="unique")
def first_column(x: wp.array2d(dtype=wp.float32), y: wp.array(dtype=wp.float32)):
    i = wp.tid()
    y[i] = x[i, 0] + x[i][2]


@wp.kernel(module="unique")
def transposed(x: wp.array2d(dtype=wp.float32), y: wp.array2d(dtype=wp.float32)):
    i, j = wp.tid()
    y[j, i] = x[i, j]


@wp.kernel(module="unique")
def next_ones(x: wp.array(dtype=wp.float32), at: wp.array2d(dtype=wp.int32)):
    i = wp.tid()
    x[i] = x[at[i, i + 1]]


def test_arrays_of_another_rank_are_as_large_as_their_indices() -> None:
    fn = frontend.compile(first_column, dim="y")
    y, some = np.zeros(4, np.float32), np.ones((4, 3), np.float32)
    fn(some, y)
    assert y.tolist() == [2.0] * 4
    with pytest.raises(ValueError, match=r"Mismatched x.shape\[0\], expected at least 4, .* got 3"):
        fn(some[:3], y)
    with pytest.raises(ValueError, match=r"x.shape\[1\], expected at least 3, for the index 2 in"):
        fn(some[:, :2], y)
    fn(some[:0, :0], y[:0])


def test_arrays_are_compared_along_the_axes_that_index_them() -> None:
    fn = frontend.compile(transposed, dim="x")
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((3, 2), np.float32)
    fn(x, y)
    assert (y == x.T).all()
    with pytest.raises(ValueError, match=r"Mismatched y.shape\[0\], expected at least 3, .* got 2"):
        fn(x, np.zeros((2, 3), np.float32))


def test_numbers_that_a_function_of_the_signature_gives_stay() -> None:
    """A size of an example that equals one of them is that size in every call."""
    given = {"x": np.zeros((6, 5), np.float32), "y": np.zeros((5, 6), np.float32)}
    fn = frontend.compile(transposed, dim=lambda sig: (6, sig["x"].shape[1]), specs=given)
    with pytest.raises(ValueError, match=r"x.shape\[0\].* expected to be 6, but got 9"):
        fn(np.zeros((9, 5), np.float32), np.zeros((5, 9), np.float32))


def test_what_is_indexed_by_what_cannot_be_told_is_said() -> None:
    fn = frontend.compile(next_ones, dim="x")
    assert fn.notes["assumes"] == [
        "at.shape[0] is at least size 0 of the launch",
        "x is indexed inside of its sizes alone",
        "at is indexed inside of its sizes alone",
    ]


@wp.struct
class Tables:
    near: wp.array(dtype=wp.float32)
    far: wp.array(dtype=wp.float32)
    first: wp.array(dtype=wp.float32)
    grid: wp.array2d(dtype=wp.float32)


@wp.struct
class Both:
    tables: Tables
    scale: wp.float32


@wp.kernel(module="unique")
def looked_up(both: Both, y: wp.array(dtype=wp.float32)):
    i = wp.tid()
    y[i] = both.scale * (both.tables.near[i] + both.tables.first[0])


@wp.func
def summed(tables: Tables, i: int):
    return tables.near[i] + tables.far[i]


@wp.kernel(module="unique")
def handed_on(tables: Tables, y: wp.array(dtype=wp.float32)):
    y[wp.tid()] = summed(tables, wp.tid())


def tables(near: int, far: int = 1) -> Any:
    ones = (np.ones(size, np.float32) for size in (near, far, 1))
    return (*ones, np.ones((1, 1), np.float32))


def test_arrays_in_structs_are_as_large_as_what_is_launched() -> None:
    fn = frontend.compile(looked_up, dim="y")
    y = np.zeros(4, np.float32)
    fn((tables(4), 2.0), y)
    assert y.tolist() == [4.0] * 4
    wanted = r"Mismatched both.tables.near.shape\[0\], expected at least 4, .* got 3"
    with pytest.raises(ValueError, match=wanted):
        fn((tables(3), 2.0), y)
    assert fn.notes["assumes"] == [
        "both.tables.near.shape[0] is at least size 0 of the launch",
        "both.tables.first.shape[0] is at least 1",
    ]
    with pytest.raises(ValueError, match=r"Mismatched tables.far.shape\[0\]"):
        frontend.compile(handed_on, dim="y", smaller="tables.first")(tables(4, 3), y)


def test_arrays_in_structs_are_named_with_the_way_to_them() -> None:
    fn = frontend.compile(looked_up, dim="both.tables.near", smaller="both.tables.near")
    assert fn.notes["assumes"] == [
        "both.tables.first.shape[0] is at least 1",
        "y.shape[0] is at least size 0 of the launch",
    ]
    y = np.zeros(4, np.float32)
    fn((tables(3), 2.0), y)
    assert y.tolist() == [4.0] * 3 + [0.0]
    with pytest.raises(CompileError, match="smaller names 'near'") as caught:
        frontend.compile(looked_up, dim="y", smaller="near")
    assert "both.tables.near, both.tables.far" in str(caught.value)


def test_a_struct_has_a_spec_of_its_fields() -> None:
    n = fe.sym_int(symbol="n")
    options = Tuple(
        "options",
        (
            Scalar("scale", "float32"),
            Tuple("shift", tuple(Scalar(str(i), "float32") for i in range(3))),
            Tensor("weights", (n,), "float32"),
            Scalar("power", "int8"),
        ),
        fields=True,
    )
    out = fe.make_fake_tensor(fe.Float32, (n, 3), (3, 1))
    fn = frontend.compile(shifted, dim="out", specs={"options": options, "out": out})
    given = np.zeros((3, 3), np.float32)
    with pytest.raises(ValueError, match=r"Mismatched out.shape\[0\]"):
        fn((2.0, (1.0, 2.0, 3.0), np.ones(2, np.float32), -5), given, 7, 9)
    wrong = replace(options, items=(*options.items[:3], Scalar("power", "int16")))
    with pytest.raises(CompileError, match=r"specs\['options'\] does not fit"):
        frontend.compile(shifted, dim="out", specs={"options": wrong})


def test_a_launch_of_numbers_is_fixed_on_purpose() -> None:
    with pytest.raises(CompileError, match=r"the dim is 8 in every call, but x.shape\[0\]"):
        frontend.compile(saxpy, dim=8)
    fn = frontend.compile(saxpy, dim=fe.frontends.fixed(8))
    x, y = pair(10)
    fn(x, y, 0.0)
    with pytest.raises(ValueError, match=r"Mismatched x.shape\[0\], expected at least 8"):
        fn(*pair(7), 0.0)


def test_real_arrays_that_were_of_one_size_stay_so() -> None:
    given = {name: np.zeros(8, np.float32) for name in ("x", "y")}
    fn = frontend.compile(saxpy, dim="x", specs=given)
    with pytest.raises(ValueError, match=r"Mismatched y.shape\[0\] on argument #1"):
        fn(pair(8)[0], pair(9)[1], 1.0)


def test_a_number_of_a_launch_that_is_a_size_of_an_example_stays() -> None:
    given = {name: np.zeros((3, 5)) for name in ("x", "y")}
    rest = ((0.0, 0.0, 0.0, 1.0), False, 0.0)
    fn = frontend.compile(curves, dim=(fe.frontends.fixed(3), 5), specs=given)
    with pytest.raises(ValueError, match=r"Mismatched x.shape\[1\]"):
        fn(np.zeros((3, 6)), np.zeros((3, 6)), *rest)
    for dim in ("x", (fe.frontends.fixed(3), fe.frontends.fixed(5))):
        frontend.compile(curves, dim=dim, specs=given)(*(np.zeros((3, 6)),) * 2, *rest)


def test_a_result_that_is_added_to_is_remarked() -> None:
    given = {"out": fe.make_fake_tensor(fe.Float32, (1,), (1,))}
    with pytest.warns(BuildWarning, match="out is a result that the function adds to"):
        frontend.compile(total, dim="x", specs=given, results=["out"])
    fn = frontend.compile(total, dim="x", specs=given, results=["out"], zero=["out"])
    assert np.from_dlpack(fn(np.ones(4, np.float32))).tolist() == [4]


WIDTH = 3


@wp.kernel(module="unique")
def by_numbers(x: wp.array(dtype=wp.float32), y: wp.array(dtype=wp.float32)):
    i = wp.tid()
    y[i] = x[WIDTH] + x[2 * WIDTH]


def test_arrays_are_as_large_as_numbers_need_that_are_computed() -> None:
    fn = frontend.compile(by_numbers, dim="y")
    y = np.zeros(9, np.float32)
    fn(np.arange(7, dtype=np.float32), y)
    np.testing.assert_array_equal(y, 9)
    with pytest.raises(ValueError, match=r"x.shape\[0\], expected at least 7, for the index 6 in"):
        fn(np.arange(6, dtype=np.float32), y)


# ---- tiles ----


def test_tiles_on_the_cpu_are_those_of_warp() -> None:
    fn = frontend.compile(tile_sums, dim="out", tiled=True, block_dim=32)
    a = np.random.default_rng(2).random((5, 16), np.float32)
    mine, others = np.zeros(5, np.float32), np.zeros(5, np.float32)
    fn(a, mine)
    arrays = [wp.array(each, device="cpu", copy=False) for each in (a, others)]
    wp.launch_tiled(tile_sums, dim=[5], inputs=arrays, block_dim=32, device="cpu")
    np.testing.assert_array_equal(mine, others)
    np.testing.assert_allclose(mine, a.sum(axis=1), rtol=1e-6)
    with pytest.raises(ValueError, match=r"Mismatched a.shape\[0\], expected at least 5"):
        fn(a[:4], mine)


def test_each_tile_is_a_block_on_a_gpu(fake_cuda: FakeCuda) -> None:
    rows, columns = fe.sym_int(symbol="rows"), fe.sym_int(symbol="columns")
    b = Tensor("b", (columns * 4, rows * 8), "float32", device="cuda")
    a = Tensor("a", (rows * 8, columns * 4), "float32", device="cuda")
    fn = frontend.compile(
        tiles_turned, dim=(rows, columns), specs={"a": a, "b": b}, tiled=True, block_dim=64,
        target="sm_90", smaller=["a", "b"],
    )  # fmt: skip
    fn(forged(np.zeros((24, 20), np.float32)), forged(np.zeros((20, 24), np.float32)))
    (launch,) = fake_cuda.launches()
    assert (launch.grid, launch.block) == ((15, 1, 1), (64, 1, 1))
    assert struct.unpack("<3I4xQQ", launch.parameters[0]) == (3, 5, 64, 960, 1)


def test_tiles_without_blocks_are_remarked() -> None:
    with pytest.warns(BuildWarning, match="tile_sums works on tiles, which a block of 256 threads"):
        frontend.compile(tile_sums, dim="out", target="sm_90")
    for more in ({"tiled": True, "block_dim": 64}, {"dim": ("out", 256)}):
        fn = frontend.compile(tile_sums, **{"dim": "out", "target": "sm_90", **more})
        assert "remarks" not in fn.notes


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"tiled": 1}, TypeError, "tiled must be True or False, but got 1"),
        ({"tiled": True}, ValueError, "tiled=True wants the threads of a block, as in block_dim="),
        (
            {"tiled": True, "block_dim": 32, "dim": ("out", 2, 2, 2)},
            CompileError,
            "dim takes 1 to 3 sizes if tiled, but got 4",
        ),
    ],
)
def test_tiled_launches_that_do_not_fit_are_refused(given: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        frontend.compile(tile_sums, **{"dim": "out", **given})

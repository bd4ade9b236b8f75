"""Kernels of numba-cuda, launched on the stand-in of the driver."""

from __future__ import annotations

import importlib.util
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bare_python import called_bare
from benchmark_runs import quick_run
from cuda_device import FakeCuda, forged
from pages import run_page

import ferrule as fe
from ferrule import specs
from ferrule.compiler.errors import CompileError
from ferrule.frontends import fixed
from ferrule.frontends import numba as frontend
from ferrule.specs import Scalar, Tensor, Tuple

HAS_NUMBA_CUDA = importlib.util.find_spec("numba_cuda") is not None
needs_numba_cuda = pytest.mark.skipif(not HAS_NUMBA_CUDA, reason="numba-cuda is not installed")

if HAS_NUMBA_CUDA:
    from numba import cuda

COOPERATIVE = 2
"""CU_LAUNCH_ATTRIBUTE_COOPERATIVE."""
N = fe.sym_int(symbol="n")
STRIDED = Tensor("y", (N,), "float32", strides=(specs.sym_int64(),))


def saxpy(x, y, a, pair, flag):
    i = cuda.grid(1)
    if i < x.shape[0] and flag:
        y[i] = a * x[i] + y[i] + pair[1]


PAIR = Tuple("pair", (Scalar("0", "int16"), Scalar("1", "float64")))
EXAMPLES = (Tensor("x", (N,), "float32"), STRIDED, fe.Float32, PAIR, fe.Boolean)


def compiled(function: Any = saxpy, *examples: Any, **more: Any) -> fe.Function:
    given = {"target": "sm_90", "grid": fe.ceil_div(N, 256), "block": 256} | more
    return frontend.compile(function, *(examples or EXAMPLES), **given)


@needs_numba_cuda
def test_an_array_is_flattened_with_strides_in_bytes(fake_cuda: FakeCuda) -> None:
    x, y = np.zeros(1000, np.float32), np.zeros(2000, np.float32)
    compiled()(forged(x), forged(y[::2]), 2.5, (-7, 0.5), True)
    (launch,) = fake_cuda.launches()
    assert (launch.kernel, launch.grid, launch.block) == ("saxpy_kernel", (4, 1, 1), (256, 1, 1))
    wanted = [0, 0, 1000, 4, x.ctypes.data, 1000, 4, 0, 0, 1000, 4, y.ctypes.data, 1000, 8]
    assert [struct.unpack("<Q", each)[0] for each in launch.parameters[:14]] == wanted
    rest = b"".join(launch.parameters[14:])
    assert rest == struct.pack("<fhd?", 2.5, -7, 0.5, True)


@needs_numba_cuda
def test_one_name_serves_several_architectures(fake_cuda: FakeCuda) -> None:
    fn = compiled(target=["sm_80", "sm_90"])
    fake_cuda.set_capability(0, 80)
    fn(*(forged(np.zeros(3, np.float32)) for _ in range(2)), 1.0, (0, 0.0), False)
    assert [launch.kernel for launch in fake_cuda.launches()] == ["saxpy_kernel"]


RECORD = np.dtype([("x", np.float32), ("n", np.int32), ("y", np.float64)], align=True)


def moved(records, by):
    i = cuda.grid(1)
    if i < records.shape[0]:
        records[i].y = records[i].x * by + records[i].n


@needs_numba_cuda
def test_records_are_their_bytes(fake_cuda: FakeCuda) -> None:
    examples = np.zeros(8, RECORD), np.float64(2)
    grid = {"grid": lambda sig: fe.ceil_div(sig["records"].shape[0], 64), "block": 64}
    fn = compiled(moved, *examples, **grid)
    assert str(fn.signature).startswith("moved(records: Tensor([n0, 16], uint8), by: float64)")
    records = np.zeros(100, RECORD)
    given = records.view("u1").reshape(100, 16)
    fn(forged(given), 2.0)
    (launch,) = fake_cuda.launches()
    wanted = [0, 0, 100, 16, given.ctypes.data, 100, 16]
    assert [struct.unpack("<Q", each)[0] for each in launch.parameters[:7]] == wanted
    with pytest.raises(ValueError, match=r"records\.shape\[1\] .* expected to be 16"):
        fn(forged(given[:, :8]), 2.0)
    with pytest.raises(CompileError, match="array of records .* has gaps"):
        compiled(moved, np.zeros(8, RECORD)[::2], np.float64(2), **grid)


def doubled(x):
    shared = cuda.shared.array(0, np.float32)
    i = cuda.threadIdx.x
    shared[i] = x[i]
    x[i] = 2 * shared[i]


@needs_numba_cuda
@pytest.mark.parametrize("how", [{"block": 96}, {"block": (96, 1)}, {"smem": 384}])
def test_a_launch_that_has_an_examples_size_keeps_it(fake_cuda: FakeCuda, how: Any) -> None:
    """Larger arrays would be worked on in part, or beyond their shared memory."""
    example, more = np.zeros(96, np.float32), np.zeros(128, np.float32)
    given = {"grid": fixed(1), "target": "sm_90", "block": 32, "smem": 512, **how}
    fn = frontend.compile(doubled, example, **given)
    fn(forged(example))
    with pytest.raises(ValueError, match=r"x.shape\[0\].* expected to be 96, but got 128"):
        fn(forged(more))
    said = {name: fixed(each) for name, each in how.items()}
    frontend.compile(doubled, example, **{**given, **said})(forged(more))
    block = (32, 1, 1) if "smem" in how else (96, 1, 1)
    assert [each.block for each in fake_cuda.launches()] == [block, block]


@needs_numba_cuda
def test_options_of_the_decorator_and_sizes_that_the_signature_tells(fake_cuda: FakeCuda) -> None:
    @cuda.jit(fastmath=True, launch_bounds=64)
    def fill(out):
        out[cuda.grid(1)] = 1.0

    examples = [Tensor("out", (N,), "float32")]
    fn = compiled(fill, *examples, grid=lambda sig: sig["out"].shape[0] // 64, block=64, smem=1024)
    fn(forged(np.zeros(256, np.float32)))
    (launch,) = fake_cuda.launches()
    assert (launch.grid, launch.block, launch.smem) == ((4, 1, 1), (64, 1, 1), 1024)
    with pytest.raises(CompileError, match="blocks of 64 threads at most"):
        compiled(fill, *examples, grid=fe.frontends.fixed(1), block=128)


@needs_numba_cuda
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"grid": None}, "a kernel needs grid="),
        ({"target": "gpu"}, "target 'gpu' is no architecture"),
        ({"target": "sm_20"}, "(?s)cannot .* sm_20"),
        ({"target": "sm_999"}, "nvJitLink makes no code for sm_999"),
        ({"target": "cpu", "grid": None, "block": None}, "of numba.cuda, but the target is 'cpu'"),
    ],
)
def test_what_does_not_fit_is_refused(more: Any, said: str) -> None:
    with pytest.raises(CompileError, match=said):
        compiled(cuda.jit(saxpy), *EXAMPLES, **more)


@needs_numba_cuda
def test_device_functions_need_no_gpu_and_blocks_that_wait_are_launched_together(
    fake_cuda: FakeCuda,
) -> None:
    @cuda.jit(device=True)
    def doubled(x):
        return x * 2

    @cuda.jit
    def total(x):
        i = cuda.grid(1)
        x[i] = doubled(x[i])
        cuda.cg.this_grid().sync()
        x[i] += x[0]

    fn = compiled(total, Tensor("x", (N,), "float32"), grid=fe.frontends.fixed(2))
    fn(forged(np.zeros(512, np.float32)))
    (launch,) = fake_cuda.launches()
    assert launch.attributes[COOPERATIVE][:4] == struct.pack("<i", 1)


@needs_numba_cuda
@pytest.mark.needs_cc
def test_what_is_exported_needs_neither_ferrule_nor_numba(tmp_path: Path) -> None:
    compiled().export_to_c(tmp_path / "saxpy.o")
    code = "print(module.get_function('saxpy') is not None)"
    assert called_bare([tmp_path / "saxpy.o"], "numba,numba_cuda,cuda", code) == "True\n"


@needs_numba_cuda
def test_the_page_runs(tmp_path: Path) -> None:
    run_page("frontends_numba.md", tmp_path)


@needs_numba_cuda
def test_its_benchmark_runs(tmp_path: Path) -> None:
    content = quick_run("launch", tmp_path / "launch.json", only="numba")
    assert [len(table["rows"]) for table in content["tables"]][0] == 3


@pytest.mark.skipif(HAS_NUMBA_CUDA, reason="numba-cuda is installed")
def test_without_numba_cuda_the_extra_is_named() -> None:
    with pytest.raises(ImportError, match=r"pip install 'ferrule\[numba-cuda\]'"):
        compiled()


# ---- what a kernel reads besides its arguments ----


class OnGpu:
    """An array on a GPU, as far as its protocol."""

    def __init__(self) -> None:
        self.__cuda_array_interface__ = {
            "shape": (5,),
            "typestr": "<f4",
            "data": (0x7ABC12345600, False),
            "version": 3,
            "strides": None,
        }


PRICES = OnGpu()


def totals(q, t):
    i = cuda.grid(1)
    if i < t.size:
        t[i] = q[i] * PRICES[i]


VECTORS = (Tensor("q", (N,), "float32"), Tensor("t", (N,), "float32"))


@needs_numba_cuda
def test_a_global_array_on_a_gpu_is_refused() -> None:
    with pytest.raises(CompileError) as caught:
        compiled(totals, *VECTORS)
    assert str(caught.value) == (
        "totals reads PRICES, an array on a GPU that is no parameter: its address would be "
        "compiled in, which means something in this process alone\n"
        "  hint: hand it over as a parameter"
    )


@needs_numba_cuda
def test_an_array_of_a_closure_and_of_a_function_that_is_called_is_refused() -> None:
    prices = OnGpu()

    def priced(q, t):
        t[0] = q[0] * prices[0]

    with pytest.raises(CompileError, match="priced reads prices, an array on a GPU"):
        compiled(priced, *VECTORS)

    @cuda.jit(device=True)
    def price(i):
        return prices[i]

    def calling(q, t):
        t[0] = q[0] * price(0)

    with pytest.raises(CompileError, match="price reads prices, an array on a GPU"):
        compiled(calling, *VECTORS)


@needs_numba_cuda
def test_an_array_on_the_cpu_is_a_constant_of_the_kernel() -> None:
    table = np.arange(3, dtype=np.float32)

    def reading(q, t):
        t[0] = q[0] * table[1]

    assert compiled(reading, *VECTORS)


@needs_numba_cuda
def test_dynamic_shared_memory_is_said() -> None:
    def sharing(q, t):
        some = cuda.shared.array(0, np.float32)
        some[cuda.threadIdx.x] = q[0]
        cuda.syncthreads()
        t[0] = some[3]

    with pytest.raises(CompileError, match="uses shared memory whose size the launch says"):
        compiled(sharing, *VECTORS)
    assert compiled(sharing, *VECTORS, smem=1024)

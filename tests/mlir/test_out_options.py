"""Options and calls of GPU kernels that go through MLIR: each means what it means otherwise."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lowered import vector
from mlir_functions import needs_mlir
from ptxas import assemble

import ferrule as fe
from ferrule import arch
from ferrule.compiler.errors import CompileError

pytestmark = needs_mlir
SM_90A = "--target cuda --gpu-arch sm_90a --pipeline mlir"


@fe.kernel
def functions_kernel(x: fe.Tensor, y: fe.Tensor):
    i = arch.block_idx()[0] * 64 + arch.thread_idx()[0]
    if i < x.shape[0]:
        y[i] = fe.math.exp(x[i], fast=True) + fe.math.atan(x[i]) * x[i]


@fe.jit
def functions(x: fe.Tensor, y: fe.Tensor):
    functions_kernel(x, y).launch(grid=fe.ceil_div(x.shape[0], 64), block=64)


def ptx_of(options: str, folder: Path) -> str:
    """The PTX of `functions`, which assembles."""
    compiled = fe.compile(functions, vector(), vector(), options=f"{SM_90A} {options}")
    ptx = compiled.inspect_ptx()
    assert isinstance(ptx, str)
    assemble(ptx, "sm_90a", folder)
    return ptx


@pytest.mark.needs_ptxas
def test_fast_functions_are_approximations_of_the_gpu(tmp_path: Path) -> None:
    assert ptx_of("--fmad=false", tmp_path).count("ex2.approx.f32") == 1


@pytest.mark.needs_ptxas
def test_operations_become_one(tmp_path: Path) -> None:
    # Without, `atan` has some of its own, which give the same bits as several operations; with
    # them it has the formula with fma.
    counts = [ptx_of(word, tmp_path).count("fma.rn.f32") for word in ("--fmad=false", "")]
    assert counts[1] > counts[0] + 1


@pytest.mark.needs_ptxas
def test_noalias_lets_loads_go_through_the_read_only_cache(tmp_path: Path) -> None:
    load = re.compile(r"\bld\.global\.nc\.")
    assert not load.search(ptx_of("", tmp_path))
    assert load.search(ptx_of("--noalias", tmp_path))


@pytest.mark.needs_ptxas
@pytest.mark.parametrize("stripped", [False, True], ids=["whole", "stripped"])
def test_line_info_names_the_lines_of_the_source_alone(tmp_path: Path, stripped: bool) -> None:
    options = "--generate-line-info" + (" --strip-paths" if stripped else "")
    ptx = ptx_of(options, tmp_path)
    name = Path(__file__).name if stripped else __file__
    assert re.findall(r'\.file\s+\d+ "(.*)"', ptx) == [name]
    first = functions_kernel.__wrapped__.__code__.co_firstlineno
    lines = {int(line) for line in re.findall(r"\.loc\s+1 (\d+)", ptx)}
    assert lines and lines <= {0, *range(first, first + 5)}


@pytest.mark.needs_ptxas
def test_libdevice_makes_the_functions(tmp_path: Path) -> None:
    try:
        ptx = ptx_of("--libdevice", tmp_path)
    except CompileError as error:
        pytest.skip(str(error).splitlines()[0])
    assert ptx != ptx_of("", tmp_path)


@pytest.mark.needs_ptxas
def test_blocks_of_a_cluster_reach_the_memory_of_each_other(tmp_path: Path) -> None:
    @fe.kernel
    def exchange(x: fe.Tensor):
        i = arch.thread_idx()[0]
        row, flags = arch.alloc_smem(fe.Float32, 32), arch.alloc_smem(fe.Boolean, 32)
        arch.store_peer(row + i, x[i], 1)
        arch.store_peer(flags + i, x[i] > 3, 1)
        arch.cluster_arrive()
        arch.cluster_wait()
        if arch.load_peer(flags + i, 0):
            x[i] = arch.load_peer(row + (i ^ 1), 0)

    @fe.jit
    def host(x: fe.Tensor):
        exchange(x).launch(grid=2, block=32, cluster=(2, 1, 1))

    ptx = fe.compile(host, vector(), options=SM_90A).inspect_ptx()
    assert isinstance(ptx, str)
    assert "mapa" in ptx and "st.shared::cluster" in ptx and "ld.shared::cluster" in ptx
    assemble(ptx, "sm_90a", tmp_path)


@pytest.mark.needs_ptxas
def test_the_only_functions_of_the_ptx_are_kernels(tmp_path: Path) -> None:
    @fe.jit
    def narrowed(x: fe.Tensor, y: fe.Tensor):
        y[:] = fe.BFloat16(x[:])

    halves = fe.make_fake_compact_tensor(fe.BFloat16, (fe.sym_int(),))
    ptx = fe.compile(narrowed, vector(), halves, options=SM_90A).inspect_ptx()
    assert isinstance(ptx, str) and ".func" not in ptx
    assemble(ptx, "sm_90a", tmp_path)

"""Examples with tiles: right on the CPU and on an emulated GPU, assembled without spills."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import ptxas
import pytest
from ptxas import find_ptxas

import ferrule as fe

FOLDER = Path(__file__).parents[2] / "examples" / "cute"
CUDA = "--target cuda --gpu-arch sm_80"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"examples.cute.{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def require_no_spills(function: fe.Function, folder: Path, counts: dict[str, int]) -> None:
    """Assembles the kernels for sm_80, and counts instructions in their PTX."""
    ptx = function.inspect_ptx()
    assert {name: len(re.findall(re.escape(name), ptx)) for name in counts} == counts
    source = folder / "kernel.ptx"
    source.write_text(ptx, encoding="utf-8")
    command = [str(find_ptxas()), "-v", "-arch=sm_80", str(source), "-o", str(folder / "x.cubin")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert "0 bytes spill stores, 0 bytes spill loads" in said
    assert "0 bytes stack frame" in said


def on_gpu(function: fe.Function, *arrays: Any) -> list[Any]:
    """The arrays after a call with copies of them on the GPU."""
    given = [fe.cuda.array(array) for array in arrays]
    function(*given)
    return [fe.cuda.to_numpy(each) for each in given]


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_examples_run_and_agree_with_numpy(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    load(name).main()
    assert "equals NumPy's result" in capsys.readouterr().out


def test_a_gemm_on_an_emulated_gpu() -> None:
    example = load("tensor_core_gemm")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 9, (rows, 40)).astype(np.float16) for rows in (50, 40))
    with fe.emulated_gpu("sm_80"):
        function = example.compiled(CUDA)
        *_, c = on_gpu(function, a, b, np.zeros((50, 40), np.float32))
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.T.astype(np.float32))


@pytest.mark.needs_ptxas
def test_a_gemm_has_the_instructions_that_it_needs(tmp_path: Path) -> None:
    """A slice of 128 x 32 of A and of B: 8 + 8 `ldmatrix` in the loop, half of them before it."""
    example = load("tensor_core_gemm")
    function = example.compiled(CUDA, fe.BFloat16, fe.BFloat16, example.LARGE)
    counts = {"mma.sync": 64, "ldmatrix": 24, "cp.async.cg": 32, "st.global.v4": 16}
    require_no_spills(function, tmp_path, counts)


def test_a_gemm_of_warpgroups_in_small_tiles() -> None:
    """Several tiles for a block, stages that are used again, and edges; the same on the CPU."""
    example = load("tma_wgmma_gemm")
    tiles = example.Tiles(64, 32, 64, 2)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 9, (rows, 328)).astype(np.float16) for rows in (150, 70))
    wanted = a.astype(np.float32) @ b.T.astype(np.float32)
    c = np.zeros((150, 70), np.float32)
    function = fe.compile(example.gemm(tiles, 2), *example.examples(), options="--target cpu")
    function(a, b, c)
    np.testing.assert_array_equal(c, wanted)


@pytest.mark.needs_ptxas
def test_warpgroups_multiply_in_the_background(tmp_path: Path) -> None:
    example = load("tma_wgmma_gemm")
    options = "--target cuda --gpu-arch sm_90a"
    ptx = fe.compile(example.gemm(), *example.examples(), options=options).inspect_ptx()
    assert ptx.count("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16") == 4
    said = ptxas.assemble(ptx, "sm_90a", tmp_path, "-v")
    assert "serialized" not in said and " 0 bytes spill stores" in said

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

FOLDER = Path(__file__).parents[3] / "examples" / "cute"
CUDA = "--target cuda --gpu-arch sm_80 --index-bitwidth 32"


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


def test_examples_on_an_emulated_gpu() -> None:
    rng = np.random.default_rng(0)
    with fe.emulated_gpu("sm_80"):
        a, b = (rng.integers(-8, 9, (rows, 40)).astype(np.float16) for rows in (50, 40))
        *_, c = on_gpu(load("tensor_core_gemm").compiled(CUDA), a, b, np.zeros((50, 40), "f4"))
        np.testing.assert_array_equal(c, a.astype("f4") @ b.T.astype("f4"))

        a, b = (rng.integers(-8, 9, (9, rows)).astype(np.float32) for rows in (20, 36))
        *_, c = on_gpu(load("sgemm").compiled(CUDA), a, b, np.zeros((20, 36), np.float32))
        np.testing.assert_array_equal(c, a.T @ b)

        a = rng.random((33, 40), np.float32)
        _, c = on_gpu(load("transpose").compiled(CUDA), a, np.zeros((40, 33), np.float32))
        np.testing.assert_array_equal(c, a.T)

        *_, c = on_gpu(load("elementwise").compiled(CUDA), a, a, np.zeros_like(a))
        np.testing.assert_array_equal(c, a + a)


def test_attention_on_an_emulated_gpu() -> None:
    example, rng = load("flash_attention"), np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, n, 64)).astype(np.float16) for n in (20, 24, 24))
    with fe.emulated_gpu("sm_80"):
        given = [fe.cuda.array(x) for x in (q, k, v, np.zeros_like(q))]
        example.compiled(CUDA)(*given, 0.125)
        found = fe.cuda.to_numpy(given[-1])
    np.testing.assert_allclose(found, example.expected(q, k, v, 0.125), atol=2e-3)


GEMM = {"mma.sync": 64, "ldmatrix": 24, "cp.async.cg": 32, "st.global.v4": 16}
ATTENTION = {"mma.sync": 128, "ldmatrix": 72, "cp.async.cg": 32, "ex2.approx": 34}
SGEMM = {"fma.rn.f32": 512, "ld.shared.v4": 32, "cp.async.ca": 6}
LARGE: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "tensor_core_gemm": ({"dtype": fe.BFloat16, "result": fe.BFloat16}, GEMM),
    "flash_attention": ({"dtype": fe.BFloat16, "columns": 128}, ATTENTION),
    "sgemm": ({}, SGEMM),
    "elementwise": ({}, {"ld.global.v4": 8, "st.global.v4": 4}),
    "transpose": ({}, {"ld.global.b32": 8, "st.global.b32": 8}),
}


@pytest.mark.needs_ptxas
@pytest.mark.parametrize("name", LARGE)
def test_kernels_have_the_instructions_that_they_need(name: str, tmp_path: Path) -> None:
    """As many as the tile divided by what one does, those before the loop too, and no spills."""
    example, (given, counts) = load(name), LARGE[name]
    if hasattr(example, "LARGE"):
        given = {**given, "rows" if name == "flash_attention" else "tiles": example.LARGE}
    require_no_spills(example.compiled(CUDA, **given), tmp_path, counts)


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
    options = "--target cuda --gpu-arch sm_90a --index-bitwidth 32"
    ptx = fe.compile(example.gemm(), *example.examples(), options=options).inspect_ptx()
    assert ptx.count("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16") == 4
    said = ptxas.assemble(ptx, "sm_90a", tmp_path, "-v")
    assert "serialized" not in said and " 0 bytes spill stores" in said

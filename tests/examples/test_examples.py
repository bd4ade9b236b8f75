"""Every example runs by itself and agrees with its reference; its kernels assemble for GPUs."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
import pytest
from ptxas import ARCHS, assemble

from ferrule.runtime.linking import direct, lljit

FOLDER = Path(__file__).parents[2] / "examples"
COMPILED = (
    "conv2d",
    "fp8_rows",
    "layer_norm",
    "matmul",
    "paged_kv_gather",
    "rotary",
    "saxpy",
    "softmax",
    "swiglu",
    "tensor_core_matmul",
)
KERNELS = {"fp8_rows": 2}
# The quickstart compiles three functions; tests/cuda has them.
EXAMPLES = ("quickstart", "register_tiles", *COMPILED)


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"examples.{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def marks(name: str) -> Any:
    """When LLVM's linker runs an example."""
    return () if name in ("quickstart", "softmax", "tensor_core_matmul") else pytest.mark.nightly


def refuse(*_: object) -> NoReturn:
    raise direct.Unlinkable("the other linker is asked")


@pytest.mark.parametrize(
    ("name", "linker"),
    [
        *(pytest.param(each, lljit, id=f"{each}-direct") for each in EXAMPLES),
        *(pytest.param(each, direct, id=f"{each}-lljit", marks=marks(each)) for each in EXAMPLES),
    ],
)
def test_runs_and_agrees_with_its_reference(
    name: str,
    linker: ModuleType,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By ferrule's linker alone, which knows all that its code has, and by LLVM's, by day some."""
    monkeypatch.setenv("FERRULE_CACHE", "0")
    monkeypatch.setattr(linker, "link", refuse)
    load(name).main()
    assert "equals" in capsys.readouterr().out


def test_runs_as_a_program_without_pytorch() -> None:
    """As its first line says; PyTorch is hidden, as where it is not installed."""
    code = (
        "import runpy, sys\n"
        "sys.modules['torch'] = None\n"
        f"runpy.run_path({str(FOLDER / 'swiglu.py')!r}, run_name='__main__')\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "float16: equals NumPy's result" in done.stdout


@pytest.mark.parametrize("name", COMPILED)
def test_becomes_ptx(name: str) -> None:
    options = "--target cuda --gpu-arch sm_90a --index-bitwidth 32"
    ptx = load(name).compiled(options).inspect_ptx()
    assert ".target sm_90a" in ptx and ptx.count(".visible .entry") == KERNELS.get(name, 1)


@pytest.mark.needs_ptxas
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", COMPILED)
def test_ptxas_takes_it(name: str, arch: str, tmp_path: Path) -> None:
    function = load(name).compiled(f"--target cuda --gpu-arch {arch}")
    assemble(function.inspect_ptx(), arch, tmp_path)


# ---- at the edges, where a grid is not full ----


def floats(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257])
def test_saxpy_of_any_length(size: int) -> None:
    x, y = floats(size), floats(size) + 1
    expected = np.float32(-2) * x + y
    load("saxpy").compiled()(-2.0, x, y)
    np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1), (3, 15), (129, 16), (2, 33)])
def test_layer_norm_and_softmax_of_rows_shorter_and_longer_than_the_lanes(
    shape: tuple[int, int],
) -> None:
    norm, softmax = load("layer_norm"), load("softmax")
    x, weight, bias = floats(*shape), floats(shape[1]) + 2, floats(shape[1])
    y = np.empty_like(x)
    norm.compiled()(x, weight, bias, y, 0.1)
    np.testing.assert_allclose(y, norm.reference(x, weight, bias, 0.1), rtol=1e-5, atol=1e-5)
    softmax.compiled()(x, y)
    np.testing.assert_allclose(y, softmax.reference(x), rtol=1e-5, atol=1e-7)


def test_swiglu_of_large_gates_is_the_gate_or_zero() -> None:
    x = np.array([[-1e4, 1e4, -200, 200, 0, 3, 3, 3, 3, 3]], np.float16)
    y = np.empty((1, 5), np.float16)
    load("swiglu").compiled()(x, y)
    assert y.tolist() == [[0.0, 30000.0, 0.0, 600.0, 0.0]]


@pytest.mark.parametrize("tokens", [1, 16, 17])
def test_a_gather_reads_no_page_past_the_end(tokens: int) -> None:
    """The entries past the length name no page."""
    example = load("paged_kv_gather")
    cache = floats(3, example.PAGE, 300)
    table = np.array([[2, 1 << 30], [1, 0]], np.int32)[:, : -(-tokens // example.PAGE)].copy()
    lengths = np.array([min(tokens, 5), tokens], np.int32)
    out = np.full((2, tokens, 300), np.nan, np.float32)
    example.compiled()(cache, table, lengths, out)
    safe = np.where(table < 3, table, 0)
    np.testing.assert_array_equal(out, example.reference(cache, safe, lengths, tokens))


@pytest.mark.parametrize(("size", "padding", "stride"), [(1, 0, 1), (5, 2, 1), (2, 0, 3)])
def test_conv2d_with_other_filters(size: int, padding: int, stride: int) -> None:
    example = load("conv2d")
    x, weight, bias = floats(2, 3, 8, 33), floats(2, 3, size, size), floats(2)
    expected = example.reference(x, weight, bias, padding, stride)
    y = np.empty(expected.shape, np.float32)
    example.compiled(size=size, padding=padding, stride=stride)(x, weight, bias, y)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_matmul_of_no_columns_and_no_depth() -> None:
    function = load("matmul").compiled()
    c = np.full((3, 5), np.nan, np.float32)
    function(floats(3, 0), floats(0, 5), c)
    assert not c.any()
    function(floats(3, 4), floats(4, 0), np.empty((3, 0), np.float32))


def test_rotary_checks_that_the_tables_belong_together() -> None:
    example = load("rotary")
    cos, sin = example.tables(8)
    q, positions = floats(2, 3, example.HEAD), np.array([0, 7], np.int32)
    with pytest.raises(ValueError, match=r"sin\.shape\[0\].*expected to match cos\.shape\[0\] = 8"):
        example.compiled()(q, positions, cos, sin[:7])


@pytest.mark.parametrize("name", EXAMPLES)
def test_says_how_it_is_run(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    assert f"\n    python examples/{name}.py\n" in text
    assert '\nif __name__ == "__main__":' in text


def test_a_pipeline_of_halide_runs_or_says_what_it_needs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    if importlib.util.find_spec("halide") is None:
        with pytest.raises(SystemExit, match="needs Halide: pip install halide"):
            load("halide_pipeline")
        return
    load("halide_pipeline").main()
    assert capsys.readouterr().out.count("equals NumPy's result") == 3

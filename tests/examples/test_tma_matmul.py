"""examples/tma_matmul.py: what it computes on a CPU, and what it is for a GPU."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import ptxas
import pytest

CUDA = "--target cuda --gpu-arch sm_90a"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    path = Path(__file__).parents[2] / "examples/tma_matmul.py"
    spec = importlib.util.spec_from_file_location("examples.tma_matmul", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_agrees_with_numpy(example: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    example.main()
    assert "equals" in capsys.readouterr().out


@pytest.mark.needs_ptxas
def test_ptxas_takes_it_without_a_spill(example: ModuleType, tmp_path: Path) -> None:
    ptx = example.compiled(CUDA).inspect_ptx()
    assert ptx.count("cp.async.bulk.tensor.2d.shared::cluster") == 2
    ptxas.assemble(ptx, "sm_90a", tmp_path, "--warn-on-spills")

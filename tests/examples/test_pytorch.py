"""The GPT of operators trains as the one of torch's own operations."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "examples" / "pytorch" / "gpt.py"


def test_the_losses_are_those_of_torch_s_operations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    spec = importlib.util.spec_from_file_location("examples.pytorch.gpt", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    ours, plain = module.train(module.Ours, 4), module.train(module.Plain, 4)
    assert ours == pytest.approx(plain, rel=1e-5)
    assert ours[0] > ours[-1] > 0
    picture = module.picture((plain, ours), ("plain", "ours"))
    assert picture.startswith("<svg") and picture.count("<polyline") == 2

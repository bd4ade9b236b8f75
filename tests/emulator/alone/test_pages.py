"""The pages about emulated GPUs and `fe.cuda` say what is so."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages import run_page


@pytest.mark.parametrize(
    "page", ["emulated_gpu.md", "emulated_checks.md", "cuda_arrays.md", "by_example/gpu.md"]
)
def test_page(page: str, tmp_path: Path) -> None:
    run_page(page, tmp_path)

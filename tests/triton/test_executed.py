"""Kernels of Triton executed from their PTX: the examples, and where they are, the tutorials.

The tutorials are not a part of Triton's wheel: `TRITON_TUTORIALS` names the folder
`python/tutorials` of its sources.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from programs import said, wrong

TUTORIALS = os.environ.get("TRITON_TUTORIALS", "")

pytestmark = [pytest.mark.needs_cc, pytest.mark.needs_torch]


def test_examples_are_right() -> None:
    """Attention with wgmma, and a matmul with descriptors that a kernel makes, in every run."""
    found = said("emulated_examples", "sm_90a", "flash_attention", "layer_norm", "descriptors")
    assert len(found) >= 5 and not wrong(found), found


def test_the_recording_of_the_page_runs_without_a_gpu(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    page = Path(__file__).parents[2] / "docs" / "frontends_triton.md"
    block = r"```python no-run\n(# Not run: [^\n]*tests/triton runs it\..*?)```"
    (text,) = re.findall(block, page.read_text(), re.DOTALL)
    program = tmp_path / "page.py"
    program.write_text(text)
    paths = os.pathsep.join(filter(None, sys.path))
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths, "FERRULE_GPU": ""},
        timeout=300,
        check=False,
    )
    assert ran.stdout == text.rpartition("# ")[2], ran.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_all_examples_are_right(arch: str) -> None:
    found = said("emulated_examples", arch)
    assert len(found) >= 8 and not wrong(found), found


@pytest.mark.nightly
@pytest.mark.skipif(not TUTORIALS, reason="TRITON_TUTORIALS names no folder of tutorials")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_tutorials_are_right(arch: str) -> None:
    found = wrong(said("triton_tutorials", TUTORIALS, arch))
    if arch == "sm_80":  # where Triton itself has no float8e4nv
        found = {name: text for name, text in found.items() if "fp8e4nv not supp" not in text}
    assert not found

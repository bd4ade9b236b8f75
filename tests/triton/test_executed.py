"""Kernels of Triton executed from their PTX: the examples, and where they are, the tutorials.

The tutorials are not a part of Triton's wheel: `TRITON_TUTORIALS` names the folder
`python/tutorials` of its sources.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[1] / "support"
EXAMPLES = Path(__file__).parents[2] / "examples" / "triton"
TUTORIALS = os.environ.get("TRITON_TUTORIALS", "")

pytestmark = [pytest.mark.needs_cc, pytest.mark.needs_torch]


def said(program: str, *arguments: str) -> dict[str, str]:
    """What a program of tests/support prints, by the words before the colon."""
    paths = os.pathsep.join((str(SUPPORT), str(EXAMPLES), *filter(None, sys.path)))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", SUPPORT / f"{program}.py", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths, "FERRULE_GPU": ""},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


def wrong(found: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in found.items() if not text.startswith("right")}


def test_examples_are_right() -> None:
    """Attention with wgmma, and a matmul with descriptors that a kernel makes, in every run."""
    found = said("emulated_examples", "sm_90a", "flash_attention", "layer_norm", "descriptors")
    assert len(found) >= 5 and not wrong(found), found


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

"""PTX that other compilers write, and other callers of the driver, in processes of their own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[1] / "support"


def said(program: str, *arguments: str) -> dict[str, str]:
    """What a program of tests/support prints, by the words before the colon; without PyTorch."""
    code = (
        f"import sys; sys.modules['torch'] = None; import {program}; {program}.main(*sys.argv[1:])"
    )
    paths = [str(SUPPORT), *filter(None, sys.path)]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "FERRULE_GPU": ""},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


def test_other_systems() -> None:
    found = said("emulated_others")
    names = ["NVRTC", "recursion", "barriers of the grid", "wmma", "bindings", "Numba"]
    assert list(found) == names
    assert set(found.values()) <= {"right", "absent"}, found
    if set(found.values()) == {"absent"}:
        pytest.skip("there is neither NVRTC, nvcc, cuda-bindings nor Numba")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_triton(arch: str) -> None:
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed")
    found = said("emulated_triton", arch)
    found.setdefault("column", "right")  # not on every GPU, not in every version of Triton
    names = "add", "softmax", "matmul", "count", "sums", "product", "column"
    assert found == dict.fromkeys(names, "right")

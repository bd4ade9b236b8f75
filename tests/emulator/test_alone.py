"""Tests of the emulated driver, in a process of their own: see alone/conftest.py."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "alone"
RUN = """
import sys
sys.modules["torch"] = None  # tvm-ffi imports it where it is, which takes seconds
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


def test_all() -> None:
    run = subprocess.run(
        [sys.executable, "-c", RUN, "-q", "-p", "no:cacheprovider", str(FOLDER)],
        cwd=FOLDER.parents[2],
        env={**os.environ, "FERRULE_ALONE": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-5000:]
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed is not None and int(passed[1]) > 50, run.stdout

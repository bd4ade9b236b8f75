"""Tests of a folder `alone`, in a process of their own: see the conftest.py of such a folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

_RUN = """
import sys
if sys.argv.pop(1) == "without":
    sys.modules["torch"] = None  # tvm-ffi imports it where it is, which takes seconds
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


def passed(folder: Path, *, torch: bool) -> int:
    """The number of tests that passed; fails if one did not.  Without `torch` they see none."""
    run = subprocess.run(
        [sys.executable, "-c", _RUN, "with" if torch else "without"]
        + ["-q", "-rs", "-p", "no:cacheprovider", str(folder)],
        cwd=folder.parents[2],
        env={**os.environ, "FERRULE_ALONE": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-5000:]
    found = re.search(r"(\d+) passed", run.stdout)
    assert found is not None, run.stdout
    print(run.stdout)
    return int(found[1])

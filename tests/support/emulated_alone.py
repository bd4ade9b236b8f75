"""Programs for an emulated GPU that run in a process of their own.

Tests load a stand-in of the driver, beside which no GPU can be emulated.
"""

from __future__ import annotations

import os
import subprocess
import sys

_BEFORE = """\
import sys
sys.modules["torch"] = None
import importlib.util
import numpy as np
import ferrule as fe
spec = importlib.util.spec_from_file_location("here", {file!r})
here = importlib.util.module_from_spec(spec)
spec.loader.exec_module(here)
"""


def run_alone(file: str, program: str) -> None:
    """Run a program that knows `np`, `fe`, and the names of a test's file as those of `here`."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", _BEFORE.format(file=file) + program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr

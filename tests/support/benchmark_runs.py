"""Runs a benchmark with few rounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


def quick_run(name: str, file: Path) -> dict[str, Any]:
    """What a benchmark writes to a file."""
    done = subprocess.run(
        [sys.executable, str(_FOLDER / f"{name}.py"), "--quick", "--json", str(file)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content

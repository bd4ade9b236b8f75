"""Runs a benchmark with few rounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

_FOLDER: Final = Path(__file__).resolve().parents[2] / "benchmarks"

_WITHOUT_TORCH: Final = """
import runpy, sys
sys.modules["torch"] = None
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Tvm-ffi imports PyTorch where it can, for two seconds."""


def quick_run(
    name: str, file: Path, *, torch: bool = True, only: str | None = None
) -> dict[str, Any]:
    """What a benchmark writes to a file, or one of its parts.  Without `torch`, PyTorch is not
    there for it."""
    start = [] if torch else ["-c", _WITHOUT_TORCH]
    command = [sys.executable, *start, str(_FOLDER / f"{name}.py")]
    # Children of the benchmark import ferrule too, installed or not.
    paths = [str(_FOLDER), *filter(None, sys.path)]
    done = subprocess.run(
        [*command, "--quick", "--json", str(file), *(["--only", only] if only else [])],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"# {name}\n")
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content

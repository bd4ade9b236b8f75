"""Programs of this folder, which run in processes of their own and print what was right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SUPPORT = Path(__file__).parent
EXAMPLES = SUPPORT.parents[1] / "examples" / "triton"


def said(program: str, *arguments: str) -> dict[str, str]:
    """What a program of this folder prints, by the words before the colon."""
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
    """What is not right of it."""
    return {name: text for name, text in found.items() if not text.startswith("right")}

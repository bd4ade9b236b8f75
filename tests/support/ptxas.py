"""NVIDIA's assembler for PTX, where this machine has one: on the path, or in a Python package."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

ARCHS = ("sm_80", "sm_90a", "sm_100a", "sm_120")
"""What every kernel is assembled for."""


class Refused(AssertionError):
    """What ptxas says against a module; `lines` are the messages that name a line, with it."""

    def __init__(self, said: str, ptx: str) -> None:
        super().__init__(f"{said}\n{ptx}" if len(ptx) < 20_000 else said)
        found = re.findall(r"line (\d+); (?:error|fatal)\s*: (.*)", said)
        self.lines = [(int(line), text) for line, text in found]


@cache
def find_ptxas() -> str | None:
    """The program; None where there is none."""
    found = shutil.which("ptxas")
    if found is not None:
        return found
    spec = importlib.util.find_spec("nvidia")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    programs = (path for folder in folders for path in Path(folder).glob("*/bin/ptxas"))
    return next((str(path) for path in programs), None)


def assemble(ptx: str, arch: str, folder: Path, *options: str) -> str:
    """Assembles PTX without a warning, and returns the remarks.  Refused, with what ptxas says,
    otherwise."""
    program = find_ptxas()
    assert program is not None, "a test without the mark needs_ptxas"
    source = folder / f"{arch}.ptx"
    source.write_text(ptx, encoding="utf-8")
    command = [program, f"-arch={arch}", *options, str(source)]
    command += ["-o", str(source.with_suffix(".cubin"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or "warning" in done.stderr:
        raise Refused(done.stderr + done.stdout, ptx)
    return done.stderr + done.stdout

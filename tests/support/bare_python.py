"""Runs code in an interpreter that cannot import ferrule, nor what made an exported function."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_HEAD = """
import sys
sys.modules.update(dict.fromkeys(filter(None, sys.argv[1].split(","))))
import numpy, tvm_ffi
module = tvm_ffi.load_module(sys.argv[2])
"""


def called_bare(objects: list[Path], without: str, code: str) -> str:
    """What `code` prints, for which `module` has the functions of these objects.

    `without` names modules that cannot be imported there, with commas between them.
    """
    library = objects[0].with_suffix(".so")
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run([*compiler, "-shared", *map(str, objects), "-o", str(library)], check=True)
    return run_bare(library, code, without)


def run_bare(library: Path, code: str, without: str = "") -> str:
    """What `code` prints, for which `module` is this library; as for `called_bare`."""
    names = f"ferrule,llvmlite,torch,{without}"
    done = subprocess.run(
        [sys.executable, "-c", _HEAD + code, names, str(library)],
        capture_output=True,
        text=True,
        check=False,
        cwd=library.parent,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout

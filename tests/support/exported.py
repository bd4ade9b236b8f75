"""Functions that the tests of export compile, and how they try what comes back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import ferrule as fe
from ferrule.runtime import Function


@fe.kernel
def add_one(a: fe.Tensor, b: fe.Tensor):
    i = fe.arch.block_idx()[0] * fe.arch.block_dim()[0] + fe.arch.thread_idx()[0]
    if i < a.shape[0]:
        b[i] = a[i] + 1.0


@fe.jit
def add_one_host(a: fe.Tensor, b: fe.Tensor):
    """Adds one to each element.

    "Quoted" text; größer.
    """
    add_one(a, b).launch(grid=(fe.ceil_div(a.shape[0], 256), 1, 1), block=(256, 1, 1))


@fe.jit
def scale_host(a: fe.Tensor, b: fe.Tensor, factor: fe.Float32 = 2.0):
    b[:] = a[:] * factor


def vectors() -> tuple[fe.specs.params.Tensor, ...]:
    """Two float32 vectors of one symbolic size."""
    n = fe.sym_int()
    return tuple(fe.make_fake_compact_tensor(fe.Float32, (n,)) for _ in range(2))


def compiled_add_one(options: str | None = None) -> Function:
    """`add_one_host(a, b)`: b = a + 1."""
    return fe.compile(add_one_host, *vectors(), options=options)


def compiled_scale(options: str | None = None) -> Function:
    """`scale_host(a, b, factor=2.0)`: b = factor * a."""
    return fe.compile(scale_host, *vectors(), fe.Float32(1.0), options=options)


def applied(function: Any, *more: Any, **keywords: Any) -> list[float]:
    """What a function of two vectors makes of 0, 1, 2."""
    a, b = np.arange(3, dtype=np.float32), np.zeros(3, np.float32)
    function(a, b, *more, **keywords)
    return list(b)


ADDED = [1.0, 2.0, 3.0]
DOUBLED = [0.0, 2.0, 4.0]


WITHOUT_TORCH = "import sys; sys.modules['torch'] = None\n"
"""tvm_ffi imports PyTorch where it is installed, which takes longer than a test."""


def run_python(code: str, *arguments: str | Path, folder: Path | None = None) -> str:
    """What another interpreter prints, which has ferrule's sources on its path but no PyTorch."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH + code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout

"""Loops for which LLVM's vectoriser needs time without end are not given to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

import ferrule as fe

PROGRAM = """
import numpy as np
import ferrule as fe
from ferrule import arch


@fe.jit
def hashed(seeds: fe.Tensor, out: fe.Tensor):
    for i in range(out.shape[0]):
        s = seeds[0]
{lines}
        out[i] = s ^ fe.Uint32(i)


@fe.jit
def halves(table: fe.Tensor, out: fe.Tensor, s: fe.Float16):
    for i in range(out.shape[0]):
        f = fe.make_fragment(1, fe.Float16)
        f[0] = fe.Float16(table[0])
        x = f[0] + s
        x = x * x
        f[0] = x + s
        x = f[0] * f[0]
        out[i] = x


@fe.kernel
def thread(seeds, out):
    i = arch.block_idx()[0] * 64 + arch.thread_idx()[0]
    if i < out.shape[0]:
        s = seeds[0]
{lines}
        out[i] = s ^ fe.Uint32(i)


@fe.jit
def threads(seeds: fe.Tensor, out: fe.Tensor):
    thread(seeds, out).launch(grid=fe.ceil_div(out.shape[0], 64), block=64)


n, options = fe.sym_int(), "--target cpu --no-cache"
numbers = fe.row_major((n,), fe.Uint32)
seeds, out = np.array([12345], np.uint32), np.zeros(100, np.uint32)
s = 12345
for _ in range(12):
    s ^= s >> 16
    s = s * 0x7FEB352D % 2**32
    s ^= s >> 15
for function in (hashed, threads):
    compiled = fe.compile(function, fe.row_major((1,), fe.Uint32), numbers, options=options)
    compiled(seeds, out)
    assert out.tolist() == [s ^ i for i in range(100)]
    print(compiled.remarks)
half = fe.row_major((n,), fe.Float16)
compiled = fe.compile(halves, fe.row_major((1,), fe.Int32), half, fe.Float16, options=options)
found = np.zeros(5, np.float16)
compiled(np.array([1], np.int32), found, 0.5)
assert found.tolist() == [7.5625] * 5
"""
LINES = """        s ^= s >> 16
        s *= 0x7FEB352D
        s ^= s >> 15
"""


def test_what_follows_from_a_load_that_all_iterations_share(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(lines=LINES * 12))
    run = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, timeout=100, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "load it before the loop" in run.stdout


def test_loops_without_such_a_load_are_vectorised() -> None:
    @fe.jit
    def halves(x: fe.Tensor, table: fe.Tensor, out: fe.Tensor):
        s = table[0]
        for i in range(out.shape[0]):
            y = (x[i] + s) * s + table[1]
            out[i] = y * y + s

    vector = fe.row_major((fe.sym_int(),), fe.Float16)
    compiled = fe.compile(halves, vector, fe.row_major((2,), fe.Float16), vector,
                          options="--target cpu")  # fmt: skip
    assert "lanes" in str(compiled.remarks)
    x, table, out = (np.arange(4, dtype=np.float16) for _ in range(3))
    compiled(x, table[:2], out)
    assert out.tolist() == [((each * 0) + 1) ** 2 for each in x]

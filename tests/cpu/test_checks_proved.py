"""What `--enable-checks` proves instead of checking: indices of random kernels against Python."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferrule as fe

KERNELS = 16
BLOCK, GRID = 8, 3
OPTIONS = "--target cpu --enable-checks --opt-level 1"


def wrapped(value: int) -> int:
    """A number as an Int32 holds it."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


class Program:
    """A kernel that reads `a[i]` or `a[i, j]`, as text, and what its indices are in Python."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.size = self.random.choice([1, 5, 24, 40])
        self.index = self.expression(3)
        self.guard = self.random.choice(["True", f"{self.expression(1)} < n", "i < n", "i >= 0"])
        steps = ["range(1)", "range(0, 5, 2)", "range(n)", "range(t, n, 8)", "range(4, -1, -1)"]
        self.steps = self.random.choice(steps)

    def expression(self, depth: int) -> str:
        """An index of the block, the thread, a loop and numbers."""
        if depth == 0:
            return self.random.choice(["t", "b", "k", "n", str(self.random.randint(-2, 9))])
        left, right = self.expression(depth - 1), self.expression(depth - 1)
        op = self.random.choice(["+", "+", "-", "*", "// 3", "% 5", "& 7", "min", "max", "% n"])
        if op in ("min", "max"):
            return f"{op}({left}, {right})"
        return f"({left} {op})" if op[-1].isalnum() else f"({left} {op} {right})"

    def text(self) -> str:
        """The module of the kernel and its host function."""
        return f"""
import ferrule as fe

@fe.kernel
def kernel(a, out):
    b, t, n = fe.arch.block_idx()[0], fe.arch.thread_idx()[0], a.shape[0]
    for k in {self.steps}:
        i = {self.index}
        if {self.guard}:
            out[b * {BLOCK} + t] += a[i]

@fe.jit
def host(a: fe.Tensor, out: fe.Tensor):
    kernel(a, out).launch(grid={GRID}, block={BLOCK})
"""

    def fault(self) -> tuple[str, str] | None:
        """What the first fault says, in the order of blocks and threads."""
        n = self.size
        for place in range(BLOCK * GRID):
            b, t = divmod(place, BLOCK)
            for k in eval(self.steps, {"n": n, "t": t}):
                names = {"n": n, "t": t, "b": b, "k": k}
                names["i"] = i = wrapped(eval(self.index, names))
                if eval(self.guard, names) and not 0 <= i < n:
                    return (
                        f"index {i} is out of range for dim 0 of a, which has {n}",
                        f"block ({b}, 0, 0), thread ({t}, 0, 0)",
                    )
        return None


def compiled(text: str, file: Path) -> Any:
    """The function of a program, for vectors of any size."""
    file.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    a = fe.make_fake_compact_tensor(fe.Int32, (fe.sym_int(),))
    return fe.compile(module.host, a, np.zeros(BLOCK * GRID, np.int32), options=OPTIONS)


@pytest.mark.parametrize("seed", range(KERNELS))
def test_the_first_index_out_of_range_is_found(seed: int, tmp_path: Path) -> None:
    program = Program(seed)
    function = compiled(program.text(), tmp_path / f"program_{seed}.py")
    a, out = np.ones(program.size, np.int32), np.zeros(BLOCK * GRID, np.int32)
    wanted = program.fault()
    if wanted is None:
        function(a, out)
        return
    with pytest.raises(IndexError) as caught:
        function(a, out)
    assert all(part in str(caught.value) for part in wanted), (program.text(), wanted)

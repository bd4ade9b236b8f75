"""What a reduction over a block costs on one core, and kernels of rows beside PyTorch's.

    python benchmarks/block_reductions.py [--quick] [--json FILE]

A kernel reduces ROUNDS times, so that a sample is a reduction and a sum.  Softmax and layer norm
are those of the examples, whose threads work together, with rows that the caches hold, and rows
that they do not.  One thread, also for PyTorch; the results are compared first.
"""

from __future__ import annotations

import importlib.util
import operator
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

os.environ.setdefault("FERRULE_NUM_THREADS", "1")

import numpy as np
from harness import (
    FULL,
    QUICK,
    US,
    Effort,
    Goal,
    Result,
    Row,
    Side,
    Skipped,
    Table,
    Unit,
    arguments,
    call_side,
    finish,
    measure,
)

import ferrule as fe
from ferrule import arch

NS: Final = Unit("ns", 1e9)
EXAMPLES: Final = Path(__file__).resolve().parent.parent / "examples"
ROUNDS: Final = 1000
BLOCKS: Final = (64, 100, 128, 256, 1024)
ROWS: Final = ((100, 256), (100, 1024), (100, 2048), (4096, 1024))
OURS: Final = "ferrule"
TORCH: Final = "PyTorch"


def repeated(operation: Any, block: int) -> Any:
    """A kernel that reduces again and again."""

    @fe.kernel
    def kernel(a: fe.Tensor, out: fe.Tensor, rounds: fe.Int32):
        thread = arch.thread_idx()[0]
        own, total = a[thread], fe.Float32(0)
        for _ in range(rounds):
            total += arch.block_reduction(own, operation)
        if thread == 0:
            out[0] = total

    @fe.jit
    def launch(a: fe.Tensor, out: fe.Tensor, rounds: fe.Int32):
        kernel(a, out, rounds).launch(grid=1, block=block)

    return launch


def reduction(block: int, effort: Effort) -> Row:
    """A sum, and one whose operation is known to be none that vectors have."""
    a, out = np.linspace(0, 1, block, dtype=np.float32), np.zeros(1, np.float32)
    sides = []
    for name, operation in (("a sum", operator.add), ("any function", lambda x, y: x - -y)):
        function = fe.compile(repeated(operation, block), a, out, ROUNDS, options="--target cpu")
        whole = call_side(name, function, (a, out, ROUNDS), effort)
        sides.append(Side(name, lambda whole=whole: whole.sample() / ROUNDS))
    return measure(f"{block} threads", sides, effort)


def example(name: str) -> Any:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(name: str, shape: tuple[int, int], effort: Effort) -> Row:
    """Softmax or layer norm of a matrix."""
    x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    weight, bias, y = np.ones(shape[1], np.float32), np.zeros(shape[1], np.float32), x.copy()
    given = (x, y) if name == "block_softmax" else (x, weight, bias, y)
    calls: dict[str, Callable[[], Any]] = {}
    function = example(name).compiled()
    calls[OURS] = lambda: function(*given)
    if has_torch():
        calls[TORCH] = in_torch(name, x, weight, bias)
        calls[OURS]()
        np.testing.assert_allclose(y, calls[TORCH]().numpy(), 1e-4, 1e-4)
    sides = [call_side(who, call, (), effort) for who, call in calls.items()]
    return measure(f"{name}, {shape[0]} rows of {shape[1]}", sides, effort)


def in_torch(name: str, x: Any, weight: Any, bias: Any) -> Callable[[], Any]:
    """PyTorch's own kernel, into memory that is there."""
    import torch

    given, w, b = (torch.from_numpy(each) for each in (x, weight, bias))
    if name == "block_softmax":
        out = torch.empty_like(given)
        return lambda: torch.softmax(given, 1, out=out)
    return lambda: torch.nn.functional.layer_norm(given, (x.shape[1],), w, b)


def has_torch() -> bool:
    """Whether PyTorch is installed; its calls then take one thread."""
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    torch.set_num_threads(1)
    return True


def run(effort: Effort) -> Result:
    """Measure all of it."""
    reductions = tuple(reduction(block, effort) for block in BLOCKS)
    names = ("block_softmax", "block_layer_norm")
    kernels = tuple(rows(name, shape, effort) for name in names for shape in ROWS)
    tables = Table("A reduction over a block", NS, reductions), Table("Rows", US, kernels)
    if not has_torch():
        return Result(tables, (), (Skipped(TORCH, "it is not installed"),))
    goals = (Goal(r.name, 1.5, r.ratio(OURS, TORCH), f"times {TORCH}") for r in kernels)
    return Result(tables, tuple(goals))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("Reductions over a block", argv)
    finish("block_reductions", run(QUICK if given.quick else FULL), given)


if __name__ == "__main__":
    main()

"""Kernels whose threads work together: what a barrier costs, and the examples beside the others.

    python benchmarks/cooperative.py [--quick] [--json FILE]

The kernels of the examples run on one and on all cores, beside NumPy, PyTorch and Numba
(`parallel=True`, the loops of cooperative_loops.py and numba_kernels.py); their results are
compared first.  `--quick` leaves PyTorch and Numba out.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

# Read when an OpenMP runtime is loaded, and NumPy's BLAS.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import cooperative_loops as loops
import kernel_works
import numpy as np
import subjects
import threads
from harness import (
    FULL,
    MS,
    QUICK,
    Effort,
    Goal,
    Measured,
    Result,
    Row,
    Skipped,
    Table,
    Unit,
    arguments,
    call_side,
    finish,
    measure,
)
from kernel_works import EXAMPLES, Work

import ferrule as fe
from ferrule import arch

PS: Final = Unit("ps", 1e12)
ROUNDS: Final = 32
"""Of the kernels that do little but wait, with two barriers each."""
BLOCKS: Final = (32, 256, 1024)


# ---- what a barrier costs ----


@fe.jit
def exchange(a, row, t, n):
    """Threads hand numbers to each other, back and forth."""
    value = a[t]
    for _ in range(ROUNDS):
        row[t] = value
        arch.sync_threads()
        value = row[n - 1 - t] + 1.0
        arch.sync_threads()
    a[t] = value


@fe.kernel
def device_alike(a: fe.Tensor):
    exchange(a, arch.alloc_smem(fe.Float32, 1024), arch.thread_idx()[0], arch.block_dim()[0])


@fe.kernel
def device_guarded(a: fe.Tensor):
    """The same behind a test of the thread, so that threads could part."""
    row, t = arch.alloc_smem(fe.Float32, 1024), arch.thread_idx()[0]
    if t < a.shape[0]:
        exchange(a, row, t, arch.block_dim()[0])


@fe.jit
def alike(a: fe.Tensor):
    device_alike(a).launch(grid=1, block=a.shape[0])


@fe.jit
def guarded(a: fe.Tensor):
    device_guarded(a).launch(grid=1, block=a.shape[0])


def barriers(effort: Effort) -> Iterator[Row]:
    """Time for each thread and barrier; what a call costs besides is in it, and little."""
    vector = subjects.vector()
    sides = {"in phases": fe.compile(alike, vector), "as coroutines": fe.compile(guarded, vector)}
    for size in BLOCKS:
        a = np.zeros(size, np.float32)
        row = measure(
            f"a block of {size}",
            [call_side(name, function, (a,), effort) for name, function in sides.items()],
            effort,
        )
        yield _shared(row, size * ROUNDS * 2)


def _shared(row: Row, parts: int) -> Row:
    each = [Measured(s.name, tuple(time / parts for time in s.samples)) for s in row.sides]
    return Row(row.name, tuple(each))


# ---- the examples ----


def _example(name: str) -> Any:
    return subjects.load(EXAMPLES / f"{name}.py")


def _floats(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape, dtype=np.float32)


def works(small: bool) -> Iterator[Work]:
    """All of them, one after the other, so that one set of arrays is alive."""
    rows, size, length = ((3, 100), 40, 1 << 10) if small else ((4096, 1024), 512, 1 << 22)
    yield matmul(size)
    for make, name in ((kernel_works.softmax, "softmax"), (kernel_works.layer_norm, "layer_norm")):
        work, example = make(*rows), _example(f"block_{name}")
        yield replace(work, compiled=example.compiled)
        contracted = partial(example.compiled, "--target cpu --fmad")
        yield replace(work, name=f"{work.name}, --fmad", compiled=contracted)
    yield sum_and_max(length * 4)
    yield transpose(size * 4)
    yield prefix_sum(length)
    yield histogram(length)
    yield top_k(*rows)
    yield attention(size)


def matmul(n: int) -> Work:
    """The product of square matrices; NumPy and PyTorch call a library."""
    work, example = kernel_works.matmul(n), _example("tiled_matmul")
    return replace(
        work, name=f"tiled matmul, {n} × {n} × {n}", compiled=example.compiled, loops=loops.matmul
    )


def sum_and_max(n: int) -> Work:
    """Two numbers of a vector."""
    x, out = _floats(n), np.empty(2, np.float32)

    def numpy() -> Any:
        return np.array([x.sum(), x.max()])

    def torch(t: Any) -> Any:
        a = t.from_numpy(x)
        return lambda: np.array([float(a.sum()), float(a.max())])

    args = (x, out[:1], out[1:])
    compiled = _example("reduction").compiled
    name = f"sum and largest of {n} floats"
    return Work(name, "memory", compiled, loops.sum_and_max, args, out, numpy, torch)


def transpose(n: int) -> Work:
    """A square matrix."""
    a, out = _floats(n, n), np.empty((n, n), np.float32)

    def numpy() -> Any:
        np.copyto(out, a.T)
        return out

    def torch(t: Any) -> Any:
        x, y = t.from_numpy(a), t.from_numpy(out)
        return lambda: y.copy_(x.T)

    compiled = _example("transpose").compiled
    return Work(
        f"transpose, {n} × {n}", "memory", compiled, loops.transpose, (a, out), out, numpy, torch
    )


def prefix_sum(n: int) -> Work:
    """int32 to int64."""
    x, out = np.arange(n, dtype=np.int32) % 19 - 9, np.empty(n, np.int64)

    def torch(t: Any) -> Any:
        a, b = t.from_numpy(x), t.from_numpy(out)
        return lambda: t.cumsum(a, 0, dtype=t.int64, out=b)

    return Work(
        f"prefix sums of {n} integers",
        "memory",
        _example("prefix_sum").compiled,
        loops.prefix_sum,
        (x, out),
        out,
        lambda: np.cumsum(x, dtype=np.int64, out=out),
        torch,
    )


def histogram(n: int) -> Work:
    """Bytes, of which none is frequent."""
    x = np.random.default_rng(0).integers(0, 256, n, dtype=np.uint8)
    counts = np.empty(256, np.int64)

    def torch(t: Any) -> Any:
        a = t.from_numpy(x)
        return lambda: t.bincount(a, minlength=256)

    return Work(
        f"histogram of {n} bytes",
        "arithmetic",
        _example("histogram").compiled,
        loops.histogram,
        (x, counts),
        counts,
        lambda: np.bincount(x, minlength=256),
        torch,
    )


def top_k(m: int, n: int) -> Work:
    """The eight largest of each row; the values are compared."""
    example, x = _example("top_k"), _floats(m, n)
    values, places = np.empty((m, 8), np.float32), np.empty((m, 8), np.int32)

    def numpy() -> Any:
        found = np.argpartition(x, n - 8, axis=1)[:, n - 8 :]
        return -np.sort(-np.take_along_axis(x, found, axis=1), axis=1)

    def torch(t: Any) -> Any:
        a = t.from_numpy(x)
        return lambda: t.topk(a, 8, dim=1)[0]

    args = (x, values, places)
    name = f"8 largest of each row, {m} × {n}"
    return Work(name, "arithmetic", example.compiled, loops.top_k, args, values, numpy, torch)


def attention(n: int) -> Work:
    """Eight heads of 64, as many keys as queries."""
    example = _example("attention")
    q, k, v = (_floats(8, n, 64) for _ in range(3))
    out, scale = np.empty_like(q), np.float32(0.125)

    def numpy() -> Any:
        scores = (q * scale) @ k.swapaxes(1, 2)
        e = np.exp(scores - scores.max(axis=2, keepdims=True))
        return np.matmul(e / e.sum(axis=2, keepdims=True), v, out=out)

    def torch(t: Any) -> Any:
        given = [t.from_numpy(x)[None] for x in (q, k, v)]
        return lambda: t.nn.functional.scaled_dot_product_attention(*given)[0]

    args, name = (q, k, v, out), f"attention, 8 × {n} × 64"
    return Work(name, "arithmetic", example.compiled, loops.attention, args, out, numpy, torch)


# ---- running ----


def goals(rows: Sequence[Row]) -> list[Goal]:
    """The tiled product faster than Numba's; the row-wise kernels near the best."""
    ours, found = threads.name_of(threads.CORES), []
    for row in rows:
        others = [s for s in row.sides if not s.name.startswith("ferrule")]
        best = min(others, key=lambda side: side.median).name
        if row.name.startswith("tiled"):
            found.append(
                Goal(f"{row.name}, over Numba", 1.0, row.ratio(ours, threads.NUMBA), "times")
            )
        elif row.name.startswith(("softmax", "layer norm", "sum")):
            found.append(Goal(f"{row.name}, over {best}", 1.5, row.ratio(ours, best), "times"))
    return found


def run(quick: bool, effort: Effort) -> Result:
    """Measure all of it."""
    there = {name: not quick and importlib.util.find_spec(name) for name in ("torch", "numba")}
    torch = importlib.import_module("torch") if there["torch"] else None
    waiting = tuple(barriers(effort))
    rows = tuple(
        threads.compared(work, torch, bool(there["numba"]), effort.fewer(6))
        for work in works(small=quick)
    )
    tables = (
        Table("A barrier, for each thread", PS, waiting, ("as coroutines", "in phases")),
        Table(
            "Kernels whose threads work together",
            MS,
            rows,
            (threads.name_of(threads.CORES), threads.NUMBA),
        ),
    )
    reason = "not with --quick" if quick else "not installed"
    names = {"torch": threads.TORCH, "numba": threads.NUMBA}
    skipped = tuple(Skipped(names[name], reason) for name, found in there.items() if not found)
    return Result(tables, tuple(goals(rows)), skipped)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("Kernels whose threads work together", argv)
    finish("cooperative", run(given.quick, QUICK if given.quick else FULL), given)


if __name__ == "__main__":
    main()

"""What a launch of a Warp kernel costs on the CPU, beside Warp's own launches.

    python benchmarks/launch.py --only warp

The kernels are Warp's on both sides, of few elements, so that what is measured is what surrounds
them.  ferrule's functions are called with NumPy arrays; Warp launches with arrays of its own, which
it likes best, and with a launch that was recorded before (`record_cmd`).  Needs Warp.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from harness import NS, Effort, Goal, Result, Row, Table, call_side, measure

import ferrule as fe

FERRULE: Final = "ferrule"
WARP: Final = "wp.launch"
RECORDED: Final = "a recorded launch"
SIZE: Final = 16


def rows(wp: Any, effort: Effort) -> list[Row]:
    """A kernel of no arrays, of two and of eight."""

    @wp.kernel(module="unique")
    def nothing(n: wp.int32):
        i = wp.tid()  # noqa: F841

    @wp.kernel(module="unique")
    def saxpy(x: wp.array(dtype=wp.float32), y: wp.array(dtype=wp.float32), alpha: wp.float32):
        i = wp.tid()
        y[i] = alpha * x[i] + y[i]

    @wp.kernel(module="unique")
    def eight(
        a: wp.array(dtype=wp.float32),
        b: wp.array(dtype=wp.float32),
        c: wp.array(dtype=wp.float32),
        d: wp.array(dtype=wp.float32),
        e: wp.array(dtype=wp.float32),
        f: wp.array(dtype=wp.float32),
        g: wp.array(dtype=wp.float32),
        out: wp.array(dtype=wp.float32),
    ):
        i = wp.tid()
        out[i] = a[i] + b[i] + c[i] + d[i] + e[i] + f[i] + g[i]

    cases = [
        ("no array", nothing, 0, [3]),
        ("2 arrays", saxpy, 2, [2.0]),
        ("8 arrays", eight, 8, []),
    ]
    return [row(wp, name, kernel, count, more, effort) for name, kernel, count, more in cases]


def row(wp: Any, name: str, kernel: Any, count: int, more: Sequence[Any], effort: Effort) -> Row:
    """One kernel, launched by all sides over the same memory."""
    function = fe.frontends.warp.compile(kernel, dim=fe.frontends.fixed(SIZE))
    vectors = [np.ones(SIZE, np.float32) for _ in range(count)]
    arrays = [wp.array(each, dtype=wp.float32, device="cpu", copy=False) for each in vectors]
    given = [*arrays, *more]
    recorded = wp.launch(kernel, SIZE, given, device="cpu", record_cmd=True)

    def launch() -> None:
        wp.launch(kernel, SIZE, given, device="cpu")

    sides = [
        call_side(FERRULE, function, [*vectors, *more], effort),
        call_side(WARP, launch, [], effort),
        call_side(RECORDED, recorded.launch, [], effort),
    ]
    return measure(name, sides, effort)


def measured(folder: Path, effort: Effort) -> Result:
    """All of it; `folder` gets what Warp compiles."""
    import warp as wp

    wp.config.kernel_cache_dir = str(folder)
    wp.config.log_level = wp.LOG_WARNING
    found = tuple(rows(wp, effort))
    goals = [
        Goal(f"{each.name}, over wp.launch", 0.1, each.ratio(FERRULE, WARP), "times")
        for each in found
    ]
    table = Table("A launch of a Warp kernel on the CPU", NS, found, (FERRULE, WARP))
    return Result((table,), tuple(goals))

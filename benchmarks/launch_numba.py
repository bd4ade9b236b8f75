"""What a call of a Numba function costs, beside Numba's own dispatch.

    python benchmarks/launch.py --only numba

The functions are Numba's on both sides, of few elements, so that what is measured is what surrounds
them: on the CPU those of `numba.njit`, and where there is a GPU the launch of a kernel of
`numba.cuda`.  Both sides get the same NumPy arrays, on a GPU each what it likes best.  Needs Numba.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from harness import NS, Effort, Goal, Result, Row, Skipped, Table, call_side, measure

import ferrule as fe
from ferrule.specs import Tensor

FERRULE: Final = "ferrule"
NUMBA: Final = "Numba"
SIZE: Final = 16


def nothing(n):  # type: ignore[no-untyped-def]
    return None


def saxpy(x, y, a):  # type: ignore[no-untyped-def]
    for i in range(x.size):
        y[i] = a * x[i] + y[i]


def eight(a, b, c, d, e, f, g, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = a[i] + b[i] + c[i] + d[i] + e[i] + f[i] + g[i]


def on_the_cpu(numba: Any, effort: Effort) -> list[Row]:
    """Functions of no arrays, of two and of eight."""
    n = fe.sym_int()
    cases: list[tuple[str, Any, str, list[Any]]] = [
        ("no array", nothing, "", [3]),
        ("2 arrays", saxpy, "xy", [2.0]),
        ("8 arrays", eight, "abcdefg", []),
    ]
    rows = []
    for name, plain, names, more in cases:
        labels = [*names, "out"] if plain is eight else [*names]
        specs = [Tensor(label, (n,), "float32") for label in labels]
        kinds = [fe.Int64 if isinstance(each, int) else fe.Float64 for each in more]
        function = fe.frontends.numba.compile(plain, *specs, *kinds)
        given = [*(np.ones(SIZE, np.float32) for _ in specs), *more]
        dispatched = numba.njit(plain)
        sides = [
            call_side(FERRULE, function, given, effort),
            call_side(NUMBA, dispatched, given, effort),
        ]
        rows.append(measure(name, sides, effort))
    return rows


def on_a_gpu(effort: Effort) -> list[Row] | str:
    """Launches of a kernel; why not where there is no GPU."""
    try:
        from numba import cuda

        if not cuda.is_available():
            return "there is no GPU"
        import numba_cuda  # noqa: F401
    except ImportError as error:
        return str(error)

    def add(x, y):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        if i < x.size:
            y[i] += x[i]

    n = fe.sym_int()
    major, minor = cuda.get_current_device().compute_capability
    specs = [Tensor(name, (n,), "float32") for name in "xy"]
    function = fe.frontends.numba.compile(
        add, *specs, target=f"sm_{major}{minor}", grid=fe.ceil_div(n, 128), block=128
    )
    arrays = [cuda.to_device(np.ones(SIZE, np.float32)) for _ in specs]
    tensors = [fe.from_dlpack(array) for array in arrays]
    configured = cuda.jit(add)[1, 128]
    sides = [
        call_side(FERRULE, function, tensors, effort),
        call_side(NUMBA, configured, arrays, effort),
    ]
    return [measure("2 arrays", sides, effort)]


def measured(folder: Path, effort: Effort) -> Result:
    """All of it; launches of kernels where there is a GPU."""
    import numba

    compared = (FERRULE, NUMBA)
    rows = tuple(on_the_cpu(numba, effort))
    calls = Table("A call of a Numba function on the CPU", NS, rows, compared)
    launches = on_a_gpu(effort)
    if isinstance(launches, str):
        return Result((calls,), (), (Skipped("launches of Numba kernels", launches),))
    goals = [
        Goal(f"{row.name}, over Numba's launch on a GPU", 0.1, row.ratio(*compared), "times")
        for row in launches
    ]
    launched = Table("A launch of a Numba kernel", NS, tuple(launches), compared)
    return Result((calls, launched), tuple(goals))

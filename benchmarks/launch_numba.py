"""What a call of a Numba function costs, beside Numba's own dispatch.

    python benchmarks/launch_numba.py [--quick] [--json FILE]

The functions are Numba's on both sides, of few elements, so that what is measured is what surrounds
them: on the CPU those of `numba.njit`, and where there is a GPU the launch of a kernel of
`numba.cuda`.  Both sides get the same NumPy arrays, on a GPU each what it likes best.  Needs Numba.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from harness import (
    FULL,
    NS,
    QUICK,
    Effort,
    Goal,
    Result,
    Row,
    Skipped,
    Table,
    arguments,
    call_side,
    finish,
    measure,
)

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


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("What a call of a Numba function costs", argv)
    try:
        import numba
    except ImportError as error:
        left_out = Skipped("all of it", f"Numba cannot be imported: {error}")
        finish("launch_numba", Result((), (), (left_out,)), given)
        return
    effort = QUICK if given.quick else FULL
    compared = (FERRULE, NUMBA)
    tables = [Table("A call on the CPU", NS, tuple(on_the_cpu(numba, effort)), compared)]
    skipped, goals = [], []
    launches = on_a_gpu(effort)
    if isinstance(launches, str):
        skipped.append(Skipped("launches on a GPU", launches))
    else:
        tables.append(Table("A launch on a GPU", NS, tuple(launches), compared))
        goals = [
            Goal(f"{row.name}, over Numba's launch on a GPU", 0.1, row.ratio(*compared), "times")
            for row in launches
        ]
    finish("launch_numba", Result(tuple(tables), tuple(goals), tuple(skipped)), given)


if __name__ == "__main__":
    main()

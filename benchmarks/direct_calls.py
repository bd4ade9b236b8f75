"""What a direct call of a `@jit` function costs besides the compiled code.

Whether anything around the function changed is asked in two ways, taken in turn: `guard` compares
words of memory, `values` reads all of it again, as every call did before there were guards.  The
least of many short rounds counts, as the machine may have other work.

    python benchmarks/direct_calls.py
"""

from __future__ import annotations

import functools
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

import ferrule as fe

A, B, C, D = 1, 2.0, 3, 4.0
TABLE = {"k": 2}
ROUNDS, CALLS = 400, 20


def inner(v: Any) -> Any:
    return v * A


def helper(v: Any) -> Any:
    return inner(v) + B


@fe.jit
def scaled(a: fe.Tensor) -> None:
    a[0] = helper(a[0]) + C + D * TABLE["k"]


def main() -> None:
    """Print the least time of each, in ns."""
    a = np.ones(4, np.float32)
    for _ in range(4):
        scaled(a)
    ((_, witness),) = next(iter(scaled._compiled.values()))
    ways: dict[str, Callable[[], object]] = {
        "empty builtin": bool,
        "guard": witness.same,
        "values": witness._compared,
        "call": lambda: scaled(a),
        "call, all derived": lambda: scaled._whole_way((a,), {}),
        "compiled function": functools.partial(next(iter(scaled._compiled.values()))[0][0], a),
    }
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for name, way in ways.items():
            calls = CALLS if name in ("values", "call, all derived") else 50 * CALLS
            least[name] = min(least[name], timeit.timeit(way, number=calls) / calls * 1e9)
    for name, found in least.items():
        print(f"{name:18} {found:10.1f} ns")


if __name__ == "__main__":
    main()

"""Examples on the emulated GPU beside the CPU target, by the processor's time on one core.

    python benchmarks/emulated_examples.py [saxpy matmul ...]

Of the emulated GPU the compilation, the first call, which translates the PTX, and calls after two
seconds, when a kernel has its fast code: with the checks that are on by default, and with none.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

import ferrule as fe

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
os.environ["FERRULE_NUM_THREADS"] = "1"

ROUNDS: Final = 11
WARM: Final = 2.0
"""Seconds of calls before the last ones are measured."""


def floats(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


ARGUMENTS: Final[dict[str, Callable[[], tuple[Any, ...]]]] = {
    "saxpy": lambda: (2.5, floats(1_000_003), floats(1_000_003)),
    "transpose": lambda: (floats(1000, 1000), floats(1000, 1000)),
    "softmax": lambda: (floats(512, 1000), floats(512, 1000)),
    "block_softmax": lambda: (floats(512, 1000), floats(512, 1000)),
    "matmul": lambda: (floats(256, 256), floats(256, 256), floats(256, 256)),
    "tiled_matmul": lambda: (floats(256, 256), floats(256, 256), floats(256, 256)),
}


def spent(work: Callable[[], object]) -> float:
    """Milliseconds of the processor."""
    start = time.process_time()
    work()
    return 1e3 * (time.process_time() - start)


def steady(work: Callable[[], object]) -> float:
    """The median of calls, when the code is as fast as it gets."""
    end = time.process_time() + WARM
    while time.process_time() < end:
        work()
    return median(spent(work) for _ in range(ROUNDS))


def emulated(name: str, checks: bool) -> tuple[float, float, float]:
    """Compilation, first call, later calls."""
    module: Any = importlib.import_module(name)
    with fe.emulated_gpu("sm_90a", checks=checks):
        made: list[Any] = []
        compilation = spent(lambda: made.append(module.compiled("--target cuda")))
        given = [
            fe.cuda.array(each) if isinstance(each, np.ndarray) else each
            for each in ARGUMENTS[name]()
        ]
        first = spent(lambda: made[0](*given))
        return compilation, first, steady(lambda: made[0](*given))


def main(names: list[str]) -> None:
    print("| ms | CPU target | GPU: compiled | first call | later | without checks |")
    print("|---|---|---|---|---|---|")
    for name in names or ARGUMENTS:
        function, given = importlib.import_module(name).compiled(), ARGUMENTS[name]()
        cpu = steady(lambda function=function, given=given: function(*given))  # type: ignore[misc]
        compilation, first, later = emulated(name, True)
        _, _, free = emulated(name, False)
        ratios = f"{later:.2f} ({later / cpu:.1f}x) | {free:.2f} ({free / cpu:.1f}x)"
        print(f"| {name} | {cpu:.2f} | {compilation:.0f} | {first:.0f} | {ratios} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

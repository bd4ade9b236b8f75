"""What a compilation takes that the cache has: in memory, in the folder, and without it.

The least of several rounds counts, as the machine may have other work; the ways are taken in turn.

    python benchmarks/cache.py
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

import ferrule as fe
from ferrule.compiler.cache.through import MEMORY

ROUNDS = 30


@fe.kernel
def add_kernel(a: fe.Tensor, b: fe.Tensor) -> None:
    i = fe.arch.block_idx()[0] * fe.arch.block_dim()[0] + fe.arch.thread_idx()[0]
    if i < a.shape[0]:
        b[i] = a[i] + 1.0


@fe.jit
def add(a: fe.Tensor, b: fe.Tensor) -> None:
    add_kernel(a, b).launch(grid=(fe.ceil_div(a.shape[0], 256), 1, 1), block=(256, 1, 1))


def tensors() -> list[Any]:
    n = fe.sym_int(symbol="n")
    return [fe.make_fake_compact_tensor(fe.Float32, (n,)) for _ in range(2)]


SAME = tensors()


def forgotten() -> Any:
    MEMORY.clear()
    return fe.compile(add, *SAME, options="--target cpu")


WAYS: dict[str, Callable[[], Any]] = {
    "memory, the same examples": lambda: fe.compile(add, *SAME, options="--target cpu"),
    "memory, equal examples": lambda: fe.compile(add, *tensors(), options="--target cpu"),
    "folder": forgotten,
    "without": lambda: fe.compile(add, *SAME, options="--target cpu --no-cache"),
}


def main() -> None:
    """Print the least time of each, in ms."""
    os.environ["FERRULE_CACHE"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        fe.cache.folder(folder)
        least = dict.fromkeys(WAYS, float("inf"))
        for _ in range(ROUNDS):
            for name, way in WAYS.items():
                way(), way()
                begin = time.perf_counter()
                way()
                least[name] = min(least[name], (time.perf_counter() - begin) * 1e3)
    for name, found in least.items():
        print(f"{name:26} {found:8.2f} ms")


if __name__ == "__main__":
    main()

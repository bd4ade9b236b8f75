"""Calls of the examples whose sizes tell planted faults apart: nothing is a multiple of a tile."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import ferrule as fe
from ferrule.runtime.cuda.tensors import use_as_allocator

FOLDER = Path(__file__).parents[2] / "examples"
OPTIONS = "--target cuda"

Array = Any


@cache
def example(name: str) -> ModuleType:
    """An example's module."""
    spec = importlib.util.spec_from_file_location(f"mutants.{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def floats(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


def call(function: Any, *given: Any) -> None:
    """Call a function with arrays on the GPU."""
    use_as_allocator()
    on_gpu = [fe.cuda.array(each) if isinstance(each, np.ndarray) else each for each in given]
    function(*on_gpu)
    for each, there in zip(given, on_gpu, strict=True):
        if isinstance(each, np.ndarray):
            np.copyto(each, fe.cuda.to_numpy(there))


def plain(name: str, *given: Any, **how: Any) -> Callable[[], None]:
    """A program that calls an example's function."""
    return lambda: call(example(name).compiled(OPTIONS, **how), *given)


def prefix_sum(size: int) -> Callable[[], None]:
    x = np.random.default_rng(size).integers(-(2**31), 2**31, size).astype(np.int32)
    return plain("prefix_sum", x, np.empty(size, np.int64))


def histogram(size: int) -> Callable[[], None]:
    x = (np.arange(size) ** 2 % 251).astype(np.uint8)
    return plain("histogram", x, np.full(256, -1, np.int64))


def radix_sort(size: int) -> Callable[[], None]:
    x = np.random.default_rng(size).integers(0, 2**32, size, dtype=np.uint32)
    return plain("radix_sort", x, np.empty_like(x))


def top_k(rows: int, length: int) -> Callable[[], None]:
    shape = rows, example("top_k").K
    x = floats(rows, length)
    return plain("top_k", x, np.empty(shape, np.float32), np.empty(shape, np.int32))


def attention(heads: int, queries: int, keys: int) -> Callable[[], None]:
    q, k, v = floats(heads, queries, 64), floats(heads, keys, 64), floats(heads, keys, 64) + 1
    return plain("attention", q, k, v, np.empty_like(q), causal=True)


def layer_norm(name: str, rows: int, length: int) -> Callable[[], None]:
    x = floats(rows, length)
    return plain(name, x, floats(length) + 2, floats(length), np.empty_like(x), 0.1)


def softmax(name: str, rows: int, length: int, step: int = 7) -> Callable[[], None]:
    """The largest of each row stands elsewhere."""
    x = floats(rows, length)
    x[np.arange(rows), np.arange(rows) * step % length] += 60
    return plain(name, x, np.empty((rows, length), np.float32))


def matmul(name: str, m: int, k: int, n: int) -> Callable[[], None]:
    return plain(name, floats(m, k), floats(k, n), np.empty((m, n), np.float32))


def halves(name: str, m: int, k: int, n: int, result: Any) -> Callable[[], None]:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    given = {"dtype": fe.Float16} if name == "tensor_core_matmul" else {}
    return plain(name, a, b, np.empty((m, n), result), **given)


def transpose(m: int, n: int) -> Callable[[], None]:
    return plain("transpose", floats(m, n), np.empty((n, m), np.float32))


def reduction(size: int) -> Callable[[], None]:
    return plain("reduction", floats(size), floats(1), floats(1))


PROGRAMS: dict[str, Sequence[Callable[[], Callable[[], None]]]] = {
    "saxpy": [lambda: plain("saxpy", -2.0, floats(300), floats(300) + 1)],
    "transpose": [lambda: transpose(33, 70), lambda: transpose(64, 32), lambda: transpose(41, 50)],
    "tiled_matmul": [
        lambda: matmul("tiled_matmul", 33, 35, 65),
        lambda: matmul("tiled_matmul", 12, 20, 5),
        lambda: matmul("tiled_matmul", 18, 27, 9),
        lambda: matmul("tiled_matmul", 27, 45, 17),
        lambda: matmul("tiled_matmul", 40, 0, 40),
    ],
    "matmul": [lambda: matmul("matmul", 33, 35, 65), lambda: matmul("matmul", 3, 0, 5)],
    "reduction": [lambda: reduction(4097), lambda: reduction(33), lambda: reduction(256)],
    "histogram": [partial(histogram, size) for size in (16_385, 300, 1536, 1792)],
    "prefix_sum": [lambda: prefix_sum(2049), lambda: prefix_sum(1), lambda: prefix_sum(100)],
    "radix_sort": [lambda: radix_sort(257), lambda: radix_sort(40)],
    "top_k": [lambda: top_k(2, 129), lambda: top_k(3, 8)],
    "attention": [lambda: attention(2, 33, 33), lambda: attention(1, 5, 64)],
    "block_layer_norm": [
        partial(layer_norm, "block_layer_norm", 1, length)
        for length in (257, 5, 600, 800, 1100, 1300, 1700, 2040)
    ],
    "block_softmax": [
        lambda: softmax("block_softmax", 40, 257),
        lambda: softmax("block_softmax", 8, 5),
        lambda: softmax("block_softmax", 1, 1792),
        lambda: softmax("block_softmax", 1, 768),
        lambda: softmax("block_softmax", 2, 2100),
        lambda: softmax("block_softmax", 17, 4200, 256),  # the first number of each load
    ],
    "layer_norm": [
        lambda: layer_norm("layer_norm", 129, 16),
        lambda: layer_norm("layer_norm", 2, 33),
    ],
    "softmax": [lambda: softmax("softmax", 129, 16), lambda: softmax("softmax", 2, 33)],
    "tensor_core_matmul": [lambda: halves("tensor_core_matmul", 100, 72, 88, np.float32)],
    "tma_matmul": [
        lambda: halves("tma_matmul", 72, 136, 88, np.float16),
        lambda: halves("tma_matmul", 40, 200, 24, np.float16),
        lambda: halves("tma_matmul", 1100, 16, 88, np.float16),
    ],
}
"""For each example the calls that are recorded."""

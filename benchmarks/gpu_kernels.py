"""Kernels for `gpu.py`: addition, softmax and RMSNorm, which read and write 16 bytes at a time."""

from __future__ import annotations

import importlib.util
import operator
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import ferrule as fe
from ferrule import arch

EXAMPLES: Final = Path(__file__).resolve().parents[1] / "examples"
THREADS: Final = 256
WIDTH: Final = 4
PARTS: Final = 2
COLUMNS: Final = PARTS * THREADS * WIDTH
"""Of a row: a block has it in registers, `PARTS` vectors a thread."""


@fe.kernel
def device_add(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    i = arch.block_idx()[0] * THREADS + arch.thread_idx()[0]
    if i < a.shape[0] // WIDTH:
        x = fe.zipped_divide(a, (WIDTH,))[None, i].load()
        y = fe.zipped_divide(b, (WIDTH,))[None, i].load()
        fe.zipped_divide(c, (WIDTH,))[None, i].store(x + y)


@fe.jit
def add(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    """c = a + b."""
    device_add(a, b, c).launch(grid=fe.ceil_div(a.shape[0] // WIDTH, THREADS), block=THREADS)


@fe.jit
def load_row(x, row):
    """The thread's part of a row."""
    parts = fe.zipped_divide(x[row, None], (WIDTH,))
    own = fe.make_fragment((WIDTH, PARTS), fe.Float32)
    for k in fe.range_constexpr(PARTS):
        own[None, k].store(parts[None, arch.thread_idx()[0] + k * THREADS].load())
    return own.load()


@fe.jit
def store_row(values, y, row):
    """Writes the thread's part of a row."""
    parts = fe.zipped_divide(y[row, None], (WIDTH,))
    for k in fe.range_constexpr(PARTS):
        parts[None, arch.thread_idx()[0] + k * THREADS].store(values[None, k])


@fe.kernel
def device_softmax(x: fe.Tensor, y: fe.Tensor):
    row = arch.block_idx()[0]
    values = load_row(x, row)
    largest = arch.block_reduction(fe.max(values), max)
    powers = fe.math.exp(values - largest, fast=True)
    total = arch.block_reduction(fe.sum(powers), operator.add)
    store_row(powers * (1.0 / total), y, row)


@fe.jit
def softmax(x: fe.Tensor, y: fe.Tensor):
    """y = softmax(x) along the last dim."""
    device_softmax(x, y).launch(grid=x.shape[0], block=THREADS)


@fe.kernel
def device_rms_norm(x: fe.Tensor, weight: fe.Tensor, y: fe.Tensor, eps: fe.Float32):
    row = arch.block_idx()[0]
    values = load_row(x, row)
    squares = arch.block_reduction(fe.sum(values * values), operator.add)
    scale = fe.math.rsqrt(squares / COLUMNS + eps)
    store_row(values * scale * load_row(weight, 0), y, row)


@fe.jit
def rms_norm(x: fe.Tensor, weight: fe.Tensor, y: fe.Tensor, eps: fe.Float32):
    """y = x / sqrt(mean(x * x) + eps) * weight along the last dim."""
    device_rms_norm(x, weight, y, eps).launch(grid=x.shape[0], block=THREADS)


# ---- compiling ----


def compiled_add(options: str) -> fe.Function:
    """For vectors of a multiple of `WIDTH` elements."""
    n = fe.sym_int(divisibility=WIDTH)
    vector = fe.make_fake_compact_tensor(fe.Float32, (n,), assumed_align=16)
    return fe.compile(add, vector, vector, vector, options=options)


def _rows(count: Any) -> Any:
    shape = (count, COLUMNS)
    return fe.make_fake_compact_tensor(fe.Float32, shape, stride_order=(1, 0), assumed_align=16)


def compiled_softmax(options: str) -> fe.Function:
    """For rows of `COLUMNS` elements."""
    rows = _rows(fe.sym_int())
    return fe.compile(softmax, rows, rows, options=options)


def compiled_rms_norm(options: str) -> fe.Function:
    """For rows of `COLUMNS` elements; the weight is one of them."""
    rows = _rows(fe.sym_int())
    return fe.compile(rms_norm, rows, _rows(1), rows, fe.Float32, options=options)


def compiled_matmul(options: str, *, n: int = 256, k: int = 32, stages: int = 4) -> fe.Function:
    """Of matrices of bfloat16, with slices that `cp_async` copies, and tiles of these sizes."""
    matmul = example("tensor_core_matmul")
    tiles = matmul.Tiles(n=n, k=k, stages=stages)
    return matmul.compiled(options, result=fe.BFloat16, tiles=tiles)


def compiled_boxed_matmul(options: str) -> fe.Function:
    """The same with slices that come as boxes of tensors: for GPUs from sm_90a on."""
    matmul = example("tma_matmul")
    return matmul.compiled(options, fe.BFloat16, matmul.LARGE)


MATMULS: Final[dict[str, Callable[[str], fe.Function]]] = {
    "ferrule": compiled_matmul,
    "slices of 64": partial(compiled_matmul, k=64, stages=3),
    "tiles of 128 × 128": partial(compiled_matmul, n=128),
}
"""Ways to multiply on tensor cores from sm_80 on."""


def example(name: str) -> ModuleType:
    """One of the examples."""
    spec = importlib.util.spec_from_file_location(f"examples.{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def compilers(*, quick: bool) -> dict[str, Callable[[str], fe.Function]]:
    """What compiles each kernel, given options; a quick try takes a matmul of small tiles."""
    return {
        "add": compiled_add,
        "softmax": compiled_softmax,
        "rms_norm": compiled_rms_norm,
        "transpose": example("transpose").compiled,
        "matmul": example("tensor_core_matmul").compiled if quick else compiled_matmul,
    }

"""Host functions of PyTorch and Triton, recorded, compiled, and executed on an emulated GPU.

`python emulated_recordings.py` prints what was right.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

import ferrule as fe
from ferrule.frontends import triton as frontend


@triton.jit
def squares(x, total, stride, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + at, mask=at < n, other=0.0)
    tl.atomic_add(total + row, tl.sum(values * values, axis=0))


@triton.jit
def scaled(x, total, weight, out, stride, n, eps, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < n
    factor = tl.rsqrt(tl.load(total + row) / n + eps)
    values = tl.load(x + row * stride + at, mask=inside) * factor
    tl.store(out + row * n + at, values * tl.load(weight + at, mask=inside), mask=inside)


@triton.jit
def told(x, WHAT: tl.constexpr):
    tl.store(x, 1.0)


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def doubled(x, out, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(out + at, tl.load(x + at) * 2)
    else:
        tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


@triton.autotune(
    configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})],
    key=["n"],
    prune_configs_by={
        "early_config_prune": lambda configs, named, **more: [
            each for each in configs if each.kwargs["BLOCK"] >= named["n"]
        ]
    },
)
@triton.jit
def pruned(x, total, stride, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + at, mask=at < n, other=0.0)
    tl.store(total + row, tl.sum(values, axis=0))


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def summed(x, total, stride, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + at, mask=at < n, other=0.0)
    tl.store(total + row, tl.sum(values, axis=0))


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def looped(x, total, stride, n, BLOCK: tl.constexpr):
    row, found = tl.program_id(0), 0.0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        found += tl.sum(tl.load(x + row * stride + at, mask=at < n, other=0.0), axis=0)
    tl.store(total + row, found)


TUNED = [triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})]


@triton.jit
def _inside(columns, length):
    return length > columns


@triton.jit
def _read(x, columns, size):
    return tl.load(x + columns, mask=_inside(columns, size), other=0.0)


@triton.autotune(configs=TUNED, key=["n"])
@triton.jit
def turned(x, total, stride, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + at, mask=n > at, other=0.0)
    tl.store(total + row, tl.sum(values, axis=0))


@triton.autotune(configs=TUNED, key=["n"])
@triton.jit
def named(x, total, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    columns, length = at, n
    loaded = tl.load(x + row * stride + columns, mask=columns < length)
    tl.store(total + row, tl.sum(tl.where(columns >= length, 0.0, loaded), axis=0))


@triton.autotune(configs=TUNED, key=["n"])
@triton.jit
def called(x, total, stride, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(total + row, tl.sum(_read(x + row * stride, at, n), axis=0))


@triton.autotune(configs=TUNED, key=["n"])
@triton.jit
def shifted(x, total, stride, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    found = 0.0
    for start in range(0, n, 64):
        columns = start + at
        found += tl.sum(tl.load(x + row * stride + columns, mask=columns < n, other=0.0), axis=0)
    tl.store(total + row, found)


@triton.autotune(configs=[triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def blocks(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


@triton.heuristics({"BLOCK": lambda args: 1024 if args["n"] < 2000 else 64})
@triton.jit
def steps(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


def normed(x: Any, weight: Any) -> tuple[Any, Any]:
    """Rows divided by the root of their mean square, and twice that: with a temporary that starts
    with zeros, and rows of a view."""
    rows = x.view(-1, x.shape[-1])
    m, n = rows.shape
    total = torch.zeros(m, dtype=torch.float32, device=x.device)
    out = torch.empty_like(rows)
    block = triton.next_power_of_2(n)
    squares[(m,)](rows, total, rows.stride(0), n, BLOCK=block, num_warps=2)
    scaled[(m,)](rows, total, weight, out, rows.stride(0), n, 1e-6, BLOCK=block, num_warps=2)
    twice = torch.empty_like(rows)
    doubled[lambda meta: (triton.cdiv(out.numel(), meta["BLOCK"]),)](out, twice, out.numel())
    return out.view(x.shape), twice.view(x.shape)


def recording(*shape: int, device: str = "cpu") -> frontend.Launches:
    """A recording of `normed` for these sizes."""
    x, weight = torch.zeros(shape, device=device), torch.zeros(shape[-1], device=device)
    with frontend.recording() as launches:
        launches.call(normed, x, weight)
    return launches


def _check(function: Any, *shape: int) -> str:
    rng = np.random.default_rng(5)
    x, weight = (rng.standard_normal(s).astype(np.float32) for s in (shape, shape[-1:]))
    found = function(fe.cuda.array(x), fe.cuda.array(weight))
    out, twice = (fe.cuda.to_numpy(each) for each in found)
    wanted = x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-6) * weight
    wrong = max(abs(out - wanted).max(), abs(twice - 2 * wanted).max())
    return "right" if wrong < 1e-5 and out.shape == shape else f"wrong by {wrong}"


if __name__ == "__main__":
    with fe.emulated_gpu("sm_90a"):
        fe.cuda.use_as_allocator()
        one, other = recording(3, 5, 48), recording(2, 7, 60, device="meta")
        alone = one.compile(target="sm_90a")
        print(f"recorded: {_check(alone, 3, 5, 48)}")
        function = one.compile(other, target="sm_90a", general=True)
        print(f"others: {_check(function, 4, 3, 33)}")
        print(f"of blocks: {_check(function, 2, 4, 64)}")

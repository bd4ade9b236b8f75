"""The kernels of examples/triton on an emulated GPU, compared with PyTorch.

`python emulated_examples.py sm_90a flash_attention` prints what was right, and the largest error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch
import triton
from torch.nn import functional as F
from triton_kernels import copy_through_scratch
from triton_launcher import example
from triton_tutorials import HALF, SINGLE, Found, Gpu, allocating, error_of, view

import ferrule as fe


def call(function: Any, *arguments: Any) -> list[torch.Tensor]:
    """The results of a function, as tensors of PyTorch in the memory of the GPU."""
    made = function(*map(view, arguments))
    several = made if isinstance(made, tuple) else () if made is None else (made,)
    found = []
    for each in several:
        found.append(torch.from_numpy(fe.cuda.to_numpy(each)))
    return found


def vector_add(gpu: Gpu) -> Found:
    x, y = (gpu.tensor(torch.randn(3001)) for _ in "xy")
    (out,) = call(example("vector_add").compiled(gpu.arch), x, y)
    yield "vector_add", error_of(out, x + y), 0.0


def fused_softmax(gpu: Gpu) -> Found:
    x, out = gpu.tensor(torch.randn(53, 781)), gpu.empty(53, 781)
    call(example("fused_softmax").compiled(gpu.arch), out, x)
    yield "fused_softmax", error_of(out, torch.softmax(x.double(), 1)), SINGLE


def matmul(gpu: Gpu) -> Found:
    for m, n, k in ((256, 128, 192), (200, 72, 77)):
        a, b = gpu.tensor(torch.randn(m, k).half()), gpu.tensor(torch.randn(k, n).half())
        c = gpu.empty(m, n, dtype=torch.float16)
        call(example("matmul").compiled(gpu.arch), a, b, c)
        yield f"matmul of {m}x{n}x{k}", error_of(c, a.double() @ b.double()), HALF


def layer_norm(gpu: Gpu) -> Found:
    rows, n, groups = 37, 1001, 16
    x, dy = (gpu.tensor(torch.randn(rows, n)) for _ in "xy")
    w, b = (gpu.tensor(torch.randn(n)) for _ in "wb")
    ahead, back, gathered = example("layer_norm").compiled(gpu.arch)
    y, mean, rstd = call(ahead, x, w, b, 1e-5)
    exact = [each.double().requires_grad_() for each in (x, w, b)]
    wanted = F.layer_norm(exact[0], (n,), *exact[1:], 1e-5)
    yield "layer_norm", error_of(y, wanted.detach()), SINGLE
    wanted.backward(dy.double())
    dx, *parts = gpu.empty(rows, n), gpu.empty(groups, n), gpu.empty(groups, n)
    call(back, dx, dy, *parts, x, w, gpu.tensor(mean), gpu.tensor(rstd))
    grads = dx, *call(gathered, *parts)
    worst = max(error_of(a, b.grad) for a, b in zip(grads, exact, strict=True))
    yield "layer_norm, backwards", worst, SINGLE


def flash_attention(gpu: Gpu) -> Found:
    for length, causal in ((256, True), (200, False)):
        q, k, v = (gpu.tensor(torch.randn(1, 2, length, 64).half()) for _ in "qkv")
        attention = example("flash_attention").compiled(gpu.arch, causal=causal)
        out, _ = call(attention, q, k, v, 0.125)
        exact = [each.double() for each in (q, k, v)]
        wanted = F.scaled_dot_product_attention(*exact, is_causal=causal)
        yield f"flash_attention of {length}", error_of(out, wanted), HALF


def dropout(gpu: Gpu) -> Found:
    x = gpu.tensor(torch.rand(5000) + 1)
    function = example("dropout").compiled(gpu.arch)
    (once,), (again,) = call(function, x, 0.5, 123), call(function, x, 0.5, 123)
    kept = once != 0
    assert torch.equal(once, again) and abs(kept.float().mean().item() - 0.5) < 0.03
    yield "dropout", error_of(once, torch.where(kept, 2 * x, 0.0)), 0.0


def descriptors(gpu: Gpu) -> Found:
    """A descriptor that the kernel makes of its arguments, in memory that the call allocates."""
    x, y = gpu.tensor(torch.randn(192, 192).half()), gpu.empty(192, 192, dtype=torch.float16)
    grid = triton.cdiv(192, 64), triton.cdiv(192, 64)
    gpu(copy_through_scratch, grid, x, y, 192, SIZE=64)
    yield "descriptors", error_of(y, x), 0.0


EXAMPLES: Mapping[str, Callable[[Gpu], Found]] = {
    each.__name__: each
    for each in (
        vector_add, fused_softmax, matmul, layer_norm, flash_attention, dropout, descriptors
    )
}  # fmt: skip


def main(arch: str, *names: str) -> None:
    with fe.emulated_gpu(arch), allocating():
        for name, run in EXAMPLES.items():
            if names and name not in names:
                continue
            torch.manual_seed(0)
            for which, error, most in run(Gpu(arch)):
                print(f"{which}: {'right' if error <= most else 'wrong'}, {error:.1e}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

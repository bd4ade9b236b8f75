"""The library of examples/triton_library on an emulated GPU, compared with PyTorch.

`python emulated_rows.py sm_80 bf16 rms_norm swiglu` prints what was right; without names all are
checked. Behind "right" is the largest error, in units in the last place of the dtype.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F
from torch_on_gpu import OnGpu, call, errors, near

import ferrule as fe

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "triton_library"))
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def drawn(*shape: int, dtype: torch.dtype, apart: int = 0, shift: int = 0) -> torch.Tensor:
    """Random numbers in rows that are so many elements apart, from some element on."""
    rows, last = shape[:-1], shape[-1] + apart
    count = last
    for each in rows:
        count *= each
    base = torch.randn(count + shift).to(dtype)
    return base[shift:].view(*rows, last)[..., : shape[-1]]


def blank(like: torch.Tensor) -> torch.Tensor:
    """A compact tensor to be written, as misaligned as another, between numbers that stay."""
    shift = like.storage_offset()
    base = torch.full((shift + like.numel() + 16,), 7.0).to(like.dtype)
    return base[shift : shift + like.numel()].view(like.shape)


def exactly(tensor: torch.Tensor) -> torch.Tensor:
    """The same in float64, to be differentiated."""
    return tensor.double().clone().requires_grad_()


Cases = list[tuple[int, int, int, int]]
"""Rows, the size of a row, elements between rows, elements before the first."""


def edges(*largest: int) -> Cases:
    """Sizes at which another kernel, or the last of a block, begins."""
    every: Cases = [(0, 5, 0, 0), (3, 1, 0, 0), (5, 96, 0, 0), (4, 100, 4, 0), (2, 512, 16, 0)]
    every += [(3, 128, 0, 1), (1, 64, 7, 0)]
    for each in largest:
        every += [(2, each, 0, 0), (1, each - 1, 1, 0)]
    return every


def check_norm(rows: Any, dtype: str, most: int, kind: str) -> bool:
    """`rms_norm` or `layer_norm`, forwards and backwards, at one of its largest sizes."""
    forward, backward = (getattr(rows, f"{kind}{way}")(dtype, most) for way in ("", "_backward"))
    return all(norm_is_right(forward, backward, kind, DTYPES[dtype], *each) for each in edges(most))


def norm_is_right(
    forward: Any, backward: Any, kind: str, dtype: torch.dtype, m: int, n: int, *where: int
) -> bool:
    plain = kind == "rms_norm"
    x = OnGpu.of(drawn(m, n, dtype=dtype, apart=where[0], shift=where[1]))
    grad_y = OnGpu.of(drawn(m, n, dtype=dtype, apart=where[0]))
    ws = [OnGpu.of(drawn(n, dtype=dtype)) for _ in range(1 if plain else 2)]
    y, grad_x = OnGpu.of(blank(x.host)), OnGpu.of(blank(x.host))
    stats = [OnGpu.of(torch.full((m,), 7.0)) for _ in ws]
    parts = [OnGpu.of(torch.full((2, n), 7.0)) for _ in ws]
    call(forward, x, *ws, y, *stats, 1e-5)
    call(backward, grad_y, x, ws[0], *stats, grad_x, *parts)
    ax, aws = exactly(x.host), [exactly(each.host) for each in ws]
    wanted = F.rms_norm(ax, (n,), *aws, eps=1e-5) if plain else F.layer_norm(ax, (n,), *aws, 1e-5)
    wanted.backward(grad_y.host.double())
    sums = [each.back().sum(0) for each in parts]
    right = near(y.back(), wanted.detach()) and near_grad(grad_x.back(), ax.grad)
    right &= all(near_grad(each, a.grad) for each, a in zip(sums, aws, strict=True))
    return right and untouched(y, grad_x)


def near_grad(found: torch.Tensor, wanted: torch.Tensor | None) -> bool:
    """Gradients are differences: their error is that of the largest number around."""
    assert wanted is not None
    if not wanted.numel():
        return True
    scale = wanted.abs().max().clamp(min=1.0).item()
    return near(found / scale, wanted / scale, 16.0 if found.dtype == torch.float32 else 2.0, 1.0)


def untouched(*written: OnGpu) -> bool:
    """Nothing was written beside the tensors."""
    return all(bool((each.around() == 7).all()) for each in written)


def check_swiglu(rows: Any, dtype: str) -> bool:
    forward, backward = rows.swiglu(dtype), rows.swiglu_backward(dtype)
    right = True
    for m, n, apart, shift in edges(1024, 1025, 5000):
        a, b, grad = (
            OnGpu.of(drawn(m, n, dtype=DTYPES[dtype], apart=apart, shift=shift)) for _ in "abg"
        )
        y, grad_a, grad_b = (OnGpu.of(blank(each.host)) for each in (a, a, b))
        call(forward, a, b, y)
        call(backward, grad, a, b, grad_a, grad_b)
        xa, xb = exactly(a.host), exactly(b.host)
        wanted = F.silu(xa) * xb
        wanted.backward(grad.host.double())
        right &= near(y.back(), wanted.detach()) and untouched(y, grad_a, grad_b)
        right &= near_grad(grad_a.back(), xa.grad) and near_grad(grad_b.back(), xb.grad)
    return right


def check_cross_entropy(rows: Any, dtype: str) -> bool:
    forward, backward = rows.cross_entropy(dtype), rows.cross_entropy_backward(dtype)
    right = True
    for m, n, apart, shift in edges(4096, 4097, 9000):
        logits = drawn(m, n, dtype=DTYPES[dtype], apart=apart, shift=shift) * 3
        if n > 64 and m > 1:
            logits[0, : n // 2] = float("-inf")
            logits[1, 3] = 60.0
        target = torch.randint(0, n, (m,))
        if m > 1:
            target[0], target[1] = n - 1, -100
        given, wanted_of = OnGpu.of(logits), exactly(logits)
        loss, logsum = (OnGpu.of(torch.full((m,), 7.0)) for _ in "ls")
        grad, grad_logits = OnGpu.of(torch.randn(m)), OnGpu.of(blank(logits))
        goal = OnGpu.of(target)
        call(forward, given, goal, loss, logsum, -100)
        call(backward, grad, given, goal, logsum, grad_logits, -100)
        wanted = F.cross_entropy(wanted_of, target, reduction="none")
        wanted.backward(grad.host.double())
        right &= near(loss.back(), wanted.detach(), 4.0) and untouched(grad_logits)
        right &= near_grad(grad_logits.back(), wanted_of.grad)
    return right and strange_targets(forward, backward, DTYPES[dtype])


def strange_targets(forward: Any, backward: Any, dtype: torch.dtype) -> bool:
    """What is no class has the loss NaN; a logit of NaN does, too."""
    logits, target = torch.randn(4, 40).to(dtype), torch.tensor([40, -1, 1 << 40, 3])
    logits[3, 30] = float("nan")
    given, goal = OnGpu.of(logits), OnGpu.of(target)
    loss, logsum, grad = (OnGpu.of(torch.ones(4)) for _ in "lsg")
    grad_logits = OnGpu.of(torch.zeros(4, 40, dtype=dtype))
    call(forward, given, goal, loss, logsum, -100)
    call(backward, grad, given, goal, logsum, grad_logits, -100)
    return bool(loss.back().isnan().all() and grad_logits.back().isnan().all())


def check_rope(rows: Any, dtype: str) -> bool:
    forward, backward = rows.rope(dtype), rows.rope_backward(dtype)
    right = True
    for b, s, h, half in ((0, 3, 2, 8), (2, 3, 5, 64), (1, 2, 4, 256), (1, 5, 1, 1), (2, 2, 3, 40)):
        whole = torch.randn(b, s, 2 * h, 2 * half).to(DTYPES[dtype])
        x, angle = OnGpu.of(whole[:, :, :h]), torch.randn(s, half)
        cosines, sines = OnGpu.of(angle.cos()), OnGpu.of(angle.sin())
        y, again = OnGpu.of(blank(x.host)), OnGpu.of(blank(x.host))
        call(forward, x, cosines, sines, y)
        call(backward, y, cosines, sines, again)
        first, second = x.host.double().split(half, dim=-1)
        c, d = (each.host.double()[:, None] for each in (cosines, sines))
        wanted = torch.cat([first * c - second * d, second * c + first * d], dim=-1)
        right &= near(y.back(), wanted, 4.0) and untouched(y, again)
        right &= near_grad(again.back(), x.host.double())
    return right


def refused(rows: Any, dtype: str) -> bool:
    """Rows that are longer than a function's largest, sizes that do not agree, no rows of parts."""
    function, backward = rows.rms_norm(dtype, 4096), rows.rms_norm_backward(dtype, 4096)
    t = DTYPES[dtype]
    long, w, s = torch.zeros(1, 4097, dtype=t), torch.zeros(4097, dtype=t), torch.zeros(1)
    short, v = torch.zeros(1, 8, dtype=t), torch.zeros(8, dtype=t)
    calls: list[tuple[Any, list[Any]]] = [
        (function, [long, w, long, s, 1e-5]),
        (function, [short, w, short, s, 1e-5]),
        (function, [short, v, short.t(), s, 1e-5]),
        (backward, [short, short, v, s, short, torch.zeros(0, 8)]),
    ]
    return all(map(is_refused, calls))


def is_refused(given: tuple[Any, list[Any]]) -> bool:
    function, arguments = given
    try:
        call(function, *(OnGpu.of(e) if isinstance(e, torch.Tensor) else e for e in arguments))
    except ValueError:
        return True
    return False


def checks(rows: Any, dtype: str) -> Iterator[tuple[str, Callable[[], bool]]]:
    for most in rows.BUCKETS:
        for kind in ("rms_norm", "layer_norm"):
            name = f"{kind} {most}"
            yield name, lambda kind=kind, most=most: check_norm(rows, dtype, most, kind)  # type: ignore[misc]
    yield "swiglu", lambda: check_swiglu(rows, dtype)
    yield "cross_entropy", lambda: check_cross_entropy(rows, dtype)
    yield "rope", lambda: check_rope(rows, dtype)
    yield "refused", lambda: refused(rows, dtype)


def main(arch: str, dtype: str, *names: str) -> None:
    torch.manual_seed(0)
    with fe.emulated_gpu(arch):
        import rows

        rows.ARCHS[:] = [arch]
        for name, check in checks(rows, dtype):
            if names and name not in names:
                continue
            errors.clear()
            try:
                said = "right" if check() else "wrong"
                said += f", {max(errors):.2g} ulp" if errors else ""
            except (fe.CudaError, fe.CompileError) as error:
                said = str(error).replace("\n", " ")
            print(f"{name}: {said}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

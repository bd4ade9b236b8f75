"""Triton: layer normalisation along the rows, forward and backward.

    python examples/triton/layer_norm.py

The backward pass is two kernels: each program of the first takes every so-manieth row and sums the
gradients of weight and bias over its rows; the second sums over the programs.
"""

from __future__ import annotations

try:
    import triton
    import triton.language as tl
except ImportError:
    raise SystemExit("this example needs Triton: pip install 'ferrule[triton]'") from None

from vector_add import triton_target

import ferrule as fe
from ferrule.frontends import triton as frontend

PROGRAMS = 256
BLOCK = 2048


@triton.jit
def forward_kernel(x, y, weight, bias, mean, rstd, stride, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    values = tl.load(x + row * stride + column, mask=inside, other=0.0).to(tl.float32)
    centre = tl.sum(values, axis=0) / columns
    apart = tl.where(inside, values - centre, 0.0)
    scale = tl.rsqrt(tl.sum(apart * apart, axis=0) / columns + eps)
    tl.store(mean + row, centre)
    tl.store(rstd + row, scale)
    w = tl.load(weight + column, mask=inside)
    b = tl.load(bias + column, mask=inside)
    tl.store(y + row * stride + column, apart * scale * w + b, mask=inside)


@triton.jit
def backward_kernel(
    dx, dy, parts_w, parts_b, x, weight, mean, rstd, stride, rows, columns, BLOCK: tl.constexpr
):
    program = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    sum_w = tl.zeros((BLOCK,), tl.float32)
    sum_b = tl.zeros((BLOCK,), tl.float32)
    for row in range(program, rows, tl.num_programs(0)):
        at = row * stride + column
        scale = tl.load(rstd + row)
        normal = (tl.load(x + at, mask=inside, other=0.0) - tl.load(mean + row)) * scale
        normal = tl.where(inside, normal, 0.0)
        gradient = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
        weighted = w * gradient
        along = tl.sum(normal * weighted, axis=0) / columns
        common = tl.sum(weighted, axis=0) / columns
        tl.store(dx + at, (weighted - normal * along - common) * scale, mask=inside)
        sum_w += gradient * normal
        sum_b += gradient
    tl.store(parts_w + program * columns + column, sum_w, mask=inside)
    tl.store(parts_b + program * columns + column, sum_b, mask=inside)


@triton.jit
def gather_kernel(parts_w, parts_b, dw, db, parts, columns, ROWS: tl.constexpr, WIDE: tl.constexpr):
    column = tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    sum_w = tl.zeros((ROWS, WIDE), tl.float32)
    sum_b = tl.zeros((ROWS, WIDE), tl.float32)
    for first in range(0, parts, ROWS):
        row = first + tl.arange(0, ROWS)
        inside = (row[:, None] < parts) & (column[None, :] < columns)
        at = row[:, None] * columns + column[None, :]
        sum_w += tl.load(parts_w + at, mask=inside, other=0.0)
        sum_b += tl.load(parts_b + at, mask=inside, other=0.0)
    tl.store(dw + column, tl.sum(sum_w, axis=0), mask=column < columns)
    tl.store(db + column, tl.sum(sum_b, axis=0), mask=column < columns)


def forward(target: str | list[str] = "sm_90a") -> fe.Function:
    """`layer_norm(x, weight, bias, eps) -> (y, mean, rstd)` for float32 matrices."""
    return frontend.compile(
        forward_kernel,
        signature={
            "x": "*fp32[rows, columns]",
            "y": frontend.like("x"),
            "weight": "*fp32[columns]",
            "bias": "*fp32[columns]",
            "mean": frontend.empty(("rows",), "float32"),
            "rstd": frontend.empty(("rows",), "float32"),
            "stride": "x.strides[0]",
            "eps": "fp32",
        },
        constexprs={"BLOCK": BLOCK},
        grid=lambda meta: (meta["x"].shape[0],),
        name="layer_norm",
        num_warps=8,
        specialize="dispatch",
        target=target,
    )


def backward(target: str | list[str] = "sm_90a") -> fe.Function:
    """`layer_norm_backward(dx, dy, parts_w, parts_b, x, weight, mean, rstd)`."""
    return frontend.compile(
        backward_kernel,
        signature={
            "dx": "*fp32[rows, columns]",
            "dy": "*fp32[rows, columns]",
            "parts_w": "*fp32[parts, columns]",
            "parts_b": "*fp32[parts, columns]",
            "x": "*fp32[rows, columns]",
            "weight": "*fp32[columns]",
            "mean": "*fp32[rows]",
            "rstd": "*fp32[rows]",
            "stride": "x.strides[0]",
        },
        constexprs={"BLOCK": BLOCK},
        grid=lambda meta: (meta["parts_w"].shape[0],),
        name="layer_norm_backward",
        num_warps=8,
        specialize="dispatch",
        target=target,
    )


def gather(target: str | list[str] = "sm_90a") -> fe.Function:
    """`layer_norm_gather(parts_w, parts_b) -> (dw, db)`."""
    return frontend.compile(
        gather_kernel,
        signature={
            "parts_w": "*fp32[parts, columns]",
            "parts_b": "*fp32[parts, columns]",
            "dw": frontend.empty(("columns",), "float32"),
            "db": frontend.empty(("columns",), "float32"),
        },
        constexprs={"ROWS": 32, "WIDE": 128},
        grid=lambda meta: (triton.cdiv(meta["columns"], meta["WIDE"]),),
        name="layer_norm_gather",
        specialize="dispatch",
        target=target,
    )


def compiled(target: str | list[str] = "sm_90a") -> tuple[fe.Function, ...]:
    """Forward, and the two steps of backward."""
    return forward(target), backward(target), gather(target)


def check(torch) -> None:
    """Runs on the current GPU, compares with PyTorch."""
    ahead, back, gathered = compiled(triton_target(torch))
    x = torch.randn(1151, 1000, device="cuda", requires_grad=True)
    weight, bias = (torch.randn(1000, device="cuda", requires_grad=True) for _ in range(2))
    wanted = torch.nn.functional.layer_norm(x, (1000,), weight, bias, 1e-5)
    y, mean, rstd = ahead(x.detach(), weight.detach(), bias.detach(), 1e-5)
    torch.testing.assert_close(y, wanted, atol=1e-4, rtol=1e-4)
    dy = torch.randn_like(wanted)
    wanted.backward(dy)
    dx, parts = torch.empty_like(dy), torch.empty(2, PROGRAMS, 1000, device="cuda")
    back(dx, dy, parts[0], parts[1], x.detach(), weight.detach(), mean, rstd)
    dw, db = gathered(parts[0], parts[1])
    for found, value in ((dx, x.grad), (dw, weight.grad), (db, bias.grad)):
        torch.testing.assert_close(found, value, atol=1e-3, rtol=1e-3)


def main() -> None:
    """Compiles for three architectures; runs where there is a GPU."""
    for function in compiled(["sm_80", "sm_90a", "sm_100a"]):
        print(function.signature)
    try:
        import torch
    except ImportError:
        return
    if torch.cuda.is_available():
        check(torch)
        print("equals PyTorch's result")


if __name__ == "__main__":
    main()

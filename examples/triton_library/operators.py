"""Functions of PyTorch of the library `rows`, with gradients; neither Triton nor ferrule is needed.

    import operators
    operators.load("…/rows")                  # the folder of the installed package
    y = operators.rms_norm(x, weight, 1e-6)

The file `librows_torch.so` of the package registers what computes: `torch.ops.rows.rms_norm` is
machine code behind torch's dispatcher, which writes to tensors that it is given. Here are their
sizes, and how a gradient follows from the functions that go backwards.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch.autograd.function import once_differentiable

PROGRAMS = 256
"""How many programs share the rows of a backward pass; each has sums of its own."""

NAMES = "rms_norm layer_norm swiglu cross_entropy rope"


def load(folder: str | Path) -> None:
    """Register the operators of the library in this folder."""
    import tvm_ffi  # noqa: F401  The library needs its functions.

    torch.ops.load_library(str(Path(folder) / "librows_torch.so"))
    describe()


def describe() -> None:
    """Tell `torch.compile` of the operators: they write, and return nothing."""
    for name in NAMES.split():
        for way in ("", "_backward"):
            torch.library.register_fake(f"rows::{name}{way}", lambda *arguments: None)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """RMS normalisation of the last dim."""
    return RmsNorm.apply(_rows(x), weight, eps).view(x.shape)


def layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    """Layer normalisation of the last dim."""
    return LayerNorm.apply(_rows(x), weight, bias, eps).view(x.shape)


def swiglu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`silu(a) * b`."""
    return SwiGlu.apply(_rows(a), _rows(b)).view(a.shape)


def cross_entropy(
    logits: torch.Tensor, target: torch.Tensor, ignore_index: int = -100
) -> torch.Tensor:
    """The loss of each row; 0 where the target is `ignore_index`, NaN where it is no class."""
    loss = CrossEntropy.apply(_rows(logits), target.reshape(-1).contiguous(), ignore_index)
    return loss.view(target.shape)


def rope(x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    """`x`, `[batch, position, head, dim]`, rotated by the angles of each position."""
    return Rope.apply(_side_by_side(x), cosines, sines)


def _rows(x: torch.Tensor) -> torch.Tensor:
    """The rows as a matrix, without a copy where they are evenly apart."""
    return _side_by_side(x.reshape(-1, x.shape[-1]))


def _side_by_side(x: torch.Tensor) -> torch.Tensor:
    """The elements of a row lie side by side; those of a gradient may be one, expanded."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _made(like: torch.Tensor) -> torch.Tensor:
    return like.new_empty(like.shape)


def _of_rows(x: torch.Tensor) -> torch.Tensor:
    return x.new_empty(x.shape[0], dtype=torch.float32)


def _parts(x: torch.Tensor) -> torch.Tensor:
    programs = max(1, min(PROGRAMS, x.shape[0]))
    return x.new_empty(programs, x.shape[1], dtype=torch.float32)


class RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, eps: float) -> Any:
        y, rstd = _made(x), _of_rows(x)
        torch.ops.rows.rms_norm(x, weight, y, rstd, eps)
        ctx.save_for_backward(x, weight, rstd)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Any) -> Any:
        x, weight, rstd = ctx.saved_tensors
        grad_x, parts = _made(x), _parts(x)
        torch.ops.rows.rms_norm_backward(_rows(grad_y), x, weight, rstd, grad_x, parts)
        return grad_x, parts.sum(0).to(weight.dtype), None


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, bias: Any, eps: float) -> Any:
        y, mean, rstd = _made(x), _of_rows(x), _of_rows(x)
        torch.ops.rows.layer_norm(x, weight, bias, y, mean, rstd, eps)
        ctx.save_for_backward(x, weight, mean, rstd)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Any) -> Any:
        x, weight, *statistics = ctx.saved_tensors
        grad_x, parts = _made(x), (_parts(x), _parts(x))
        given = _rows(grad_y), x, weight, *statistics, grad_x, *parts
        torch.ops.rows.layer_norm_backward(*given)
        return grad_x, *(each.sum(0).to(weight.dtype) for each in parts), None


class SwiGlu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        y = _made(a)
        torch.ops.rows.swiglu(a, b, y)
        ctx.save_for_backward(a, b)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Any) -> Any:
        a, b = ctx.saved_tensors
        grads = _made(a), _made(b)
        torch.ops.rows.swiglu_backward(_rows(grad_y), a, b, *grads)
        return grads


class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Any, target: Any, ignore_index: int) -> Any:
        loss, logsum = _of_rows(logits), _of_rows(logits)
        torch.ops.rows.cross_entropy(logits, target, loss, logsum, ignore_index)
        ctx.save_for_backward(logits, target, logsum)
        ctx.ignore_index = ignore_index
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Any) -> Any:
        grad_logits = _made(ctx.saved_tensors[0])
        given = grad_loss.contiguous(), *ctx.saved_tensors, grad_logits, ctx.ignore_index
        torch.ops.rows.cross_entropy_backward(*given)
        return grad_logits, None, None


class Rope(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, cosines: Any, sines: Any) -> Any:
        y = _made(x)
        torch.ops.rows.rope(x, cosines, sines, y)
        ctx.save_for_backward(cosines, sines)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Any) -> Any:
        grad_x = _made(grad_y)
        torch.ops.rows.rope_backward(_side_by_side(grad_y), *ctx.saved_tensors, grad_x)
        return grad_x, None, None

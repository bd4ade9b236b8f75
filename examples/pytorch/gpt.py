"""A small GPT whose RMSNorm, SwiGLU and rotary embedding are operators of PyTorch with gradients.

    python examples/pytorch/gpt.py [--steps 200] [--picture losses.svg]

Each operator is two compiled functions, forward and backward. The model trains under
`torch.compile(fullgraph=True)`, beside the same model of torch's own operations with the same
weights and data, and the two loss curves are compared. The data is a text of the letters of a
random walk, so that there is something to learn.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import ferrule as fe

OPTIONS = "--target cpu"
EPS = 1e-6


@fe.jit
def rms_norm(x: fe.Tensor, weight: fe.Tensor, y: fe.Tensor):
    for i in range(x.shape[0]):
        squares = fe.Float32(0)
        for j in range(x.shape[1]):
            squares += x[i, j] * x[i, j]
        scale = fe.math.rsqrt(squares / fe.Float32(x.shape[1]) + EPS)
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * scale * weight[j]


@fe.jit
def rms_norm_backward(
    grad: fe.Tensor, x: fe.Tensor, weight: fe.Tensor, grad_x: fe.Tensor, grad_weight: fe.Tensor
):
    for j in range(x.shape[1]):
        grad_weight[j] = fe.Float32(0)
    for i in range(x.shape[0]):
        squares = fe.Float32(0)
        along = fe.Float32(0)
        for j in range(x.shape[1]):
            squares += x[i, j] * x[i, j]
            along += grad[i, j] * weight[j] * x[i, j]
        count = fe.Float32(x.shape[1])
        scale = fe.math.rsqrt(squares / count + EPS)
        slope = along * scale * scale * scale / count
        for j in range(x.shape[1]):
            grad_x[i, j] = scale * grad[i, j] * weight[j] - x[i, j] * slope
            grad_weight[j] += grad[i, j] * x[i, j] * scale


@fe.jit
def swiglu(gate: fe.Tensor, up: fe.Tensor, y: fe.Tensor):
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            g = gate[i, j]
            y[i, j] = g / (1.0 + fe.math.exp(-g)) * up[i, j]


@fe.jit
def swiglu_backward(
    grad: fe.Tensor, gate: fe.Tensor, up: fe.Tensor, grad_gate: fe.Tensor, grad_up: fe.Tensor
):
    for i in range(grad.shape[0]):
        for j in range(grad.shape[1]):
            g = gate[i, j]
            open = 1.0 / (1.0 + fe.math.exp(-g))
            grad_gate[i, j] = grad[i, j] * up[i, j] * open * (1.0 + g * (1.0 - open))
            grad_up[i, j] = grad[i, j] * g * open


@fe.jit
def rotary(x: fe.Tensor, cos: fe.Tensor, sin: fe.Tensor, y: fe.Tensor):
    """Rows are (batch, head, position), the position fastest; pairs are (j, j + half)."""
    half = cos.shape[1]
    for i in range(x.shape[0]):
        t = i % cos.shape[0]
        for j in range(half):
            a, b = x[i, j], x[i, half + j]
            y[i, j] = a * cos[t, j] - b * sin[t, j]
            y[i, half + j] = b * cos[t, j] + a * sin[t, j]


@fe.jit
def rotary_backward(grad: fe.Tensor, cos: fe.Tensor, sin: fe.Tensor, grad_x: fe.Tensor):
    half = cos.shape[1]
    for i in range(grad.shape[0]):
        t = i % cos.shape[0]
        for j in range(half):
            a, b = grad[i, j], grad[i, half + j]
            grad_x[i, j] = a * cos[t, j] + b * sin[t, j]
            grad_x[i, half + j] = b * cos[t, j] - a * sin[t, j]


@cache
def register() -> None:
    """Make the three operators."""
    m, n, t, h = (fe.sym_int(symbol=name) for name in ("m", "n", "t", "h"))

    def matrix(rows: Any, columns: Any) -> Any:
        return fe.make_fake_compact_tensor(fe.Float32, (rows, columns), stride_order=(1, 0))

    x, row = matrix(m, n), fe.make_fake_compact_tensor(fe.Float32, (n,))
    heads, angles = matrix(m, 2 * h), matrix(t, h)
    fe.torch_op(
        fe.compile(rms_norm, x, row, x, options=OPTIONS),
        "gpt::rms_norm",
        out=["y"],
        backward=fe.compile(rms_norm_backward, x, x, row, x, row, options=OPTIONS),
        save=["x", "weight"],
    )
    fe.torch_op(
        fe.compile(swiglu, x, x, x, options=OPTIONS),
        "gpt::swiglu",
        out=["y"],
        backward=fe.compile(swiglu_backward, x, x, x, x, x, options=OPTIONS),
        save=["gate", "up"],
    )
    fe.torch_op(
        fe.compile(rotary, heads, angles, angles, heads, options=OPTIONS),
        "gpt::rotary",
        out=["y"],
        backward=fe.compile(rotary_backward, heads, angles, angles, heads, options=OPTIONS),
        save=["cos", "sin"],
    )


# ---- the model, of both kinds of operations ----


class Ours:
    """The operators that ferrule compiled; they take matrices."""

    @staticmethod
    def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
        return torch.ops.gpt.rms_norm(x.reshape(-1, x.shape[-1]), weight).view(x.shape)

    @staticmethod
    def swiglu(gate: Tensor, up: Tensor) -> Tensor:
        flat = [each.reshape(-1, each.shape[-1]) for each in (gate, up)]
        return torch.ops.gpt.swiglu(*flat).view(gate.shape)

    @staticmethod
    def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        return torch.ops.gpt.rotary(x.reshape(-1, x.shape[-1]), cos, sin).view(x.shape)


class Plain:
    """The same of torch's operations."""

    @staticmethod
    def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
        return nn.functional.rms_norm(x, (x.shape[-1],), weight, EPS)

    @staticmethod
    def swiglu(gate: Tensor, up: Tensor) -> Tensor:
        return nn.functional.silu(gate) * up

    @staticmethod
    def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Block(nn.Module):
    """Attention and a gated network, each behind a norm."""

    def __init__(self, ops: Any, width: int, heads: int) -> None:
        super().__init__()
        self.ops, self.heads = ops, heads
        self.norms = nn.ParameterList([torch.ones(width) for _ in range(2)])
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate, self.up = (nn.Linear(width, 2 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.ops.rms_norm(x, self.norms[0]))
        q, k, v = qkv.view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k = (self.ops.rotary(each, cos, sin) for each in (q, k))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        inner = self.ops.rms_norm(x, self.norms[1])
        return x + self.down(self.ops.swiglu(self.gate(inner), self.up(inner)))


class Gpt(nn.Module):
    """Two blocks between an embedding and its transpose."""

    def __init__(self, ops: Any, letters: int = 16, width: int = 32, heads: int = 2) -> None:
        super().__init__()
        self.ops = ops
        self.letters = nn.Embedding(letters, width)
        self.blocks = nn.ModuleList(Block(ops, width, heads) for _ in range(2))
        self.norm = nn.Parameter(torch.ones(width))
        self.half = width // heads // 2

    def forward(self, text: Tensor, wanted: Tensor) -> Tensor:
        """The mean loss of the letters that come next."""
        steps = torch.arange(text.shape[1], dtype=torch.float32)
        angles = steps[:, None] * 0.1 ** torch.arange(self.half, dtype=torch.float32)
        cos, sin = angles.cos(), angles.sin()
        x = self.letters(text)
        for block in self.blocks:
            x = block(x, cos, sin)
        logits = self.ops.rms_norm(x, self.norm) @ self.letters.weight.T
        return nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())


def train(ops: Any, steps: int, backend: str = "aot_eager") -> list[float]:
    """The loss at each step, from the same weights and on the same data each time."""
    register()
    torch.manual_seed(0)
    model = Gpt(ops)
    compiled = torch.compile(model, fullgraph=True, backend=backend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(steps):
        walk = torch.randint(-1, 2, (8, 33)).cumsum(1) % 16
        loss = compiled(walk[:, :-1], walk[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# ---- the picture ----


def picture(curves: Sequence[Sequence[float]], names: Sequence[str]) -> str:
    """The curves as SVG, one over the other."""
    width, height, top = 640, 320, max(map(max, curves)) * 1.05
    colours, dashes = ("#2b6cb0", "#dd6b20"), ("none", "6 6")
    body = [f'<line x1="40" y1="{height - 30}" x2="{width}" y2="{height - 30}" stroke="#888"/>']
    for k, (curve, name) in enumerate(zip(curves, names, strict=True)):
        points = " ".join(
            f"{40 + i * (width - 50) / max(1, len(curve) - 1):.1f},"
            f"{(height - 30) * (1 - loss / top):.1f}"
            for i, loss in enumerate(curve)
        )
        style = f'fill="none" stroke="{colours[k]}" stroke-width="2" stroke-dasharray="{dashes[k]}"'
        body.append(f'<polyline points="{points}" {style}/>')
        body.append(f'<text x="{width - 220}" y="{24 + 20 * k}" fill="{colours[k]}">{name}</text>')
    body.append(f'<text x="40" y="{height - 8}" fill="#888">step 0 to {len(curves[0])}</text>')
    body.append(f'<text x="4" y="14" fill="#888">loss {top:.1f}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
    return "\n".join([f'{head} font-family="sans-serif" font-size="13">', *body, "</svg>\n"])


def main(argv: Sequence[str] | None = None) -> None:
    """Train both, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args(argv)
    ours, plain = train(Ours, given.steps), train(Plain, given.steps)
    apart = max(abs(a - b) for a, b in zip(ours, plain, strict=True))
    print(f"loss after {given.steps} steps: {ours[-1]:.4f}, of torch's operations {plain[-1]:.4f}")
    print(f"the curve equals torch's to {apart:.1e}")
    if given.picture is not None:
        text = picture((plain, ours), ("torch's operations", "ferrule's operators"))
        given.picture.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

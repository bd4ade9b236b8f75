# %% [markdown]
# # RMSNorm in a PyTorch model
#
# Two compiled functions, forward and backward, become an operator of PyTorch: with gradients, and
# one node of the graph under `torch.compile`. A small model learns with it.
#
# **Run it**: `python docs/gallery/rmsnorm_pytorch.py`; it needs PyTorch.

# %%
import plots
import torch

import ferrule as fe

EPS = 1e-6


@fe.jit
def rms_norm(x: fe.Tensor, weight: fe.Tensor, y: fe.Tensor):
    for i in range(x.shape[0]):
        squares = fe.Float32(0)
        for j in fe.range(x.shape[1], reassociate=True):
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
        squares, along = fe.Float32(0), fe.Float32(0)
        for j in range(x.shape[1]):
            squares += x[i, j] * x[i, j]
            along += grad[i, j] * weight[j] * x[i, j]
        count = fe.Float32(x.shape[1])
        scale = fe.math.rsqrt(squares / count + EPS)
        slope = along * scale * scale * scale / count
        for j in range(x.shape[1]):
            grad_x[i, j] = scale * grad[i, j] * weight[j] - x[i, j] * slope
            grad_weight[j] += grad[i, j] * x[i, j] * scale


m, n = fe.sym_int(), fe.sym_int(min=1)
rows, row = fe.row_major((m, n), fe.Float32), fe.row_major((n,), fe.Float32)
forward = fe.compile(rms_norm, rows, row, rows, options="--target cpu")
backward = fe.compile(rms_norm_backward, rows, rows, row, rows, row, options="--target cpu")
forward

# %% [markdown]
# ## An operator
#
# `out` names what the operator allocates and returns; `save` what the backward function needs of
# the call.

# %%
norm = fe.torch_op(forward, "gallery::rms_norm", out=["y"], backward=backward, save=["x", "weight"])
x = torch.randn(4, 32, requires_grad=True)
weight = torch.ones(32, requires_grad=True)
wanted = torch.nn.functional.rms_norm(x, (32,), weight, EPS)
print(torch.allclose(norm(x, weight), wanted, atol=1e-6))

ours = torch.autograd.grad(norm(x, weight).square().sum(), (x, weight))
theirs = torch.autograd.grad(wanted.square().sum(), (x, weight))
print([torch.allclose(a, b, atol=1e-4) for a, b in zip(ours, theirs, strict=True)])

# %% [markdown]
# ## A model that learns
#
# The same small model twice, with the same weights and data: with PyTorch's own norm and with ours.

# %%
torch.manual_seed(0)


def losses(norm, steps=40):
    generator = torch.Generator().manual_seed(1)
    first, last = (
        torch.nn.Parameter(torch.randn(32, 32, generator=generator) / 6) for _ in range(2)
    )
    weight = torch.nn.Parameter(torch.ones(32))
    x = torch.randn(64, 32, generator=generator)
    y = torch.tanh(x @ torch.randn(32, 32, generator=generator) / 4)
    found = []
    for _ in range(steps):
        loss = (norm(x @ first, weight).relu() @ last - y).square().mean()
        loss.backward()
        for each in (first, last, weight):
            with torch.no_grad():
                each -= 0.5 * each.grad
            each.grad = None
        found.append(loss.item())
    return found


def draw(axes):
    own = losses(lambda x, weight: torch.nn.functional.rms_norm(x, (32,), weight, EPS))
    axes.plot(own, color=plots.COLOURS[0], linewidth=5, alpha=0.4, label="PyTorch's norm")
    axes.plot(losses(norm), color=plots.COLOURS[1], label="ferrule's operator")
    axes.set(xlabel="step", ylabel="loss")
    axes.legend(frameon=False)


plots.picture(draw, "the loss of the same model with two norms", (7, 3))

# %% [markdown]
# ## What a call costs

# %%
x, weight, y = torch.randn(64, 512), torch.ones(512), torch.empty(64, 512)
with torch.no_grad():
    samples = plots.measured(
        {
            "the function": lambda: forward(x, weight, y),
            "the operator": lambda: norm(x, weight),
            "PyTorch's": lambda: torch.nn.functional.rms_norm(x, (512,), weight, EPS),
        },
        rounds=9,
    )
plots.times(samples, "RMSNorm of 64 × 512 floats")

# %% [markdown]
# **Next**: [with PyTorch](../pytorch.md), `examples/pytorch/gpt.py`.

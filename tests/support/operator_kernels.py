"""Kernels that the tests make operators of, compiled once for a run."""

from __future__ import annotations

from functools import cache
from itertools import count
from typing import Any

import ferrule as fe

CPU = "--target cpu"
M, N = fe.sym_int(symbol="m"), fe.sym_int(symbol="n")
ROWS = fe.make_fake_compact_tensor(fe.Float32, (M, N), stride_order=(1, 0))
VECTOR = fe.make_fake_compact_tensor(fe.Float32, (N,))

_NUMBERS = count()


def fresh_name() -> str:
    """A name of an operator that no other test has."""
    return f"ferrule_tests::op{next(_NUMBERS)}"


@fe.jit
def scaled(x: fe.Tensor, y: fe.Tensor, times: fe.Float32):
    for i in range(x.shape[0]):
        y[i] = x[i] * times


@fe.jit
def rms_norm(x: fe.Tensor, weight: fe.Tensor, y: fe.Tensor, eps: fe.Float32):
    for i in range(x.shape[0]):
        squares = fe.Float32(0)
        for j in range(x.shape[1]):
            squares += x[i, j] * x[i, j]
        scale = fe.math.rsqrt(squares / fe.Float32(x.shape[1]) + eps)
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * scale * weight[j]


@fe.jit
def rms_norm_backward(
    grad: fe.Tensor,
    x: fe.Tensor,
    weight: fe.Tensor,
    eps: fe.Float32,
    grad_x: fe.Tensor,
    grad_weight: fe.Tensor,
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
        scale = fe.math.rsqrt(squares / count + eps)
        for j in range(x.shape[1]):
            grad_x[i, j] = (
                scale * grad[i, j] * weight[j] - x[i, j] * scale * scale * scale * along / count
            )
            grad_weight[j] += grad[i, j] * x[i, j] * scale


@fe.jit
def doubled(x: fe.Tensor):
    y = fe.empty_like(x)
    for i in range(x.shape[0]):
        y[i] = x[i] * 2.0
    return y


@fe.jit
def doubled_and_sum(x: fe.Tensor):
    y = fe.empty_like(x)
    total = fe.Float32(0)
    for i in range(x.shape[0]):
        y[i] = x[i] * 2.0
        total += x[i]
    return y, total


@fe.jit
def options(
    x: fe.Tensor,
    bias: fe.Tensor | None,
    y: fe.Tensor,
    times: fe.Int32 = 3,
    *,
    negate: fe.Boolean = False,
):
    for i in range(x.shape[0]):
        y[i] = x[i] * fe.Float32(times)
        if negate:
            y[i] = -y[i]
    if bias is not None:
        for i in range(x.shape[0]):
            y[i] = y[i] + bias[i]


@fe.jit
def added(both: tuple, y: fe.Tensor):
    for i in range(y.shape[0]):
        y[i] = both[0][i] + both[1][i]


@fe.jit
def twice(x: fe.Tensor, y: fe.Tensor):
    for i in range(x.shape[0]):
        y[i] = x[i] + x[i]


@fe.jit
def refuses(x: fe.Tensor, y: fe.Tensor):
    if x.shape[0] == 3:
        fe.raise_error("IndexError", "three are too many")
    y[:] = x[:]


@cache
def compiled(name: str) -> Any:
    """The compiled function of this name."""
    free = fe.make_fake_compact_tensor(fe.sym_dtype("float32", "float64", "int32"), (N,))
    examples = {
        "scaled": (scaled, VECTOR, VECTOR, fe.Float32(1)),
        "rms_norm": (rms_norm, ROWS, VECTOR, ROWS, fe.Float32(1)),
        "rms_norm_backward": (
            rms_norm_backward, ROWS, ROWS, VECTOR, fe.Float32(1), ROWS, VECTOR
        ),
        "doubled": (doubled, VECTOR),
        "doubled_and_sum": (doubled_and_sum, VECTOR),
        "options": (options, VECTOR, VECTOR, VECTOR, fe.Int32(3)),
        "added": (added, (VECTOR, VECTOR), VECTOR),
        "twice": (twice, free, free),
        "refuses": (refuses, VECTOR, VECTOR),
    }  # fmt: skip
    function, *arguments = examples[name]
    return fe.compile(function, *arguments, options=CPU)


@cache
def bounded() -> fe.Function:
    """`scaled` with a weight, for sizes that are even, within bounds, and in proportion."""

    @fe.jit
    def weighted(x: fe.Tensor, w: fe.Tensor, y: fe.Tensor, k: fe.Int32):
        for i in range(x.shape[0]):
            y[i] = x[i] * w[0] * k

    n = fe.sym_int(symbol="n", min=2, max=8)
    m = fe.sym_int(symbol="m")
    x, w = (fe.make_fake_compact_tensor(fe.Float32, (size,)) for size in (n, m))
    k = fe.specs.Scalar("k", "int32").value
    requires = [fe.specs.require(n < m * k, "w is long"), ~fe.specs.equal(n % 2, 1)]
    return fe.compile(weighted, x, w, x, fe.Int32, options=CPU, requires=requires)

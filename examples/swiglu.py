"""SwiGLU, silu(gate) * up, on the halves of one float16 matrix.

    python examples/swiglu.py

A projection gives gate and up side by side, as rows of 2 * d elements.  The arithmetic is in
float32, elements are converted where they are loaded and stored.  With PyTorch installed the same
kernel is also compiled for bfloat16, which NumPy does not have.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

import ferrule as fe

THREADS = 256


@fe.jit
def silu(x):
    """x * sigmoid(x), of a float32."""
    return x / (1.0 + fe.math.exp(-x))


@fe.kernel
def device_swiglu(x: fe.Tensor, y: fe.Tensor):
    block, token, _ = fe.arch.block_idx()
    tid, _, _ = fe.arch.thread_idx()
    d = y.shape[1]
    i = block * THREADS + tid
    if i < d:
        gate = x[token, i].to(fe.Float32)
        up = x[token, d + i].to(fe.Float32)
        y[token, i] = (silu(gate) * up).to(y.element_type)


@fe.jit
def swiglu(x: fe.Tensor, y: fe.Tensor):
    """y[:, i] = silu(x[:, i]) * x[:, d + i], where y has d columns and x twice as many."""
    tokens, d = y.shape
    device_swiglu(x, y).launch(grid=(fe.ceil_div(d, THREADS), tokens), block=(THREADS,))


def compiled(options: str = "--target cpu", dtype: Any = fe.Float16) -> fe.Function:
    """The function for any number of tokens and any width; a call checks that x is 2 * d wide."""
    tokens, d = fe.sym_int(), fe.sym_int()
    x = fe.runtime.make_fake_compact_tensor(dtype, (tokens, 2 * d), stride_order=(1, 0))
    y = fe.runtime.make_fake_compact_tensor(dtype, (tokens, d), stride_order=(1, 0))
    return fe.compile(swiglu, x, y, options=options)


def reference(x: np.ndarray) -> np.ndarray:
    """The same in float32."""
    gate, up = np.split(x.astype(np.float32), 2, axis=1)
    return gate / (1 + np.exp(-gate)) * up


def compare_bfloat16(x: np.ndarray) -> None:
    """The kernel for bfloat16 against PyTorch's own expressions."""
    import torch

    wide = torch.from_numpy(x.astype(np.float32)).bfloat16()
    y = torch.empty(wide.shape[0], wide.shape[1] // 2, dtype=torch.bfloat16)
    compiled(dtype=fe.BFloat16)(wide, y)
    gate, up = wide.float().chunk(2, dim=1)
    expected = (torch.nn.functional.silu(gate) * up).bfloat16()
    # Half a unit of bfloat16's last place on each side.
    torch.testing.assert_close(y, expected, rtol=2**-7, atol=1e-6)
    print("bfloat16: equals PyTorch's result")


def main() -> None:
    """Compiles, runs, compares."""
    function = compiled()
    print(function.signature)
    x = np.random.default_rng(0).standard_normal((37, 2 * 1000)).astype(np.float16)
    y = np.empty((37, 1000), np.float16)
    function(x, y)
    # A unit in the last place of float16, and its smallest numbers.
    np.testing.assert_allclose(y, reference(x), rtol=2**-10, atol=2**-24)
    print("float16: equals NumPy's result")
    if importlib.util.find_spec("torch") is not None:
        compare_bfloat16(x)
    try:
        function(x[:, :-1].copy(), y)
    except ValueError as error:
        print(f"a refused call: ValueError: {error}")


if __name__ == "__main__":
    main()

"""Rotary position embedding, in place: each pair of a head's elements is turned by an angle.

    python examples/rotary.py

Element i of the first half of a head and element i of the second half are a pair; its angle is the
token's position times a frequency, and comes as tables of cosines and sines, a row a position.
One block a head of a token, one thread a pair.  The size of a head is known when compiling.
"""

from __future__ import annotations

import numpy as np

import ferrule as fe

HEAD = 128


@fe.kernel
def device_rotary(q: fe.Tensor, positions: fe.Tensor, cos: fe.Tensor, sin: fe.Tensor):
    head, token, _ = fe.arch.block_idx()
    i, _, _ = fe.arch.thread_idx()
    half = cos.shape[1]
    position = positions[token]
    c, s = cos[position, i], sin[position, i]
    first, second = q[token, head, i], q[token, head, half + i]
    q[token, head, i] = first * c - second * s
    q[token, head, half + i] = second * c + first * s


@fe.jit
def rotary(q: fe.Tensor, positions: fe.Tensor, cos: fe.Tensor, sin: fe.Tensor):
    """Turns q (tokens, heads, head size) by the angles of each token's position."""
    tokens, heads, _ = q.shape
    half = cos.shape[1]
    device_rotary(q, positions, cos, sin).launch(grid=(heads, tokens, 1), block=(half, 1, 1))


def compiled(options: str = "--target cpu") -> fe.Function:
    """The function for float32 and any number of tokens, heads and positions."""
    tokens, heads, rows = fe.sym_int(), fe.sym_int(), fe.sym_int()
    q = fe.runtime.make_fake_compact_tensor(
        fe.Float32, (tokens, heads, HEAD), stride_order=(2, 1, 0)
    )
    positions = fe.runtime.make_fake_compact_tensor(fe.Int32, (tokens,))
    table = fe.runtime.make_fake_compact_tensor(fe.Float32, (rows, HEAD // 2), stride_order=(1, 0))
    return fe.compile(rotary, q, positions, table, table, options=options)


def tables(rows: int, base: float = 10_000.0) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines of position * base ** (-2 i / head size), each (rows, head size / 2)."""
    frequencies = base ** (-np.arange(0, HEAD, 2) / HEAD)
    angles = np.outer(np.arange(rows), frequencies)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def reference(q: np.ndarray, positions: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    """The same in NumPy."""
    c, s = cos[positions][:, None, :], sin[positions][:, None, :]
    first, second = np.split(q, 2, axis=2)
    return np.concatenate([first * c - second * s, second * c + first * s], axis=2)


def main() -> None:
    """Compiles, runs, compares."""
    function = compiled()
    print(function.signature)
    rng = np.random.default_rng(0)
    q = rng.standard_normal((19, 7, HEAD), dtype=np.float32)
    positions = rng.integers(0, 4096, 19, dtype=np.int32)
    cos, sin = tables(4096)
    expected = reference(q, positions, cos, sin)
    function(q, positions, cos, sin)
    # A product may be rounded or not before the other one is added.
    np.testing.assert_allclose(q, expected, rtol=1e-5, atol=1e-6)
    print(f"equals NumPy's result (max difference {abs(q - expected).max():.1e})")


if __name__ == "__main__":
    main()

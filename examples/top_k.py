"""The K largest elements of each row and where they are, one block a row.

    python examples/top_k.py

Each thread keeps the K best of its part of the row in registers, in order.  Then K times the block
finds the best of all threads' first ones, and the thread that had it moves on to its next.  An
element and its place are one integer: the bits of a float, with the sign's meaning turned round,
are in the order of the floats.  Of equal elements the first comes first; a NaN counts as larger
than all numbers.
"""

from __future__ import annotations

import numpy as np

import ferrule as fe
from ferrule import arch

THREADS = 128
K = 8


@fe.jit
def key_of(value, place):
    """An Uint64 that is larger for a larger value, and at equal ones for a smaller place."""
    bits = fe.make_fragment((1,), fe.Float32)
    bits[0] = value + 0.0  # -0.0 is as large as 0.0
    pattern = fe.recast_tensor(bits, fe.Uint32)[0]
    ordered = ~pattern if pattern >> 31 != 0 else pattern | 0x80000000
    if fe.math.isnan(value):
        ordered = fe.Uint32(0xFFFFFFFF)
    return (fe.Uint64(ordered) << 32) | fe.Uint64(~fe.Uint32(place))


@fe.kernel
def device_top_k(x: fe.Tensor, values: fe.Tensor, places: fe.Tensor):
    tid, _, _ = arch.thread_idx()
    row, _, _ = arch.block_idx()
    best = fe.make_fragment((K,), fe.Uint64)
    best.fill(0)  # less than the key of any element
    for j in range(tid, x.shape[1], THREADS):
        key = key_of(x[row, j], j)
        if key > best[K - 1]:
            for slot in fe.range_constexpr(K):
                larger, key = max(best[slot], key), min(best[slot], key)
                best[slot] = larger
    for rank in range(K):
        winner = arch.block_reduction(best[0], max)
        if best[0] == winner:
            for slot in fe.range_constexpr(K - 1):
                best[slot] = best[slot + 1]
            best[K - 1] = 0
        if tid == 0:
            place = fe.Int32(~fe.Uint32(winner & 0xFFFFFFFF))
            values[row, rank] = x[row, place]
            places[row, rank] = place


@fe.jit
def top_k(x: fe.Tensor, values: fe.Tensor, places: fe.Tensor):
    """The K largest of each row of x, the largest first, and their places in it."""
    if x.shape[1] < K:
        raise ValueError(f"top_k: rows of at least {K} elements are needed, but got {x.shape[1]}")
    device_top_k(x, values, places).launch(grid=(x.shape[0],), block=(THREADS,))


def compiled(options: str = "--target cpu") -> fe.Function:
    """The function for float32 matrices of any size."""
    m, n = fe.sym_int(), fe.sym_int()
    x = fe.make_fake_compact_tensor(fe.Float32, (m, n), stride_order=(1, 0))
    values = fe.make_fake_compact_tensor(fe.Float32, (m, K), stride_order=(1, 0))
    places = fe.make_fake_compact_tensor(fe.Int32, (m, K), stride_order=(1, 0))
    return fe.compile(top_k, x, values, places, options=options)


def reference(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same in NumPy."""
    places = np.argsort(-x, axis=1, kind="stable")[:, :K]
    return np.take_along_axis(x, places, axis=1), places


def main() -> None:
    """Compiles, runs, compares."""
    function = compiled()
    print(function.signature)
    x = np.random.default_rng(0).standard_normal((57, 1027), dtype=np.float32)
    x = x.round(1)  # many are equal
    values, places = np.empty((57, K), np.float32), np.empty((57, K), np.int32)
    function(x, values, places)
    expected_values, expected_places = reference(x)
    np.testing.assert_array_equal(values, expected_values)
    np.testing.assert_array_equal(places, expected_places)
    print("equals NumPy's result, bit for bit")


if __name__ == "__main__":
    main()

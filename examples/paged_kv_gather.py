"""Gathers the keys (or values) of sequences from a paged cache into one padded tensor.

    python examples/paged_kv_gather.py

The cache holds pages of PAGE tokens; row b of the page table names the pages of sequence b, in
order.  Tokens past the length of a sequence become zeros, and their entries of the table are not
read.  One block copies a piece of a token's heads, one thread an element.
"""

from __future__ import annotations

import numpy as np

import ferrule as fe

PAGE = 16
THREADS = 256


@fe.kernel
def device_gather(cache: fe.Tensor, table: fe.Tensor, lengths: fe.Tensor, out: fe.Tensor):
    piece, token, sequence = fe.arch.block_idx()
    tid, _, _ = fe.arch.thread_idx()
    i = piece * THREADS + tid
    if i < out.shape[2]:
        if token < lengths[sequence]:
            page = table[sequence, token // PAGE]
            out[sequence, token, i] = cache[page, token % PAGE, i]
        else:
            out[sequence, token, i] = 0.0


@fe.jit
def gather(cache: fe.Tensor, table: fe.Tensor, lengths: fe.Tensor, out: fe.Tensor):
    """out[b, t] = cache[table[b, t // PAGE], t % PAGE] for t < lengths[b], else 0."""
    sequences, tokens, width = out.shape
    device_gather(cache, table, lengths, out).launch(
        grid=(fe.ceil_div(width, THREADS), tokens, sequences), block=(THREADS, 1, 1)
    )


def compiled(options: str = "--target cpu") -> fe.Function:
    """The function for float32 and any sizes; the table must cover the longest output."""
    pages, sequences, tokens, width = (fe.sym_int() for _ in range(4))
    cache = fe.runtime.make_fake_compact_tensor(
        fe.Float32, (pages, PAGE, width), stride_order=(2, 1, 0)
    )
    table = fe.runtime.make_fake_compact_tensor(
        fe.Int32, (sequences, fe.ceil_div(tokens, PAGE)), stride_order=(1, 0)
    )
    lengths = fe.runtime.make_fake_compact_tensor(fe.Int32, (sequences,))
    out = fe.runtime.make_fake_compact_tensor(
        fe.Float32, (sequences, tokens, width), stride_order=(2, 1, 0)
    )
    return fe.compile(gather, cache, table, lengths, out, options=options)


def reference(cache: np.ndarray, table: np.ndarray, lengths: np.ndarray, tokens: int) -> np.ndarray:
    """The same in NumPy; reads the table whole, so all its entries must be pages."""
    token = np.arange(tokens)
    gathered = cache[table[:, token // PAGE], token % PAGE]
    return np.where((token < lengths[:, None])[:, :, None], gathered, np.float32(0))


def main() -> None:
    """Compiles, runs, compares."""
    function = compiled()
    print(function.signature)
    rng = np.random.default_rng(0)
    cache = rng.standard_normal((64, PAGE, 8 * 64), dtype=np.float32)
    table = rng.permutation(60).reshape(5, 12).astype(np.int32)
    lengths = np.array([185, 1, 0, 16, 97], np.int32)
    out = np.full((5, 185, 8 * 64), np.nan, np.float32)
    function(cache, table, lengths, out)
    np.testing.assert_array_equal(out, reference(cache, table, lengths, 185))
    print("equals NumPy's result, bit for bit")


if __name__ == "__main__":
    main()

"""Triton: attention forward in one pass over keys and values, with a running maximum.

    python examples/triton/flash_attention.py

For each tile of queries it keeps the largest score so far and the sum of the exponentials, and
scales what it has whenever the maximum grows; scores are in powers of two.
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


@triton.jit
def attention_kernel(
    q, k, v, out, logsum, scale,
    stride_qb, stride_qh, stride_qn, stride_kb, stride_kh, stride_kn,
    stride_vb, stride_vh, stride_vn, stride_ob, stride_oh, stride_on,
    heads, length,
    CAUSAL: tl.constexpr, WIDE: tl.constexpr, TILE_Q: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    tile, both = tl.program_id(0), tl.program_id(1)
    batch, head = both // heads, both % heads
    row = tile * TILE_Q + tl.arange(0, TILE_Q)
    step = tl.arange(0, TILE_K)
    wide = tl.arange(0, WIDE)
    q_at = q + batch * stride_qb + head * stride_qh + row[:, None] * stride_qn + wide[None, :]
    k_at = k + batch * stride_kb + head * stride_kh + step[None, :] * stride_kn + wide[:, None]
    v_at = v + batch * stride_vb + head * stride_vh + step[:, None] * stride_vn + wide[None, :]
    queries = tl.load(q_at, mask=row[:, None] < length, other=0.0)
    most = tl.full((TILE_Q,), -float("inf"), tl.float32)
    total = tl.zeros((TILE_Q,), tl.float32)
    found = tl.zeros((TILE_Q, WIDE), tl.float32)
    in_powers = scale * 1.4426950408889634
    end = length
    if CAUSAL:
        end = min(length, (tile + 1) * TILE_Q)
    for first in range(0, end, TILE_K):
        key = first + step
        keys = tl.load(k_at + first * stride_kn, mask=key[None, :] < length, other=0.0)
        scores = tl.dot(queries, keys) * in_powers
        seen = key[None, :] < length
        if CAUSAL:
            seen = seen & (key[None, :] <= row[:, None])
        scores = tl.where(seen, scores, -1.0e6)
        larger = tl.maximum(most, tl.max(scores, axis=1))
        powers = tl.exp2(scores - larger[:, None])
        shrunk = tl.exp2(most - larger)
        values = tl.load(v_at + first * stride_vn, mask=key[:, None] < length, other=0.0)
        total = total * shrunk + tl.sum(powers, axis=1)
        found = tl.dot(powers.to(tl.float16), values, found * shrunk[:, None])
        most = larger
    o_at = out + batch * stride_ob + head * stride_oh + row[:, None] * stride_on + wide[None, :]
    tl.store(o_at, (found / total[:, None]).to(tl.float16), mask=row[:, None] < length)
    tl.store(logsum + both * length + row, most + tl.log2(total), mask=row < length)


TILES = {"TILE_Q": 128, "TILE_K": 64}


def compiled(
    target: str | list[str] = "sm_90a", *, wide: int = 64, causal: bool = True
) -> fe.Function:
    """`attention(q, k, v, scale) -> (out, logsum)`: (batch, heads, length, wide), float16.

    `logsum`, (batch, heads, length), is what a backward pass needs: base 2, float32.
    """
    batch, heads, length = (fe.sym_int32(symbol=name) for name in ("batch", "heads", "length"))
    shape = (batch, heads, length, wide)

    def strided() -> object:
        # With strides that 16 divides, rows are read 16 bytes at a time.
        steps = [fe.sym_int32(divisibility=16) for _ in range(3)]
        return fe.make_fake_tensor(fe.Float16, shape, (*steps, 1), assumed_align=16)

    strides = {
        f"stride_{letter}{axis}": f"{name}.strides[{number}]"
        for letter, name in (("q", "q"), ("k", "k"), ("v", "v"), ("o", "out"))
        for number, axis in enumerate("bhn")
    }
    return frontend.compile(
        attention_kernel,
        signature={
            **{name: strided() for name in ("q", "k", "v")},
            "out": frontend.like("q"),
            "logsum": frontend.empty((batch, heads, length), "float32"),
            "scale": "fp32",
            **strides,
        },
        constexprs={"CAUSAL": causal, "WIDE": wide, **TILES},
        grid=lambda meta: (
            triton.cdiv(meta["length"], meta["TILE_Q"]),
            meta["q"].shape[0] * meta["heads"],
        ),
        name="attention",
        num_warps=4,
        num_stages=3,
        target=target,
    )


def check(torch) -> None:
    """Runs on the current GPU, compares with PyTorch."""
    for length, causal in ((256, True), (300, False)):
        shape = (2, 3, length, 64)
        q, k, v = (torch.randn(shape, device="cuda", dtype=torch.float16) for _ in range(3))
        wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        found, _ = compiled(triton_target(torch), causal=causal)(q, k, v, 0.125)
        torch.testing.assert_close(found, wanted, atol=1e-2, rtol=1e-2)


def main() -> None:
    """Compiles for three architectures; runs where there is a GPU."""
    print(compiled(["sm_80", "sm_90a", "sm_100a"]).signature)
    try:
        import torch
    except ImportError:
        return
    if torch.cuda.is_available():
        check(torch)
        print("equals PyTorch's result")


if __name__ == "__main__":
    main()

"""Triton: c = a @ b in float16, tiles in groups for the cache, loads ahead of their use.

python examples/triton/matmul.py
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
def matmul_kernel(
    a, b, c, m, n, k,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    # Programs that follow each other share columns of b: GROUP rows of tiles go together.
    program = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(m, TILE_M), tl.cdiv(n, TILE_N)
    group = program // (GROUP * tiles_n)
    height = min(tiles_m - group * GROUP, GROUP)
    inside = program % (GROUP * tiles_n)
    row = (group * GROUP + inside % height) * TILE_M + tl.arange(0, TILE_M)
    column = (inside // height) * TILE_N + tl.arange(0, TILE_N)
    step = tl.arange(0, TILE_K)
    a_at = a + (row % m)[:, None] * stride_am + step[None, :] * stride_ak
    b_at = b + step[:, None] * stride_bk + (column % n)[None, :] * stride_bn
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for done in range(0, k, TILE_K):
        left = k - done
        a_tile = tl.load(a_at, mask=step[None, :] < left, other=0.0)
        b_tile = tl.load(b_at, mask=step[:, None] < left, other=0.0)
        total = tl.dot(a_tile, b_tile, total)
        a_at += TILE_K * stride_ak
        b_at += TILE_K * stride_bk
    c_at = c + row[:, None] * stride_cm + column[None, :] * stride_cn
    tl.store(c_at, total.to(tl.float16), mask=(row[:, None] < m) & (column[None, :] < n))


TILES = {"TILE_M": 128, "TILE_N": 128, "TILE_K": 64, "GROUP": 8}


def grid(meta):
    """A program for each tile of c."""
    tiles = triton.cdiv(meta["m"], meta["TILE_M"]) * triton.cdiv(meta["n"], meta["TILE_N"])
    return (tiles,)


def compiled(target: str | list[str] = "sm_90a", *, stages: int = 3) -> fe.Function:
    """`matmul(a, b, c)` for float16 matrices with rows of contiguous elements."""
    return frontend.compile(
        matmul_kernel,
        signature={
            "a": "*fp16[m, k: s_a, 1]:16",
            "b": "*fp16[k, n: s_b, 1]:16",
            "c": "*fp16[m, n: s_c, 1]:16",
            "stride_am": "s_a", "stride_ak": "a.strides[1]",
            "stride_bk": "s_b", "stride_bn": "b.strides[1]",
            "stride_cm": "s_c", "stride_cn": "c.strides[1]",
        },
        constexprs=TILES,
        grid=grid,
        name="matmul",
        num_warps=8,
        num_stages=stages,
        specialize="dispatch",
        target=target,
    )  # fmt: skip


def check(torch) -> None:
    """Runs on the current GPU, compares with PyTorch."""
    matmul = compiled(triton_target(torch))
    for m, n, k in ((512, 512, 512), (300, 200, 77)):
        a = torch.randn(m, k, device="cuda", dtype=torch.float16)
        b = torch.randn(k, n, device="cuda", dtype=torch.float16)
        c = torch.empty(m, n, device="cuda", dtype=torch.float16)
        matmul(a, b, c)
        torch.testing.assert_close(c, a @ b, atol=1e-1, rtol=1e-2)


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

"""Triton: softmax along the rows of a matrix, each row by one program that holds it whole.

    python examples/triton/fused_softmax.py

The strides that the kernel takes are those of the tensors, so callers pass tensors alone.
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
def softmax_kernel(out, x, stride_x, stride_out, rows, columns, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    inside = column < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        values = tl.load(x + row * stride_x + column, mask=inside, other=-float("inf"))
        powers = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * stride_out + column, powers / tl.sum(powers, axis=0), mask=inside)


PROGRAMS = 1056
"""At most: more than a GPU runs at a time is of no use, for each takes several rows."""


def compiled(target: str | list[str] = "sm_90a", *, block: int = 1024) -> fe.Function:
    """`softmax(out, x)` for float32 matrices of at most `block` columns."""
    return frontend.compile(
        softmax_kernel,
        signature={
            # The kernel holds a row in one block: a call with more columns is refused.
            "out": f"*fp32[rows, columns<={block}: s_out, 1]",
            "x": "*fp32[rows, columns: s_x, 1]",
            "stride_x": "x.strides[0]",
            "stride_out": "out.strides[0]",
        },
        constexprs={"BLOCK": block},
        grid=lambda meta: (frontend.minimum(meta["rows"], PROGRAMS),),
        name="softmax",
        num_warps=8,
        specialize="dispatch",
        target=target,
    )


def check(torch) -> None:
    """Runs on the current GPU, compares with PyTorch."""
    softmax = compiled(triton_target(torch))
    for columns in (781, 1024):
        x = torch.randn(1823, columns, device="cuda")
        out = torch.empty_like(x)
        softmax(out, x)
        torch.testing.assert_close(out, torch.softmax(x, 1))


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

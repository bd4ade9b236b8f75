"""Triton: dropout whose mask is made of a seed, so that nobody keeps it.

python examples/triton/dropout.py
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
def dropout_kernel(x, out, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    values = tl.load(x + at, mask=inside)
    kept = tl.rand(seed, at) > p
    tl.store(out + at, tl.where(kept, values / (1 - p), 0.0), mask=inside)


def compiled(target: str | list[str] = "sm_90a") -> fe.Function:
    """`dropout(x, p, seed) -> out` for float32 vectors: p is the chance that an element is 0."""
    return frontend.compile(
        dropout_kernel,
        signature={
            "x": "*fp32[n]:16", "out": frontend.like("x"), "p": "fp32", "seed": "i32"
        },
        constexprs={"BLOCK": 1024},
        grid=lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),),
        name="dropout",
        target=target,
    )  # fmt: skip


def check(torch) -> None:
    """Runs on the current GPU: what is kept is scaled, the same seed keeps the same."""
    dropout = compiled(triton_target(torch))
    x = torch.rand(100_000, device="cuda") + 1
    once, again, other = dropout(x, 0.5, 123), dropout(x, 0.5, 123), dropout(x, 0.5, 512)
    kept = once != 0
    assert torch.equal(once, again) and not torch.equal(once, other)
    assert abs(kept.float().mean().item() - 0.5) < 0.02
    torch.testing.assert_close(once[kept], 2 * x[kept])


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

"""Triton: out = x + y.  The function allocates its result: `z = add(x, y)`.

    python examples/triton/vector_add.py

Needs Triton to compile, and a GPU with PyTorch to run.
"""

from __future__ import annotations

try:
    import triton
    import triton.language as tl
except ImportError:
    raise SystemExit("this example needs Triton: pip install 'ferrule[triton]'") from None

import ferrule as fe
from ferrule.frontends import triton as frontend


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    total = tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside)
    tl.store(out + at, total, mask=inside)


def compiled(target: str | list[str] = "sm_90a") -> fe.Function:
    """`add(x, y) -> out` for float32 vectors of any length."""
    return frontend.compile(
        add_kernel,
        signature={"x": "*fp32[n]:16", "y": "*fp32[n]:16"},
        constexprs={"BLOCK": 1024},
        out=fe.like("x"),
        grid=lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),),
        name="add",
        target=target,
    )


def check(torch) -> None:
    """Runs on the current GPU, compares with PyTorch."""
    x, y = (torch.randn(98_432, device="cuda") for _ in range(2))
    torch.testing.assert_close(compiled(triton_target(torch))(x, y), x + y)


def triton_target(torch) -> str:
    """The architecture of the current GPU."""
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}"


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

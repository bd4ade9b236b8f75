"""The Triton tutorials, compiled here, give on a real GPU what PyTorch gives."""

from __future__ import annotations

import pytest
from triton_launcher import example

pytestmark = [pytest.mark.needs_cuda, pytest.mark.needs_torch_cuda]

TUTORIALS = (
    "vector_add",
    "fused_softmax",
    "matmul",
    "layer_norm",
    "flash_attention",
    "dropout",
)


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_equals_pytorch(name: str) -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    import torch

    example(name).check(torch)


def test_the_best_config_is_found_by_timing() -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    import torch
    from triton_kernels import tuned

    from ferrule.frontends import triton as frontend

    how = {
        "signature": {"x": "*fp32[n]", "y": "*fp32[n]"},
        "grid": lambda meta: (frontend.ceil_div(meta["n"], meta["BLOCK"]),),
    }
    x = torch.randn(1 << 20, device="cuda")
    y = torch.empty_like(x)
    chosen = frontend.tune(tuned, {(1 << 20,): (x, y)}, **how)
    frontend.compile(tuned, config=chosen, **how)(x, y)
    assert torch.equal(x, y)

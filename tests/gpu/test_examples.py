"""The examples on a real GPU, against PyTorch.

PYTHONPATH=compiler:runtime:specs python -m pytest tests/gpu -q
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import ferrule as fe
from ferrule.runtime import make_fake_compact_tensor

pytestmark = [pytest.mark.needs_cuda, pytest.mark.needs_torch]

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def quickstart() -> ModuleType:
    """examples/quickstart.py."""
    spec = importlib.util.spec_from_file_location("quickstart", EXAMPLES / "quickstart.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["quickstart"] = module
    spec.loader.exec_module(module)
    return module


def compiled(function: Any, *examples: Any) -> fe.Function:
    return fe.compile(function, *examples, options="--target cuda")


def matrix(*shape: Any) -> Any:
    order = tuple(reversed(range(len(shape))))
    return make_fake_compact_tensor(fe.Float32, shape, stride_order=order)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 129, 1_000_003])
def test_add_one(quickstart: ModuleType, size: int) -> None:
    import torch

    n = fe.sym_int()
    function = compiled(quickstart.add_one, matrix(n), matrix(n))
    a = torch.randn(size, device="cuda")
    b = torch.full_like(a, -1.0)
    function(a, b)
    torch.testing.assert_close(b, a + 1.0, rtol=0, atol=0)


@pytest.mark.parametrize("shape", [(1, 1), (100, 33), (257, 1024)])
def test_softmax(quickstart: ModuleType, shape: tuple[int, int]) -> None:
    import torch

    m, n = fe.sym_int(), fe.sym_int()
    function = compiled(quickstart.softmax, matrix(m, n), matrix(m, n))
    x = torch.randn(shape, device="cuda")
    y = torch.empty_like(x)
    function(x, y)
    torch.testing.assert_close(y, torch.softmax(x, dim=1), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("shape", [(1, 1), (100, 33), (257, 1024)])
def test_rms_norm(quickstart: ModuleType, shape: tuple[int, int]) -> None:
    import torch

    m, n = fe.sym_int(), fe.sym_int()
    function = compiled(quickstart.rms_norm, matrix(m, n), matrix(n), matrix(m, n))
    x, weight = torch.randn(shape, device="cuda"), torch.randn(shape[1], device="cuda")
    y = torch.empty_like(x)
    function(x, weight, y, eps=1e-5)
    expected = x * torch.rsqrt(x.square().mean(dim=1, keepdim=True) + 1e-5) * weight
    torch.testing.assert_close(y, expected, rtol=1e-5, atol=1e-6)


def test_a_whole_tensor_expression() -> None:
    import torch

    def axpy(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor, alpha: fe.Float32):
        c[:] = a[:] * alpha + b[:]

    m, n = fe.sym_int(), fe.sym_int()
    function = compiled(axpy, matrix(m, n), matrix(m, n), matrix(m, n), fe.Float32)
    a, b = torch.randn(300, 77, device="cuda"), torch.randn(300, 77, device="cuda")
    c = torch.empty_like(a)
    function(a, b, c, 2.5)
    torch.testing.assert_close(c, a * 2.5 + b)


def test_the_current_stream_of_torch_is_used() -> None:
    import torch

    def fill(a: fe.Tensor, value: fe.Float32):
        a[:] = value

    function = compiled(fill, matrix(fe.sym_int()), fe.Float32)
    a = torch.zeros(1 << 24, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        function(a, 1.0)
        early = stream.query()
    stream.synchronize()
    assert not early
    assert bool((a == 1.0).all())


def test_a_cuda_graph_replays_a_call() -> None:
    import torch

    def fill(a: fe.Tensor, value: fe.Float32):
        a[:] = value

    function = compiled(fill, matrix(fe.sym_int()), fe.Float32)
    a = torch.zeros(1000, device="cuda")
    function(a, 1.0)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function(a, 2.0)
    a.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert bool((a == 2.0).all())


def test_results_have_the_same_bits_as_on_the_cpu() -> None:
    import torch

    def curve(a: fe.Tensor, b: fe.Tensor):
        b[:] = fe.math.exp(a[:] * 0.5 + 1.0) / 3.0

    n = fe.sym_int()
    on_gpu = compiled(curve, matrix(n), matrix(n))
    on_cpu = fe.compile(curve, matrix(n), matrix(n), options="--target cpu")
    a = torch.randn(100_000)
    b, c = torch.empty_like(a), torch.empty_like(a, device="cuda")
    on_cpu(a, b)
    on_gpu(a.cuda(), c)
    assert torch.equal(b, c.cpu())

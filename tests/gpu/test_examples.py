"""The examples on a GPU, against NumPy; streams and graphs of PyTorch on a real one.

PYTHONPATH=compiler:runtime:specs python -m pytest tests/gpu -q
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.runtime import make_fake_compact_tensor

pytestmark = pytest.mark.needs_cuda

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


def floats(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 129, 1_000_003])
def test_add_one(quickstart: ModuleType, size: int) -> None:
    n = fe.sym_int()
    function = compiled(quickstart.add_one, matrix(n), matrix(n))
    a = floats(size)
    b = fe.cuda.array(np.full_like(a, -1))
    function(fe.cuda.array(a), b)
    np.testing.assert_array_equal(fe.cuda.to_numpy(b), a + np.float32(1))


@pytest.mark.parametrize("shape", [(1, 1), (100, 33), (257, 1024)])
def test_softmax(quickstart: ModuleType, shape: tuple[int, int]) -> None:
    m, n = fe.sym_int(), fe.sym_int()
    function = compiled(quickstart.softmax, matrix(m, n), matrix(m, n))
    x = floats(*shape)
    y = fe.cuda.empty(shape)
    function(fe.cuda.array(x), y)
    powers = np.exp(x - x.max(1, keepdims=True))
    wanted = powers / powers.sum(1, keepdims=True)
    np.testing.assert_allclose(fe.cuda.to_numpy(y), wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("shape", [(1, 1), (100, 33), (257, 1024)])
def test_rms_norm(quickstart: ModuleType, shape: tuple[int, int]) -> None:
    m, n = fe.sym_int(), fe.sym_int()
    function = compiled(quickstart.rms_norm, matrix(m, n), matrix(n), matrix(m, n))
    x, weight = floats(*shape), floats(shape[1])
    y = fe.cuda.empty(shape)
    function(fe.cuda.array(x), fe.cuda.array(weight), y, eps=1e-5)
    wanted = x / np.sqrt(np.square(x).mean(1, keepdims=True) + 1e-5) * weight
    np.testing.assert_allclose(fe.cuda.to_numpy(y), wanted, rtol=1e-5, atol=1e-6)


def test_a_whole_tensor_expression() -> None:
    def axpy(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor, alpha: fe.Float32):
        c[:] = a[:] * alpha + b[:]

    m, n = fe.sym_int(), fe.sym_int()
    function = compiled(axpy, matrix(m, n), matrix(m, n), matrix(m, n), fe.Float32)
    a, b = floats(300, 77), floats(77, 300).T.copy()
    c = fe.cuda.empty((300, 77))
    function(fe.cuda.array(a), fe.cuda.array(b), c, 2.5)
    np.testing.assert_allclose(fe.cuda.to_numpy(c), a * 2.5 + b, rtol=1e-6, atol=1e-6)


def test_results_have_the_same_bits_as_on_the_cpu() -> None:
    def curve(a: fe.Tensor, b: fe.Tensor):
        b[:] = fe.math.exp(a[:] * 0.5 + 1.0) / 3.0

    n = fe.sym_int()
    options = "--fmad=false --target "  # a GPU contracts by default
    on_gpu = fe.compile(curve, matrix(n), matrix(n), options=f"{options}cuda")
    on_cpu = fe.compile(curve, matrix(n), matrix(n), options=f"{options}cpu")
    a = floats(100_000)
    b, c = np.empty_like(a), fe.cuda.empty(a.shape)
    on_cpu(a, b)
    on_gpu(fe.cuda.array(a), c)
    np.testing.assert_array_equal(fe.cuda.to_numpy(c), b)


@pytest.mark.needs_torch_cuda
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


@pytest.mark.needs_torch_cuda
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

"""Launches on a GPU: what they ask for, streams, graphs, and kernels that go while they run."""

from __future__ import annotations

import multiprocessing
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.runtime import make_fake_compact_tensor
from ferrule.runtime.devices import cuda_devices

pytestmark = pytest.mark.needs_cuda

SIZE = 4096


@fe.kernel
def add_kernel(a: fe.Tensor, b: fe.Tensor, amount: fe.Float32):
    bx, _, _ = fe.arch.block_idx()
    tx, _, _ = fe.arch.thread_idx()
    i = bx * 128 + tx
    if i < a.shape[0]:
        b[i] = a[i] + amount


@fe.kernel
def reverse_kernel(a: fe.Tensor):
    tx, _, _ = fe.arch.thread_idx()
    whole = fe.arch.get_dyn_smem(fe.Float32)
    for i in range(tx, a.shape[0], 256):
        whole[i] = a[i]
    fe.arch.sync_threads()
    for i in range(tx, a.shape[0], 256):
        a[i] = whole[a.shape[0] - 1 - i]


@fe.jit
def reverse(a: fe.Tensor):
    reverse_kernel(a).launch(grid=1, block=256, smem=a.shape[0] * 4)


def vector() -> Any:
    return make_fake_compact_tensor(fe.Float32, (fe.sym_int(),), device="cuda")


def adding(**asked: Any) -> fe.Function:
    """b = a + amount, by a launch that asks for this."""

    @fe.jit
    def add(a: fe.Tensor, b: fe.Tensor, amount: fe.Float32):
        blocks = (a.shape[0] + 255) // 256 * 2
        add_kernel(a, b, amount).launch(grid=blocks, block=128, **asked)

    n = vector()
    return fe.compile(add, n, n, fe.Float32, options="--target cuda")


def tensors(count: int = SIZE) -> tuple[Any, Any]:
    return fe.cuda.array(np.arange(count, dtype=np.float32)), fe.cuda.zeros(count)


def of_torch(count: int = SIZE) -> tuple[Any, Any]:
    import torch

    return torch.arange(count, device="cuda", dtype=torch.float32), torch.zeros(count).cuda()


def require_added(b: Any, amount: float) -> None:
    """That b is 0, 1, …, and this added."""
    found = fe.cuda.to_numpy(b)
    np.testing.assert_array_equal(found, np.arange(found.size, dtype=np.float32) + amount)


@pytest.mark.parametrize(
    "asked",
    [
        {"priority": -1},
        {"cooperative": True},
        {"preferred_smem_carveout": 100},
        {"max_number_threads": 128, "min_blocks_per_mp": 2},
    ],
)
def test_a_launch_gives_the_same_whatever_it_asks_for(asked: dict[str, Any]) -> None:
    a, b = tensors()
    adding(**asked)(a, b, 1.5)
    require_added(b, 1.5)


@pytest.mark.parametrize("asked", [{"cluster": 2}, {"use_pdl": True}])
def test_clusters_and_programmatic_launches(asked: dict[str, Any]) -> None:
    if cuda_devices()[0].major < 9:
        pytest.skip("needs a GPU of compute capability 9.0 or later")
    a, b = tensors()
    for _ in range(3):
        adding(**asked)(a, b, 1.5)
    require_added(b, 1.5)


@pytest.mark.parametrize("size", [1024, 20_000])
def test_shared_memory_beyond_48_kib(size: int) -> None:
    a, _ = tensors(size)
    wanted = fe.cuda.to_numpy(a)[::-1]
    fe.compile(reverse, vector(), options="--target cuda")(a)
    np.testing.assert_array_equal(fe.cuda.to_numpy(a), wanted)


def test_shared_memory_beyond_the_device_is_an_error() -> None:
    a, _ = tensors(58_000)  # 226.6 KiB
    wanted = fe.cuda.to_numpy(a)[::-1]
    function = fe.compile(reverse, vector(), options="--target cuda")
    try:
        function(a)
    except fe.LaunchError as error:
        assert "for a block of this kernel" in str(error)
    else:
        np.testing.assert_array_equal(fe.cuda.to_numpy(a), wanted)


def test_a_launch_is_on_the_current_stream() -> None:
    function, (a, b) = adding(), tensors()
    stream = fe.cuda.Stream()
    with stream:
        for amount in range(50):
            function(a, b, float(amount))
    stream.synchronize()
    require_added(b, 49.0)


@pytest.mark.needs_torch_cuda
def test_a_launch_is_on_the_stream_of_torch() -> None:
    import torch

    function, (a, b) = adding(), of_torch()
    with torch.cuda.stream(torch.cuda.Stream()):
        for amount in range(50):
            function(a, b, float(amount))
        torch.cuda.current_stream().synchronize()
        assert (b == a + 49).all()


@pytest.mark.needs_torch_cuda
def test_a_graph_is_captured_and_replayed() -> None:
    import torch

    function, (a, b) = adding(), of_torch()
    function(a, b, 0.0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function(a, b, 2.0)
    a += 1
    graph.replay()
    torch.cuda.synchronize()
    assert (b == a + 2).all()


@pytest.mark.needs_torch_cuda
def test_the_first_call_is_captured() -> None:
    import torch

    function, (a, b) = adding(), of_torch()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function(a, b, 2.0)
    a += 1
    graph.replay()
    torch.cuda.synchronize()
    assert (b == a + 2).all()


def test_a_function_may_go_while_its_kernel_runs() -> None:
    a, b = tensors(1 << 24)
    for amount in range(10):
        adding()(a, b, float(amount))
    require_added(b, 9.0)


def test_a_forked_process_says_what_to_do() -> None:
    function, (a, b) = adding(), tensors()
    function(a, b, 1.0)
    ours, theirs = multiprocessing.Pipe()

    def call() -> None:
        try:
            function(a, b, 1.0)
        except fe.CudaError as error:
            theirs.send(str(error))

    child = multiprocessing.get_context("fork").Process(target=call)
    child.start()
    assert ours.poll(60)
    assert "get_context('spawn')" in ours.recv()
    child.join()

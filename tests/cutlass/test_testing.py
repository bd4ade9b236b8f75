"""`fe.testing`: times, choices between configurations, and checks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ferrule as fe

testing: Any = fe.testing


def test_benchmark_is_a_mean_in_microseconds() -> None:
    calls: list[int] = []

    def work(number: int, *, pause: float) -> None:
        calls.append(number)
        time.sleep(pause)

    spaces = iter(range(3))
    found = testing.benchmark(
        work,
        warmup_iterations=2,
        iterations=4,
        workspace_generator=lambda: testing.JitArguments(next(spaces), pause=0.002),
        workspace_count=3,
    )
    assert 2000 <= found < 20000
    assert calls == [0, 1, 0, 1, 2, 0]
    assert testing.benchmark(lambda: None, iterations=1, warmup_iterations=0) < 10000


def test_wrong_benchmarks() -> None:
    arguments = testing.JitArguments()
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"iterations": 0}, "iterations and workspace_count must be at least 1"),
        ({"use_cuda_graphs": True}, "CUDA graphs are not supported"),
        (
            {"kernel_arguments": arguments, "workspace_generator": lambda: arguments},
            "give kernel_arguments or workspace_generator, not both",
        ),
    ]
    for keywords, message in wrong:
        with pytest.raises(ValueError, match=message):
            testing.benchmark(lambda: None, **keywords)


def test_tune_takes_the_fastest() -> None:
    def make(pause: float, size: int) -> Callable[[], None]:
        if size == 3:
            raise testing.CantImplementError("three")
        return lambda: time.sleep(pause * size)

    best = testing.tune(
        make,
        params_dict={"size": [3, 4, 1]},
        kernel_arguments=testing.JitArguments(0.002),
        warmup_iterations=0,
        iterations=5,
    )
    assert best == {"size": 1}
    with pytest.raises(ValueError, match="no configuration could be run"):
        testing.tune(make, {"size": [3]}, testing.JitArguments(0.0))


@testing.autotune_jit(
    params_dict={"width": [1, 2]}, update_on_change=["n"], warmup_iterations=0, iterations=1
)
@fe.jit
def adds(a: fe.Tensor, n: fe.Int32, width: fe.Constexpr = 1):
    fe.static_assert(width in (1, 2))
    for i in range(n):
        a[i] += 1


def test_autotune() -> None:
    a = np.zeros(4, np.float32)
    adds(a, 2)
    tried = a[0]
    assert tried >= 3  # each configuration was timed, and one call was made
    adds(a, 2)
    assert a.tolist() == [tried + 1, tried + 1, 0, 0]
    adds(a, 3)
    assert a[2] >= 3
    compiled = fe.compile(adds, fe.row_major((4,), fe.Float32), 1, options="--target cpu")
    before = a[0]
    compiled(a, 1)
    assert a[0] == before + 1
    with pytest.raises(TypeError, match="adds has no parameter 'depth'"):
        testing.autotune_jit({"depth": [1]})(adds)
    with pytest.raises(TypeError, match="autotune_jit is written above @jit"):
        testing.autotune_jit({})(print)


def test_workspaces_are_larger_than_a_cache() -> None:
    assert testing.get_workspace_count(1 << 20, 10, 1000) == 128
    assert testing.get_workspace_count(1 << 40, 10, 100) == 1
    assert testing.get_workspace_count(1, 1, 2) == 3


@pytest.mark.needs_torch
def test_matrices() -> None:
    import torch

    tools: Any = fe.cutlass.torch
    left = tools.matrix(2, 4, 8, True, fe.Float16)
    assert (tuple(left.shape), left.stride(), left.dtype) == ((4, 8, 2), (1, 4, 32), torch.float16)
    assert tools.matrix(2, 4, 8, False, fe.Int8).stride() == (8, 1, 32)
    scalar = tools.ScalarInitConfig(3.0)
    filled = tools.matrix(1, 2, 2, True, fe.Float32, tools.TensorInitType.SCALAR, scalar)
    assert (filled == 3).all()
    assert tools.matrix(1, 9, 9, True, fe.Uint8).min() >= 0
    with pytest.raises(TypeError, match="init_type RANDOM takes RandomInitConfig"):
        tools.matrix(1, 2, 2, True, fe.Float32, init_config=scalar)
    adapted, copy = tools.cute_tensor_like(left, fe.Float32, True, 16)
    assert copy.dtype is torch.float32 and adapted.element_type is fe.Float32
    assert tools.dtype(fe.BFloat16) is torch.bfloat16 and tools.get_leading_dim(left) == 0
    memory = np.arange(6, dtype=np.float32)
    assert (tools.as_tensor(memory.ctypes.data, (2, 3), torch.float32)[1, 2]).item() == 5


def test_orders_of_matrices() -> None:
    order: Any = fe.cutlass.utils.LayoutEnum
    assert order.from_tensor(fe.row_major((4, 8), fe.Float32)) is order.ROW_MAJOR
    column = fe.make_fake_compact_tensor(fe.Float32, (4, 8, 2))
    assert order.from_tensor(column) is order.COL_MAJOR
    with pytest.raises(ValueError, match="neither of the first two modes has stride 1"):
        order.from_tensor(fe.make_fake_tensor(fe.Float32, (4, 8), (16, 2)))
    assert fe.cutlass.utils.is_fp8_dtype(fe.Float8E5M2)

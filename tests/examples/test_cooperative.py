"""The examples whose threads work together: alone, for GPUs, and at the edges of their sizes."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "examples"
KERNELS = {
    "attention": 1,
    "block_layer_norm": 1,
    "block_softmax": 1,
    "histogram": 2,
    "prefix_sum": 3,
    "radix_sort": 6,
    "reduction": 4,
    "tiled_matmul": 1,
    "top_k": 1,
    "transpose": 1,
}
"""How many kernels each has for a GPU."""


@cache
def load(name: str) -> ModuleType:
    """The example; it compiles once for each of its arguments."""
    spec = importlib.util.spec_from_file_location(f"examples.{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    module.compiled = cache(module.compiled)
    return module


def floats(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("name", KERNELS)
def test_runs_and_agrees_with_its_reference(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    load(name).main()
    assert "equals NumPy's result" in capsys.readouterr().out


@pytest.mark.parametrize("name", KERNELS)
def test_says_how_it_is_run(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    assert f"\n    python examples/{name}.py\n" in text
    assert '\nif __name__ == "__main__":' in text


@pytest.mark.parametrize("name", ["block_softmax", "radix_sort", "reduction", "top_k"])
def test_no_thread_is_a_coroutine_on_a_cpu(name: str) -> None:
    assert "llvm.coro" not in load(name).compiled().inspect_llvm()


@pytest.mark.parametrize("name", KERNELS)
def test_becomes_ptx(name: str) -> None:
    options = "--target cuda --gpu-arch sm_90a --index-bitwidth 32"
    ptx = load(name).compiled(options).inspect_ptx()
    assert ptx.count(".visible .entry") == KERNELS[name] and ".shared" in ptx


# ---- at the edges ----


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (1, 1), (31, 33), (64, 65)])
def test_transpose_of_any_shape(shape: tuple[int, int]) -> None:
    a, out = floats(*shape), np.full(shape[::-1], np.nan, np.float32)
    load("transpose").compiled()(a, out)
    np.testing.assert_array_equal(out, a.T)


@pytest.mark.parametrize("size", [0, 1, 33, 4095, 4097, 300_001])
def test_reduction_of_any_length(size: int) -> None:
    x, total, largest = floats(size), floats(1), floats(1)
    load("reduction").compiled()(x, total, largest)
    np.testing.assert_allclose(total[0], x.sum(dtype=np.float64), rtol=1e-4, atol=1e-2)
    assert largest[0] == x.max(initial=-np.inf)


def test_a_nan_among_many_numbers_is_their_sum_and_their_largest() -> None:
    x, total, largest = floats(5000), floats(1), floats(1)
    x[4321] = np.nan
    load("reduction").compiled()(x, total, largest)
    assert np.isnan(total[0]) and np.isnan(largest[0])


@pytest.mark.parametrize("size", [0, 1, 2047, 2049, 256 * 2048 + 1])
def test_prefix_sums_of_any_length(size: int) -> None:
    """The last has more parts than the second kernel takes at a time."""
    x = np.random.default_rng(size).integers(-(2**31), 2**31, size).astype(np.int32)
    out = np.empty(size, np.int64)
    load("prefix_sum").compiled()(x, out)
    np.testing.assert_array_equal(out, np.cumsum(x, dtype=np.int64))


@pytest.mark.parametrize("size", [0, 1, 16_385])
def test_histogram_of_any_length(size: int) -> None:
    x, counts = (np.arange(size) ** 2 % 251).astype(np.uint8), np.full(256, -1, np.int64)
    load("histogram").compiled()(x, counts)
    np.testing.assert_array_equal(counts, np.bincount(x, minlength=256))


@pytest.mark.parametrize(
    ("m", "k", "n"), [(0, 3, 4), (3, 4, 0), (1, 1, 1), (33, 31, 65), (64, 32, 96)]
)
def test_tiled_matmul_of_any_shape(m: int, k: int, n: int) -> None:
    a, b, c = floats(m, k), floats(k, n), np.full((m, n), np.nan, np.float32)
    load("tiled_matmul").compiled()(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-5)


def test_tiled_matmul_without_depth_is_zero() -> None:
    c = floats(3, 40)
    load("tiled_matmul").compiled()(floats(3, 0), floats(0, 40), c)
    assert not c.any()


def top_k(x: Any) -> tuple[Any, Any]:
    example = load("top_k")
    shape = x.shape[0], example.K
    values, places = np.empty(shape, np.float32), np.empty(shape, np.int32)
    example.compiled()(x, values, places)
    return values, places


@pytest.mark.parametrize("shape", [(0, 8), (3, 8), (2, 127), (2, 129), (1, 3000)])
def test_top_k_of_rows_of_any_length(shape: tuple[int, int]) -> None:
    x = floats(*shape).round(1)
    for found, wanted in zip(top_k(x), load("top_k").reference(x), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_top_k_of_special_numbers() -> None:
    x = np.array([[0.0, -np.inf, -0.0, 1e-45, -1e-45, np.inf, np.nan, -1.0, 3e38]], np.float32)
    values, places = top_k(x)
    assert places.tolist() == [[6, 5, 8, 3, 0, 2, 4, 7]]
    np.testing.assert_array_equal(values[0], x[0, places[0]])


def test_top_k_of_rows_that_are_too_short_is_refused() -> None:
    with pytest.raises(ValueError, match="rows of at least 8 elements are needed, but got 7"):
        top_k(floats(2, 7))


@pytest.mark.parametrize(
    ("size", "values"), [(0, 1), (1, 9), (255, 3), (257, 2**32), (5000, 2**32)]
)
def test_radix_sort_of_any_length(size: int, values: int) -> None:
    x = np.random.default_rng(size).integers(0, values, size, dtype=np.uint32)
    out = np.empty_like(x)
    load("radix_sort").compiled()(x, out)
    np.testing.assert_array_equal(out, np.sort(x))


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (1, 1), (3, 255), (2, 257), (1, 2048)])
def test_softmax_and_layer_norm_of_any_shape(shape: tuple[int, int]) -> None:
    softmax, norm = load("block_softmax"), load("block_layer_norm")
    x, weight, bias = floats(*shape), floats(shape[1]) + 2, floats(shape[1])
    y = np.full_like(x, np.nan)
    softmax.compiled()(x, y)
    if x.size:
        np.testing.assert_allclose(y, softmax.reference(x), rtol=1e-5, atol=1e-7)
    norm.compiled()(x, weight, bias, y, 0.1)
    if x.size:
        wanted = norm.reference(x, weight, bias, 0.1)
        np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-5)


def test_layer_norm_of_rows_that_are_too_long_is_refused() -> None:
    x = floats(1, 2049)
    with pytest.raises(ValueError, match="rows of at most 2048 elements, but got 2049"):
        load("block_layer_norm").compiled()(x, x[0], x[0], x)


def attention(heads: int, queries: int, keys: int, causal: bool) -> tuple[Any, ...]:
    """Queries, keys, values, and the result."""
    example = load("attention")
    q, k, v = floats(heads, queries, 64), floats(heads, keys, 64), floats(heads, keys, 64) + 1
    out = np.full_like(q, np.nan)
    example.compiled(causal=causal)(q, k, v, out)
    return q, k, v, out


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [(1, 1, 1), (2, 33, 33), (1, 5, 64), (3, 32, 97)])
def test_attention_of_any_lengths(lengths: tuple[int, int, int], causal: bool) -> None:
    q, k, v, out = attention(*lengths, causal)
    wanted = load("attention").reference(q, k, v, causal=causal)
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.needs_torch
def test_attention_is_that_of_pytorch() -> None:
    import torch

    q, k, v, out = attention(2, 70, 70, True)
    wanted = torch.nn.functional.scaled_dot_product_attention(
        *(torch.from_numpy(a) for a in (q, k, v)), is_causal=True
    )
    torch.testing.assert_close(torch.from_numpy(out), wanted, rtol=1e-4, atol=1e-5)


def test_attention_of_a_query_without_keys_is_zero() -> None:
    assert not attention(2, 40, 0, False)[-1].any()
    *_, out = attention(1, 40, 3, True)
    assert not out[0, :37].any() and out[0, 37:].all()


def test_attention_keeps_to_numbers_where_scores_are_large() -> None:
    """The exponentials of the scores themselves would overflow."""
    example = load("attention")
    q, k, v = floats(1, 5, 64) * 100, floats(1, 70, 64) * 100, floats(1, 70, 64)
    out = np.empty_like(q)
    example.compiled(causal=False)(q, k, v, out)
    np.testing.assert_allclose(out, example.reference(q, k, v), rtol=1e-3, atol=1e-3)

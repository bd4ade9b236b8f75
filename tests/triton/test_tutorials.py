"""The tutorials launch what Triton's own launcher launches, byte for byte.

Triton gets the sizes and strides that a PyTorch user gives it; ours gets the tensors alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda, Launch, data_ptr
from triton_launcher import Address, example, own_launch, same, tensor

pytestmark = [pytest.mark.needs_cc, pytest.mark.usefixtures("allocator")]

ARCHS = (80, 90, 100)


def launched(gpu: FakeCuda, arch: int, function: Any, *arguments: Any) -> tuple[Launch, list[Any]]:
    """The launch of a call on a GPU of this architecture, and the addresses of its results."""
    gpu.set_capability(0, arch)
    gpu.clear()
    results = function(*arguments)
    (launch,) = gpu.launches()
    several = results if isinstance(results, tuple) else () if results is None else (results,)
    return launch, [data_ptr(each) for each in several]


def compiled(module: str, function: str = "compiled", **options: Any) -> Any:
    """A function for all architectures, which no GPU has run: it keeps what it knows of a GPU."""
    return getattr(example(module), function)([f"sm_{arch}" for arch in ARCHS], **options)


def in_blocks(meta: Any) -> tuple[int]:
    return (-(-meta["n"] // meta["BLOCK"]),)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("n", [98_433, 1000])
def test_vector_add(gpu: FakeCuda, arch: int, n: int) -> None:
    (x, at_x), (y, at_y) = tensor(n), tensor(n)
    ours, (out,) = launched(gpu, arch, compiled("vector_add"), x, y)
    kernel, given = example("vector_add").add_kernel, (at_x, at_y, Address("fp32", out), n)
    same(ours, own_launch(gpu, kernel, in_blocks, *given, BLOCK=1024, arch=arch))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("rows", "columns"), [(1824, 1024), (1823, 781)])
def test_fused_softmax(gpu: FakeCuda, arch: int, rows: int, columns: int) -> None:
    (out, at_out), (x, at_x) = tensor(rows, columns), tensor(rows, columns)
    ours, _ = launched(gpu, arch, compiled("fused_softmax"), out, x)
    kernel = example("fused_softmax").softmax_kernel
    given = at_out, at_x, columns, columns, rows, columns
    same(ours, own_launch(gpu, kernel, (1056,), *given, BLOCK=1024, num_warps=8, arch=arch))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("m", "n", "k"), [(512, 256, 1024), (300, 201, 77)])
@pytest.mark.parametrize("stages", [2, 3])
def test_matmul(gpu: FakeCuda, arch: int, m: int, n: int, k: int, stages: int) -> None:
    pairs = [tensor(*shape, dtype=np.float16) for shape in ((m, k), (k, n), (m, n))]
    matmul = compiled("matmul", stages=stages)
    ours, _ = launched(gpu, arch, matmul, *(each for each, _ in pairs))
    module = example("matmul")
    given = *(at for _, at in pairs), m, n, k, k, 1, n, 1, n, 1
    options = {**module.TILES, "num_warps": 8, "num_stages": stages}
    same(ours, own_launch(gpu, module.matmul_kernel, module.grid, *given, arch=arch, **options))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("rows", "columns"), [(1152, 1024), (1151, 1001)])
def test_layer_norm_forward(gpu: FakeCuda, arch: int, rows: int, columns: int) -> None:
    (x, at_x), (w, at_w), (b, at_b) = tensor(rows, columns), tensor(columns), tensor(columns)
    ours, made = launched(gpu, arch, compiled("layer_norm", "forward"), x, w, b, 1e-5)
    y, mean, rstd = (Address("fp32", address) for address in made)
    given = at_x, y, at_w, at_b, mean, rstd, columns, columns, 1e-5
    kernel = example("layer_norm").forward_kernel
    same(ours, own_launch(gpu, kernel, (rows,), *given, BLOCK=2048, num_warps=8, arch=arch))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("rows", "columns"), [(1152, 1024), (1151, 1001)])
def test_layer_norm_backward(gpu: FakeCuda, arch: int, rows: int, columns: int) -> None:
    shapes = [(rows, columns)] * 2 + [(256, columns)] * 2 + [(rows, columns), (columns,)]
    pairs = [tensor(*shape) for shape in (*shapes, (rows,), (rows,))]
    ours, _ = launched(gpu, arch, compiled("layer_norm", "backward"), *(t for t, _ in pairs))
    given = *(at for _, at in pairs), columns, rows, columns
    kernel = example("layer_norm").backward_kernel
    same(ours, own_launch(gpu, kernel, (256,), *given, BLOCK=2048, num_warps=8, arch=arch))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("parts", "columns"), [(256, 1024), (255, 1001)])
def test_layer_norm_gather(gpu: FakeCuda, arch: int, parts: int, columns: int) -> None:
    pairs = [tensor(parts, columns), tensor(parts, columns)]
    ours, made = launched(gpu, arch, compiled("layer_norm", "gather"), *(t for t, _ in pairs))
    given = *(at for _, at in pairs), *(Address("fp32", each) for each in made), parts, columns
    kernel = example("layer_norm").gather_kernel
    grid = (-(-columns // 128),)
    same(ours, own_launch(gpu, kernel, grid, *given, ROWS=32, WIDE=128, arch=arch))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("length", "causal"), [(300, True), (1000, False)])
def test_flash_attention(gpu: FakeCuda, arch: int, length: int, causal: bool) -> None:
    shape = 2, 3, length, 64
    pairs = [tensor(*shape, dtype=np.float16) for _ in range(3)]
    attention = compiled("flash_attention", causal=causal)
    ours, made = launched(gpu, arch, attention, *(t for t, _ in pairs), 0.125)
    strides = 3 * length * 64, length * 64, 64
    out, logsum = Address("fp16", made[0]), Address("fp32", made[1])
    given = *(at for _, at in pairs), out, logsum, 0.125, *strides * 4, 3, length
    module = example("flash_attention")
    options = {"CAUSAL": causal, "WIDE": 64, **module.TILES}
    grid = -(-length // 128), 6
    same(ours, own_launch(gpu, module.attention_kernel, grid, *given, arch=arch, **options))


@pytest.mark.parametrize("arch", ARCHS)
def test_dropout(gpu: FakeCuda, arch: int) -> None:
    x, at_x = tensor(1000)
    ours, (out,) = launched(gpu, arch, compiled("dropout"), x, 0.25, 123)
    given = at_x, Address("fp32", out), 1000, 0.25, 123
    kernel = example("dropout").dropout_kernel
    same(ours, own_launch(gpu, kernel, in_blocks, *given, BLOCK=1024, arch=arch))

"""Kernels in the style of libraries launch what Triton's own launcher launches."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda
from triton_launcher import own_launch, same, tensor

from ferrule.frontends import triton as frontend

pytestmark = pytest.mark.needs_cc


@pytest.fixture
def kernels() -> ModuleType:
    """The kernels that are compiled here."""
    return pytest.importorskip("triton_library_kernels")


def compiled(kernel: Any, **how: Any) -> Any:
    return frontend.compile(kernel, target="sm_90a", specialize="dispatch", **how)


def test_a_norm_with_globals_helpers_and_a_number_for_every_call(
    gpu: FakeCuda, kernels: ModuleType
) -> None:
    shapes: tuple[tuple[int, ...], ...] = ((8, 64), (8, 64), (64,), (8,))
    (out, at_out), (x, at_x), (weight, at_weight), (rstd, at_rstd) = (tensor(*s) for s in shapes)
    signature = {
        "out": "*fp32[m, n: s_out, 1]",
        "out_stride": "out.stride(0)",
        "x": "*fp32[m, n: s_x, 1]",
        "x_stride": "x.stride(-2)",
        "weight": "*fp32[n]",
        "rstd": "*fp32[m]",
        "columns": "n",
        "eps": "fp32",
        "offset": 0.0,
    }
    constants = {"casting": kernels.WIDER, "BLOCK": 64}
    function = compiled(
        kernels.rms_norm,
        signature=signature,
        constexprs=constants,
        grid=lambda meta: (meta["x"].shape[0],),
        num_warps=8,
    )
    function(out, x, weight, rstd, 1e-6)
    (ours,) = gpu.launches()
    given = at_out, 64, at_x, 64, at_weight, at_rstd, 64, 1e-6, 0.0
    same(ours, own_launch(gpu, kernels.rms_norm, (8,), *given, **constants, num_warps=8))


@pytest.mark.parametrize("cap", [None, 30.0])
def test_a_loss_whose_arguments_may_be_none(
    gpu: FakeCuda, kernels: ModuleType, cap: float | None
) -> None:
    (x, at_x), (labels, at_labels) = tensor(4, 1000), tensor(4, dtype=np.int64)
    loss, at_loss = tensor(4)
    constants = {"reduction": "mean", "WEIGHTED": False, "BLOCK": 256}
    function = frontend.compile(
        kernels.cross_entropy,
        *(x, "x.stride(0)", labels, None, loss, cap, "x.shape[1]", -100),
        **constants,
        grid=lambda meta: (meta["x"].shape[0],),
        target="sm_90a",
    )
    capped = () if cap is None else (cap,)
    function(x, labels, loss, *capped, -100)
    (ours,) = gpu.launches()
    given = at_x, 1000, at_labels, None, at_loss, cap, 1000, -100
    same(ours, own_launch(gpu, kernels.cross_entropy, (4,), *given, **constants))


@pytest.mark.parametrize("k", [128, 100])
@pytest.mark.parametrize("biased", [False, True])
def test_a_product_with_heuristics_of_sizes_and_of_what_is_there(
    gpu: FakeCuda, kernels: ModuleType, k: int, biased: bool
) -> None:
    import triton.language as tl

    matrices = [tensor(*shape, dtype=np.float16) for shape in ((64, k), (256, k), (64, 256))]
    (a, at_a), (b, at_b), (c, at_c) = matrices
    (rows, at_rows), (bias, at_bias) = tensor(64, dtype=np.int32), tensor(256)
    constants = {"top": 2, "dtype": tl.float16, "activation": "silu", "SPLIT": 1}
    constants |= {"TILE_M": 64, "TILE_N": 64, "TILE_K": 32}
    function = compiled(
        kernels.experts,
        signature={
            "a": "*fp16[m, k: s_a, 1]",
            "b": "*fp16[n, k: s_b, 1]",
            "c": "*fp16[m, n: s_c, 1]",
            "bias": "*fp32[n]" if biased else None,
            "rows": "*i32[s]",
            "stride_am": "s_a",
            "stride_ak": 1,
            "stride_bk": 1,
            "stride_bn": "s_b",
            "stride_cm": "s_c",
            "stride_cn": 1,
        },
        constexprs=constants,
        grid=lambda meta: (meta["rows"].shape[0] // 64, -(-meta["n"] // meta["TILE_N"])),
    )
    function(a, b, c, *([bias] if biased else []), rows)
    (ours,) = gpu.launches()
    given = at_a, at_b, at_c, at_bias if biased else None, at_rows, 256, k, k, 1, 1, k, 256, 1
    same(ours, own_launch(gpu, kernels.experts, (1, 4), *given, **constants))


def test_strides_that_are_annotated_as_int64(gpu: FakeCuda, kernels: ModuleType) -> None:
    (out, at_out), (q, at_q), (cache, at_cache) = tensor(4, 64), tensor(4, 64), tensor(9, 16, 64)
    (table, at_table), (lengths, at_lengths) = (tensor(*s, dtype=np.int32) for s in ((4, 32), (4,)))
    constants = {"WIDE": 64, "PAGE": 16, "ALIBI": False}
    strides = "table.stride(0)", "q.stride(0)", "cache.stride(0)"
    function = frontend.compile(
        kernels.paged,
        *(out, q, cache, 0.125, table, lengths, *strides),
        **constants,
        grid=lambda meta: (meta["q"].shape[0],),
        target="sm_90a",
        specialize="dispatch",
    )
    function(out, q, cache, 0.125, table, lengths)
    (ours,) = gpu.launches()
    given = at_out, at_q, at_cache, 0.125, at_table, at_lengths, 32, 64, 1024
    same(ours, own_launch(gpu, kernels.paged, (4,), *given, **constants))


def test_blocks_that_wait_for_each_other_and_talk(gpu: FakeCuda, kernels: ModuleType) -> None:
    (counter, at), (x, to) = tensor(1, dtype=np.int32), tensor(1000)
    options = {"launch_cooperative_grid": True, "debug": True}
    function = frontend.compile(
        kernels.counted,
        *(counter, x, 1000, True),
        **options,
        grid=lambda meta: (min(4, -(-meta["n"] // meta["BLOCK"])),),
        target="sm_90a",
    )
    function(counter, x, 1000, False)
    (ours,) = gpu.launches()
    same(ours, own_launch(gpu, kernels.counted, (4,), at, to, 1000, False, **options))

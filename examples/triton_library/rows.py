"""A library of Triton kernels as a product: rows are normalised, gated, rotated and scored.

    ferrule build rows.py -o dist -j 8                    # dist/librows.so and its headers
    ferrule build rows.py -o dist -j 8 --format wheel     # dist/rows-1.0.0-py3-none-….whl

Who calls it needs neither Triton nor ferrule: `with_package.py` is in Python, `with_cpp.cpp` in
C++, `with_rust.rs` in Rust, and `operators.py` makes operators of PyTorch of it, with gradients.

Each function takes bfloat16, float16 and float32, and rows of up to 65536 elements. Where a kernel
holds a row in registers it is compiled for several largest sizes, and a call runs the smallest that
fits its rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import kernels
import triton

import ferrule as fe
from ferrule import specs
from ferrule.frontends import triton as frontend

ARCHS = ["sm_80", "sm_90a", "sm_100a"]
DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
BUCKETS = {4096: 8, 16384: 16, 65536: 32}
"""The largest sizes of a row, and how many warps work at one."""

LARGEST = max(BUCKETS)
TILE = 1024
_STRIDE = re.compile(r"(\w+)_(?:stride|([0-2]))")
EVERY = [(dtype,) for dtype in DTYPES]
"""A version for each dtype, and one for each dtype and size."""
EACH_SIZE = list(product(DTYPES, BUCKETS))


def compiled(
    kernel: Any,
    name: str,
    tensors: Mapping[str, Any],
    grid: Callable[[Any], tuple[Any, ...]],
    constexprs: Mapping[str, Any],
    numbers: Mapping[str, str] | None = None,
    divided: tuple[str, ...] = ("n",),
    warps: int = 4,
) -> fe.Function:
    """The function of a kernel, with code for calls in which 16 divides every address, every stride
    and the sizes in `divided`, and with code for all others.

    Parameters such as `x_stride` and `y_0` are strides of the tensors."""
    found = {each: _STRIDE.fullmatch(each) for each in kernel.arg_names}
    strides = {name: f"{m[1]}.strides[{m[2] or 0}]" for name, m in found.items() if m is not None}
    return frontend.compile(
        kernel,
        signature={**tensors, **strides, **(numbers or {})},
        constexprs=constexprs,
        grid=grid,
        name=name,
        specialize=[dict.fromkeys((*tensors, *strides, *divided), 16), {}],
        num_warps=warps,
        target=ARCHS,
    )


def apart(dtype: str, stride: str, most: int = LARGEST) -> str:
    """Rows that are only read (`*k`), and may be apart; what is in a row lies side by side."""
    return f"*k{dtype}[m, 1<=n<={most}: {stride}, 1]"


def made(dtype: str) -> str:
    """A result: row after row."""
    return f"*{dtype}[m, n]"


def rms_norm(dtype: str, most: int) -> fe.Function:
    return compiled(
        kernels.rms_norm_kernel,
        "rms_norm",
        {
            "x": apart(dtype, "s_x", most),
            "weight": f"*k{dtype}[n]",
            "y": made(dtype),
            "rstd": "*fp32[m]",
        },
        lambda meta: (meta["x"].shape[0],),
        {"BLOCK": most},
        {"eps": "fp32"},
        warps=BUCKETS[most],
    )


def rms_norm_backward(dtype: str, most: int) -> fe.Function:
    return compiled(
        kernels.rms_norm_backward_kernel,
        "rms_norm_backward",
        {
            "grad_y": apart(dtype, "s_grad_y", most),
            "x": apart(dtype, "s_x", most),
            "weight": f"*k{dtype}[n]",
            "rstd": "*kfp32[m]",
            "grad_x": made(dtype),
            "parts": "*fp32[p>=1, n]",
        },
        lambda meta: (meta["parts"].shape[0],),
        {"BLOCK": most},
        warps=BUCKETS[most],
    )


def layer_norm(dtype: str, most: int) -> fe.Function:
    return compiled(
        kernels.layer_norm_kernel,
        "layer_norm",
        {
            "x": apart(dtype, "s_x", most),
            "weight": f"*k{dtype}[n]",
            "bias": f"*k{dtype}[n]",
            "y": made(dtype),
            "mean": "*fp32[m]",
            "rstd": "*fp32[m]",
        },
        lambda meta: (meta["x"].shape[0],),
        {"BLOCK": most},
        {"eps": "fp32"},
        warps=BUCKETS[most],
    )


def layer_norm_backward(dtype: str, most: int) -> fe.Function:
    return compiled(
        kernels.layer_norm_backward_kernel,
        "layer_norm_backward",
        {
            "grad_y": apart(dtype, "s_grad_y", most),
            "x": apart(dtype, "s_x", most),
            "weight": f"*k{dtype}[n]",
            "mean": "*kfp32[m]",
            "rstd": "*kfp32[m]",
            "grad_x": made(dtype),
            "weight_parts": "*fp32[p>=1, n]",
            "bias_parts": "*fp32[p>=1, n]",
        },
        lambda meta: (meta["weight_parts"].shape[0],),
        {"BLOCK": most},
        warps=BUCKETS[most],
    )


def swiglu(dtype: str) -> fe.Function:
    return compiled(
        kernels.swiglu_kernel,
        "swiglu",
        {name: apart(dtype, f"s_{name}") for name in "ab"} | {"y": made(dtype)},
        lambda meta: (meta["a"].shape[0], triton.cdiv(meta["a"].shape[1], meta["BLOCK"])),
        {"BLOCK": TILE},
    )


def swiglu_backward(dtype: str) -> fe.Function:
    return compiled(
        kernels.swiglu_backward_kernel,
        "swiglu_backward",
        {name: apart(dtype, f"s_{name}") for name in ("grad_y", "a", "b")}
        | {name: made(dtype) for name in ("grad_a", "grad_b")},
        lambda meta: (meta["a"].shape[0], triton.cdiv(meta["a"].shape[1], meta["BLOCK"])),
        {"BLOCK": TILE},
    )


def cross_entropy(dtype: str) -> fe.Function:
    return compiled(
        kernels.cross_entropy_kernel,
        "cross_entropy",
        {
            "logits": f"*k{dtype}[m, n>=1: s_logits, 1]",
            "target": "*ki64[m]",
            "loss": "*fp32[m]",
            "logsum": "*fp32[m]",
        },
        lambda meta: (meta["logits"].shape[0],),
        {"BLOCK": 4 * TILE},
        {"ignore_index": "i64"},
        warps=8,
    )


def cross_entropy_backward(dtype: str) -> fe.Function:
    return compiled(
        kernels.cross_entropy_backward_kernel,
        "cross_entropy_backward",
        {
            "grad_loss": "*kfp32[m]",
            "logits": f"*k{dtype}[m, n>=1: s_logits, 1]",
            "target": "*ki64[m]",
            "logsum": "*kfp32[m]",
            "grad_logits": made(dtype),
        },
        lambda meta: (meta["logits"].shape[0], triton.cdiv(meta["logits"].shape[1], meta["BLOCK"])),
        {"BLOCK": TILE},
        {"ignore_index": "i64"},
    )


def rope(dtype: str, backward: bool = False) -> fe.Function:
    """`x` is `[batch, position, head, 2 * half]`: half of the dim is at most 256."""
    b, s, h = (specs.sym_int32(symbol=name) for name in "bsh")
    half = specs.sym_int32(symbol="half", min=1, max=256)

    shape = b, s, h, 2 * half
    strides = *(specs.sym_int64(symbol=f"s_{dim}") for dim in range(3)), 1
    x = specs.Tensor("x", shape, DTYPES[dtype], strides=strides, read_only=True)
    tensors = [x, specs.Tensor("y", shape, DTYPES[dtype])]
    tensors += [
        specs.Tensor(name, (s, half), "float32", read_only=True) for name in ("cosines", "sines")
    ]
    return compiled(
        kernels.rope_kernel,
        "rope_backward" if backward else "rope",
        {each.name: each for each in tensors},
        lambda meta: (
            meta["x"].shape[0] * meta["x"].shape[1],
            triton.cdiv(meta["x"].shape[2], meta["HEADS"]),
        ),
        {"BACKWARD": backward, "HEADS": 4, "BLOCK": 256},
        divided=("half",),
    )


def rope_backward(dtype: str) -> fe.Function:
    return rope(dtype, backward=True)


RECIPES = [
    fe.Recipe(rms_norm, EACH_SIZE),
    fe.Recipe(rms_norm_backward, EACH_SIZE),
    fe.Recipe(layer_norm, EACH_SIZE),
    fe.Recipe(layer_norm_backward, EACH_SIZE),
    fe.Recipe(swiglu, EVERY),
    fe.Recipe(swiglu_backward, EVERY),
    fe.Recipe(cross_entropy, EVERY),
    fe.Recipe(cross_entropy_backward, EVERY),
    fe.Recipe(rope, EVERY),
    fe.Recipe(rope_backward, EVERY),
]

library = fe.Library(
    "rows",
    RECIPES,
    version="1.0.0",
    summary="Kernels of Triton that work row by row, forwards and backwards.",
    torch_ops=dict.fromkeys((each.name for each in RECIPES), ()),
)

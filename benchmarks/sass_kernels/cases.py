"""The kernels of `sass.py`: what compiles ours, the twin in `twins.cu`, and what is counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import gpu_kernels
from sass_kernels import ours

import ferrule as fe

Compiler = Callable[[str], fe.Function]


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel; `kernel` is ours where a function has several.

    `unit` is an instruction, as a regular expression: the hot loop is the innermost loop with the
    most of them, and its length is given for one of them.  A loop with an instruction of `without`
    is another one.
    """

    twin: str
    compiled: Compiler
    kernel: str = ""
    unit: str = ""
    without: str = "$."


def _example(name: str, *arguments: object, **keywords: object) -> Compiler:
    return lambda options: gpu_kernels.example(name).compiled(options, *arguments, **keywords)


def _tensor_core(options: str) -> fe.Function:
    example = gpu_kernels.example("tensor_core_matmul")
    return example.compiled(options, tiles=example.LARGE)


ADDED: Final = r"FFMA|FADD"
"""Of a multiplication and an addition there is one of these."""

STUDY: Final = (
    Case("add_1d", ours.compiled_add_1d),
    Case("add_2d", ours.compiled_add_2d),
    Case("saxpy", _example("saxpy")),
    Case("saxpy_vectors", ours.compiled_saxpy_vectors),
    Case("transpose", _example("transpose"), unit="STG"),
    Case("softmax", _example("softmax"), unit="STG", without=r"MUFU\.RCP"),
    Case("block_softmax", _example("block_softmax"), unit="STG", without=r"MUFU\.RCP"),
    Case("block_layer_norm", _example("block_layer_norm")),
    Case("parts", _example("reduction"), kernel="device_parts"),
    Case("stencil", ours.compiled_stencil),
    Case("row_gather", ours.compiled_row_gather),
    Case("paged_gather", _example("paged_kv_gather")),
    Case("conv2d", _example("conv2d"), unit=ADDED),
    Case("matmul", _example("matmul"), unit=ADDED),
    Case("sgemm_16", ours.compiled_sgemm_16, unit=ADDED),
    Case("tiled_matmul", _example("tiled_matmul"), unit=ADDED),
    Case("sgemm_64", ours.compiled_sgemm_64, unit=ADDED),
    Case("rotary", _example("rotary")),
    Case("histogram", _example("histogram"), kernel="device_histogram", unit="ATOMS"),
    Case("tensor_core_matmul", _tensor_core, unit="HMMA"),
)
MATHS: Final = (
    Case("exp_of", ours.compiled_elementwise(lambda x: fe.math.exp(x))),
    Case("log_of", ours.compiled_elementwise(lambda x: fe.math.log(x))),
    Case("tanh_of", ours.compiled_elementwise(lambda x: fe.math.tanh(x))),
    Case("sigmoid_of", ours.compiled_elementwise(lambda x: fe.math.sigmoid(x))),
    Case("erf_of", ours.compiled_elementwise(lambda x: fe.math.erf(x))),
    Case("rsqrt_of", ours.compiled_elementwise(lambda x: fe.math.rsqrt(x))),
    Case("sin_of", ours.compiled_elementwise(lambda x: fe.math.sin(x))),
    Case("gelu", ours.compiled_elementwise(ours.gelu)),
    Case("whole_1d", ours.compiled_whole_1d),
    Case("whole_2d", ours.compiled_whole_2d),
)

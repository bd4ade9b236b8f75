"""Triton kernels become TVM-FFI functions, which run without Triton.

    from ferrule.frontends import triton as frontend

    add = frontend.compile(add_kernel, signature={…}, constexprs={…}, grid=…, target="sm_90a")

Triton 3.6 and newer; it is imported when a kernel is compiled.
"""

from __future__ import annotations

from ferrule.frontends.told import fixed
from ferrule.frontends.triton.autotuned.choosing import by_size, fla_configs, vllm_configs
from ferrule.frontends.triton.autotuned.tuning import tune
from ferrule.frontends.triton.compiling import compile
from ferrule.frontends.triton.counting import Counts
from ferrule.frontends.triton.grids import ceil_div, maximum, minimum
from ferrule.frontends.triton.jobs import by_position
from ferrule.frontends.triton.makers import descriptor, empty, like, zeros
from ferrule.frontends.triton.recorded.launch import RecordedLaunch, Recorder
from ferrule.frontends.triton.recorded.recording import Launches, recording

__all__ = [
    "Counts",
    "Launches",
    "RecordedLaunch",
    "Recorder",
    "by_position",
    "by_size",
    "ceil_div",
    "compile",
    "descriptor",
    "empty",
    "fixed",
    "fla_configs",
    "like",
    "maximum",
    "minimum",
    "recording",
    "tune",
    "vllm_configs",
    "zeros",
]

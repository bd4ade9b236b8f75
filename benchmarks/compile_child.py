"""Compiles in a fresh process and prints the seconds as JSON; `compile_time.py` starts it.

The first compilation pays for importing LLVM. What is timed by stage comes after the second, so
that the clocks are in neither.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any, Final

import stages
import subjects

import ferrule as fe

LLVM: Final = """
define void @axpy(ptr %x, ptr %y, i64 %n) {{
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %end
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr float, ptr %x, i64 %i
  %to = getelementptr float, ptr %y, i64 %i
  %a = load float, ptr %from
  %b = load float, ptr %to
  %scaled = fmul float %a, {}.0
  %sum = fadd float %scaled, %b
  store float %sum, ptr %to
  %next = add nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""
"""A module as a generator writes it, with a number of its own."""


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def stage_split(work: Callable[[], object], repeated: int) -> dict[str, float]:
    """The median of each stage over some compilations."""
    found: dict[str, list[float]] = {}
    for _ in range(repeated):
        with stages.recorded() as clock:
            work()
        for stage, spent in clock.seconds.items():
            found.setdefault(stage, []).append(spent)
    return {stage: statistics.median(spent) for stage, spent in found.items()}


def first_calls(kernels: Any) -> dict[str, float]:
    """What the calls of a function of two arrays take at first, and of another of three."""
    import numpy as np

    vector, rows = subjects.vector(), subjects.row_major(fe.sym_int(), 8)
    options = subjects.OPTIONS
    two = fe.compile(kernels.add_one, vector, vector, options=options)
    three = fe.compile(kernels.rms_norm, rows, subjects.row_major(8), rows, options=options)
    x, y = np.ones((1, 8), np.float32), np.ones((1, 8), np.float32)
    return {
        "call_first": seconds(lambda: two(x[0], y[0])),
        "prepare_first": seconds(two.prepare),
        "call_other": seconds(lambda: three(x, y[0], y)),
        "prepare_other": seconds(three.prepare),
    }


def llvm_modules(repeated: int) -> dict[str, float]:
    """The seconds of `HostCode.from_llvm` for the first module of the process, and medians of
    `repeated` others and of the same ones again."""
    from ferrule.compiler.conventions import HostCode

    first, *texts = (LLVM.format(at) for at in range(repeated + 1))

    def read(text: str) -> float:
        return seconds(lambda: HostCode.from_llvm(text))

    return {
        "llvm_first": read(first),
        "llvm_new": statistics.median(map(read, texts)),
        "llvm_again": statistics.median(map(read, texts)),
    }


def main(repeated: int) -> None:
    """Compile add_one twice, then the other kernels; then each `repeated` times, by stage."""
    kernels = subjects.quickstart()

    def add_one(options: str = subjects.OPTIONS) -> Any:
        vector = subjects.vector()
        return fe.compile(kernels.add_one, vector, vector, options=options)

    def add_one_gpu() -> Any:
        return add_one(subjects.GPU_OPTIONS)

    def softmax() -> Any:
        rows = subjects.row_major(fe.sym_int(), fe.sym_int())
        return fe.compile(kernels.softmax, rows, rows, options=subjects.OPTIONS)

    def rms_norm() -> Any:
        m, k = fe.sym_int(), fe.sym_int()
        rows, weight = subjects.row_major(m, k), subjects.row_major(k)
        return fe.compile(kernels.rms_norm, rows, weight, rows, options=subjects.OPTIONS)

    whole = {
        "first": seconds(add_one),
        "second": seconds(add_one),
        "softmax": seconds(softmax),
        "rms_norm": seconds(rms_norm),
        "gpu_first": seconds(add_one_gpu),
        "gpu_second": seconds(add_one_gpu),
        **first_calls(kernels),
        **llvm_modules(repeated),
    }
    works = (add_one, softmax, rms_norm, add_one_gpu)
    split = {work.__name__: stage_split(work, repeated) for work in works}
    print(json.dumps({"whole": whole, "split": split}))

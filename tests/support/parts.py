"""Helpers of the tests of vectors, fragments and reductions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from agreement import run_all_ways

import ferrule as fe


def ramp(*shape: int, dtype: Any = np.float32) -> Any:
    return (np.arange(np.prod(shape)) + 1).astype(dtype).reshape(shape)


def run(function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """The arrays after a call, which the interpreter agrees with."""
    done = run_all_ways(function, arguments, plain=False)
    assert done.error is None, done.error
    return done.arrays()


def accesses(function: Callable[..., Any], *examples: Any) -> Counter[str]:
    """How often each instruction that reads or writes global memory stands in the PTX."""
    options = "--target cuda --gpu-arch sm_90a --index-bitwidth 32"
    ptx = fe.compile(function, *examples, options=options).inspect_ptx()
    return Counter(re.findall(r"(?:ld|st)\.global\S*", ptx))

"""Runs programs of the kernel language in plain Python, on NumPy arrays: their own reference.

`plain_python()` gives what is only a name outside of a compiled function a meaning for a while: a
launch is loops over blocks and threads, `fe.math` computes.  `agreement` compares the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.language.decorators import KernelFunction
from ferrule.language.faces import arch, maths

_FUNCTIONS = {
    "exp": np.exp,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "max": np.maximum,
    "min": np.minimum,
}


@dataclass
class _Call:
    """A kernel call before `.launch`."""

    function: Callable[..., None]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def launch(self, *, grid: Any, block: Any) -> None:
        sizes = [tuple(x) if isinstance(x, (tuple, list)) else (x,) for x in (grid, block)]
        grid, block = ((*x, 1, 1)[:3] for x in sizes)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(arch, "block_dim", lambda: block)
            patch.setattr(arch, "grid_dim", lambda: grid)
            for b, t in product(product(*map(range, grid)), product(*map(range, block))):
                patch.setattr(arch, "block_idx", lambda b=b: b)
                patch.setattr(arch, "thread_idx", lambda t=t: t)
                self.function(*self.args, **self.kwargs)


@contextmanager
def plain_python() -> Iterator[None]:
    """Inside, kernels can be launched and `fe.math` computes, without a compiler."""
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        patch.setattr(KernelFunction, "__call__", lambda k, *a, **kw: _Call(k.function, a, kw))
        for name, function in _FUNCTIONS.items():
            patch.setattr(maths, name, function)
        yield


Program = tuple[Callable[..., None], tuple[Any, ...]]


def collect(programs: list[Program]) -> Callable[..., Any]:
    """A decorator with arguments, which adds a program and copies of them to the list."""

    def program(*arguments: Any) -> Callable[..., Any]:
        def add(function: Callable[..., None]) -> Callable[..., None]:
            programs.append((function, arguments))
            return function

        return add

    return program


def f32(*values: float) -> Any:
    return np.array(values, np.float32)


def i32(*values: int) -> Any:
    return np.array(values, np.int32)


def zeros(*shape: int, dtype: Any = np.float32) -> Any:
    return np.zeros(shape, dtype)


def ramp(*shape: int) -> Any:
    return np.arange(math.prod(shape), dtype=np.float32).reshape(shape)


def examples(*arguments: Any) -> list[Any]:
    """Arguments as examples: arrays become fake tensors of symbolic sizes, row-major."""

    def example(argument: Any) -> Any:
        if not isinstance(argument, np.ndarray):
            return argument
        shape = tuple(fe.sym_int() for _ in argument.shape)
        order = tuple(reversed(range(argument.ndim)))
        return fe.make_fake_compact_tensor(argument.dtype.name, shape, stride_order=order)

    return [example(argument) for argument in arguments]

"""A kernel in three languages: ferrule, Numba's loops, and C."""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

import ferrule as fe

_HEAD: Final = """#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
"""

FLAGS: Final = ("-O3", "-march=native", "-shared", "-fPIC", "-lm")

_NUMBERS: Final = {int: ("long", ctypes.c_long), float: ("float", ctypes.c_float)}
_ELEMENTS: Final = {"float32": "float", "float64": "double"}


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel: `ours` is a `@fe.jit` function, `loops` the function for Numba, `c` the body of a
    C function.  Its parameters have these `names`, and a 2-D array `a` brings its sizes, `a0` and
    `a1`.

    `arguments` makes them for a size: arrays, ints and floats; the last `outputs` arrays are
    written.  `size` is the size that is measured; the work grows with its `power`.  `fast`: sums in
    any order are allowed to all.
    """

    name: str
    ours: Any
    loops: Callable[..., None]
    names: str
    c: str
    arguments: Callable[[int], Sequence[Any]]
    size: int
    outputs: int = 1
    fast: bool = False
    tolerance: float = 2e-4
    power: int = 1

    def compiled(self, arguments: Sequence[Any]) -> fe.Function:
        """The function for arrays of these ranks and dtypes, of any sizes."""
        examples = [example_of(argument) for argument in arguments]
        return fe.compile(self.ours, *examples, options="--target cpu --no-cache").prepare()

    def numba(self) -> Any:
        """The loops, to be compiled by Numba at their first call."""
        import numba

        return numba.njit(fastmath=self.fast)(self.loops)

    def native(self, arguments: Sequence[Any]) -> Callable[[], None]:
        """A call of the C function with these arguments."""
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder) / "k.c", Path(folder) / "k.so"
            source.write_text(_HEAD + f"void k({self._parameters(arguments)}) {{{self.c}}}\n")
            more = ("-ffast-math",) if self.fast else ()
            compiler = os.environ.get("CC", "gcc")
            subprocess.run([compiler, str(source), "-o", str(library), *FLAGS, *more], check=True)
            function = ctypes.CDLL(str(library)).k
        function.restype = None
        given = [part for argument in arguments for part in _as_c(argument)]
        return lambda: function(*given)

    def _parameters(self, arguments: Sequence[Any]) -> str:
        parts = []
        for name, argument in zip(self.names.split(), arguments, strict=True):
            if isinstance(argument, np.ndarray):
                element = _ELEMENTS.get(argument.dtype.name, f"{argument.dtype.name}_t")
                parts.append(f"{element} *restrict {name}")
                parts += [f"long {name}{axis}" for axis in range(argument.ndim)]
            else:
                parts.append(f"{_NUMBERS[type(argument)][0]} {name}")
        return ", ".join(parts)


def example_of(argument: Any) -> Any:
    """The example for an argument: the sizes of an array are free."""
    if isinstance(argument, np.ndarray):
        shape = tuple(fe.sym_int() for _ in argument.shape)
        return fe.row_major(shape, argument.dtype.name)
    return fe.Float32 if isinstance(argument, float) else fe.Int32


def _as_c(argument: Any) -> list[Any]:
    """The arguments in C for one: an address and sizes, or a number."""
    if isinstance(argument, np.ndarray):
        return [argument.ctypes.data_as(ctypes.c_void_p), *map(ctypes.c_long, argument.shape)]
    return [_NUMBERS[type(argument)][1](argument)]


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    """Numbers between -1 and 1."""
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Room for results."""
    return np.zeros(shape, dtype)

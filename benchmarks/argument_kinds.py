"""What arguments of many kinds cost, beside tvm-ffi's own conversion of the same values.

    python benchmarks/argument_kinds.py [--quick] [--json FILE]

One side is a compiled function with one checked parameter, the other `testing.nop` of tvm-ffi: a
function of C++ that takes anything and looks at nothing.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import subjects
import tvm_ffi
from harness import (
    FULL,
    NS,
    QUICK,
    Effort,
    Goal,
    Result,
    Row,
    Table,
    arguments,
    call_side,
    finish,
    measure,
)

import ferrule as fe

FERRULE: Final = "ferrule"
GENERIC: Final = "tvm-ffi"


class Pair(NamedTuple):
    a: fe.Int32
    b: fe.Float32


@dataclass
class Point:
    a: fe.Int32
    b: fe.Float32


class Opaque:
    def __tvm_ffi_opaque_ptr__(self) -> int:
        return 4096


class Stream:
    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 4096


def takes_pair(p: Pair):
    pass


def takes_point(p: Point):
    pass


def takes_pointer(p: fe.Pointer):
    pass


def takes_stream(s: Any):
    pass


def takes_shape(s: fe.Shape):
    pass


def takes_int(i: fe.Int64):
    pass


def takes_tensor(a: fe.Tensor):
    pass


def _kinds() -> Iterator[tuple[str, Any, Any, Any]]:
    """Name, function, its example, and the value of a call."""
    array = np.zeros(4, np.float32)
    sizes = (fe.sym_int(), fe.sym_int())
    address = fe.make_ptr(fe.Float32, 0)
    yield "a named tuple", takes_pair, Pair(1, 2.0), Pair(1, 2.0)
    yield "a dataclass", takes_point, Point(1, 2.0), Point(1, 2.0)
    yield "a tuple as a shape", takes_shape, sizes, (3, 4)
    yield "an int of NumPy", takes_int, fe.Int64, np.int64(3)
    yield "an array of rank 0", takes_tensor, np.zeros((), np.float32), np.zeros((), np.float32)
    yield "`ctypes.c_void_p`", takes_pointer, address, ctypes.c_void_p(4096)
    yield "`ctypes.pointer`", takes_pointer, address, ctypes.pointer(ctypes.c_float(1))
    yield "an object with an address", takes_pointer, address, Opaque()
    yield "a stream", takes_stream, fe.make_fake_stream(), Stream()
    yield "`from_dlpack`", takes_tensor, array, fe.runtime.from_dlpack(array)


def rows(effort: Effort) -> Iterator[Row]:
    """One row for each kind; a side that does not take the value is left out."""
    nothing = tvm_ffi.get_global_func("testing.nop")
    for name, function, example, value in _kinds():
        made = fe.compile(function, example, options=subjects.OPTIONS).prepare()
        sides = [call_side(FERRULE, made, (value,), effort)]
        try:
            nothing(value)
        except (TypeError, RuntimeError):
            pass
        else:
            sides.append(call_side(GENERIC, nothing, (value,), effort))
        made(value)
        yield measure(name, sides, effort)


def run(effort: Effort) -> Result:
    """The table, and its goal."""
    found = tuple(rows(effort))
    table = Table("Arguments of many kinds", NS, found, (FERRULE, GENERIC))
    worst = max(ratio for row in found if (ratio := row.ratio(FERRULE, GENERIC)) is not None)
    goal = Goal("an argument of any kind, over tvm-ffi's own conversion", 1.0, worst, "×")
    return Result((table,), (goal,))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("What arguments of many kinds cost", argv)
    finish("argument_kinds", run(QUICK if given.quick else FULL), given)


if __name__ == "__main__":
    main()

"""Calls of C functions from Python, beside nanobind and ctypes.

    python benchmarks/c_calls.py [--quick] [--json FILE]

All sides call the same functions of one object, compiled by the C compiler: `ddot` of 8 elements,
`whole`, which writes a number, and `split`, which returns a number and writes another.  nanobind's
take arrays of any kind, without checks of dtype, size or strides; ferrule's check all of them.  All
keep the GIL but ctypes.  The goal for `ddot` is 1.2 times as long as nanobind's.  A tuple is an
object that a function of tvm-ffi makes.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import callers
import numpy as np
from harness import (
    FULL,
    NS,
    QUICK,
    Effort,
    Goal,
    Result,
    Row,
    Skipped,
    Table,
    arguments,
    call_side,
    finish,
    measure,
)

from ferrule import compiler, specs
from ferrule.compiler.conventions import CFunction, HostCode, Out, cast
from ferrule.specs import Scalar, Signature, Tensor

FERRULE: Final = "ferrule"
NANOBIND: Final = "nanobind, no checks"
CTYPES: Final = "ctypes"
DDOT: Final = "ddot of 8 elements"
WHOLE: Final = "an out value"
SPLIT: Final = "a number and an out value, a tuple"
KEEP: Final = "--release-gil false"
MOST: Final = 1.2
"""Times as long as nanobind."""

SOURCE: Final = """
double peer_ddot(int n, const double *x, int step_x, const double *y, int step_y) {
  double all = 0;
  for (int i = 0; i < n; i++) all += x[i * step_x] * y[i * step_y];
  return all;
}
void peer_whole(double x, int *whole) { *whole = (int)x; }
double peer_split(double x, int *whole) { *whole = (int)x; return x - *whole; }
"""

_NANOBIND: Final = """
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
namespace nb = nanobind;
extern "C" double peer_ddot(int, const double*, int, const double*, int);
extern "C" void peer_whole(double, int*);
extern "C" double peer_split(double, int*);
NB_MODULE(nanobind_c, m) {
  m.def("ddot", [](nb::ndarray<> x, nb::ndarray<> y) {
    return peer_ddot(x.shape(0), (const double*)x.data(), 1, (const double*)y.data(), 1);
  });
  m.def("whole", [](double x) {
    int whole;
    peer_whole(x, &whole);
    return whole;
  });
  m.def("split", [](double x) {
    int whole;
    double rest = peer_split(x, &whole);
    return std::make_pair(rest, whole);
  });
}
"""

Functions = Mapping[str, Any]


def compiled(folder: Path) -> Path:
    """The object of the C functions.  Raises `Missing` without a C compiler."""
    if shutil.which("cc") is None:
        raise callers.Missing("there is no C compiler")
    source, target = folder / "peer.c", folder / "peer.o"
    source.write_text(SOURCE, encoding="utf-8")
    subprocess.run(["cc", "-O2", "-fPIC", "-c", str(source), "-o", str(target)], check=True)
    return target


def ferrule(made: Path) -> Functions:
    """As a user writes them."""
    code, n = HostCode.from_object(made), specs.sym_int(symbol="n")
    x, y = (Tensor(name, (n,), "float64") for name in ("x", "y"))
    one = cast(1, "int32")
    dot = CFunction("peer_ddot", [n, x.data, one, y.data, one], returns="float64", code=code)
    k = Scalar("k", "float64")
    whole = CFunction("peer_whole", [k, Out("int32")], code=code)
    split = CFunction("peer_split", [k, Out("int32")], returns="float64", code=code)
    return {
        DDOT: compiler.build(Signature("ddot", [x, y]), dot, options=KEEP),
        WHOLE: compiler.build(Signature("whole", [k]), whole, options=KEEP),
        SPLIT: compiler.build(Signature("split", [k]), split, options=KEEP),
    }


def nanobind(made: Path, folder: Path) -> Functions:
    """A module of nanobind.  Raises `Missing`."""
    module = callers.nanobind_module("nanobind_c", _NANOBIND, folder, [made])
    return {DDOT: module.ddot, WHOLE: module.whole, SPLIT: module.split}


def with_ctypes(made: Path, folder: Path) -> Functions:
    """A function of Python around each, which makes the pointers."""
    library = folder / "libpeer.so"
    subprocess.run(["cc", "-shared", str(made), "-o", str(library)], check=True)
    loaded = ctypes.CDLL(str(library))
    dot, written, parted = loaded.peer_ddot, loaded.peer_whole, loaded.peer_split
    dot.restype = parted.restype = ctypes.c_double
    dot.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
    parted.argtypes = written.argtypes = [ctypes.c_double, ctypes.POINTER(ctypes.c_int)]
    written.restype = None

    def ddot(x: Any, y: Any) -> float:
        return float(dot(len(x), x.ctypes.data, 1, y.ctypes.data, 1))

    def whole(k: float) -> int:
        found = ctypes.c_int()
        written(k, ctypes.byref(found))
        return found.value

    def split(k: float) -> tuple[float, int]:
        whole = ctypes.c_int()
        rest = parted(k, ctypes.byref(whole))
        return rest, whole.value

    return {DDOT: ddot, WHOLE: whole, SPLIT: split}


def run_row(name: str, sides: Mapping[str, Functions], args: Sequence[Any], effort: Effort) -> Row:
    """Compares the results, then the times."""
    results = [functions[name](*args) for functions in sides.values()]
    assert all(each == results[0] for each in results), results
    measured = [call_side(side, found[name], args, effort) for side, found in sides.items()]
    return measure(name, measured, effort)


def run(folder: Path, effort: Effort) -> Result:
    """Measures all of it."""
    made, skipped = compiled(folder), []
    sides = {FERRULE: ferrule(made)}
    try:
        sides[NANOBIND] = nanobind(made, folder)
    except callers.Missing as missing:
        skipped.append(Skipped(NANOBIND, str(missing)))
    sides[CTYPES] = with_ctypes(made, folder)
    x = np.arange(8.0)
    given = {DDOT: (x, x + 1), WHOLE: (3.25,), SPLIT: (3.25,)}
    rows = tuple(run_row(name, sides, args, effort) for name, args in given.items())
    goals = tuple(
        Goal(f"{row.name}, over nanobind", MOST, row.ratio(FERRULE, NANOBIND), "times")
        for row in rows[:1]
    )
    table = Table("A call from Python", NS, rows, (FERRULE, NANOBIND))
    return Result((table,), goals, tuple(skipped))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("Calls of C functions from Python", argv)
    with tempfile.TemporaryDirectory() as folder:
        finish("c_calls", run(Path(folder), QUICK if given.quick else FULL), given)


if __name__ == "__main__":
    main()

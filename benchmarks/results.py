"""What it costs to get something back.

    python benchmarks/results.py [--quick] [--json FILE]

A function that returns one new torch tensor stands beside `torch.empty` of the same size, and one
that makes a tensor for itself beside both: all ask torch's allocator.  The other rows are results
beside a function of the same parameter that returns nothing.  Calls that compiled code makes of
other functions stand beside one in C of a function that is not inlined; a loop makes many.
"""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import subjects
from harness import (
    FULL,
    NS,
    QUICK,
    Effort,
    Goal,
    Result,
    Row,
    Side,
    Skipped,
    Table,
    arguments,
    block_side,
    call_side,
    finish,
    measure,
)

import ferrule as fe

RETURNED: Final = "returned"
SCRATCH: Final = "for itself"
TORCH: Final = "torch.empty"
FERRULE: Final = "ferrule"
NOTHING: Final = "returns nothing"
LINKED: Final = "compiled, proved"
CHECKED: Final = "compiled, checked"
EXTERN: Final = "extern_func"
CALL: Final = "fe.call"
C_CALL: Final = "in C"
CALLS: Final = 100_000
SIZES: Final = (1 << 10, 1 << 16)


@fe.jit
def like(a: fe.Tensor):
    return fe.empty_like(a)


@fe.jit
def scratch(a: fe.Tensor):
    b = fe.empty_like(a)
    a[0] = b[0]


@fe.jit
def number(i: fe.Int64):
    return i


@fe.jit
def pair(i: fe.Int64):
    return i, i


@fe.jit
def text(i: fe.Int64):
    return "a string on the heap"


def tensor_rows(effort: Effort) -> Iterator[Row]:
    """New torch tensors."""
    import torch

    returned, own = (
        fe.compile(function, subjects.vector(), options=subjects.OPTIONS)
        for function in (like, scratch)
    )
    for size in SIZES:
        tensor = torch.zeros(size)
        sides = [
            call_side(RETURNED, returned, (tensor,), effort),
            call_side(SCRATCH, own, (tensor,), effort),
            call_side(TORCH, torch.empty, (size,), effort),
        ]
        yield measure(f"{size} float32", sides, effort)


def value_rows(effort: Effort) -> Iterator[Row]:
    """Other results."""
    kinds: dict[str, Any] = {"an int": number, "a tuple of two ints": pair, "a string": text}
    base = fe.compile(subjects.one_int, fe.Int64, options=subjects.OPTIONS)
    for name, function in kinds.items():
        made = fe.compile(function, fe.Int64, options=subjects.OPTIONS)
        sides = [
            call_side(FERRULE, made, (7,), effort),
            call_side(NOTHING, base, (7,), effort),
        ]
        yield measure(name, sides, effort)


@fe.jit
def next_one(x: fe.Int64) -> fe.Int64:
    return x * 2 + 1


@fe.jit
def rows(a: fe.Tensor, b: fe.Tensor) -> fe.Int64:
    return fe.Int64(a.shape[0])


def looped(way: Any, *examples: Any) -> fe.Function:
    """A function that calls another one as often as its last argument says."""

    def numbers(n: fe.Int64) -> fe.Int64:
        x = fe.Int64(1)
        for _ in range(n):
            x = way(x)
        return x

    def tensors(a: fe.Tensor, b: fe.Tensor, n: fe.Int64) -> fe.Int64:
        x = fe.Int64(1)
        for _ in range(n):
            x += way(a, b)
        return x

    function = tensors if examples else numbers
    return fe.compile(function, *examples, fe.Int64, options=subjects.OPTIONS)


def call_rows(effort: Effort) -> Iterator[Row]:
    """Calls of another compiled function."""
    numbers = fe.compile(next_one, fe.Int64, options=subjects.OPTIONS)
    tensors = fe.compile(rows, _vector("n"), _vector("n"), options=subjects.OPTIONS)
    one, other = np.zeros(4, np.float32), np.zeros(4, np.float32)
    yield _call_row("a number", numbers, (), (), (), effort)
    proved, checked = ((_vector("n"), _vector(name)) for name in ("n", "m"))
    yield _call_row("two tensors", tensors, proved, checked, (one, other), effort)


def _vector(symbol: str) -> Any:
    return fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(symbol=symbol),))


def _call_row(
    name: str,
    function: fe.Function,
    proved: Sequence[Any],
    checked: Sequence[Any],
    values: Sequence[Any],
    effort: Effort,
) -> Row:
    registered = f"ferrule.benchmarks.{name}"
    fe.register_global_func(registered, function, override=True)
    extern = fe.extern_func(function.name, function=function, result=fe.Int64)

    def by_name(*given: Any) -> Any:
        return fe.call(registered, *given, result=fe.Int64)

    ways: dict[str, tuple[Any, Sequence[Any]]] = {
        LINKED: (function, proved),
        EXTERN: (extern, checked),
        CALL: (by_name, checked),
    }
    if checked:
        ways[CHECKED] = (function, checked)
    sides = [_per_call(way, looped(*how[:1], *how[1]), values) for way, how in ways.items()]
    library = c_library()
    if library is not None:
        sides.append(_per_call(C_CALL, library.calls, ()))
    return measure(name, sides, effort)


def _per_call(name: str, function: Any, values: Sequence[Any]) -> Side:
    """One of the calls that a function makes as often as its last argument says."""
    side = block_side(name, lambda: function(*values, CALLS))
    return Side(name, lambda: side.sample() / CALLS)


@cache
def c_library() -> Any:
    """A loop in C that calls a function; None where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    folder = Path(tempfile.mkdtemp())
    source, library = folder / "calls.c", folder / "libcalls.so"
    source.write_text(
        "#include <stdint.h>\n"
        "__attribute__((noinline, noipa)) int64_t next(int64_t x) { return x * 2 + 1; }\n"
        "int64_t calls(int64_t n) {\n"
        "  int64_t x = 1;\n"
        "  for (int64_t i = 0; i < n; ++i) x = next(x);\n"
        "  return x;\n}\n"
    )
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.calls.argtypes, loaded.calls.restype = [ctypes.c_int64], ctypes.c_int64
    shutil.rmtree(folder)
    return loaded


def run(effort: Effort) -> Result:
    """Measure all of it."""
    values = Table("Results", NS, tuple(value_rows(effort)), (FERRULE, NOTHING))
    calls = tuple(call_rows(effort))
    made = Table("Calls in compiled code", NS, calls)
    goals = list(_call_goals(calls))
    if importlib.util.find_spec("torch") is None:
        skipped = (Skipped("torch tensors", "PyTorch is not installed"),)
        return Result((values, made), tuple(goals), skipped)
    rows = tuple(tensor_rows(effort))
    goals += [
        Goal(f"a new tensor of {row.name}, over torch.empty", 1.3, row.ratio(RETURNED, TORCH), "×")
        for row in rows
    ]
    tensors = Table("One new torch tensor", NS, rows, (RETURNED, TORCH))
    return Result((tensors, values, made), tuple(goals))


def _call_goals(rows: Sequence[Row]) -> Iterator[Goal]:
    for row in rows:
        known = {side.name: side.median for side in row.sides}
        if C_CALL in known:
            over = (known[LINKED] - known[C_CALL]) * 1e9
            yield Goal(f"a call with {row.name}, over a C call", 3, over, "ns")


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("What results cost", argv)
    finish("results", run(QUICK if given.quick else FULL), given)


if __name__ == "__main__":
    main()

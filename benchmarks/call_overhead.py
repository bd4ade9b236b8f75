"""What a call from Python costs.

    python benchmarks/call_overhead.py [--quick] [--json FILE]

Every function here has an empty body. ferrule's function, which checks each argument, stands beside
a `tvm_ffi` function that returns at once, and beside C++ through `tvm_ffi.cpp.load_inline`, without
checks and with the same ones written by hand. What the checks cost by themselves is in `checks.py`.

No view of a tensor is kept alive: PyTorch hands out a tensor in half the time while something else
holds it.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import peers
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
    Skipped,
    Table,
    arguments,
    call_side,
    finish,
    measure,
)

import ferrule as fe

FERRULE: Final = "ferrule"
PLAIN: Final = "unchecked tvm_ffi"
CPP: Final = "C++"
CPP_CHECKED: Final = "C++ with checks"
SHAPE: Final = (64, 32)


@dataclass(frozen=True, slots=True)
class Subjects:
    """The functions; `cpp` is None where there is no C++ compiler."""

    nothing: fe.Function
    one_int: fe.Function
    tensors: dict[int, fe.Function]
    unchecked: Any
    cpp: Any


@dataclass(frozen=True, slots=True)
class Case:
    """A row from Python: arguments, ferrule's function, and the names of the C++ ones."""

    name: str
    function: fe.Function
    args: Sequence[Any]
    cpp: tuple[str, ...]


def make_subjects(folder: Path, cpp: bool) -> Subjects:
    """Compile all of them."""
    empty = subjects.write_empty_functions(folder, peers.COUNTS)
    return Subjects(
        fe.compile(subjects.nothing, options=subjects.OPTIONS),
        fe.compile(subjects.one_int, fe.Int64, options=subjects.OPTIONS),
        {n: subjects.compile_empty(function, n, 2) for n, function in empty.items()},
        peers.unchecked(),
        peers.cpp_functions(folder / "cpp") if cpp else None,
    )


# ---- from Python ----


def cases(made: Subjects) -> Iterator[Case]:
    """The rows."""
    yield Case("no arguments", made.nothing, (), ("plain_nothing",))
    yield Case("one int", made.one_int, (7,), ("plain_int",))
    kinds: list[tuple[str, Callable[[], Any], Sequence[int]]] = [
        ("NumPy array", lambda: np.zeros(SHAPE, dtype=np.float32), peers.COUNTS)
    ]
    if _has_torch():
        kinds.append(("PyTorch tensor", _torch_tensor, peers.COUNTS))
    kinds.append(("tvm_ffi tensor", _ffi_tensor, (3,)))
    for kind, make, counts in kinds:
        for count in counts:
            args = [make() for _ in range(count)]
            names = (f"plain{count}", f"checked{count}")
            plural = "s" if count > 1 else ""
            yield Case(f"{count} {kind}{plural}", made.tensors[count], args, names)


def _has_torch() -> bool:
    return importlib.util.find_spec("torch") is not None


def _torch_tensor() -> Any:
    import torch

    return torch.zeros(SHAPE, dtype=torch.float32)


def _ffi_tensor() -> Any:
    return tvm_ffi.from_dlpack(np.zeros(SHAPE, dtype=np.float32))


def python_row(made: Subjects, case: Case, effort: Effort) -> Row:
    """All sides of a row."""
    functions = {FERRULE: case.function, PLAIN: made.unchecked}
    if made.cpp is not None:
        found = zip((CPP, CPP_CHECKED), case.cpp, strict=False)
        functions.update({side: made.cpp[name] for side, name in found})
    sides = [call_side(side, f, case.args, effort) for side, f in functions.items()]
    return measure(case.name, sides, effort)


def keyword_row(made: Subjects, effort: Effort) -> Row:
    """The same call by keyword, for which tvm-ffi has a wrapper in Python."""
    from tvm_ffi.utils.kwargs_wrapper import make_kwargs_wrapper

    given = {f"t{i}": np.zeros(SHAPE, dtype=np.float32) for i in range(3)}
    plain = make_kwargs_wrapper(made.unchecked, list(given))
    functions: dict[str, Callable[..., Any]] = {FERRULE: made.tensors[3], PLAIN: plain}
    sides = [call_side(side, f, (), effort, given) for side, f in functions.items()]
    return measure("3 NumPy arrays by keyword", sides, effort)


# ---- the whole ----


def goals(python: Sequence[Row]) -> Iterator[Goal]:
    """What the figures are held against."""
    for row in python:
        ratio = row.ratio(FERRULE, PLAIN)
        more = None if ratio is None else (ratio - 1) * 100
        yield Goal(f"a positional call, {row.name}: over the unchecked function", 5, more, "%")


def run(effort: Effort, missing: str | None, folder: Path) -> Result:
    """Measure all of it; `missing`: why there is no C++."""
    made = make_subjects(folder, cpp=missing is None)
    python = [python_row(made, case, effort) for case in cases(made)]
    skipped = [Skipped("tvm_ffi.cpp.load_inline", missing)] if missing else []
    if not _has_torch():
        skipped.append(Skipped("PyTorch tensors", "PyTorch is not installed"))
    rows = (*python, keyword_row(made, effort))
    table = Table("A call from Python", NS, rows, (FERRULE, PLAIN))
    return Result((table,), tuple(goals(python)), tuple(skipped))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("What a call costs", argv)
    missing = "not with --quick" if given.quick else peers.cpp_missing()
    with tempfile.TemporaryDirectory() as folder:
        result = run(QUICK if given.quick else FULL, missing, Path(folder))
        finish("call_overhead", result, given)


if __name__ == "__main__":
    main()

"""What a call from Python costs.

    python benchmarks/call_overhead.py [--quick] [--json FILE]

Every function here has an empty body, so that ferrule keeps the GIL; "released" is the same
function with the GIL released. ferrule's function, which checks each argument, stands beside a
`tvm_ffi` function that returns at once, beside C++ through `tvm_ffi.cpp.load_inline`, without
checks and with the same ones written by hand, and beside other ways to call C. What the checks
cost by themselves is in `checks.py`.

No view of a tensor is kept alive: PyTorch hands out a tensor in half the time while something
else holds it.
"""

from __future__ import annotations

import gc
import importlib.util
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import callers
import numpy as np
import peers
import subjects
import tvm_ffi
from harness import (
    FULL,
    NS,
    QUICK,
    Effort,
    Facts,
    Goal,
    Result,
    Row,
    Side,
    Skipped,
    Table,
    arguments,
    call_side,
    finish,
    measure,
)

import ferrule as fe

FERRULE: Final = "ferrule"
RELEASED: Final = "GIL released"
PLAIN: Final = "unchecked tvm_ffi"
CPP: Final = "C++"
CPP_CHECKED: Final = "C++ with checks"
NOTHING_IN_C: Final = "a builtin that does nothing"
SHAPE: Final = (64, 32)

RATIOS: Final = {
    callers.NOTHING: 0.20,
    callers.ONE_INT: 0.20,
    callers.arrays(1): 0.15,
    callers.arrays(3): 0.10,
    callers.arrays(8): 0.08,
    callers.tensors(1): 0.15,
    callers.tensors(3): 0.12,
    callers.tensors(8): 0.10,
    callers.ffi_tensors(3): 0.50,
}
"""Goals: the call over that of the unchecked function of tvm-ffi."""


@dataclass(frozen=True, slots=True)
class Subjects:
    """The functions; `released` are the same with the GIL released, `cpp` may be missing."""

    kept: dict[str, fe.Function]
    released: dict[str, fe.Function]
    tensors: dict[int, fe.Function]
    tensors_released: dict[int, fe.Function]
    unchecked: Any
    cpp: Any


@dataclass(frozen=True, slots=True)
class Case:
    """A row from Python: arguments, ferrule's functions, and the names of the C++ ones."""

    name: str
    function: fe.Function
    released: fe.Function
    args: Sequence[Any]
    cpp: tuple[str, ...]


def make_subjects(folder: Path, cpp: bool) -> Subjects:
    """Compile all of them."""
    empty = subjects.write_empty_functions(folder, peers.COUNTS)

    def plain() -> dict[str, fe.Function]:
        return {
            "nothing": fe.compile(subjects.nothing, options=subjects.OPTIONS),
            "one_int": fe.compile(subjects.one_int, fe.Int64, options=subjects.OPTIONS),
        }

    def taking() -> dict[int, fe.Function]:
        return {n: subjects.compile_empty(function, n, 2) for n, function in empty.items()}

    made = Subjects(
        plain(),
        plain(),
        taking(),
        taking(),
        peers.unchecked(),
        peers.cpp_functions(folder / "cpp") if cpp else None,
    )
    for function in (*made.released.values(), *made.tensors_released.values()):
        function.release_gil = True
    return made


# ---- from Python ----


def cases(made: Subjects) -> Iterator[Case]:
    """The rows."""
    kept, released = made.kept, made.released
    yield Case(callers.NOTHING, kept["nothing"], released["nothing"], (), ("plain_nothing",))
    yield Case(callers.ONE_INT, kept["one_int"], released["one_int"], (7,), ("plain_int",))
    kinds: list[tuple[Callable[[int], str], Callable[[], Any], Sequence[int]]] = [
        (callers.arrays, _array, peers.COUNTS)
    ]
    if _has_torch():
        kinds.append((callers.tensors, _torch_tensor, peers.COUNTS))
    kinds.append((callers.ffi_tensors, _ffi_tensor, (3,)))
    for name, make, counts in kinds:
        for count in counts:
            args = [make() for _ in range(count)]
            names = (f"plain{count}", f"checked{count}")
            functions = made.tensors[count], made.tensors_released[count]
            yield Case(name(count), *functions, args, names)


def _has_torch() -> bool:
    return importlib.util.find_spec("torch") is not None


def _array() -> Any:
    return np.zeros(SHAPE, dtype=np.float32)


def _torch_tensor() -> Any:
    import torch

    return torch.zeros(SHAPE, dtype=torch.float32)


def _ffi_tensor() -> Any:
    return tvm_ffi.from_dlpack(_array())


def python_row(made: Subjects, case: Case, effort: Effort) -> Row:
    """All sides of a row."""
    functions = {FERRULE: case.function, RELEASED: case.released, PLAIN: made.unchecked}
    if made.cpp is not None:
        found = zip((CPP, CPP_CHECKED), case.cpp, strict=False)
        functions.update({side: made.cpp[name] for side, name in found})
    sides = [call_side(side, f, case.args, effort) for side, f in functions.items()]
    return measure(case.name, sides, effort)


def keyword_rows(made: Subjects, effort: Effort) -> Iterator[Row]:
    """Calls by keyword, for which tvm-ffi has a wrapper in Python."""
    from tvm_ffi.utils.kwargs_wrapper import make_kwargs_wrapper

    plain = make_kwargs_wrapper(made.unchecked, [f"t{i}" for i in range(3)])
    kinds = [("NumPy arrays", _array)] + [("PyTorch tensors", _torch_tensor)] * _has_torch()
    for kind, make in kinds:
        first, *others = (make() for _ in range(3))
        named = {f"t{i}": each for i, each in enumerate(others, 1)}
        functions: dict[str, Callable[..., Any]] = {FERRULE: made.tensors[3], PLAIN: plain}
        sides = [call_side(side, f, (first,), effort, named) for side, f in functions.items()]
        yield measure(f"3 {kind}, two by keyword", sides, effort)


def bound_row(made: Subjects, effort: Effort) -> Row:
    """A call whose arguments were bound before."""
    args = [_array(), _array(), _array()]
    sides = [
        call_side(FERRULE, made.tensors[3].bind(*args), (), effort),
        call_side(PLAIN, made.unchecked, args, effort),
    ]
    return measure("3 NumPy arrays, bound before", sides, effort)


def refused_row(made: Subjects, effort: Effort, checked: Any) -> Row:
    """A call that is refused: raise and catch."""
    args = [_array(), _array(), _array().astype(np.float64)]
    functions = {FERRULE: made.tensors[3]} | ({CPP_CHECKED: checked} if checked else {})
    sides = [_refused_side(name, function, args, effort) for name, function in functions.items()]
    fails = tvm_ffi.get_global_func("testing.test_raise_error", allow_missing=True)
    if fails is not None:
        given = ("ValueError", "the third one is of another dtype")
        sides.append(_refused_side(PLAIN, fails, given, effort))
    return measure("a refused call, raised and caught", sides, effort)


def _refused_side(name: str, function: Any, args: Sequence[Any], effort: Effort) -> Side:
    def attempt() -> None:
        try:
            function(*args)
        except Exception:
            return
        raise AssertionError("the call was accepted")

    return call_side(name, attempt, (), effort)


# ---- beside others ----


def other_rows(
    made: Subjects, folder: Path, effort: Effort, skipped: list[Skipped]
) -> Iterator[Row]:
    """The same calls of functions that others make; what is missing goes to `skipped`."""
    found: dict[str, callers.Functions] = {}
    for name, make in callers.MAKERS.items():
        try:
            found[name] = make(folder / name)
        except callers.Missing as reason:
            skipped.append(Skipped(name, str(reason)))
    for case in cases(made):
        functions: dict[str, Callable[..., Any]] = {FERRULE: case.function}
        if not case.args:
            functions[NOTHING_IN_C] = gc.isenabled
        functions.update({name: f[case.name] for name, f in found.items() if case.name in f})
        sides = [call_side(side, f, case.args, effort) for side, f in functions.items()]
        yield measure(case.name, sides, effort)


# ---- beside Julia ----

JULIA: Final = {callers.NOTHING: 11, callers.ONE_INT: 20, callers.arrays(1): 30}
"""Nanoseconds that TVMFFI.jl's README gives for `func()`, `func(Int64)` and `func(Array)`."""


def julia(python: Sequence[Row]) -> Facts:
    """What TVMFFI.jl publishes, which was measured elsewhere, beside a call from here."""
    lines = []
    for row in python:
        ours = row.side(FERRULE)
        if row.name in JULIA and ours is not None:
            shown = f"{ours.median * NS.scale:.1f}"
            lines.append((row.name, shown, str(JULIA[row.name])))
    columns = ("ns", "ferrule, from Python", "TVMFFI.jl, from Julia, as published")
    return Facts("Beside Julia", columns, tuple(lines))


# ---- the whole ----


def goals(python: Sequence[Row], keyword: Row | None, refused: Row) -> Iterator[Goal]:
    """What the figures are held against."""
    rows = {row.name: row for row in python}
    for name, limit in RATIOS.items():
        ratio = rows[name].ratio(FERRULE, PLAIN) if name in rows else None
        yield Goal(f"{name}: over the unchecked function", limit, ratio, "times")
    for name, row in rows.items():
        more = row.difference(RELEASED, FERRULE)
        yield Goal(
            f"{name}: releasing the GIL", 45, None if more is None else more * 1e9, "ns more"
        )
    positional = rows.get(callers.tensors(3))
    ratio = None
    if keyword is not None and positional is not None:
        by_name, by_place = keyword.side(FERRULE), positional.side(FERRULE)
        assert by_name is not None and by_place is not None
        ratio = by_name.median / by_place.median
    yield Goal("3 PyTorch tensors, two by keyword: over by position", 1.1, ratio, "times")
    ratio = refused.ratio(FERRULE, PLAIN)
    yield Goal("a refused call: over tvm-ffi's own error", 0.5, ratio, "times")


def other_goals(rows: Sequence[Row]) -> Iterator[Goal]:
    """Faster than every one of them."""
    for row in rows:
        others = [side.name for side in row.sides if side.name not in (FERRULE, NOTHING_IN_C)]
        ratios = [r for r in (row.ratio(FERRULE, name) for name in others) if r is not None]
        if ratios:
            yield Goal(f"{row.name}: over the fastest of the others", 1, max(ratios), "times")


def run(effort: Effort, missing: str | None, folder: Path, *, others: bool) -> Result:
    """Measure all of it; `missing`: why there is no C++; `others`: whether to build them."""
    made = make_subjects(folder, cpp=missing is None)
    python = [python_row(made, case, effort) for case in cases(made)]
    keywords = list(keyword_rows(made, effort))
    checked = None if made.cpp is None else made.cpp["checked3"]
    refused = refused_row(made, effort, checked)
    skipped = [Skipped("tvm_ffi.cpp.load_inline", missing)] if missing else []
    if not _has_torch():
        skipped.append(Skipped("PyTorch tensors", "PyTorch is not installed"))
    rows = (*python, *keywords, bound_row(made, effort), refused)
    tables = [Table("A call from Python", NS, rows, (FERRULE, PLAIN)), julia(python)]
    found = list(goals(python, keywords[1] if len(keywords) > 1 else None, refused))
    if others:
        beside = tuple(other_rows(made, folder, effort, skipped))
        tables.append(Table("Other ways from Python to C", NS, beside))
        found += other_goals(beside)
    return Result(tuple(tables), tuple(found), tuple(skipped))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("What a call costs", argv)
    missing = "not with --quick" if given.quick else peers.cpp_missing()
    with tempfile.TemporaryDirectory() as folder:
        effort = QUICK if given.quick else FULL
        result = run(effort, missing, Path(folder), others=not given.quick)
        finish("call_overhead", result, given)


if __name__ == "__main__":
    main()

"""What a call costs: from Python, and what the checks cost by themselves.

    python benchmarks/call_overhead.py [--quick] [--json FILE]

Every function here has an empty body. From Python, ferrule's function, which checks each argument,
stands beside a `tvm_ffi` function that returns at once, and beside C++ through
`tvm_ffi.cpp.load_inline`, without checks and with the same ones written by hand. The checks alone
are measured by a loop in machine code that calls a wrapper with arguments made before; beside it
stand a wrapper that does the same without checks, and a function that returns at once.

No view of a tensor is kept alive: PyTorch hands out a tensor in half the time while something else
holds it.
"""

from __future__ import annotations

import ctypes
import importlib.util
import tempfile
import time
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
    Side,
    Skipped,
    Table,
    arguments,
    call_side,
    finish,
    measure,
    repetitions,
)

import ferrule as fe
from ferrule.runtime import Engine, ObjectCode
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.engine import host_triple

FERRULE: Final = "ferrule"
PLAIN: Final = "unchecked tvm_ffi"
UNCHECKED: Final = "no checks"
RETURNS: Final = "returns at once"
CPP: Final = "C++"
CPP_CHECKED: Final = "C++ with checks"
SHAPE: Final = (64, 32)
OBJECT_HEADER: Final = 24
"""Bytes before the DLTensor of a tensor object."""


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


# ---- the checks alone ----


def checks_row(name: str, made: Subjects, index: TypeIndex, effort: Effort, folder: Path) -> Row:
    """Three tensors, given as `index`, to wrappers with checks, without, and with nothing."""
    tensors = [_ffi_tensor() for _ in range(3)]
    args = (peers.Any16 * 3)(*[_any(tensor, index) for tensor in tensors])
    checked = _reload(made.tensors[3], folder / "take3.o")
    unchecked = peers.load_text(peers.UNCHECKED, "unchecked")
    returns = peers.load_text(peers.RETURNS, "unchecked")
    loop = peers.call_loop()
    addresses = {
        FERRULE: checked.address("__tvm_ffi_take3"),
        UNCHECKED: unchecked.address("__tvm_ffi_unchecked"),
        RETURNS: returns.address("__tvm_ffi_unchecked"),
    }
    sides = [_loop_side(n, loop, address, args, effort) for n, address in addresses.items()]
    row = measure(name, sides, effort)
    # Whatever the loop used lives until here.
    del tensors, checked, unchecked, returns
    return row


def _any(tensor: Any, index: TypeIndex) -> peers.Any16:
    handle = tensor.__chandle__()
    payload = handle if index is TypeIndex.TENSOR else handle + OBJECT_HEADER
    return peers.Any16(int(index), 0, payload)


def _reload(function: fe.Function, path: Path) -> Engine:
    """The code of a function as it is exported, so that its address is known."""
    function.export_to_c(path)
    return Engine.load(ObjectCode(function.name, path.read_bytes(), host_triple(), ""))


def _loop_side(
    name: str,
    loop: peers.CallLoop,
    address: int,
    args: ctypes.Array[peers.Any16],
    effort: Effort,
) -> Side:
    def run(times: int) -> float:
        start = time.perf_counter()
        loop.run(address, args, times)
        return time.perf_counter() - start

    times = repetitions(run, effort.batch)
    return Side(name, lambda: run(times) / times)


# ---- the whole ----


def goals(python: Sequence[Row], checks: Sequence[Row]) -> Iterator[Goal]:
    """What the figures are held against."""
    for row in checks:
        seconds = row.difference(FERRULE, UNCHECKED)
        measured = None if seconds is None else seconds * NS.scale
        yield Goal(f"checks of {row.name}, from a loop in C, over none", 5, measured, "ns")
    for row in python:
        ratio = row.ratio(FERRULE, PLAIN)
        more = None if ratio is None else (ratio - 1) * 100
        yield Goal(f"a positional call, {row.name}: over the unchecked function", 5, more, "%")


def run(effort: Effort, missing: str | None, folder: Path) -> Result:
    """Measure all of it; `missing`: why there is no C++."""
    made = make_subjects(folder, cpp=missing is None)
    python = [python_row(made, case, effort) for case in cases(made)]
    kinds = {"DLTensor*": TypeIndex.DLTENSOR_PTR, "tensor objects": TypeIndex.TENSOR}
    checks = [
        checks_row(f"three 2-D float32 tensors ({kind})", made, index, effort, folder)
        for kind, index in kinds.items()
    ]
    skipped = [Skipped("tvm_ffi.cpp.load_inline", missing)] if missing else []
    if not _has_torch():
        skipped.append(Skipped("PyTorch tensors", "PyTorch is not installed"))
    rows = (*python, keyword_row(made, effort))
    tables = (
        Table("A call from Python", NS, rows, (FERRULE, PLAIN)),
        Table("A call from a loop in C", NS, tuple(checks), (FERRULE, UNCHECKED)),
    )
    return Result(tables, tuple(goals(python, checks)), tuple(skipped))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("What a call costs", argv)
    missing = "not with --quick" if given.quick else peers.cpp_missing()
    with tempfile.TemporaryDirectory() as folder:
        result = run(QUICK if given.quick else FULL, missing, Path(folder))
        finish("call_overhead", result, given)


if __name__ == "__main__":
    main()

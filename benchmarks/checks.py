"""What the checks of tensors cost by themselves, without Python around them.

    python benchmarks/checks.py [--quick] [--json FILE]

A loop in machine code calls wrappers of float32 tensors, whose bodies are empty, with arguments
made before. Beside a wrapper stand one that makes the same call without checks (it finds the
tensors, the addresses and the sizes), a function that only reads each number that must be checked,
and one that returns at once. The code is that which is exported, for the baseline CPU.
"""

from __future__ import annotations

import ctypes
import tempfile
import time
from collections.abc import Iterator, Sequence
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
    Facts,
    Goal,
    Result,
    Row,
    Side,
    Table,
    arguments,
    finish,
    measure,
    repetitions,
)

import ferrule as fe
from ferrule.runtime import Engine, ObjectCode
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.linking.engine import host_triple
from ferrule.runtime.llvm.layouts import DLTENSOR, TENSOR_OBJECT

FERRULE: Final = "ferrule"
UNCHECKED: Final = "no checks"
READS: Final = "only reads"
RETURNS: Final = "returns at once"
GIVEN: Final = {"DLTensor*": TypeIndex.DLTENSOR_PTR, "tensor objects": TypeIndex.TENSOR}
SHAPE: Final = (6, 8, 5, 3)


@dataclass(frozen=True, slots=True)
class Case:
    """Some tensors of a rank; `limit` is the goal in nanoseconds for each of `goal_of` tensors."""

    name: str
    count: int
    rank: int
    shared: bool
    limit: float
    goal_of: int

    @property
    def owners(self) -> range:
        """The tensors whose sizes the body gets."""
        return range(1 if self.shared else self.count)


CASES: Final = (
    Case("3 of rank 2, the same sizes", 3, 2, True, 5, 3),
    Case("20 of rank 4, the same sizes", 20, 4, True, 2, 1),
    Case("20 of rank 4, each its own sizes", 20, 4, False, 2, 1),
)


# ---- functions that check nothing ----

_HELPERS: Final = f"""
define internal ptr @tensor(ptr %args, i64 %i) alwaysinline {{
  %at = getelementptr {{i32, i32, ptr}}, ptr %args, i64 %i
  %index = load volatile i32, ptr %at
  %in = getelementptr i8, ptr %at, i64 8
  %payload = load ptr, ptr %in
  %object = icmp eq i32 %index, {int(TypeIndex.TENSOR)}
  %header = select i1 %object, i64 {TENSOR_OBJECT.offset("dl")}, i64 0
  %tensor = getelementptr i8, ptr %payload, i64 %header
  ret ptr %tensor
}}
define internal ptr @first(ptr %tensor) alwaysinline {{
  %data = load ptr, ptr %tensor
  %at = getelementptr i8, ptr %tensor, i64 {DLTENSOR.offset("byte_offset")}
  %offset = load i64, ptr %at
  %first = getelementptr i8, ptr %data, i64 %offset
  ret ptr %first
}}
define internal i64 @number(ptr %tensor, i64 %array, i64 %axis) alwaysinline {{
  %at = getelementptr i8, ptr %tensor, i64 %array
  %numbers = load ptr, ptr %at
  %place = getelementptr i64, ptr %numbers, i64 %axis
  %number = load i64, ptr %place
  ret i64 %number
}}
define internal void @touch(ptr %tensor, i64 %field) alwaysinline {{
  %at = getelementptr i8, ptr %tensor, i64 %field
  %number = load volatile i64, ptr %at
  ret void
}}
define internal void @touch_number(ptr %tensor, i64 %array, i64 %axis) alwaysinline {{
  %at = getelementptr i8, ptr %tensor, i64 %array
  %numbers = load ptr, ptr %at
  %place = getelementptr i64, ptr %numbers, i64 %axis
  %number = load volatile i64, ptr %place
  ret void
}}
"""


def unchecked(case: Case) -> str:
    """A wrapper without its checks."""
    lines, passed = [], []
    for i in range(case.count):
        lines += [f"  %t{i} = call ptr @tensor(ptr %args, i64 {i})"]
        lines += [f"  %a{i} = call ptr @first(ptr %t{i})"]
        passed.append(f"ptr %a{i}")
    for i in case.owners:
        for axis in range(case.rank):
            field = f"i64 {DLTENSOR.offset('shape')}, i64 {axis}"
            lines += [f"  %w{i}.{axis} = call i64 @number(ptr %t{i}, {field})"]
            lines += [f"  %n{i}.{axis} = trunc i64 %w{i}.{axis} to i32"]
            passed.append(f"i32 %n{i}.{axis}")
    lines += [f"  %status = call i32 @body(ptr null, {', '.join(passed)})"]
    declared = ", ".join(f"{each.partition(' ')[0]} %p{i}" for i, each in enumerate(passed))
    # A body that another object could replace gets its arguments, though it does not use them.
    body = f"define weak dso_local i32 @body(ptr %v, {declared}) noinline {{\n  ret i32 0\n}}\n"
    return _function(lines) + body + _HELPERS


def reads(case: Case) -> str:
    """A function that reads all that is to be checked, each number by itself."""
    lines = []
    for i in range(case.count):
        lines += [f"  %t{i} = call ptr @tensor(ptr %args, i64 {i})"]
        for field in ("data", "device", "ndim", "byte_offset"):
            lines += [f"  call void @touch(ptr %t{i}, i64 {DLTENSOR.offset(field)})"]
        for array in ("shape", "strides"):
            for axis in range(case.rank):
                field = f"i64 {DLTENSOR.offset(array)}, i64 {axis}"
                lines += [f"  call void @touch_number(ptr %t{i}, {field})"]
    return _function(lines) + _HELPERS


def _function(lines: Sequence[str]) -> str:
    head = "define i32 @__tvm_ffi_unchecked(ptr %handle, ptr %args, i32 %count, ptr %result) {"
    return "\n".join(["", head, *lines, "  ret i32 0", "}", ""])


# ---- measuring ----


def compiled(case: Case, function: Any, path: Path) -> Engine:
    """ferrule's wrapper as it is exported, so that its address is known."""
    sizes = [[fe.sym_int() for _ in range(case.rank)] for _ in case.owners] * case.count
    tensors = [subjects.row_major(*each) for each in sizes[: case.count]]
    made = fe.compile(function, *tensors, options=subjects.OPTIONS)
    made.export_to_c(path)
    return Engine.load(ObjectCode(made.name, path.read_bytes(), host_triple(), ""))


def rows(case: Case, function: Any, effort: Effort, folder: Path) -> Iterator[Row]:
    """A row for each way of passing tensors."""
    checked = compiled(case, function, folder / "checked.o")
    plain = {
        name: peers.load_text(text, "unchecked")
        for name, text in (
            (UNCHECKED, unchecked(case)),
            (READS, reads(case)),
            (RETURNS, peers.RETURNS),
        )
    }
    addresses = {FERRULE: checked.address(f"__tvm_ffi_take{case.count}")}
    addresses |= {name: each.address("__tvm_ffi_unchecked") for name, each in plain.items()}
    zeros = [np.zeros(SHAPE[-case.rank :], dtype=np.float32) for _ in range(case.count)]
    tensors, loop = [tvm_ffi.from_dlpack(each) for each in zeros], peers.call_loop()
    for given, index in GIVEN.items():
        args = (peers.Any16 * case.count)(*[_any(tensor, index) for tensor in tensors])
        sides = [_side(name, loop, address, args, effort) for name, address in addresses.items()]
        yield measure(f"{case.name} ({given})", sides, effort)
    # Whatever the loop used lives until here.
    del tensors, checked, plain


def _any(tensor: Any, index: TypeIndex) -> peers.Any16:
    handle = tensor.__chandle__()
    inside = 0 if index is TypeIndex.TENSOR else TENSOR_OBJECT.offset("dl")
    return peers.Any16(int(index), 0, handle + inside)


def _side(
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


def per_tensor(found: Sequence[tuple[Case, Row]]) -> Facts:
    """Nanoseconds for each tensor."""
    compared = (
        ("checks: over no checks", FERRULE, UNCHECKED),
        ("all of it: over returning at once", FERRULE, RETURNS),
        ("only reads, over returning at once", READS, RETURNS),
    )
    lines = [
        (row.name, *(f"{_each(row, case, side, base):.2f}" for _, side, base in compared))
        for case, row in found
    ]
    columns = ("", *(title for title, _, _ in compared))
    return Facts("Nanoseconds for each tensor (medians)", columns, tuple(lines))


def _each(row: Row, case: Case, side: str, base: str) -> float:
    seconds = row.difference(side, base)
    assert seconds is not None
    return seconds * NS.scale / case.count


def goals(found: Sequence[tuple[Case, Row]]) -> Iterator[Goal]:
    """What the figures are held against."""
    for case, row in found:
        measured = _each(row, case, FERRULE, UNCHECKED) * case.goal_of
        what = "each of " if case.goal_of == 1 else ""
        yield Goal(f"checks of {what}{row.name}, over none", case.limit, measured, "ns")


def run(effort: Effort, folder: Path) -> Result:
    """Measure all of it."""
    functions = subjects.write_empty_functions(folder, sorted({case.count for case in CASES}))
    found = [
        (case, row) for case in CASES for row in rows(case, functions[case.count], effort, folder)
    ]
    measured = tuple(row for _, row in found)
    table = Table("A call from a loop in C", NS, measured, (FERRULE, UNCHECKED))
    return Result((table, per_tensor(found)), tuple(goals(found)))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("What the checks of tensors cost", argv)
    with tempfile.TemporaryDirectory() as folder:
        finish("checks", run(QUICK if given.quick else FULL, Path(folder)), given)


if __name__ == "__main__":
    main()

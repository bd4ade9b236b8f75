"""What importing and compiling cost, whole and by stage.

    python benchmarks/compile_time.py [--quick] [--json FILE]

Imports and compilations of `add_one` are timed in fresh processes. PyTorch is hidden from all of
them: tvm-ffi imports it where it is installed, and its second would cover everything else. The
C++ of the comparison is built in an empty folder each time, as it is at first use.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import peers
import stages
import subjects
from harness import (
    FULL,
    MS,
    QUICK,
    Effort,
    Facts,
    Goal,
    Measured,
    Result,
    Row,
    Side,
    Skipped,
    Table,
    arguments,
    finish,
    measure,
)

HERE: Final = Path(__file__).resolve().parent
HIDE_TORCH: Final = "import sys; sys.modules['torch'] = None"
CHILD: Final = """
sys.path.insert(0, {folder!r})
import compile_child
compile_child.main({repeated})
"""
IMPORTS: Final = {
    "tvm_ffi": "import tvm_ffi",
    "ferrule": "import ferrule",
    "all that compiling needs": (
        "import ferrule.language.compilation, ferrule.compiler.origin, ferrule.runtime.calls.gate, "
        "ferrule.language.codegen, ferrule.language.lowering.program, "
        "ferrule.runtime.calls.function"
    ),
}
COUNTS: Final = (1, 2, 4, 8, 16, 20, 32, 64)
RANK: Final = 4
NAMES: Final = MappingProxyType(
    {
        "first": "add_one, the first in a process",
        "second": "add_one, the second",
        "softmax": "softmax, after add_one",
        "rms_norm": "rms_norm, after both",
        "gpu_first": "add_one for sm_90a, the first for a GPU",
        "gpu_second": "add_one for sm_90a, the second",
        "call_first": "the first call of a function in a process",
        "prepare_first": "the machine code for its calls, made at the 16th or by prepare()",
        "call_other": "the first call of one with other kinds of parameters",
        "prepare_other": "the machine code for its calls",
        "llvm_first": "HostCode.from_llvm of a loop, the first in a process",
        "llvm_new": "HostCode.from_llvm, other modules",
        "llvm_again": "HostCode.from_llvm, the same modules again",
    }
)
"""The rows of what is timed in new processes."""


# ---- imports ----


def imports_row(effort: Effort) -> Row:
    """Seconds of import statements, each in a process of its own."""
    sides = [Side(name, partial(_import_seconds, code)) for name, code in IMPORTS.items()]
    return measure("import", sides, effort)


def _import_seconds(code: str) -> float:
    clock = "from time import perf_counter as now; start = now()"
    return float(_python(f"{clock}\n{code}\nprint(now() - start)"))


def _python(code: str) -> str:
    command = [sys.executable, "-c", f"{HIDE_TORCH}\n{code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"a process failed:\n{done.stderr}")
    return done.stdout


# ---- compilations in fresh processes ----


@dataclass(frozen=True, slots=True)
class Compilations:
    """What the processes found: seconds of whole compilations, and by stage."""

    whole: dict[str, tuple[float, ...]]
    split: dict[str, dict[str, float]]
    inline: tuple[float, ...]


def compilations(rounds: int, inline: int, repeated: int, folder: Path) -> Compilations:
    """`rounds` processes, and between the first of them `inline` builds of C++.

    Each process repeats the compilations that it times by stage `repeated` times.
    """
    found, built = [], []
    code = CHILD.format(folder=str(HERE), repeated=repeated)
    for number in range(rounds):
        found.append(json.loads(_python(code)))
        if number < inline:
            built.append(_inline_seconds(folder / f"inline{number}"))
    whole = {name: tuple(each["whole"][name] for each in found) for name in NAMES}
    kernels: list[str] = list(found[0]["split"])
    split = {kernel: _medians([each["split"][kernel] for each in found]) for kernel in kernels}
    return Compilations(whole, split, tuple(built))


def _inline_seconds(folder: Path) -> float:
    start = time.perf_counter()
    peers.load_inline(f"add_one_{folder.name}", peers.ADD_ONE, ["add_one"], folder)
    return time.perf_counter() - start


def _medians(found: Sequence[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for each in found for name in each)
    return {name: statistics.median(each.get(name, 0.0) for each in found) for name in names}


def compile_rows(done: Compilations) -> Iterator[Row]:
    """The rows of whole compilations."""
    for name, title in NAMES.items():
        yield Row(title, (Measured("ferrule", done.whole[name]),))
    if done.inline:
        yield Row("add_one in C++", (Measured("tvm_ffi.cpp.load_inline", done.inline),))


def split_facts(done: Compilations) -> Facts:
    """Milliseconds by stage; a column for each kernel."""
    kernels = list(done.split)
    order = [*dict.fromkeys(stage for stage, _ in stages.STAGES), stages.OTHER]
    lines = [(s, *(_ms(done.split[k].get(s, 0.0)) for k in kernels)) for s in order]
    total = ("together", *(_ms(sum(done.split[k].values())) for k in kernels))
    title = "A compilation by stage, in a process that has compiled before (ms, medians)"
    return Facts(title, ("stage", *kernels), (*lines, total))


def _ms(seconds: float) -> str:
    return f"{seconds * MS.scale:.2f}"


# ---- wrappers ----


@dataclass(frozen=True, slots=True)
class WrapperSize:
    """A wrapper of some tensors with an empty body: seconds by stage, bytes."""

    count: int
    seconds: dict[str, float]
    text_bytes: int
    object_bytes: int

    @property
    def total(self) -> float:
        """The whole compilation."""
        return sum(self.seconds.values())


def wrapper_sizes(folder: Path, counts: Sequence[int], repeated: int) -> list[WrapperSize]:
    """For each number of tensors of rank 4 with the same symbolic sizes."""
    functions = subjects.write_empty_functions(folder, counts)
    subjects.compile_empty(functions[counts[0]], counts[0], RANK)
    return [_wrapper_size(functions[n], n, repeated, folder / f"{n}.o") for n in counts]


def _wrapper_size(function: Any, count: int, repeated: int, path: Path) -> WrapperSize:
    found = []
    for _ in range(repeated):
        with stages.recorded() as clock:
            compiled = subjects.compile_empty(function, count, RANK)
        found.append(clock.seconds)
    compiled.export_to_c(path)
    data = path.read_bytes()
    return WrapperSize(count, _medians(found), _text_bytes(data), len(data))


def _text_bytes(data: bytes) -> int:
    from llvmlite import binding

    sections = binding.ObjectFileRef.from_data(data).sections()
    return sum(section.size() for section in sections if _is_code(section))


def _is_code(section: Any) -> bool:
    name: bytes | None = section.name()  # the first one has none
    return name is not None and name.startswith(b".text")


def wrapper_facts(sizes: Sequence[WrapperSize]) -> Facts:
    """A line for each number of tensors."""
    shown = ("wrapper as LLVM text", "LLVM: parse, verify, link", "LLVM: emit", "load")
    lines = [
        (
            str(size.count),
            *(_ms(size.seconds.get(stage, 0.0)) for stage in shown),
            _ms(size.total),
            str(size.text_bytes),
            str(size.object_bytes),
        )
        for size in sizes
    ]
    columns = ("tensors", *shown, "whole compilation", "code, bytes", "object, bytes")
    return Facts("Wrappers of rank-4 tensors, empty bodies (ms, medians)", columns, tuple(lines))


# ---- the whole ----


def goals(imports: Row, done: Compilations, sizes: Sequence[WrapperSize]) -> Iterator[Goal]:
    """What the figures are held against."""
    more = imports.difference("ferrule", "tvm_ffi")
    measured = None if more is None else more * MS.scale
    yield Goal("`import ferrule`, over `import tvm_ffi`", 60, measured, "ms")
    second = statistics.median(done.whole["second"]) * MS.scale
    yield Goal("compiling `add_one`, the second compilation in a process", 25, second, "ms")
    second = statistics.median(done.whole["gpu_second"]) * MS.scale
    yield Goal("compiling `add_one` for a GPU (sm_90a), the second time", 25, second, "ms")
    new, again = (statistics.median(done.whole[f"llvm_{each}"]) for each in ("new", "again"))
    yield Goal("`HostCode.from_llvm` of a new module", 15, new * MS.scale, "ms")
    yield Goal("`HostCode.from_llvm` of the same module again", 0.1, again * MS.scale, "ms")
    twenty = next((size for size in sizes if size.count == 20), None)
    if twenty is not None:
        time_of = twenty.total * MS.scale
        yield Goal("compiling a wrapper of 20 rank-4 tensors (for later)", 40, time_of, "ms")
        size_of = twenty.text_bytes / 1024
        yield Goal("code of a wrapper of 20 rank-4 tensors (for later)", 12, size_of, "KiB")


def run(quick: bool, missing: str | None, folder: Path) -> Result:
    """Measure all of it; `missing`: why there is no C++."""
    imports = imports_row(QUICK if quick else FULL.fewer(4))
    repeated = 1 if quick else 7
    done = compilations(1 if quick else 12, 0 if missing else 4, repeated, folder)
    sizes = wrapper_sizes(folder, (1, 2) if quick else COUNTS, repeated)
    tables = (
        Table("Imports, each in a new process", MS, (imports,), ("ferrule", "tvm_ffi")),
        Table("Compilations, in new processes", MS, tuple(compile_rows(done))),
        split_facts(done),
        wrapper_facts(sizes),
    )
    skipped = [Skipped("tvm_ffi.cpp.load_inline", missing)] if missing else []
    return Result(tables, tuple(goals(imports, done, sizes)), tuple(skipped))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("What importing and compiling cost", argv)
    os.environ["FERRULE_CACHE"] = "0"  # of the processes that compile
    missing = "not with --quick" if given.quick else peers.cpp_missing()
    with tempfile.TemporaryDirectory() as folder:
        finish("compile_time", run(given.quick, missing, Path(folder)), given)


if __name__ == "__main__":
    main()

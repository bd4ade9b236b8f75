"""What it costs to write a function to a file and to load it back.

    python benchmarks/export.py [--quick] [--json FILE]

Two small functions: one of numbers, and a kernel that adds one to a vector.  An export makes the
object anew for the baseline CPU; each sample exports a function that was just compiled, and the
compilation is not in the figure.  A load goes from the file to a function that can be called.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import subjects
from harness import (
    FULL,
    MS,
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
    block_side,
    finish,
    measure,
)

import ferrule as fe

EXPORT: Final = "export_to_c(.o)"
LOAD_OBJECT: Final = "load_module(.o)"
LOAD_LIBRARY: Final = "load_module(.so)"
MANY: Final = 100


@fe.jit
def numbers(i: fe.Int64, x: fe.Float64 = 1.0):
    return i * 2


def compile_numbers() -> Any:
    return fe.compile(numbers, fe.Int64(1), fe.Float64(1.0), options=subjects.OPTIONS)


def compile_add_one() -> Any:
    vectors = subjects.vector(), subjects.vector()
    return fe.compile(subjects.quickstart().add_one, *vectors, options=subjects.OPTIONS)


SUBJECTS: Final[dict[str, Callable[[], Any]]] = {
    "numbers": compile_numbers,
    "add_one, a kernel": compile_add_one,
}


def sides(compiled: Callable[[], Any], folder: Path, library: bool) -> list[Side]:
    """Export, and load of what was exported."""
    path = folder / "k.o"
    function = compiled()
    function.export_to_c(path)

    def export() -> float:
        fresh = compiled()
        start = time.perf_counter()
        fresh.export_to_c(folder / "fresh.o")
        return time.perf_counter() - start

    def load(file: Path) -> Callable[[], object]:
        return lambda: fe.runtime.load_module(file)[function.name]

    found = [Side(EXPORT, export), block_side(LOAD_OBJECT, load(path))]
    if library:
        function.export_library(folder / "k.so")
        found.append(block_side(LOAD_LIBRARY, load(folder / "k.so")))
    return found


def size_facts(folder: Path, many: int) -> Facts:
    """Bytes of each object, and of a library of many functions for each of them."""
    lines = []
    for name, compiled in SUBJECTS.items():
        function = compiled()
        function.export_to_c(folder / "size.o")
        fe.export_library(folder / "size.a", {f"f{i}": function for i in range(many)})
        per_function = (folder / "size.a").stat().st_size // many
        lines.append((name, str((folder / "size.o").stat().st_size), str(per_function)))
    return Facts(
        "Sizes, bytes", ("function", "object", f"a function of {many} in an archive"), lines
    )


def has_linker() -> bool:
    """Whether shared libraries can be made here."""
    from ferrule.runtime.cpus import host_architecture
    from ferrule.runtime.linking.linker import find_linker

    try:
        find_linker(host_architecture(), Path("k.so"))
    except fe.runtime.LinkError:
        return False
    return True


def goals(rows: list[Row], sizes: Facts) -> list[Goal]:
    """What was to be reached."""
    found = []
    for row in rows:
        for side, limit in ((EXPORT, 10.0), (LOAD_OBJECT, 3.0), (LOAD_LIBRARY, 3.0)):
            measured = row.side(side)
            if measured is not None:
                found.append(Goal(f"{row.name}: {side}", limit, measured.median * 1e3, "ms"))
    return found + [
        Goal(f"{line[0]}: object", 12.0, int(line[1]) / 1024, "KiB") for line in sizes.lines
    ]


def run(effort: Effort) -> Result:
    """Measure all of it."""
    library = has_linker()
    skipped = () if library else (Skipped(LOAD_LIBRARY, "no C compiler or linker"),)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [
            measure(subject, sides(compiled, folder, library), effort)
            for subject, compiled in SUBJECTS.items()
        ]
        sizes = size_facts(folder, MANY if effort.rounds > 1 else 2)
    tables = (Table("Files", MS, tuple(rows)), sizes)
    return Result(tables, tuple(goals(rows, sizes)), skipped)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("What files cost", argv)
    finish("export", run((QUICK if given.quick else FULL).fewer(2)), given)


if __name__ == "__main__":
    main()

"""Measuring, for all benchmarks: sides interleaved, medians with spread, a table, a JSON file.

A row compares *sides* that do the same work. All sides of a row are measured in one process, in
rounds: each round takes one sample of each side, and every other round goes through them in the
opposite order, so that a slow moment of the machine meets all of them. A side's figure is the
median of its samples, with the quartiles beside it. What compares two sides is the median over the
rounds of their ratio (or difference) within a round, which a drift of the machine does not reach.

A benchmark gives a `Result`, `finish` prints it as Markdown and writes it as JSON. A goal that is
missed is shown as missed and is no error.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

RESULTS: Final = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True, slots=True)
class Effort:
    """How many rounds, and how many seconds a sample of a fast operation takes at least."""

    rounds: int
    batch: float

    def fewer(self, part: int) -> Effort:
        """For operations that take long by themselves."""
        return Effort(max(1, self.rounds // part), self.batch)


FULL: Final = Effort(rounds=60, batch=2e-3)
QUICK: Final = Effort(rounds=1, batch=2e-5)


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a row: `sample()` is the time of one operation, in seconds."""

    name: str
    sample: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of a side, in seconds, in the order of the rounds."""

    name: str
    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.samples)

    @property
    def quartiles(self) -> tuple[float, float]:
        """Half of the samples lie between these."""
        if len(self.samples) == 1:
            return self.median, self.median
        low, _, high = statistics.quantiles(self.samples, n=4, method="inclusive")
        return low, high


@dataclass(frozen=True, slots=True)
class Row:
    """One piece of work, done by several sides."""

    name: str
    sides: tuple[Measured, ...]

    def side(self, name: str) -> Measured | None:
        """The side of this name, if the row has it."""
        return next((side for side in self.sides if side.name == name), None)

    def ratio(self, name: str, base: str) -> float | None:
        """How many times as long as `base` the side takes; None if one of them is missing."""
        pairs = self._pairs(name, base)
        return statistics.median(a / b for a, b in pairs) if pairs else None

    def difference(self, name: str, base: str) -> float | None:
        """How many seconds longer than `base` the side takes."""
        pairs = self._pairs(name, base)
        return statistics.median(a - b for a, b in pairs) if pairs else None

    def _pairs(self, name: str, base: str) -> list[tuple[float, float]]:
        first, second = self.side(name), self.side(base)
        if first is None or second is None:
            return []
        return list(zip(first.samples, second.samples, strict=True))


@dataclass(frozen=True, slots=True)
class Unit:
    """In what a table gives its times."""

    name: str
    scale: float


NS: Final = Unit("ns", 1e9)
US: Final = Unit("µs", 1e6)
MS: Final = Unit("ms", 1e3)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with the same sides; `compared` is a side and the base of its ratio."""

    title: str
    unit: Unit
    rows: tuple[Row, ...]
    compared: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """Figures that are no times: columns and lines of text."""

    title: str
    columns: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Goal:
    """What was to be reached, and what was: `measured` is None where nothing was measured."""

    what: str
    limit: float
    measured: float | None
    unit: str

    @property
    def verdict(self) -> str:
        """In a word."""
        if self.measured is None:
            return "not measured"
        return "met" if self.measured <= self.limit else "missed"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A comparison that was left out, and why."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class Result:
    """All that a benchmark found."""

    tables: tuple[Table | Facts, ...]
    goals: tuple[Goal, ...] = ()
    skipped: tuple[Skipped, ...] = ()


# ---- measuring ----


def measure(name: str, sides: Sequence[Side], effort: Effort) -> Row:
    """Samples of all sides, interleaved; the first round warms up and is dropped."""
    if effort.rounds == QUICK.rounds:
        gc.freeze()  # Nothing is measured, and to collect garbage would take the most of the time.
    samples: dict[str, list[float]] = {side.name: [] for side in sides}
    for number in range(effort.rounds + 1):
        for side in sides if number % 2 else reversed(sides):
            seconds = side.sample()
            if number:
                samples[side.name].append(seconds)
    return Row(name, tuple(Measured(side.name, tuple(samples[side.name])) for side in sides))


def call_side(
    name: str,
    function: Callable[..., Any],
    args: Sequence[Any],
    effort: Effort,
    kwargs: Mapping[str, Any] | None = None,
) -> Side:
    """Calls from a loop in Python, whose own cost, some nanoseconds, is in the figure."""
    keywords = kwargs or {}
    names = [f"a{i}" for i in range(len(args))]
    keyword_names = [f"k{i}" for i in range(len(keywords))]
    given = [*names, *(f"{k}={v}" for k, v in zip(keywords, keyword_names, strict=True))]
    # A local variable each: a look-up in a dictionary would be a part of the figure.
    setup = "".join(f"{n}, " for n in ["f", *names, *keyword_names]) + "= given"
    values = (function, *args, *keywords.values())
    timer = timeit.Timer(f"f({', '.join(given)})", setup, globals={"given": values})
    number = repetitions(timer.timeit, effort.batch)
    return Side(name, lambda: timer.timeit(number) / number)


def block_side(name: str, work: Callable[[], object]) -> Side:
    """One piece of work that takes long enough to be timed by itself."""

    def sample() -> float:
        gc.collect()
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return Side(name, sample)


def repetitions(run: Callable[[int], float], batch: float) -> int:
    """How often an operation is repeated, so that it takes `batch` seconds at least."""
    run(1)  # the first one pays for whatever is made at first use
    number = 1
    while run(number) < batch:
        number *= 2
    return number


# ---- the machine ----


def machine() -> dict[str, str]:
    """The processor and the versions; nothing that tells one machine from its like."""
    versions = {name: _version(name) for name in _PACKAGES}
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "architecture": platform.machine(),
        "system": platform.system(),
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        **{name: version for name, version in versions.items() if version},
    }


_PACKAGES: Final = ("llvmlite", "apache-tvm-ffi", "numpy", "torch", "numba")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


# ---- showing ----


def finish(benchmark: str, result: Result, arguments: argparse.Namespace) -> None:
    """Print the tables, write the file."""
    facts = machine()
    print(f"# {benchmark}\n")
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    for table in result.tables:
        print("\n" + render(table))
    if result.goals:
        print("\n" + _render_goals(result.goals))
    for left_out in result.skipped:
        print(f"\nLeft out: {left_out.what}: {left_out.reason}")
    path: Path = arguments.json or RESULTS / f"{benchmark}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"benchmark": benchmark, "quick": arguments.quick, "machine": facts}
    path.write_text(json.dumps({**content, **_as_json(result)}, indent=1) + "\n", encoding="utf-8")


def render(table: Table | Facts) -> str:
    """A table as Markdown."""
    match table:
        case Facts(title, columns, lines):
            return f"**{title}**\n\n{_markdown(columns, lines)}"
        case Table(title, unit, rows, compared):
            names = _side_names(rows)
            head = ["", *names, *([f"{compared[0]} / {compared[1]}"] if compared else [])]
            lines_of = [(row.name, *_cells(row, names, unit, compared)) for row in rows]
            shown = f"**{title}** ({unit.name}: median, and quartiles)"
            return f"{shown}\n\n{_markdown(head, lines_of)}"


def _cells(
    row: Row, names: Sequence[str], unit: Unit, compared: tuple[str, str] | None
) -> list[str]:
    cells = [_cell(row.side(name), unit) for name in names]
    if compared is None:
        return cells
    ratio = row.ratio(*compared)
    return [*cells, "" if ratio is None else f"{ratio:.2f}"]


def _cell(side: Measured | None, unit: Unit) -> str:
    if side is None:
        return ""
    low, high = side.quartiles
    digits = 0 if side.median * unit.scale >= 100 else 1
    median, low, high = (value * unit.scale for value in (side.median, low, high))
    return f"{median:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


def _side_names(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(side.name for row in rows for side in row.sides))


def _render_goals(goals: Sequence[Goal]) -> str:
    lines = [
        (
            goal.what,
            f"{goal.limit:g} {goal.unit}",
            "" if goal.measured is None else f"{goal.measured:.3g} {goal.unit}",
            goal.verdict,
        )
        for goal in goals
    ]
    return "**Goals**\n\n" + _markdown(("what", "at most", "measured", ""), lines)


def _markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rule = ["---", *(["---:"] * (len(head) - 1))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *lines))


def _as_json(result: Result) -> dict[str, Any]:
    return {
        "tables": [_table_as_json(table) for table in result.tables],
        "goals": [{**asdict(goal), "verdict": goal.verdict} for goal in result.goals],
        "skipped": [asdict(skipped) for skipped in result.skipped],
    }


def _table_as_json(table: Table | Facts) -> dict[str, Any]:
    match table:
        case Facts():
            return asdict(table)
        case Table(title, _, rows, compared):
            return {
                "title": title,
                "unit": "s",
                "rows": [_row_as_json(row, compared) for row in rows],
            }


def _row_as_json(row: Row, compared: tuple[str, str] | None) -> dict[str, Any]:
    sides = {
        side.name: {"median": side.median, "quartiles": side.quartiles, "samples": side.samples}
        for side in row.sides
    }
    ratio = row.ratio(*compared) if compared else None
    return {"name": row.name, "sides": sides, "ratio": ratio}


# ---- the command line ----


def arguments(
    description: str, argv: Sequence[str] | None = None, parts: Sequence[str] = ()
) -> argparse.Namespace:
    """What every benchmark takes; `only` is one of its parts, where it has several."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="try that it runs; measures nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the figures")
    if parts:
        parser.add_argument("--only", choices=parts, help="measure this part alone")
    return parser.parse_args(sys.argv[1:] if argv is None else argv)

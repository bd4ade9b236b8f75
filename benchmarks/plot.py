"""Plots of benchmarks, of the tables in docs/benchmarks.md or of the files that the programs write.

    python benchmarks/plot.py                      # of the page
    python benchmarks/plot.py --results benchmarks/results

Bars are medians, lines go from the first to the third quartile. The plots are SVG whose text has
the colour of the page that they stand in.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs/gallery"))
import plots  # noqa: E402  of the gallery

_ALONE: Final = (
    "<style>svg:root{color:#1d2430}"
    "@media(prefers-color-scheme:dark){svg:root{color:#e3e7ee}}</style>"
)
"""The colours of a plot that is shown as a file."""

Figure = tuple[float, float, float]
"""A median, the first quartile, and the third."""
Rows = dict[str, dict[str, Figure]]
"""The rows of a table: the figures of each side, in the table's unit."""
_SECTIONS: Final = {
    "call_overhead": "Call overhead",
    "cold_start": "Cold starts",
    "compile_time": "Compile time",
    "elementwise": "Kernels on the CPU",
    "kernels": "Kernels of the examples",
}
_UNITS: Final = {"ns": 1e9, "ms": 1e3}
_UNIT_OF: Final = {"call_overhead": "ns"}
_CELL: Final = re.compile(r"([\d.]+)(?: \(([\d.]+)–([\d.]+)\))?")


# ---- what there is ----


def of_page(text: str, benchmark: str) -> list[Rows]:
    """The tables in the section of a benchmark."""
    (section,) = re.findall(rf"^## {_SECTIONS[benchmark]}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    tables = re.findall(r"^(\|.*\|)\n\|[-: |]+\|\n((?:\|.*\|\n?)+)", section, re.M)
    return [_rows_of_text(head, body) for head, body in tables]


def _rows_of_text(head: str, body: str) -> Rows:
    names, found = _words(head), {}
    for line in body.splitlines():
        name, *cells = _words(line)
        figures = {side: _CELL.fullmatch(cell) for side, cell in zip(names[1:], cells, strict=True)}
        found[name.replace(" *", "")] = {
            side: (float(cell[1]), float(cell[2] or cell[1]), float(cell[3] or cell[1]))
            for side, cell in figures.items()
            if cell is not None and "/" not in side
        }
    return found


def _words(line: str) -> list[str]:
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line)
    return [word.strip() for word in plain.strip("|").split("|")]


def of_file(found: dict[str, Any], benchmark: str) -> list[Rows]:
    """The tables in the file of a benchmark."""
    scale = _UNITS[_UNIT_OF.get(benchmark, "ms")]
    made = []
    for table in found["tables"]:
        if "rows" in table:
            made.append({row["name"]: _sides(row["sides"], scale) for row in table["rows"]})
        else:
            names = table["columns"]
            text = "\n".join(f"|{'|'.join(line)}|" for line in table["lines"])
            made.append(_rows_of_text(f"|{'|'.join(names)}|", text))
    return made


def _sides(sides: dict[str, Any], scale: float) -> dict[str, Figure]:
    return {
        name: (scale * side["median"], *(scale * each for each in side["quartiles"]))
        for name, side in sides.items()
    }


def having(tables: Sequence[Rows], side: str) -> Rows:
    """The first table with a side of this name."""
    return next(each for each in tables if any(side in sides for sides in each.values()))


# ---- what is drawn ----


def bars(axes: Any, rows: Rows, unit: str) -> None:
    """Groups of bars: a group for each row, a bar for each side, with the quartiles."""
    sides = list(dict.fromkeys(name for found in rows.values() for name in found))
    height = 0.8 / len(sides)
    for at, side in enumerate(sides):
        has = [(row, found[side]) for row, found in enumerate(rows.values()) if side in found]
        places = [row - 0.4 + (at + 0.5) * height for row, _ in has]
        colour = plots.COLOURS[at % len(plots.COLOURS)]
        axes.barh(places, [each[0] for _, each in has], height * 0.9, color=colour, label=side)
        low, high = ([each[i] for _, each in has] for i in (1, 2))
        axes.hlines(places, low, high, color=plots.INK, linewidth=1)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.invert_yaxis()
    axes.set_xlabel(unit)
    legend(axes)


def legend(axes: Any) -> None:
    """The legend, beside what is drawn."""
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))


def calls(tables: Sequence[Rows]) -> plots.Picture | None:
    """Calls from Python beside all other ways."""
    shown = {
        name: {side: figure for side, figure in sides.items() if "builtin" not in side}
        for name, sides in having(tables, "nanobind").items()
        if "NumPy" in name or "PyTorch" in name
    }

    def draw(axes: Any) -> None:
        bars(axes, shown, "ns a call (log)")
        axes.set_xscale("log")

    title = "A call from Python with arrays, all of them checked"
    return plots.picture(draw, title, (8, 0.85 * len(shown) + 1))


def three_arrays(tables: Sequence[Rows]) -> plots.Picture | None:
    """One of these rows, for the README."""
    sides = having(tables, "nanobind")["3 NumPy arrays"]
    shown = {name: figure for name, figure in sides.items() if name != "ctypes"}

    def draw(axes: Any) -> None:
        for row, (low, high) in enumerate((low, high) for _, low, high in shown.values()):
            axes.plot([low, high], [row, row], color=plots.INK, linewidth=1)
        medians = [median for median, _, _ in shown.values()]
        colours = [plots.COLOURS[0]] + [plots.COLOURS[-1]] * (len(shown) - 1)
        axes.barh(list(shown), medians, 0.7, color=colours)
        for row, median in enumerate(medians):
            axes.text(median, row, f"  {median:.0f} ns", va="center", fontsize=9)
        axes.invert_yaxis()
        axes.margins(x=0.12)
        axes.set_xlabel("ns a call from Python (medians and quartiles)")

    title = "Three NumPy arrays, with dtype, rank and layout checked"
    return plots.picture(draw, title, (7.5, 2.8))


def cold(tables: Sequence[Rows]) -> plots.Picture | None:
    """From nothing to the first result."""
    shown = {**having(tables, "ferrule"), **having(tables, "tvm_ffi.load_module")}
    shown = {name.partition(" on disk")[0]: sides for name, sides in shown.items()}

    def draw(axes: Any) -> None:
        bars(axes, shown, "ms, of a new process")

    return plots.picture(draw, "From nothing to the first result", (8, 3.4))


def stages(tables: Sequence[Rows]) -> plots.Picture | None:
    """A compilation by stage."""
    found = having(tables, "add_one")
    shown = {name: sides for name, sides in found.items() if name != "together"}
    names = list(found["together"])

    def draw(axes: Any) -> None:
        left = [0.0] * len(names)
        for at, (stage, sides) in enumerate(shown.items()):
            values = [sides[name][0] if name in sides else 0.0 for name in names]
            colour = plots.COLOURS[at % len(plots.COLOURS)]
            hatch = "" if at < len(plots.COLOURS) else "//"
            axes.barh(names, values, 0.6, left=left, color=colour, label=stage, hatch=hatch)
            left = [a + b for a, b in zip(left, values, strict=True)]
        axes.invert_yaxis()
        axes.set_xlabel("ms, in a process that has compiled before (medians)")
        legend(axes)

    return plots.picture(draw, "A compilation by stage", (8, 3.4))


def ratios(tables: Sequence[Rows]) -> plots.Picture | None:
    """Kernels beside others: how many times as long as ferrule each takes."""
    shown = {name: sides for each in tables[:2] for name, sides in each.items()}
    shown = {name: sides for name, sides in shown.items() if sides.get("ferrule", (0,))[0] > 0}
    if any("," in name for name in shown):  # rows of compilations have none
        shown = {name: sides for name, sides in shown.items() if name in tables[0]}
    sides = list(dict.fromkeys(side for values in shown.values() for side in values))[1:]

    def draw(axes: Any) -> None:
        for at, side in enumerate(sides):
            has = [(row, each) for row, each in enumerate(shown.values()) if side in each]
            times = [each[side][0] / each["ferrule"][0] for _, each in has]
            colour = plots.COLOURS[at + 1]
            axes.scatter(times, [row for row, _ in has], color=colour, label=side, s=30)
        axes.axvline(1, color=plots.COLOURS[0], linewidth=2, label="ferrule")
        axes.set_yticks(range(len(shown)), list(shown))
        axes.invert_yaxis()
        axes.set(xscale="log", xlabel="times as long as ferrule (log); to the right: slower")
        axes.grid(alpha=0.3)
        legend(axes)

    return plots.picture(draw, "Kernels of the examples on one thread", (8, 3.6))


def over_sizes(kernel: str) -> Callable[[dict[str, Any]], plots.Picture | None]:
    """The speed of a kernel over sizes, of the file of `sizes`."""

    def make(found: dict[str, Any]) -> plots.Picture | None:
        (table,) = (each for each in found["tables"] if each["title"] == f"{kernel} over sizes")
        series: dict[str, dict[int, list[float]]] = {}
        for row in table["rows"]:
            count = int(row["name"].partition(" ")[0])
            for side, figures in row["sides"].items():
                series.setdefault(side, {})[count] = figures["samples"]
        title = f"{kernel}: one thread, medians and quartiles"
        return plots.curves(series, title, "floats (log)", "floats")

    return make


def roofline(found: dict[str, Any]) -> plots.Picture | None:
    """Operations a second over operations a byte, below the two ceilings of the same run."""
    (times,) = (each for each in found["tables"] if each["title"] == "A roofline")
    (facts,) = (each for each in found["tables"] if each["title"].startswith("What each"))
    work = {name: (int(operations), int(moved)) for name, operations, moved in facts["lines"]}
    speeds = {row["name"]: row["sides"]["ferrule"] for row in times["rows"]}
    (memory, peak), kernels = [*speeds][:2], [*speeds][2:]
    bandwidth = work[memory][1] / speeds[memory]["median"] / 1e9
    most = work[peak][0] / speeds[peak]["median"] / 1e9

    def draw(axes: Any) -> None:
        edge = most / bandwidth
        axes.plot([0.1, edge, 200], [0.1 * bandwidth, most, most], color=plots.INK, linewidth=1)
        axes.text(0.11, 0.19 * bandwidth, f"memory: {bandwidth:.0f} GB/s", rotation=34, fontsize=8)
        axes.text(edge, most * 1.1, f"arithmetic: {most:.0f} GFLOP/s", fontsize=8)
        for at, name in enumerate(kernels):
            operations, moved = work[name]
            low, high = (operations / each / 1e9 for each in speeds[name]["quartiles"])
            place, colour = operations / moved, plots.COLOURS[at % len(plots.COLOURS)]
            axes.plot([place, place], [low, high], color=colour, linewidth=1)
            speed = operations / speeds[name]["median"] / 1e9
            marker = "o" if at < len(plots.COLOURS) else "s"
            axes.plot([place], [speed], marker, color=colour, label=name, markersize=6)
        axes.set(xscale="log", yscale="log", xlim=(0.1, 200), ylim=(0.5, most * 2))
        axes.set(xlabel="operations for each byte (log)", ylabel="10⁹ operations a second (log)")
        axes.grid(alpha=0.3)
        legend(axes)

    return plots.picture(draw, "A roofline of one thread", (8, 3.8))


KEPT: Final[dict[str, tuple[str, Callable[[dict[str, Any]], plots.Picture | None]]]] = {
    "sizes_saxpy": ("sizes", over_sizes("saxpy")),
    "sizes_softmax": ("sizes", over_sizes("softmax")),
    "sizes_layer_norm": ("sizes", over_sizes("layer norm")),
    "roofline": ("sizes", roofline),
}
"""Each plot that is of every sample, which no table has: of a file that is kept beside it."""
PLOTS: Final[dict[str, tuple[str, Callable[[Sequence[Rows]], plots.Picture | None]]]] = {
    "calls": ("call_overhead", calls),
    "three_arrays": ("call_overhead", three_arrays),
    "cold_starts": ("cold_start", cold),
    "compile_stages": ("compile_time", stages),
    "kernels": ("kernels", ratios),
}
"""Each plot, with the benchmark that it is of."""


def main() -> None:
    """Makes the plots that there are figures for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, help="the folder of the files; else the page")
    parser.add_argument("--to", type=Path, default=ROOT / "docs/pictures/benchmarks")
    given = parser.parse_args()
    given.to.mkdir(parents=True, exist_ok=True)
    page = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    for name, (benchmark, make) in PLOTS.items():
        if given.results is None:
            write(given.to / f"{name}.svg", make(of_page(page, benchmark)))
        elif found := read(given.results, benchmark):
            write(given.to / f"{name}.svg", make(of_file(found, benchmark)))
    for name, (benchmark, draw) in KEPT.items():
        if found := read(given.results or given.to, benchmark):
            write(given.to / f"{name}.svg", draw(found))


def read(folder: Path, benchmark: str) -> dict[str, Any] | None:
    """The file of a benchmark, if it is there."""
    file = folder / f"{benchmark}.json"
    if not file.exists():
        print(f"{file}: python benchmarks/{benchmark}.py --json {file} writes it")
        return None
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def write(file: Path, made: plots.Picture | None) -> None:
    """Writes a plot, with the colours that it has where it is shown alone."""
    if made is not None:
        file.write_text(made.svg.replace(">", f">{_ALONE}", 1), encoding="utf-8")
        print(file)


if __name__ == "__main__":
    main()

"""Pictures for the tutorials: grids, timelines and times, as SVG.

A notebook shows them, in the colours of its page; a program writes them into a folder and prints
where. Without matplotlib no picture is made, and the tutorial still runs.
"""

from __future__ import annotations

import io
import re
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

COLOURS = ("#4C8BD9", "#E08A3C", "#4CAF7A", "#B06FC4", "#D9607A", "#4FA6B3", "#A89A3A", "#8A8F99")
INK = "#010203"
"""Stands for the colour of text, which is that of the page."""
_SETTINGS = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
}


class Picture:
    """A picture that a notebook shows; `svg` is its text."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto">{self.svg}</div>'

    def __repr__(self) -> str:
        return "<picture>"


def picture(draw: Callable[[Any], None], title: str, size: tuple[float, float]) -> Picture | None:
    """What `draw` draws into axes. `title` is also what a screen reader says."""
    try:
        import matplotlib
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        print(f"{title}: no picture, matplotlib is not installed")
        return None
    with matplotlib.rc_context({**_SETTINGS, "svg.hashsalt": title}):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.subplots()
        axes.set_title(title, loc="left")
        draw(axes)
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return _kept(_plain(file.getvalue(), title), title)


def _plain(text: str, title: str) -> str:
    """The SVG element alone, with the colour of the text around it, and a name."""
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.S)
    text = text.replace(INK, "currentColor")
    style = '<style type="text/css">*{stroke-linejoin: round; stroke-linecap: butt}</style>'
    text = text.replace(style, "").replace("<defs>\n  \n </defs>", "")
    named = title.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return text.replace(
        "<svg ", f'<svg role="img" aria-label="{named}" style="max-width:100%;height:auto" ', 1
    )


def _kept(svg: str, title: str) -> Picture:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None and Path(sys.argv[0]).parent.name == Path(__file__).parent.name:
        folder = Path(tempfile.gettempdir()) / "ferrule-gallery"
        folder.mkdir(exist_ok=True)
        name = re.sub(r"\W+", "_", title).strip("_").lower()
        path = folder / f"{name}.svg"
        style = "<style>svg{color:#222;background:#fff}</style>"
        path.write_text(svg.replace(">", f">{style}", 1), encoding="utf-8")
        print(f"picture: {path}")
    return Picture(svg)


# ---- grids ----


def grid(numbers: Any, title: str, texts: Any = None, cell: float = 0.36) -> Picture | None:
    """Cells in the colours of numbers, such as the threads that have them; -1 is no colour."""
    numbers = np.atleast_2d(np.asarray(numbers))
    texts = numbers if texts is None else np.atleast_2d(np.asarray(texts))
    height, width = numbers.shape

    def draw(axes: Any) -> None:
        for row in range(height):
            for column in range(width):
                value = int(numbers[row, column])
                colour = "none" if value < 0 else COLOURS[value % len(COLOURS)]
                box = (column, row)
                axes.add_patch(_box(box, 1, 1, colour))
                middle = {"ha": "center", "va": "center", "fontsize": 7}
                middle["color"] = INK if value < 0 else "#101418"  # on a colour, in the dark too
                axes.text(column + 0.5, row + 0.5, str(texts[row, column]), **middle)
        axes.set(
            xlim=(-0.05, width + 0.05), ylim=(height + 0.05, -0.05), aspect="equal", anchor="W"
        )
        axes.set_axis_off()

    least = 0.09 * len(title) + 0.3  # as wide as the title
    return picture(draw, title, (max(least, cell * width + 0.3), cell * height + 0.5))


def _box(place: tuple[float, float], width: float, height: float, colour: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(place, width, height, facecolor=colour, edgecolor=INK, linewidth=0.4)


# ---- times ----


def timeline(spans: Sequence[tuple[str, float, float]], title: str, unit: str) -> Picture | None:
    """What follows what: a name, when it begins and how long it takes."""

    def draw(axes: Any) -> None:
        whole = max(begin + length for _, begin, length in spans)
        for row, (_, begin, length) in enumerate(spans):
            axes.barh(row, length, left=begin, color=COLOURS[row % len(COLOURS)], height=0.7)
            end, text = begin + length, f" {length:.3g} {unit} "
            inside = length > 0.25 * whole  # there is room, and beside it may be none
            colour = "black" if inside else None
            side = "right" if inside else "left" if end < 0.75 * whole else "right"
            at = end if inside or side == "left" else begin
            axes.text(at, row, text, ha=side, va="center", fontsize=8, color=colour)
        axes.set_yticks(range(len(spans)), [name for name, _, _ in spans])
        axes.invert_yaxis()
        axes.set_xlabel(unit)

    return picture(draw, title, (7, 0.34 * len(spans) + 1))


def times(samples: Mapping[str, Sequence[float]], title: str, unit: str = "µs") -> Picture | None:
    """Medians as bars, from the first to the third quartile as lines. Samples are seconds."""
    scale = {"ns": 1e9, "µs": 1e6, "ms": 1e3}[unit]

    def draw(axes: Any) -> None:
        for row, found in enumerate(samples.values()):
            low, middle, high = (scale * each for each in quartiles(found))
            axes.barh(row, middle, color=COLOURS[row % len(COLOURS)], height=0.7)
            axes.plot([low, high], [row, row], color=INK, linewidth=1.4)
            axes.text(max(middle, high), row, f" {middle:.3g} {unit}", va="center", fontsize=8)
        axes.set_yticks(range(len(samples)), list(samples))
        axes.invert_yaxis()
        axes.margins(x=0.15)
        axes.set_xlabel(unit)

    return picture(draw, title, (7, 0.4 * len(samples) + 1))


def curves(
    series: Mapping[str, Mapping[int, Sequence[float]]], title: str, x: str, per: str = "elements"
) -> Picture | None:
    """Speeds over sizes: medians as lines, between the quartiles shaded. Samples are seconds."""

    def draw(axes: Any) -> None:
        for colour, (name, found) in zip(COLOURS, series.items(), strict=False):
            sizes = list(found)
            rows = np.array([[n / t / 1e9 for t in quartiles(found[n])] for n in sizes])
            axes.plot(sizes, rows[:, 1], label=name, color=colour, marker="o", markersize=4)
            axes.fill_between(sizes, rows[:, 0], rows[:, 2], color=colour, alpha=0.25, linewidth=0)
        axes.set(xscale="log", xlabel=x, ylabel=f"10⁹ {per} a second", ylim=(0, None))
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize=8)

    return picture(draw, title, (7, 3.2))


def quartiles(samples: Sequence[float]) -> tuple[float, float, float]:
    """The first quartile, the median and the third."""
    low, middle, high = statistics.quantiles(samples, n=4, method="inclusive")
    return low, middle, high


def measured(calls: Mapping[str, Callable[[], Any]], rounds: int = 15) -> dict[str, list[float]]:
    """Seconds of a call of each, taken in turns, so that all have the same bad moments."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    counts = {}
    for name, call in calls.items():
        for _ in range(20):  # ferrule's machine code for calls is made by the sixteenth
            call()
        began = perf_counter()
        call()
        counts[name] = max(1, int(2e-4 / max(1e-9, perf_counter() - began)))
    for _ in range(rounds):
        for name, call in calls.items():
            began = perf_counter()
            for _ in range(counts[name]):
                call()
            found[name].append((perf_counter() - began) / counts[name])
    return found

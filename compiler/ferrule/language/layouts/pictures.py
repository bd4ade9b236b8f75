"""Pictures of layouts: a grid with the index at each coordinate, as text, SVG and LaTeX.

Rows count along the first mode, columns along the others together; a layout of one mode is one
row.  A layout of threads and values shows in each place of a tile the thread and its value instead.
"""

from __future__ import annotations

from collections.abc import Callable
from colorsys import hsv_to_rgb
from html import escape
from pathlib import Path
from typing import Any, Final

from ferrule.language.layouts.coordinates import crd2idx
from ferrule.language.layouts.errors import refuse
from ferrule.language.layouts.layout import (
    Layout,
    is_composed,
    is_static,
    make_layout,
    rank,
    size,
)
from ferrule.language.layouts.tuples import format_tuple, product
from ferrule.specs.deferred import dataclass
from ferrule.specs.html.elements import fragment

MOST_CELLS: Final = 1 << 14
_SMALL: Final = 1 << 10
"""Places of a layout up to which a notebook draws it unasked."""
_CELL: Final = 40
_HEAD: Final = """\\documentclass[tikz]{standalone}
\\begin{document}
\\begin{tikzpicture}[yscale=-1]
"""
_END: Final = "\\end{tikzpicture}\n\\end{document}\n"

Colour = tuple[int, int, int]
_WHITE: Final = (255, 255, 255)


@dataclass(frozen=True, slots=True)
class Cell:
    """A place of a picture: its lines of text, and its colour."""

    lines: tuple[str, ...]
    colour: Colour


@dataclass(frozen=True, slots=True, repr=False)
class Picture:
    """A picture of a layout: `str` is its text, notebooks show its SVG, `save` writes a file."""

    title: str
    rows: tuple[tuple[Cell, ...], ...]

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<picture of {self.title}>"

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        """The picture in a box that scrolls sideways, with its title."""
        return _html(self.title, self.svg())

    def text(self) -> str:
        """The grid in characters."""
        shown = [[" ".join(cell.lines) for cell in row] for row in self.rows]
        columns = len(self.rows[0])
        widths = [len(text) for row in shown for text in row]
        width = max([*widths, len(str(columns - 1))])
        side = len(str(len(shown) - 1))
        line = " " * side + " +" + ("-" * (width + 2) + "+") * columns
        heads = "".join(f" {column:>{width}}  " for column in range(columns))
        result = [self.title, f"{' ' * side}  {heads}".rstrip(), line]
        for number, row in enumerate(shown):
            cells = "".join(f" {text:>{width}} |" for text in row)
            result += [f"{number:>{side}} |{cells}", line]
        return "\n".join(result)

    def svg(self) -> str:
        """The grid as an SVG file."""
        height, width = (len(self.rows) + 1) * _CELL, (len(self.rows[0]) + 1) * _CELL
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="monospace" font-size="12" '
            'text-anchor="middle">',
            f"<title>{escape(self.title)}</title>",
        ]
        parts += [_label(str(y), 0, y + 1) for y in range(len(self.rows))]
        parts += [_label(str(x), x + 1, 0) for x in range(len(self.rows[0]))]
        for y, row in enumerate(self.rows):
            parts += [_square(cell, x + 1, y + 1) for x, cell in enumerate(row)]
        return "\n".join([*parts, "</svg>", ""])

    def latex(self) -> str:
        """The grid as a LaTeX document with TikZ."""
        parts = [f"% {self.title}\n{_HEAD}"]
        for y, row in enumerate(self.rows):
            parts += [_node(cell, x, y) for x, cell in enumerate(row)]
        parts += [_edge("-0.5", f"{y}.5", y) for y in range(len(self.rows))]
        parts += [_edge(f"{x}.5", "-0.5", x) for x in range(len(self.rows[0]))]
        return "".join([*parts, _END])

    def save(self, path: str | Path) -> None:
        """Writes the picture: `.svg`, `.tex`, or as text for any other name."""
        target = Path(path)
        forms: dict[str, Callable[[], str]] = {".svg": self.svg, ".tex": self.latex}
        target.write_text(forms.get(target.suffix, self.text)(), encoding="utf-8")


def _label(text: str, x: int, y: int, colour: str = "#777777") -> str:
    at = f'x="{x * _CELL + _CELL // 2}" y="{y * _CELL + _CELL // 2 + 4}"'
    return f'<text {at} fill="{colour}">{text}</text>'


def _square(cell: Cell, x: int, y: int) -> str:
    left, top = x * _CELL, y * _CELL
    fill = "#{:02x}{:02x}{:02x}".format(*cell.colour)
    box = f'<rect x="{left}" y="{top}" width="{_CELL}" height="{_CELL}"'
    first = top + _CELL // 2 + 4 - 7 * (len(cell.lines) - 1)
    texts = [
        f'<text x="{left + _CELL // 2}" y="{first + 14 * i}">{line}</text>'
        for i, line in enumerate(cell.lines)
    ]
    return f'{box} fill="{fill}" stroke="black"/>{"".join(texts)}'


def _node(cell: Cell, x: int, y: int) -> str:
    red, green, blue = cell.colour
    fill = f"{{rgb,255:red,{red};green,{green};blue,{blue}}}"
    box = f"\\filldraw[fill={fill}] ({x},{y}) rectangle +(1,1);"
    lines = r" \\ ".join(cell.lines)
    text = lines if len(cell.lines) == 1 else rf"\shortstack{{{lines}}}"
    return f"{box} \\node at ({x}.5,{y}.5) {{{text}}};\n"


def _edge(x: str, y: str, number: int) -> str:
    return f"\\node at ({x},{y}) {{{number}}};\n"


def draw(layout: Any, tile: Any = None) -> Picture:
    """A picture of a layout, also a composed one, whose numbers are all known.

    The shades of places repeat with the index modulo 8; with a swizzle, modulo 8 of the units of
    elements that it keeps together.  A layout of coordinates shows these.

    With the shape of a `tile`: `layout` is one of threads and values, from `(thread, value)` to an
    index in the tile; the picture shows who has each place, of several the last one.  Raises
    LayoutError for sizes that are not known, and more than 16384 places.
    """
    found = _layout(layout)
    if tile is None:
        return _of_indices(found)
    place = make_layout(tile) if isinstance(tile, int | tuple | list) else tile
    return _of_threads(found, _layout(place))


def layout_html(layout: Any) -> str:
    """A layout as a part of a page: its text, and its picture if it is small and all is known."""
    if not is_static(layout) or not 0 < _number(size(layout)) <= _SMALL:
        return _html(str(layout), "")
    return _html(str(layout), _of_indices(layout).svg())


def _html(title: str, picture: str) -> str:
    text = f"<p><code>{escape(title)}</code></p>\n"
    return fragment(f'{text}<div class="wide">{picture}</div>\n' if picture else text)


def _layout(value: Any) -> Any:
    is_layout = isinstance(value, Layout) or is_composed(value)
    found = value if is_layout else getattr(value, "layout", value)
    if not (isinstance(found, Layout) or is_composed(found)):
        refuse("draw", f"expected a layout, but got {found!r}", "write make_layout(...)")
    if not is_static(found):
        refuse("draw", f"the numbers of {found} are not all known", "give numbers")
    if not 0 < _number(size(found)) <= MOST_CELLS:
        refuse("draw", f"{found} has {size(found)} places", f"draw 1 to {MOST_CELLS} of them")
    return found


def _number(value: Any) -> int:
    assert isinstance(value, int)
    return value


def _grid(layout: Any) -> tuple[int, int]:
    """The rows and columns of a picture."""
    if rank(layout) == 1:
        return 1, _number(size(layout))
    rows = _number(size(layout, [0]))
    return rows, _number(size(layout)) // rows


def _of_indices(layout: Any) -> Picture:
    height, width = _grid(layout)
    unit = 1 << getattr(getattr(layout, "inner", None), "num_base", 0)
    rows = tuple(
        tuple(_index_cell(crd2idx(y + x * height, layout), unit) for x in range(width))
        for y in range(height)
    )
    return Picture(str(layout), rows)


def _index_cell(index: Any, unit: int) -> Cell:
    if not isinstance(index, int):
        return Cell((format_tuple(index),), _WHITE)
    grey = 255 - 18 * (index // unit % 8)
    return Cell((str(index),), (grey, grey, grey))


def _of_threads(layout: Any, tile: Any) -> Picture:
    if rank(layout) != 2:
        refuse("draw", f"{layout} has {rank(layout)} modes", "threads and values are two")
    if not isinstance(crd2idx(0, layout), int):
        refuse("draw", f"{layout} gives coordinates", "one of threads and values gives indices")
    threads, values = (_number(size(layout, [mode])) for mode in (0, 1))
    owner = {
        _number(crd2idx((thread, value), layout)): (thread, value)
        for thread in range(threads)
        for value in range(values)
    }
    outside = max(owner) >= _number(product(tile.shape)) or min(owner) < 0
    if outside:
        shown = format_tuple(tile.shape)
        refuse("draw", f"{layout} has indices outside of the tile {shown}", "give its whole tile")
    height, width = _grid(tile)
    rows = tuple(
        tuple(_thread_cell(owner.get(y + x * height)) for x in range(width)) for y in range(height)
    )
    return Picture(f"{layout} in {format_tuple(tile.shape)}", rows)


def _thread_cell(owner: tuple[int, int] | None) -> Cell:
    if owner is None:
        return Cell(("",), _WHITE)
    thread, value = owner
    red, green, blue = (int(255 * part) for part in hsv_to_rgb(thread % 8 / 8, 0.35, 1.0))
    return Cell((f"T{thread}", f"V{value}"), (red, green, blue))


def print_latex(x: Any) -> None:
    """Prints the LaTeX of a picture of a layout: `draw(x).latex()`."""
    print(draw(x).latex(), end="")


def print_latex_tv(layout_tv: Any, tile_mn: Any) -> None:
    """Prints the LaTeX of a layout of threads and values: `draw(layout, tile).latex()`."""
    print(draw(layout_tv, tile_mn).latex(), end="")

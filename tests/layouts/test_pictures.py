"""`fe.draw`: pictures of layouts as text, SVG and LaTeX."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

import ferrule as fe

GRID = """\
(2,3):(3,1)
    0   1   2
  +---+---+---+
0 | 0 | 1 | 2 |
  +---+---+---+
1 | 3 | 4 | 5 |
  +---+---+---+"""
THREADS = """\
((2,2),2):((4,2),1) in (4,2)
        0       1
  +-------+-------+
0 | T0 V0 | T1 V0 |
  +-------+-------+
1 | T0 V1 | T1 V1 |
  +-------+-------+
2 | T2 V0 | T3 V0 |
  +-------+-------+
3 | T2 V1 | T3 V1 |
  +-------+-------+"""
LAYOUT = fe.make_layout((2, 3), stride=(3, 1))
OWNERS = fe.make_layout(((2, 2), 2), stride=((4, 2), 1))


def test_text() -> None:
    assert str(fe.draw(LAYOUT)) == GRID
    assert str(fe.draw(OWNERS, (4, 2))) == THREADS
    assert str(fe.draw(fe.make_layout((2, (2, 2))))).splitlines()[3] == "0 | 0 | 2 | 4 | 6 |"
    assert str(fe.draw(fe.make_layout(12))).count("\n") == 4


def test_composed_layouts_and_coordinates() -> None:
    rows = fe.make_layout((4, 4), stride=(4, 1))
    swizzled = fe.draw(fe.make_composed_layout(fe.make_swizzle(2, 0, 2), 0, rows))
    assert swizzled.title == "S<2,0,2> o 0 o (4,4):(4,1)"
    indices = [[int(cell.lines[0]) for cell in row] for row in swizzled.rows]
    assert indices == [[4 * y + (x ^ y) for x in range(4)] for y in range(4)]
    words = fe.make_layout((2, 16), stride=(16, 1))
    (first, _) = fe.draw(fe.make_composed_layout(fe.make_swizzle(1, 3, 3), 0, words)).rows
    assert len({cell.colour for cell in first}) == 2, "a shade for each run of eight"
    assert fe.draw(fe.make_identity_layout((2, 3))).rows[1][2].lines == ("(1,2)",)
    with pytest.raises(ValueError, match="gives coordinates; one of threads"):
        fe.draw(fe.make_identity_layout((2, 3)), (2, 3))


def test_svg_has_every_index(tmp_path: Path) -> None:
    picture = fe.draw(LAYOUT)
    picture.save(tmp_path / "layout.svg")
    root = ElementTree.fromstring((tmp_path / "layout.svg").read_text(encoding="utf-8"))
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["0", "1", "0", "1", "2", "0", "1", "2", "3", "4", "5"]
    assert picture._repr_svg_() == picture.svg()
    assert len(list(root.iter("{http://www.w3.org/2000/svg}rect"))) == 6


def test_latex(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fe.draw(OWNERS, (4, 2)).save(tmp_path / "threads.tex")
    text = (tmp_path / "threads.tex").read_text(encoding="utf-8")
    assert text.count("\\filldraw") == 8 and "\\shortstack{T3 \\\\ V1}" in text
    fe.print_latex_tv(OWNERS, (4, 2))
    fe.print_latex(LAYOUT)
    assert capsys.readouterr().out == text + fe.draw(LAYOUT).latex()
    fe.draw(LAYOUT).save(tmp_path / "layout.txt")
    assert (tmp_path / "layout.txt").read_text(encoding="utf-8") == GRID


def test_what_cannot_be_drawn() -> None:
    wrong = {
        "expected a layout, but got": (3, None),
        "are not all known": (fe.make_layout((fe.sym_int(), 2)), None),
        "has 65536 places": (fe.make_layout((256, 256)), None),
        "threads and values are two": (fe.make_layout((2, 2, 2)), (4, 2)),
        "has indices outside of the tile": (OWNERS, (2, 2)),
    }
    for message, (layout, tile) in wrong.items():
        with pytest.raises(fe.LayoutError, match=message):
            fe.draw(layout, tile)


def test_in_a_compiled_function(capsys: pytest.CaptureFixture[str]) -> None:
    @fe.jit
    def shows(a: fe.Tensor):
        print(fe.draw(a.layout))

    fe.compile(shows, fe.row_major((2, 3), fe.Float32), options="--target cpu")
    assert capsys.readouterr().out == GRID + "\n"

"""What notebooks show: functions, signatures, layouts, errors and how far a compilation is."""

from __future__ import annotations

import re
import sys
from html import unescape
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import pytest

import ferrule as fe
from ferrule.compiler import progress
from ferrule.runtime.artefacts import Remark, Remarks


class Words(HTMLParser):
    """The words of a part of a page, each of whose elements must be closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("br", "rect"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def words(shown: Any) -> str:
    return " ".join(Words(shown._repr_html_()).words)


@fe.jit
def scaled(x: fe.Tensor, y: fe.Tensor, factor: fe.Float32 = 2.0):
    """y = x * factor, for x < inf."""
    y[:] = x[:] * factor


@fe.jit
def wrong(x: fe.Tensor):
    x[0] = missing_name + 1  # noqa: F821


VECTOR = fe.row_major((fe.sym_int(divisibility=4),), fe.Float32)


def test_a_function_shows_what_a_call_checks() -> None:
    compiled = fe.compile(scaled, VECTOR, VECTOR)
    text = words(compiled)
    for part in (
        str(compiled.signature),
        "y = x * factor, for x < inf.",
        "shape[0] gives n0 (an int32, divisible by 4)",
        "a number; it is rounded to float32",
        "report()",
    ):
        assert part in text
    assert "report()" not in words(compiled.signature)


def test_each_candidate_of_an_overload_has_a_table() -> None:
    tensor = fe.row_major((4,), fe.sym_dtype(fe.Float32, fe.Float64))
    text = words(fe.compile(scaled, tensor, tensor))
    assert "dtype float32" in text and "dtype float64" in text


def test_a_layout_shows_its_picture_if_it_is_small_and_known() -> None:
    layout = fe.make_layout((4, 2))
    swizzled = fe.make_composed_layout(fe.make_swizzle(1, 0, 1), 0, layout)
    for each in (layout, swizzled, fe.draw(layout)):
        assert "<svg" in each._repr_html_() and str(layout) in words(each)
    for each in (fe.make_layout((4, fe.sym_int())), fe.make_layout((64, 64))):
        assert "<svg" not in each._repr_html_() and words(each).split()[-1] == str(each)


def test_remarks_and_pages_show_themselves() -> None:
    remarks = Remarks((Remark("/folder/a.py", "f", 7, "loop", 8, "vectorised <by> 8"),))
    assert "a.py:7 vectorised <by> 8" in " ".join(words(remarks).split())
    page = fe.compile(scaled, VECTOR, VECTOR).report()
    (frame,) = re.findall('srcdoc="(.*?)"', page._repr_html_(), re.S)
    assert unescape(frame) == page


def shell(monkeypatch: pytest.MonkeyPatch, **parts: Any) -> None:
    module = SimpleNamespace(get_ipython=lambda: SimpleNamespace(**parts), **parts)
    monkeypatch.setitem(sys.modules, "IPython", module)  # type: ignore[arg-type]


def test_an_error_shows_the_users_lines_and_underlines_in_red(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(fe.CompileError) as caught:
        fe.compile(wrong, VECTOR)
    shell(monkeypatch, colors="NoColor")
    plain = caught.value._render_traceback_()
    said = str(caught.value).splitlines()
    assert plain[-len(said) :] == [f"CompileError: {said[0]}", *said[1:]]
    assert "    fe.compile(wrong, VECTOR)" in plain
    assert not any("compilation.py" in line for line in plain)
    shell(monkeypatch, colors="linux")
    *_, excerpt, carets = caught.value._render_traceback_()
    assert "\x1b[36m" in excerpt
    assert carets.startswith("      | \x1b[1;31m") and "^^^" in carets


def test_a_notebook_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    handle = SimpleNamespace(update=lambda state: shown.append(words(state)))

    def display(state: progress.State, *, display_id: bool) -> Any:
        shown.append(words(state))
        return handle

    shell(monkeypatch, kernel=True, display=SimpleNamespace(display=display))
    monkeypatch.setattr(progress, "SILENT", 0.0)
    tensor = fe.row_major((3,), fe.sym_dtype(fe.Float32, fe.Float64))
    fe.compile(scaled, tensor, tensor, options="--no-cache")
    assert [each.strip() for each in shown] == [
        "compiling scaled: 1 of 2",
        "compiling scaled: 2 of 2",
    ]

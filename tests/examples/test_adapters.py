"""The adapters of the examples are as short as the page of benchmarks says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ADAPTERS = {
    "tinygrad_mlp": ("renderer", "source", "build"),
    "halide_pipeline": ("halide_buffer", "build"),
}
ROW = re.compile(
    r"^\| lines of code of the adapters .* fewer than (\d+) and (\d+) \| (\d+) and (\d+)"
)


def lines_of(function: ast.FunctionDef, text: list[str]) -> int:
    """The lines of a function without its docstring and without empty ones."""
    assert ast.get_docstring(function)
    documented = function.body[0]
    lines = set(range(function.lineno, (function.end_lineno or 0) + 1))
    lines -= set(range(documented.lineno, (documented.end_lineno or 0) + 1))
    return sum(bool(text[line - 1].strip()) for line in lines)


@pytest.mark.parametrize(("position", "name"), list(enumerate(ADAPTERS)))
def test_an_adapter_is_as_short_as_the_page_says(position: int, name: str) -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    (row,) = (found for line in page.splitlines() if (found := ROW.match(line)))
    text = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    found = [
        lines_of(each, text.splitlines())
        for each in ast.parse(text).body
        if isinstance(each, ast.FunctionDef) and each.name in ADAPTERS[name]
    ]
    assert len(found) == len(ADAPTERS[name])
    goal, measured = int(row[1 + position]), int(row[3 + position])
    assert sum(found) == measured < goal

"""Every Python snippet of README, CONTRIBUTING and docs runs, and prints what the page says.

The blocks of a page are one program, in order. What is between them becomes empty lines, so that a
line number of the program is one of the page, and the source of a kernel can be found. What
the program prints must be what the page says: its blocks marked `text output`, in order. A
block marked `python no-run` is left out, and its first line says why in a comment.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest

from ferrule.compiler.cache import settings

ROOT = Path(__file__).resolve().parents[2]
FENCE = "```"


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: the words behind the fence, its first line's number, its lines."""

    info: tuple[str, ...]
    line: int
    lines: tuple[str, ...]

    @property
    def runs(self) -> bool:
        return self.info == ("python",)


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page; a fence must stand at the beginning of its line."""
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        if lines[number].startswith(FENCE):
            end = lines.index(FENCE, number + 1)
            info = tuple(lines[number].removeprefix(FENCE).split())
            yield Block(info, number + 2, tuple(lines[number + 1 : end]))
            number = end
        number += 1


def program(text: str) -> str:
    """The page with everything but its runnable blocks made empty."""
    lines = [""] * len(text.splitlines())
    for block in blocks(text):
        if block.runs:
            lines[block.line - 1 : block.line - 1 + len(block.lines)] = block.lines
    return "\n".join(lines) + "\n"


def output(text: str) -> str:
    """What the page says that its program prints."""
    said = [line for b in blocks(text) if b.info == ("text", "output") for line in b.lines]
    return "".join(line + "\n" for line in said)


def pages() -> list[Path]:
    """The pages whose snippets are run."""
    docs = (
        path
        for path in ROOT.joinpath("docs").rglob("*.md")
        if {"_build", "reference"}.isdisjoint(path.parts)  # which a build has made
    )
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(docs)]


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", pages(), ids=page_name)
def test_blocks_are_marked(page: Path) -> None:
    """A block of Python either runs or says why it does not."""
    for block in blocks(page.read_text(encoding="utf-8")):
        where = f"{page_name(page)}:{block.line}"
        assert block.info, f"{where}: a block without a language"
        if block.info[0] == "python" and not block.runs:
            assert block.info == ("python", "no-run"), f"{where}: {block.info}"
            assert block.lines[0].startswith("# Not run: "), f"{where}: no reason is given"


@pytest.mark.parametrize(
    "page", [p for p in pages() if program(p.read_text(encoding="utf-8")).strip()], ids=page_name
)
def test_snippets_run(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = page.read_text(encoding="utf-8")
    if "import torch\n" in program(text):
        pytest.importorskip("torch", reason="PyTorch is not installed")
    if "import jax\n" in program(text):
        pytest.importorskip("jax", reason="JAX is not installed")
    file = tmp_path / (page.stem.replace("-", "_") + "_snippets.py")
    file.write_text(program(text), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, file.stem, module)
    with patch.dict(os.environ):  # what a page sets there would hold in all later tests
        spec.loader.exec_module(module)
    settings.set_folder(None)
    settings.set_limit(None)
    assert capsys.readouterr().out == output(text)

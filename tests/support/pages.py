"""Runs snippets of a page that only some machines can run, where the page says so."""

from __future__ import annotations

import importlib.util
import io
import sys
from contextlib import redirect_stdout
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def _blocks(text: str, info: str) -> list[str]:
    found = []
    for block in text.split("\n```")[1:]:
        head, _, body = block.partition("\n")
        if head == info:
            found.append(body)
    return found


def blocks_of(name: str, info: str) -> list[str]:
    """The blocks of a page that begin with these words behind the fence."""
    return _blocks((DOCS / name).read_text(encoding="utf-8"), info)


def run_page(name: str, folder: Path, without: str = " nothing ") -> None:
    """Run the blocks `python no-run` of a page, as one program; it prints what the page says.

    They stand in a file, for compilers that read their source.  Those whose first line has the text
    `without` are left out.
    """
    text = (DOCS / name).read_text(encoding="utf-8")
    found = _blocks(text, "python no-run")
    blocks = [block for block in found if without not in block.partition("\n")[0]]
    assert blocks, f"{name} has no such blocks"
    file = folder / f"{Path(name).stem}_snippets.py"
    file.write_text("\n".join(blocks), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            spec.loader.exec_module(module)
    finally:
        del sys.modules[file.stem]
    assert printed.getvalue() == "".join(f"{said}\n" for said in _blocks(text, "text output"))

"""The page of the kernel IR is what the docstrings say, and every op and rule is on it."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from ferrule.language.ir import ops, page

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_the_one_that_is_made() -> None:
    kept = ROOT.joinpath("docs/kernel_ir.md").read_text(encoding="utf-8")
    said = "run python -m ferrule.language.ir.page > docs/kernel_ir.md"
    assert kept == page.page(), said


def test_every_op_is_on_it() -> None:
    text = page.page()
    for kind in get_args(ops.Op):
        assert f"**{kind.__name__}**" in text
        assert kind.__doc__, kind

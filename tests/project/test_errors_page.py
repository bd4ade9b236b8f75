"""The page of errors is what the catalogue says, and no entry is without an example and a fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.compiler.messages import page
from ferrule.compiler.messages.advice import ADVICE
from ferrule.compiler.messages.catalogue import CATALOGUE, Entry


def test_the_page_is_the_one_that_is_made(root: Path) -> None:
    kept = root.joinpath("docs/errors.md").read_text(encoding="utf-8")
    said = "run python -m ferrule.compiler.messages.page > docs/errors.md"
    assert kept == page.page(), said


def test_every_entry_has_advice_and_a_code_of_its_own() -> None:
    codes = [entry.code for entry in CATALOGUE]
    assert len(set(codes)) == len(codes)
    assert set(codes) == set(ADVICE)


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.code)
def test_an_example_fills_all_fields(entry: Entry) -> None:
    text = page.example(entry)
    assert "{" not in text
    assert text.startswith(("Mismatched", "Invalid", "Out of bound", "Misaligned", "Expects"))
    assert ", but " in text, "the actual value is missing"


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.code)
def test_a_fix_says_what_to_do(entry: Entry) -> None:
    fix = ADVICE[entry.code].fix
    assert fix.endswith(".") and len(fix) > 20

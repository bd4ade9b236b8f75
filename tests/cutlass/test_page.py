"""The page of CuTe DSL's names says what is there, and the goals for them are kept."""

from __future__ import annotations

from pathlib import Path

from ferrule.cutlass import names, page, peer

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_is_there() -> None:
    """After a change: `python -m ferrule.cutlass.page > docs/cute_names.md`."""
    written = (ROOT / "docs/cute_names.md").read_text(encoding="utf-8")
    assert page.page() == written


def test_most_names_are_there() -> None:
    least = {"cutlass.cute": 245, "cutlass.cute.arch": 121, "cutlass.cute.math": 55}
    for module, wanted in least.items():
        found = list(page.answers(module).values())
        assert found.count("yes") >= wanted, module


def test_answers() -> None:
    assert page.answer("cutlass.cute", "make_layout") == "yes"
    assert page.answer("cutlass.cute.arch", "add_cc") == "otherwise"
    assert page.answer("cutlass.cute.arch", "alloc_tmem") == "no"


def test_what_is_instead_of_a_name_is_of_names_that_are_not_there() -> None:
    known = {name for module in peer.NAMES for name in peer.NAMES[module].split()}
    there = {
        name for module in peer.NAMES for name, is_ in page.answers(module).items() if is_ == "yes"
    }
    assert not names.OTHERWISE.keys() & there
    assert names.OTHERWISE.keys() - known <= {"gpu", "vector", "jax"}

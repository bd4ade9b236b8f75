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
    assert page.answer("cutlass.cute.arch", "alloc_tmem") == "Blackwell"
    assert page.answer("cutlass.utils", "distributed") == "no"


def test_what_is_for_blackwell_is_not_there() -> None:
    for module, chosen in names.BLACKWELL.items():
        assert chosen <= set(peer.NAMES[module].split())
        assert {page.answer(module, name) for name in chosen} == {"Blackwell"}
    said = names.missing("cutlass.utils", "make_smem_layout_a")
    assert "for Blackwell" in said and "for sm_90a: cutlass.utils.sm90.make_smem_layout_a" in said
    assert "sm90" not in names.missing("cutlass.utils", "TmemAllocator")


def test_what_is_instead_of_a_name_is_of_names_that_are_not_there() -> None:
    known = {name for module in peer.NAMES for name in peer.NAMES[module].split()}
    there = {
        name for module in peer.NAMES for name, is_ in page.answers(module).items() if is_ == "yes"
    }
    assert not names.OTHERWISE.keys() & there
    assert names.OTHERWISE.keys() - known <= {"gpu", "vector", "jax"}


def test_reasons_are_of_names_that_are_not_there() -> None:
    found = [(n, a) for module in peer.NAMES for n, a in page.answers(module).items()]
    assert {a for n, a in found if n in names.REASONS} == {"no"}
    assert names.REASONS.keys() <= {n for n, _ in found}
    said = names.missing("cutlass.utils", "distributed")
    assert said.startswith("cutlass.utils.distributed is not in ferrule: for several GPUs")

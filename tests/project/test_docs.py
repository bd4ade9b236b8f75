"""The documentation builds without a warning, and its decision records are complete."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import ferrule
from ferrule.compiler import conventions
from ferrule.specs.params import Param

RECORD = re.compile(r"\d{4}-[a-z0-9-]+\.md")
CODE = re.compile(r"`[^`\n]+`")
"""Code in a line: `kernel[grid](...)` is no link."""
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)[)#]")
SECTIONS = ("## Context", "## Decision", "## Consequences")


def test_the_documentation_builds(root: Path, tmp_path: Path) -> None:
    for module in ("sphinx", "myst_nb", "jupytext", "furo"):
        pytest.importorskip(module, reason=f"{module} is not installed")
    # tests/examples runs the tutorials of the gallery.
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html"]
    command += ["-D", "nb_execution_mode=off"]
    done = subprocess.run(
        [*command, "-d", str(tmp_path / "trees"), str(root / "docs"), str(tmp_path / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_records_are_numbered_and_whole(root: Path) -> None:
    records = sorted(p for p in root.joinpath("docs/decisions").iterdir() if p.stem != "index")
    assert records
    assert [path.name[:4] for path in records] == [f"{n:04}" for n in range(1, len(records) + 1)]
    for path in records:
        assert RECORD.fullmatch(path.name), path
        text = path.read_text(encoding="utf-8")
        assert all(section in text for section in SECTIONS), path


def test_links_between_files_lead_somewhere(root: Path) -> None:
    pages = [*root.glob("*.md"), *root.joinpath("docs").rglob("*.md")]
    links = [(p, link) for p in pages for link in LINK.findall(CODE.sub("", p.read_text("utf-8")))]
    assert links
    assert not [(p, link) for p, link in links if not (p.parent / link).exists()]


def named(pages: Path) -> set[str]:
    """The words of a page, or of all pages of a folder."""
    files = [pages] if pages.is_file() else pages.glob("*.md")
    return {word for each in files for word in re.findall(r"\w+", each.read_text("utf-8"))}


def test_conventions_have_a_place_on_their_pages(root: Path) -> None:
    assert not {*conventions.__all__} - named(root / "docs/conventions")


def test_kinds_of_parameters_have_a_place_on_their_page(root: Path) -> None:
    kinds = {each.__name__ for each in get_args(Param)}
    assert "Tensor" in kinds and "EnvStream" in kinds
    assert not kinds - named(root / "docs/parameters.md")


NAME = re.compile(r"`fe((?:\.[A-Za-z_]\w*)+)")
ADDS_NAMES = "extending.md"


def test_names_in_pages_are_names(root: Path) -> None:
    """`fe.arch.block_idx()[0]` names `fe.arch.block_idx`."""
    missing = []
    for page in [root / "README.md", *sorted(root.joinpath("docs").glob("*.md"))]:
        if page.name == ADDS_NAMES:
            continue
        for path in NAME.findall(page.read_text("utf-8")):
            found: object = ferrule
            for word in path[1:].split("."):
                found = getattr(found, word, None)
            if found is None:
                missing.append(f"{page.name}: fe{path}")
    assert not missing


def test_every_public_name_has_a_docstring(root: Path) -> None:
    reference = runpy.run_path(str(root / "docs/reference.py"))
    names = [each for module in reference["MODULES"] for each in reference["public"](module)]
    assert len(names) > 600
    assert reference["undocumented"]() == []


def test_few_public_names_have_no_example(root: Path) -> None:
    """Of `ferrule` itself; a new name gets a line in docs/by_example.md, or a place on a page."""
    reference = runpy.run_path(str(root / "docs/reference.py"))
    known = reference["uses"]()
    names = [each for each in reference["public"]("ferrule") if not each.is_constant]
    without = [each.name for each in names if ("ferrule", each.name) not in known]
    assert len(without) <= 44, without
    assert set(reference["examples"]()) <= {each.name for each in reference["public"]("ferrule")}


def test_the_reference_has_signatures_and_pages_that_use_a_name(root: Path, tmp_path: Path) -> None:
    runpy.run_path(str(root / "docs/reference.py"))["write"](tmp_path / "reference")
    page = (tmp_path / "reference/ferrule.md").read_text(encoding="utf-8")
    (entry,) = re.findall(r"^### `ferrule.ceil_div`\n.*?(?=^### )", page, re.M | re.S)
    assert "ceil_div(lhs: Dim, rhs: Dim) -> Dim" in entry
    assert "[Tensors, views and layouts](../layouts.md)" in entry
    (entry,) = re.findall(r"^### `ferrule.crd2idx`\n.*?(?=^### )", page, re.M | re.S)
    assert "assert fe.crd2idx((1, 2), rows) == 10" in entry
    compile_text = page.split("### `ferrule.compile`\n")[1].split("\n### ")[0]
    assert "CompileError" in compile_text


def test_plots_are_of_the_tables(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each table that a plot is of is found on the page, with its medians and quartiles."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    plot = runpy.run_path(str(root / "benchmarks/plot.py"))
    page = (root / "docs/benchmarks.md").read_text(encoding="utf-8")
    tables = plot["of_page"](page, "call_overhead")
    median, low, high = plot["having"](tables, "nanobind")["3 NumPy arrays"]["ferrule"]
    assert f"| 3 NumPy arrays | {median} ({low}–{high}) |" in page
    for name, (benchmark, make) in plot["PLOTS"].items():
        kept = (root / f"docs/pictures/benchmarks/{name}.svg").read_text(encoding="utf-8")
        assert kept.startswith("<svg") and 'role="img"' in kept
        assert plot["of_page"](page, benchmark), benchmark
        make(plot["of_page"](page, benchmark))  # draws, where there is matplotlib


def test_plots_are_of_files_too(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    plot = runpy.run_path(str(root / "benchmarks/plot.py"))
    side = {"median": 2e-9, "quartiles": [1e-9, 3e-9]}
    found = {"tables": [{"title": "", "unit": "s", "rows": [{"name": "n", "sides": {"a": side}}]}]}
    (rows,) = plot["of_file"](found, "call_overhead")
    assert rows["n"]["a"] == pytest.approx((2.0, 1.0, 3.0))


def test_pictures_are_what_the_code_draws(root: Path) -> None:
    made = runpy.run_path(str(root / "docs/pictures.py"))["pictures"]()
    for name, text in made.items():
        kept = (root / "docs/pictures" / name).read_text(encoding="utf-8")
        assert kept == text, "python docs/pictures.py writes them"

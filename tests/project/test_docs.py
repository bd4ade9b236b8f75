"""The documentation builds without a warning, and its decision records are complete."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from nightly import is_nightly

import ferrule
from ferrule.compiler import conventions
from ferrule.specs.params import Param

RECORD = re.compile(r"\d{4}-[a-z0-9-]+\.md")
CODE = re.compile(r"`[^`\n]+`")
"""Code in a line: `kernel[grid](...)` is no link."""
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)[)#]")
IMPORTED = (["specs"], ["runtime"], ["compiler"], ["frontends"])
"""What is a module of its own; the others are attributes of the package."""
SECTIONS = ("## Context", "## Decision", "## Consequences")


def test_the_documentation_builds(root: Path, tmp_path: Path) -> None:
    for module in ("sphinx", "myst_nb", "jupytext", "furo"):
        pytest.importorskip(module, reason=f"{module} is not installed")
    # tests/examples runs the tutorials of the gallery.
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html"]
    command += ["-D", "nb_execution_mode=off"]
    # More than half of the time is that the theme writes the whole menu into each page.
    command += [] if is_nightly() else ["-D", "html_theme=basic"]
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


@pytest.mark.parametrize(
    ("row", "page", "words"),
    [
        ("softmax", "docs/gallery/softmax.py", "by_block_kernel"),
        ("overlap", "docs/checks.md", "## Buffers that overlap"),
        ("`CALL17`", "docs/errors.md", "CALL17"),
        ("to C", "docs/export.md", "export_to_c"),
    ],
)
def test_the_first_page_leads_to_what_newcomers_look_for(
    root: Path, row: str, page: str, words: str
) -> None:
    """In one click, by a row of its table."""
    text = root.joinpath("docs/index.md").read_text("utf-8")
    (line,) = [line for line in text.splitlines() if line.startswith("|") and row in line]
    assert root / page in [(root / "docs" / link).resolve() for link in LINK.findall(line)]
    assert words in root.joinpath(page).read_text("utf-8")


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


def test_frontends_have_a_place_on_their_pages(root: Path) -> None:
    names = {*ferrule.frontends.__all__} - {"fixed", "files"}
    assert "triton" in names
    reference = runpy.run_path(str(root / "docs/reference.py"))
    assert not {f"ferrule.frontends.{name}" for name in names} - {*reference["MODULES"]}
    assert not names - named(root / "docs/frontends.md")


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


def test_every_public_name_has_an_example_that_runs(root: Path) -> None:
    """A new name gets one in docs/by_example, or on any page whose snippets run."""
    reference = runpy.run_path(str(root / "docs/reference.py"))
    assert reference["without_example"]() == []


def test_pages_that_tests_of_their_own_run_are_run(root: Path) -> None:
    reference = runpy.run_path(str(root / "docs/reference.py"))
    files = root.joinpath("tests").rglob("test_*.py")
    tests = "\n".join(each.read_text(encoding="utf-8") for each in files if each != Path(__file__))
    for page in (*reference["ELSEWHERE"], reference["PROGRAMS"]):
        assert (root / "docs" / page).is_file()
        assert f'"{page}"' in tests or f'"docs/{page}"' in tests, page


def test_examples_are_found_by_what_programs_import(root: Path) -> None:
    reference = runpy.run_path(str(root / "docs/reference.py"))
    program = """import ferrule as fe
from ferrule import arch
from ferrule.frontends import triton as frontend
# fe.ceil_div in a comment is no use of it.
@fe.kernel
def f(x):
    return arch.popc(x)
assert "fe.round_up" and f(1) == frontend.ceil_div(3, 2)
"""
    found = dict(reference["_examples"](root / "page.md", program))
    assert {"ferrule.kernel", "ferrule.arch.popc", "ferrule.frontends.triton.ceil_div"} <= {*found}
    assert not {"ferrule.ceil_div", "ferrule.round_up"} & {*found}
    assert found["ferrule.arch.popc"].text.splitlines() == [
        "@fe.kernel",
        "def f(x):",
        "    return arch.popc(x)",
        "",
        'assert "fe.round_up" and f(1) == frontend.ceil_div(3, 2)',
    ]


def test_the_reference_has_signatures_and_examples(root: Path, tmp_path: Path) -> None:
    reference = runpy.run_path(str(root / "docs/reference.py"))
    reference["write"](tmp_path / "reference")
    page = (tmp_path / "reference/ferrule.md").read_text(encoding="utf-8")
    (entry,) = re.findall(r"^### `ferrule.ceil_div`\n.*?(?=^### )", page, re.M | re.S)
    assert "ceil_div(lhs: Dim | tuple[Any, ...], rhs: Any) -> Any" in entry
    assert "[Layouts, tuples, numbers, by example](../by_example/layouts.md)" in entry
    assert "[Tensors, views and layouts](../layouts.md)" in entry
    tutorial = reference["_link"](root / "docs/gallery/first_kernel.py")
    assert tutorial == "[Your first kernel](../gallery/first_kernel.py)"
    assert "[`ferrule.specs.ceil_div`](ferrule.specs.md#ferrulespecsceil_div)" in entry
    (entry,) = re.findall(r"^### `ferrule.crd2idx`\n.*?(?=^### )", page, re.M | re.S)
    assert "assert fe.crd2idx((1, 2), rows) == 10" in entry
    compile_text = page.split("### `ferrule.compile`\n")[1].split("\n### ")[0]
    assert "CompileError" in compile_text
    page = (tmp_path / "reference/ferrule.math.md").read_text(encoding="utf-8")
    assert "def angles(x: fe.Float64):" in page.split("### `ferrule.math.atan2`\n")[1]


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


def test_plots_of_samples_are_of_the_file_beside_them(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    plot = runpy.run_path(str(root / "benchmarks/plot.py"))
    folder = root / "docs/pictures/benchmarks"
    page = (root / "docs/benchmarks.md").read_text(encoding="utf-8")
    for name, (benchmark, make) in plot["KEPT"].items():
        found = json.loads((folder / f"{benchmark}.json").read_text(encoding="utf-8"))
        assert not found["quick"]
        assert (folder / f"{name}.svg").read_text(encoding="utf-8").startswith("<svg")
        assert f"pictures/benchmarks/{name}.svg" in page and f"benchmarks/{benchmark}.py" in page
        make(found)


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


@pytest.mark.nightly
def test_type_checkers_know_every_public_name(root: Path, tmp_path: Path) -> None:
    """Most modules import lazily, and say to type checkers and editors what they have."""
    reference = runpy.run_path(str(root / "docs/reference.py"))
    modules = reference["MODULES"]
    imported = [each for each in modules if each.split(".")[1:2] in IMPORTED or each == "ferrule"]
    names = [each.path for module in modules for each in reference["public"](module)]
    program = [*(f"import {each}" for each in imported), "values: list[object] = ["]
    program += [*(f"    {name}," for name in names), "]"]
    (tmp_path / "names_.py").write_text("\n".join(program) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", str(root / "pyproject.toml")]
    done = subprocess.run(
        [*command, "--follow-imports", "silent", str(tmp_path / "names_.py")],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout

"""The source stays easy to read: small folders with a row in the architecture page each, short
functions, few imports in rings, ops that few modules name."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Final

from structure import folder_sizes, imports, long_functions, op_consumers, rings

MOST_FILES: Final = 25
"""More cannot be looked through: then a folder has several jobs."""
MOST_LINES: Final = 50
IN_RINGS: Final = 18
"""The modules that reach themselves by imports, also by those inside of functions.  Lower it with
each that goes: a ring is code that can only be understood as a whole."""
CONSUMERS: Final = 6
"""The modules of the language that name an op besides its own, for half of the ops."""


def test_folders_have_few_files(root: Path) -> None:
    sizes = folder_sizes(root)
    assert {name: size for name, size in sizes.items() if size > MOST_FILES} == {}


def test_the_architecture_page_names_every_folder(root: Path) -> None:
    page = (root / "docs/architecture.md").read_text(encoding="utf-8")
    assert [name for name in folder_sizes(root) if f"{Path(name).name}/" not in page] == []


def test_functions_are_short(root: Path) -> None:
    assert long_functions(root, MOST_LINES) == {}


def test_no_more_modules_import_each_other(root: Path) -> None:
    found = rings(imports(root))
    count = sum(map(len, found))
    assert count <= IN_RINGS, found
    assert count > IN_RINGS - 5, f"set IN_RINGS to {count}: it can only go down"


def test_few_modules_name_an_op(root: Path) -> None:
    counts = {op: len(modules) for op, modules in op_consumers(root).items()}
    assert median(counts.values()) <= CONSUMERS, counts


def test_a_planted_ring_is_found() -> None:
    arrows = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set[str]()}
    assert rings(arrows) == [["a", "b", "c"]]

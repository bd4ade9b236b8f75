"""Folders of the source stay small, and the architecture page has a row for each."""

from __future__ import annotations

from pathlib import Path
from typing import Final

SOURCE_ROOTS: Final = ("compiler", "runtime", "specs")
MOST_FILES: Final = 25
"""More cannot be looked through: then a folder has several jobs."""


def folders(root: Path) -> list[Path]:
    return sorted({path.parent for each in SOURCE_ROOTS for path in root.glob(f"{each}/**/*.py")})


def modules(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*.py") if path.name != "__init__.py"]


def test_folders_have_few_files(root: Path) -> None:
    sizes = {str(each.relative_to(root)): len(modules(each)) for each in folders(root)}
    assert {name: size for name, size in sizes.items() if size > MOST_FILES} == {}


def test_the_architecture_page_names_every_folder(root: Path) -> None:
    page = (root / "docs/architecture.md").read_text(encoding="utf-8")
    assert [str(each) for each in folders(root) if f"{each.name}/" not in page] == []

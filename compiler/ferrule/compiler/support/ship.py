"""Writes support code as files: `python -m ferrule.compiler.support.ship [--package] [FOLDER]`.

Without a folder the files go into this checkout.  `--package`: they are for a package, whose
sources do not change.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import llvmlite.binding as llvm

from ferrule.compiler.support import describing, library
from ferrule.compiler.support.library import Half, Support, emitted
from ferrule.compiler.support.shipped import FOLDER, ROOT, STAMP, file_of, fingerprint
from ferrule.runtime.linking.engine import initialize_llvm

TRIPLES: Final = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
"""What support code is shipped for; other processes compile it."""


def all_support() -> list[Support]:
    """Each part of support code."""
    found = [*vars(library).values(), *vars(describing).values()]
    return [each for each in found if isinstance(each, Support)]


def halves_of(support: Support) -> list[Half]:
    """The halves that a part has."""
    return [Half.COMMON] if support.rare is None else [Half.COMMON, Half.RARE]


def write(folder: Path, *, is_package: bool) -> None:
    """Write all files and, at last, the stamp without which they are not read."""
    initialize_llvm()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / STAMP).unlink(missing_ok=True)
    for triple in TRIPLES:
        (folder / triple).mkdir(exist_ok=True)
        for support in all_support():
            for half in halves_of(support):
                path = file_of(folder, support.name, half.name.lower(), triple)
                path.write_bytes(emitted(support, triple, half))
    sources = None if is_package else _sources()
    stamp = {"llvm": list(llvm.llvm_version_info), "sources": sources}
    (folder / STAMP).write_text(json.dumps(stamp, indent=1) + "\n", encoding="utf-8")


def _sources() -> dict[str, list[int]]:
    """The files of all modules of ferrule that this process has imported to emit the code."""
    modules = [module for name, module in sys.modules.items() if name.startswith("ferrule")]
    files = {Path(path) for each in modules if (path := getattr(each, "__file__", None))}
    return {path.relative_to(ROOT).as_posix(): fingerprint(path) for path in sorted(files)}


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    parser.add_argument("--package", action="store_true", help="for a package, not a checkout")
    given = parser.parse_args(arguments)
    write(given.folder, is_package=given.package)


if __name__ == "__main__":
    main()

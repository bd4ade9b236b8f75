"""Writes `compiler/ferrule/cutlass/peer.py`: the public names of the CuTe DSL that is installed.

Run by hand, with the Python that has the package: `python tests/support/peer_names.py > …/peer.py`.
Names are facts; nothing else of the package is read or written.
"""

from __future__ import annotations

import importlib
import textwrap
from types import ModuleType

MODULES = (
    *("cutlass", "cutlass.cute", "cutlass.cute.arch", "cutlass.cute.math", "cutlass.cute.nvgpu"),
    *("cutlass.cute.nvgpu.cpasync", "cutlass.cute.nvgpu.warp", "cutlass.cute.nvgpu.warpgroup"),
    *("cutlass.cute.runtime", "cutlass.cute.testing", "cutlass.torch", "cutlass.utils"),
    "cutlass.pipeline",
)
TYPING = {"Any", "Callable", "Optional", "Union", "List", "Dict", "Tuple", "Type", "T"}


def names(module: ModuleType) -> list[str]:
    """What a module lists, and what of the package it has besides; private names are left out."""
    listed = set(getattr(module, "__all__", ()))
    return sorted({name for name in {*listed, *dir(module)} if _is_public(module, name, listed)})


def _is_public(module: ModuleType, name: str, listed: set[str]) -> bool:
    if name.startswith("_") or name in TYPING or not hasattr(module, name):
        return False
    value = getattr(module, name)
    if isinstance(value, ModuleType):
        return name in listed or f"{module.__name__}.{name}" in MODULES
    own = str(getattr(value, "__module__", "")).startswith("cutlass")
    everything = not listed or module.__name__ in ("cutlass", "cutlass.cute")
    return name in listed or (everything and own)


def main() -> None:
    """Prints the module."""
    version = importlib.import_module("importlib.metadata").version("nvidia-cutlass-dsl")
    print(f'"""The public names of CuTe DSL {version}, by module."""\n')
    print("from __future__ import annotations\n")
    print("from collections.abc import Mapping\nfrom types import MappingProxyType")
    print("from typing import Final\n")
    print(f'VERSION: Final = "{version}"')
    print("NAMES: Final[Mapping[str, str]] = MappingProxyType(\n    {")
    for module in MODULES:
        lines = textwrap.wrap(" ".join(names(importlib.import_module(module))), 84)
        print(f'        "{module}": (')
        for line in lines:
            end = " " if line is not lines[-1] else ""
            print(f'            "{line}{end}"')
        print("        ),")
    print("    }\n)")
    print('"""Names of each module, with spaces between them."""')


if __name__ == "__main__":
    main()

"""`import ferrule.as_cutlass`: programs for CuTe DSL import ferrule where they import `cutlass`.

It puts `cutlass`, `cutlass.cute` and the other modules of `ferrule.cutlass` into `sys.modules`, for
the whole process and before the program imports them.  Nothing else does it, and it refuses where
the real package is imported already: two compilers must not be mixed up.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

from ferrule.cutlass import names


class _Others:
    """The finder for modules of `cutlass` that ferrule does not have: it says so."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Refuses such a module; None for any other, which other finders look for."""
        if not name.startswith("cutlass."):
            return None
        parent, _, last = name.rpartition(".")
        raise ModuleNotFoundError(names.missing(parent, last), name=name)


def _install() -> None:
    known = sys.modules.get("cutlass")
    if known is not None and not known.__name__.startswith("ferrule."):
        raise ImportError(
            "ferrule.as_cutlass: the real package cutlass is imported already, from "
            f"{getattr(known, '__file__', None)}: import ferrule.as_cutlass before it, in a "
            "process of its own"
        )
    if known is None:
        sys.meta_path.insert(0, _Others())
    for public, own in names.MODULES.items():
        module = sys.modules[public] = importlib.import_module(own)
        vars(module).setdefault("__path__", [])  # so that _Others is asked for what is below it


_install()

"""One LLVM module linked into another, whatever comes between."""

from __future__ import annotations

from typing import Any


def link_in(module: Any, other: Any) -> None:
    """Move all of `other` into `module`; `other` is gone then.  RuntimeError where they disagree.

    A handler of signals may raise right behind LLVM's function, as Ctrl-C does, when llvmlite does
    not know yet that `other` was freed, and would free it again.  Owned by something else it is
    never freed here; where LLVM did not come to free it, its context does.
    """
    other._owned = True
    module.link_in(other)

"""Links one LLVM module into another, safely even if a signal handler raises in between."""

from __future__ import annotations

from typing import Any


def link_in(module: Any, other: Any) -> None:
    """Move all of `other` into `module`, and free `other`.  RuntimeError if they conflict.

    A signal handler may raise directly after LLVM's function, as Ctrl-C does.  Then llvmlite would
    not know that LLVM has freed `other`, and would free it again.  So `other` is marked as owned by
    something else first, and llvmlite never frees it.  If LLVM did not free it, its context does.
    """
    other._owned = True
    module.link_in(other)

"""LLVM modules as text."""

from __future__ import annotations

import llvmlite.binding as llvm


def verified(text: str) -> str:
    """The text of an LLVM module.  Raises RuntimeError where LLVM finds it wrong."""
    with llvm.parse_assembly(text, llvm.create_context()) as module:
        module.verify()
    return text

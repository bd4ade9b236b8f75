"""What a lowering raises."""

from __future__ import annotations


class CodegenError(Exception):
    """The target has no code for this; the language makes a CompileError of it."""

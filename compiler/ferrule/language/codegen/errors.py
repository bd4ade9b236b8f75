"""The error of a lowering."""

from __future__ import annotations


class CodegenError(Exception):
    """The target does not support something; the language turns it into a CompileError."""

"""Lowerings of the kernel IR.  Each takes a verified program; today there is one, for the CPU."""

from __future__ import annotations

from ferrule.language.codegen.cpu import lower_cpu
from ferrule.language.codegen.errors import CodegenError

__all__ = ["CodegenError", "lower_cpu"]

"""Calls of NVVM's intrinsics, where `gpu` and `nvvm` have no op or only one with weaker
semantics."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.language.mlir.functions import FunctionText


def intrinsic(f: FunctionText, name: str, result: str | None, given: Sequence[str]) -> str:
    """A call of one of NVVM's intrinsics."""
    types = ", ".join(f.t.types[value] for value in given)
    text = f'llvm.call_intrinsic "llvm.nvvm.{name}"({", ".join(given)}) : ({types}) -> '
    if result is None:
        f.t.line(f"{text}()")
        return ""
    return f.t.op(f"{text}{result}", result)

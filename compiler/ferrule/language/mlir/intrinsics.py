"""Calls of NVVM's intrinsics, for what `gpu` and `nvvm` have no op, or one that means less."""

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

"""In the process of MLIR: vectors in memory need no more alignment than their elements."""

from __future__ import annotations

import re
from typing import Any, Final

from ferrule.compiler.mlir.session import Session
from ferrule.frontends.mlir.kinds import DTYPES, Buffer, FunctionType
from ferrule.frontends.mlir.reading import walk
from ferrule.specs import as_dtype

_VECTOR: Final = re.compile(r"vector<\d+x(\w+)>")


def align_as_elements(session: Session, module: Any, kind: FunctionType) -> None:
    """Aligns loads and stores of vectors as their elements, if a call gives memrefs of vectors.

    LLVM takes the alignment of a vector for its size, which arrays of NumPy do not have.
    """
    if not any(isinstance(each, Buffer) and each.inner for each in kind.arguments):
        return
    wide = session.ir.IntegerType.get_signless(64)
    for each in walk(module.operation):
        if each.name in ("llvm.load", "llvm.store"):
            value = each.results[0] if each.name == "llvm.load" else each.operands[0]
            found = _VECTOR.fullmatch(str(value.type))
            if found is not None and found[1] in DTYPES:
                size = max(1, as_dtype(DTYPES[found[1]]).bits // 8)
                each.attributes["alignment"] = session.ir.IntegerAttr.get(wide, size)

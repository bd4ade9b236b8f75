"""In the process of MLIR: promises of memory that no call can keep are taken back.

Results with fixed strides become results with dynamic strides: if a function returns a memref
argument, the result is a copy, which is compact, and no pass can make a copy with other fixed
strides.  Vectors in memory are aligned as their elements.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ferrule.compiler.mlir.session import Session
from ferrule.frontends.mlir.kinds import DTYPES, Buffer, FunctionType
from ferrule.frontends.mlir.reading import symbol, walk
from ferrule.specs import as_dtype

_NAMING: Final = {"func.call": "callee", "func.constant": "value"}
"""Operations that refer to a function and its type, and the attribute with the function's name."""


def loosen_results(session: Session, module: Any, function: Any) -> None:
    """Gives the function results with dynamic strides; a function to which others refer keeps its
    type."""
    ir, kind = session.ir, function.attributes["function_type"].value
    if any(_names(each, symbol(function)) for each in walk(module.operation)):
        return
    with function.location:
        loose = [_loose(session, each) for each in kind.results]
    for each in [each for each in walk(function) if each.name == "func.return"]:
        for position, (old, new) in enumerate(zip(kind.results, loose, strict=True)):
            if old != new:
                with ir.InsertionPoint(each), each.location:
                    value = each.operands[position]
                    cast = ir.Operation.create("memref.cast", results=[new], operands=[value])
                each.operands[position] = cast.result
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kind.inputs, loose))


def _names(operation: Any, name: str) -> bool:
    key = _NAMING.get(operation.name)
    return key is not None and str(operation.attributes[key].value) == name


def _loose(session: Session, kind: Any) -> Any:
    """The type with dynamic strides and offset, if it has strides."""
    ir = session.ir
    if not isinstance(kind, ir.MemRefType) or not isinstance(kind.layout, ir.StridedLayoutAttr):
        return kind
    layout = ir.StridedLayoutAttr.get_fully_dynamic(len(kind.shape))
    return ir.MemRefType.get(kind.shape, kind.element_type, layout, kind.memory_space)


# ---- vectors in memory need no more alignment than their elements ----


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

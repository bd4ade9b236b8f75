"""In the process of MLIR: results with fixed strides become results with dynamic strides.

If a function returns a memref argument, the result is a copy, which is compact; no pass can make a
copy with other fixed strides.
"""

from __future__ import annotations

from typing import Any, Final

from ferrule.compiler.mlir.session import Session
from ferrule.frontends.mlir.reading import symbol, walk

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

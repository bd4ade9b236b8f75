"""In the process of MLIR: torch-mlir's dialect `tm_tensor`, with `cumsum`, `sort` and `scatter`.

Its passes belong to torch-mlir's bindings, and load the dialect.  They convert its tensors to
memrefs before everything else is bufferized, and its operations to loops afterwards.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any, Final

from ferrule.compiler.errors import CompileError
from ferrule.compiler.mlir.session import Session
from ferrule.frontends.mlir.modules import Given
from ferrule.frontends.mlir.reading import walk

_DIALECT: Final = "tm_tensor"
_BUFFERIZE: Final = "builtin.module(func.func(tm-tensor-bufferize))"
_TO_LOOPS: Final = "builtin.module(func.func(tm-tensor-to-loops))"


def know_dialect(session: Session, given: Given) -> None:
    """Makes the context load the dialect if the module may contain operations of it.

    Importing torch-mlir's own dialect registers its passes, and running a pass loads the dialects
    that it needs, even on a module without functions.  Other bindings refuse the module when they
    read it.
    """
    text = given.source.encode() if isinstance(given.source, str) else given.source
    if _DIALECT.encode() in text:
        empty = session.ir.Module.parse("")
        with suppress(CompileError, ImportError):
            import_module(f"{session.package}.dialects.torch")
            session.run(empty, _BUFFERIZE)


def to_memrefs(session: Session, module: Any, doing: str) -> frozenset[str]:
    """Converts the tensors of the dialect's operations to memrefs; returns the operations' places,
    as MLIR prints them.

    The memref that an operation writes to is a copy that only it uses, which `restrict` expresses.
    """
    places = frozenset(str(each.location) for each in walk(module.operation) if _is_ours(each))
    if not places:
        return places
    before = {each for each in walk(module.operation) if _is_tensor(each)}
    session.run(module, _BUFFERIZE, doing)
    for each in walk(module.operation):
        if _is_tensor(each) and each not in before:
            each.attributes["restrict"] = session.ir.UnitAttr.get()
    return places


def to_loops(session: Session, module: Any, doing: str) -> None:
    """Converts operations on memrefs to loops."""
    session.run(module, _TO_LOOPS, doing)


def _is_ours(operation: Any) -> bool:
    return bool(operation.name.startswith(f"{_DIALECT}."))


def _is_tensor(operation: Any) -> bool:
    return bool(operation.name == "bufferization.to_tensor")

"""In the process of MLIR: assertions that the sizes of an operation's operands fit.

Upstream makes them: each operation whose operands must have fitting sizes gets an assertion.  One
that is executed once for an operation on whole memrefs is always made; one at each load and store
costs a comparison in the innermost loop, and is made only on request.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.mlir.session import Session
from ferrule.frontends.mlir import pipelines
from ferrule.frontends.mlir.reading import walk, where

_MADE: Final = re.compile(
    r"ERROR: Runtime op verification failed\n(?P<op>.*)\n\^ (?P<why>.*)\nLocation: (?P<at>.*)",
    re.S,
)
_OPERATION: Final = re.compile(r'(?:%[^=\n]+= )?"?([\w.]+)')
_FINE: Final = ("memref.load", "memref.store", "tensor.extract", "tensor.insert")
_UNCHECKED: Final = frozenset(
    {
        *("affine.load", "affine.store", "affine.vector_load", "affine.vector_store"),
        *("vector.load", "vector.store", "vector.maskedload", "vector.maskedstore"),
        *("vector.gather", "vector.scatter", "vector.expandload", "vector.compressstore"),
        *("vector.transfer_read", "vector.transfer_write"),
    }
)
"""Loads and stores for which upstream makes no assertions."""


def add_checks(
    session: Session,
    module: Any,
    doing: str,
    *,
    loads: bool,
    places: frozenset[str] = frozenset(),
) -> None:
    """Makes operations assert their operands' sizes; with `loads`, also loads and stores of
    elements.  The loads and stores at `places` are always included: passes have made them from
    operations that nothing else checks."""
    if loads:
        _require_checkable(session, module)
    session.run(module, pipelines.pipeline(pipelines.VERIFY), doing)
    for each in [each for each in walk(module.operation) if each.name == "cf.assert"]:
        made = _MADE.fullmatch(_message(each))
        if made is None:
            continue
        named = _OPERATION.match(made["op"])
        name = named[1] if named else "an operation"
        if name in _FINE and not loads and made["at"] not in places:
            each.erase()
        else:
            words = f"{name}{where(made['at'])}: {made['why']}"
            each.attributes["msg"] = session.ir.StringAttr.get(words)


def _require_checkable(session: Session, module: Any) -> None:
    """Raises CompileError for a load or store whose indices no assertion would check."""
    for each in walk(module.operation):
        if each.name in _UNCHECKED:
            raise CompileError(
                Diagnostic(
                    f"checks=True cannot check the indices of {each.name}",
                    session.place(each),
                    hint="load and store elements with memref.load and memref.store, which are "
                    "checked (in a pipeline of yours lower affine before), or leave checks out",
                )
            )


def _message(operation: Any) -> str:
    return str(operation.attributes["msg"].value)

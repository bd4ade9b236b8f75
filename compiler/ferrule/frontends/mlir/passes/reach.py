"""In the process of MLIR: removes from a module what the requested function does not need."""

from __future__ import annotations

from typing import Any

from ferrule.compiler.mlir.session import Session
from ferrule.frontends.mlir import pipelines
from ferrule.frontends.mlir.reading import attribute, symbol


def restrict(session: Session, module: Any, function: Any, *, schedules: bool) -> None:
    """Makes a function the only public one, and removes functions that it does not reach.

    `schedules`: keeps the operations of the dialect transform, which direct a pipeline's lowering.
    """
    for each in [each.operation for each in module.body.operations]:
        if not schedules and _is_schedule(each):
            each.erase()
        elif each.name == "func.func":
            _set_public(session, each, symbol(each) == symbol(function))
    session.run(module, pipelines.pipeline(pipelines.REACHED))


def _is_schedule(operation: Any) -> bool:
    """Whether an operation, or all operations in a module, belong to the dialect transform."""
    if operation.name != "builtin.module":
        return bool(operation.name.startswith("transform."))
    inner = [each.operation for each in operation.regions[0].blocks[0].operations]
    return bool(inner) and all(map(_is_schedule, inner))


def _set_public(session: Session, function: Any, public: bool) -> None:
    ir = session.ir
    if public and attribute(function, "sym_visibility") is not None:
        del function.attributes["sym_visibility"]
    elif not public:
        function.attributes["sym_visibility"] = ir.StringAttr.get("private")

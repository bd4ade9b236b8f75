"""In the process of MLIR: a module without what the function that is asked for does not need."""

from __future__ import annotations

from typing import Any

from ferrule.compiler.mlir.session import Session
from ferrule.frontends.mlir import pipelines
from ferrule.frontends.mlir.reading import attribute, symbol


def restrict(session: Session, module: Any, function: Any, *, schedules: bool) -> None:
    """Make a function the only public one, and drop what it does not reach.

    `schedules`: keep the dialect transform's, which say how a pipeline is to lower the module.
    """
    for each in [each.operation for each in module.body.operations]:
        if not schedules and _is_schedule(each):
            each.erase()
        elif each.name == "func.func":
            _set_public(session, each, symbol(each) == symbol(function))
    session.run(module, pipelines.pipeline(pipelines.REACHED))


def _is_schedule(operation: Any) -> bool:
    """Whether all that there is, or all in a module, is of the dialect transform."""
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

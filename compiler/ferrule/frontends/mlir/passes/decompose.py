"""In the process of MLIR: decomposes operations of `linalg` that no pass lowers to loops.

Only the dialect `transform` can do this, so a sequence of its operations is added to the module
while it runs.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

from ferrule.compiler.mlir.session import Session

_ANY: Final = "!transform.any_op"


def _op(name: str) -> str:
    return f'!transform.op<"{name}">'


def _lowered(name: str, *results: str) -> tuple[str, str]:
    """A handle's type, and the step that replaces one operation of it by operations of these
    names."""
    kind, given = _op(f"linalg.{name}"), ", ".join(map(_op, results))
    return kind, f"transform.structured.lower_{name} %each : ({kind}) -> ({given})"


_STEPS: Final = MappingProxyType(
    {
        "linalg.softmax": (
            _ANY,
            f"%done = transform.structured.decompose_interface %each : ({_ANY}) -> {_ANY}",
        ),
        "linalg.pack": _lowered("pack", "tensor.pad", "tensor.expand_shape", "linalg.transpose"),
        "linalg.unpack": _lowered(
            *("unpack", "tensor.empty", "linalg.transpose", "tensor.collapse_shape"),
            *("tensor.extract_slice", "linalg.copy"),
        ),
    }
)
"""By operation: the type of a handle to it, and the step that decomposes one."""
_SEQUENCE: Final = """module attributes {{transform.with_named_sequence}} {{
transform.named_sequence @__transform_main(%root: !transform.any_op {{transform.readonly}}) {{
  %all = transform.structured.match ops{{["{name}"]}} in %root : (!transform.any_op) -> {kind}
  transform.foreach %all : {kind} {{
  ^bb0(%each: {kind}):
    {step}
  }}
  transform.yield
}} }}"""
_MARK: Final = "transform.with_named_sequence"


def decompose(session: Session, module: Any, names: set[str]) -> None:
    """Decomposes such operations of a module; `names` are those of all its operations."""
    if any(name.startswith("transform.") for name in names):
        return
    for name in sorted(names & _STEPS.keys()):
        kind, step = _STEPS[name]
        text = _SEQUENCE.format(name=name, kind=kind, step=step)
        # Kept alive: with the parsed module the bindings would free its operations.
        home = session.parse(text, f"how to take {name} apart")
        (sequence,) = home.body.operations
        sequence.operation.detach_from_parent()
        module.body.append(sequence)
        module.operation.attributes[_MARK] = session.ir.UnitAttr.get()
        session.run(module, "builtin.module(transform-interpreter)")
        sequence.operation.erase()
        del module.operation.attributes[_MARK]

"""The source locations of a program's ops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from ferrule.compiler.artefacts import Location
from ferrule.language.ir import ops
from ferrule.specs.deferred import dataclass

_LIBRARY = "ferrule.language.faces.collectives"


@dataclass(frozen=True, slots=True)
class Places:
    """The origins of ops: the frame and the node that were being lowered, by op.

    Ops that a later pass made again are found by their result.  `stripped`: file names must not
    appear.
    """

    known: Mapping[ops.Op, object]
    stripped: bool = False
    results: dict[ops.Value, object] = field(default_factory=dict)

    @classmethod
    def of(cls, known: Mapping[ops.Op, object], *, stripped: bool = False) -> Places:
        """The origins that a lowering recorded."""
        results = {op.result: at for op, at in known.items() if isinstance(op, ops.SimpleOp)}
        return cls(known, stripped, results)

    def at(self, op: ops.Op) -> Location | None:
        """The location of an op; for an op of a library function, that of the call."""
        found: Any = self.known.get(op)
        if found is None and isinstance(op, ops.SimpleOp):
            found = self.results.get(op.result)
        if found is None:
            return None
        frame, node = found
        while frame.source.outer.get("__name__") == _LIBRARY and frame.caller is not None:
            frame, node = frame.caller, frame.call_node
        return frame.source.location(node)  # type: ignore[no-any-return]

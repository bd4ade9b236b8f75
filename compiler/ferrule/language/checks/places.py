"""The source locations of a program's ops."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from ferrule.compiler.artefacts import Location
from ferrule.language.ir import ops
from ferrule.language.ir.facts import all_ops
from ferrule.specs.deferred import dataclass

_LIBRARY = "ferrule.language.faces."
"""The modules with functions that are written in the language itself."""


@dataclass(frozen=True, slots=True)
class Places:
    """The origins of ops: the frame and the node that were being lowered, by op.

    Ops that a later pass made again are found by their result, loops by their index.  `stripped`:
    file names must not appear.
    """

    known: Mapping[ops.Op, object]
    stripped: bool = False
    results: dict[ops.Value, object] = field(default_factory=dict)

    @classmethod
    def of(cls, known: Mapping[ops.Op, object], *, stripped: bool = False) -> Places:
        """The origins that a lowering recorded."""
        results = {value: at for op, at in known.items() if (value := _own_value(op)) is not None}
        return cls(known, stripped, results)

    def at(self, op: ops.Op) -> Location | None:
        """The location of an op; for an op of a library function, that of the call."""
        found = self._origin(op)
        return None if found is None else found[0].source.location(found[1])

    def is_loop(self, op: ops.Op) -> bool:
        """Whether the program has a loop, in the text, at the location of an op."""
        found = self._origin(op)
        return found is not None and isinstance(found[1], ast.For | ast.While)

    def _origin(self, op: ops.Op) -> tuple[Any, ast.AST] | None:
        """The frame and the node of an op; None for one that a pass has made."""
        found: Any = self.known.get(op)
        if found is None and (value := _own_value(op)) is not None:
            found = self.results.get(value)
        if found is None:
            return None
        frame, node = found
        while str(frame.source.outer.get("__name__")).startswith(_LIBRARY):
            if frame.caller is None:
                break
            frame, node = frame.caller, frame.call_node
        return frame, node

    def sources(self) -> Iterator[Any]:
        """The functions with an op, each a `source.Source`, in the order of their first ones."""
        seen: dict[tuple[str, int], Any] = {}
        for op in self.known:
            found = self._origin(op)
            if found is not None:
                source = found[0].source
                seen.setdefault((source.file, source.first_line), source)
        return iter(seen.values())

    def first(self, region: ops.Region) -> Location | None:
        """The location of the first op of a region that has one."""
        found = self.first_op(region)
        return None if found is None else self.at(found)

    def first_op(self, region: ops.Region) -> ops.Op | None:
        """The first op of a region that has a location."""
        return next((op for op in all_ops(region) if self._origin(op) is not None), None)


def _own_value(op: ops.Op) -> ops.Value | None:
    """The value that tells an op from others, also where a pass has made it again."""
    match op:
        case ops.For():
            return op.index
        case ops.While() if op.carried:
            return op.carried[0]
        case _ if isinstance(op, ops.SimpleOp):
            return op.result
    return None

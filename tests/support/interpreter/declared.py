"""What an op is seen to do while it is interpreted, against the effects that its class declares.

Passes believe what an op says of itself, so a fact that is missing would be wrong code in silence.
Here every program that is interpreted asks for the facts of all ops that it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from ferrule.language.ir import ops
from ferrule.language.ir.operation import Effect


class Undeclared(AssertionError):
    """An op did what its class does not say."""


_running: list[ops.Op | None] = [None]

begins: Final = _running.append
"""What is seen from here on belongs to this op, until `ends`.  The interpreter calls both for every
op that it runs, where a `with` would take half of its time."""
ends: Final = _running.pop


@contextmanager
def running(op: ops.Op) -> Iterator[None]:
    """What is seen inside belongs to this op."""
    begins(op)
    try:
        yield
    finally:
        ends()


def seen(effect: Effect, op: ops.Op | None = None) -> None:
    """The running op, or this one, has had an effect.  Raises Undeclared for what it denies."""
    op = op or _running[-1]
    if op is not None and effect not in op.effects:
        raise Undeclared(f"{type(op).__name__} {effect}, which it does not declare")


def same_for_all(op: ops.Op, values: Mapping[ops.Value, Any], known: dict[Any, Any]) -> None:
    """A uniform op gives a thread what it gave others of the block with these operands.

    `known`: what it gave.  Raises Undeclared where it differs.
    """
    operands, results = (tuple(values[each] for each in some) for some in (op.operands, op.defined))
    if all(isinstance(each, (bool, int)) for each in (*operands, *results)):
        before = known.setdefault((op, operands), results)
        if before != results:
            raise Undeclared(f"{type(op).__name__} is not uniform: {before} and {results}")

"""What an op is seen to do while it is interpreted, against the effects that its class declares.

Passes believe what an op says of itself, so a fact that is missing would be wrong code in silence.
Here every program that is interpreted asks for the facts of all ops that it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Literal, TypeAlias

from ferrule.language.ir import ops
from ferrule.language.ir.operation import Effect
from ferrule.specs import Sym

Deed: TypeAlias = "Effect | Literal['symbols', 'objects', 'kept']"
"""What an op does: an effect, or that it gives a symbol its value, or owns an object or value."""

Watch: TypeAlias = Callable[[ops.Op, Deed, Any], object]
"""What is called for each deed of an op, with the memory that is read or written, or the symbol."""


class Undeclared(AssertionError):
    """An op did what its class does not say."""


_running: list[ops.Op | None] = [None]
_watches: list[Watch] = []
_OUTWARDS: Final = frozenset(("reads", "writes", "shows", "fails"))
"""The effects of ops that are effects of the launch of their kernel, too."""

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


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Also calls `watch` for every effect that is seen inside."""
    _watches.append(watch)
    try:
        yield
    finally:
        _watches.remove(watch)


def seen(effect: Effect, op: ops.Op | None = None, memory: Any = None) -> None:
    """The running op, or this one, has had an effect.  Raises Undeclared for what it denies."""
    op = op or _running[-1]
    if op is None:
        return
    _note(effect, op, memory)
    if effect in _OUTWARDS and len(_running) > 2:
        for outer in _running[1:]:
            if isinstance(outer, ops.Launch):
                _note(effect, outer, memory)


def defined(symbol: Sym, op: ops.Op) -> None:
    """An op has given a symbol its value.  Raises Undeclared for one that it does not name."""
    _tell(op, "symbols", symbol)
    if symbol not in op.symbols:
        raise Undeclared(f"{type(op).__name__} gives a symbol its value, which it does not declare")


def owned(what: Literal["objects", "kept"], count: int, op: ops.Op) -> None:
    """The function owns so many objects or values for an op.  Raises Undeclared for more."""
    for _ in range(count):
        _tell(op, what, None)
    if getattr(op, what) < count:
        raise Undeclared(f"{type(op).__name__} has {count} {what}, which it does not declare")


def _tell(op: ops.Op, deed: Deed, of: Any) -> None:
    for watch in _watches:
        watch(op, deed, of)


def _note(effect: Effect, op: ops.Op, memory: Any) -> None:
    _tell(op, effect, memory)
    if effect not in op.effects:
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

"""The integer arithmetic that both the emitter and the writer offer, under the same names.

Code that is emitted through it serves both.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

from typing_extensions import TypeVar

V = TypeVar("V", default=Any)

Predicate = Literal["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]
Binary = Literal["add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "sdiv", "srem"]
Overflowing = Literal["sadd", "ssub", "smul"]


class Arithmetic(Protocol[V]):
    """Emits instructions on values of type `V` at an insertion point."""

    def const_i64(self, value: int) -> V:
        """A 64-bit constant."""
        ...

    def const_i1(self, value: bool) -> V:
        """A flag that is known."""
        ...

    def binary(self, op: Binary, left: V, right: V) -> V:
        """`left op right`, wrapping."""
        ...

    def overflowing(self, op: Overflowing, left: V, right: V) -> tuple[V, V]:
        """The wrapped result, and the flag that says whether it wrapped."""
        ...

    def icmp(self, predicate: Predicate, left: V, right: V) -> V:
        """Compare integers."""
        ...

    def select(self, condition: V, then: V, otherwise: V) -> V:
        """`then` where the condition holds."""
        ...

    def not_(self, flag: V) -> V:
        """The opposite of an i1."""
        ...

    def widened(self, flag: V) -> V:
        """An i1 as 0 or 1, i64."""
        ...

"""Folding while text is written: constants, conversions of integers, repeated and unused ops.

The text that people read is folded as it is written, so that it looks as if somebody had written
it; text that is only compiled is not, because upstream's passes do the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Final

from ferrule.specs.deferred import dataclass

CONVERSIONS: Final = ("extsi", "trunci", "index_cast")
"""The conversions of integers that keep the low bits, and the sign if they widen."""

_PURE: Final = (
    *("arith.", "math.", "memref.dim", "memref.extract_", "memref.reinterpret_cast"),
    *("memref.get_global", "memref.cast", "llvm.mlir.", "llvm.getelementptr", "llvm.inttoptr"),
    *("llvm.extractvalue", "llvm.insertvalue", "llvm.addrspacecast", "llvm.ptrtoint", "builtin."),
    *("gpu.thread_id", "gpu.block_id", "gpu.block_dim", "gpu.grid_dim", "gpu.cluster_", "ub."),
)
"""Ops without effects: the same op of the same operands has the same value."""
_VALUE: Final = re.compile(r"%[\w.]+")
_DEFINED: Final = re.compile(r"\s*((?:%[\w.]+(?::\d+)?(?:, )?)+) = (\S+)")

_EXACT: Final[Mapping[str, Callable[[int, int], int]]] = {
    "addi": lambda left, right: left + right,
    "subi": lambda left, right: left - right,
    "muli": lambda left, right: left * right,
    "andi": lambda left, right: left & right,
    "ori": lambda left, right: left | right,
    "xori": lambda left, right: left ^ right,
}
_NEUTRAL: Final = {"addi": 0, "subi": 0, "muli": 1, "ori": 0, "xori": 0}
"""The right operands with which an op gives its left one."""
_COMMUTATIVE: Final = ("addi", "muli", "ori", "xori")
_PREDICATES: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "eq": lambda left, right: left == right,
    "ne": lambda left, right: left != right,
    "slt": lambda left, right: left < right,
    "sle": lambda left, right: left <= right,
    "sgt": lambda left, right: left > right,
    "sge": lambda left, right: left >= right,
}


@dataclass(slots=True)
class Folding:
    """The facts about the values of one function, by their names.

    `small`: the number of bits into which a value fits with its sign; `relied`: the values of which
    a fold used this.
    """

    constants: dict[tuple[str, str], str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    small: dict[str, int] = field(default_factory=dict)
    relied: set[str] = field(default_factory=set)
    scopes: list[dict[str, str]] = field(default_factory=lambda: [{}])

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Within this context, ops are known in addition to those around it."""
        self.scopes.append({})
        yield
        self.scopes.pop()

    def known(self, text: str) -> str | None:
        """The value of an op that was written before, where it is visible."""
        return next((scope[text] for scope in reversed(self.scopes) if text in scope), None)

    def written(self, text: str, name: str) -> None:
        """Records the value of an op, if the op has no effect."""
        if text.startswith(_PURE):
            self.scopes[-1][text] = name

    def computed(self, name: str, operands: Sequence[str]) -> str | int | None:
        """The value of an integer op with two operands: another value, a number, or None."""
        if name not in _EXACT or len(operands) != 2:
            return None
        left, right = operands
        known = self.numbers.get(left), self.numbers.get(right)
        if known[0] is not None and known[1] is not None:
            return _EXACT[name](known[0], known[1])
        if name in _NEUTRAL and known[1] == _NEUTRAL[name]:
            return left
        if name in _COMMUTATIVE and known[0] == _NEUTRAL[name]:
            return right
        return None

    def compared(self, predicate: str, left: str, right: str) -> bool | None:
        """The result of a comparison of two known numbers."""
        known = self.numbers.get(left), self.numbers.get(right)
        if known[0] is None or known[1] is None or predicate not in _PREDICATES:
            return None
        return _PREDICATES[predicate](known[0], known[1])

    def origin(self, value: str, types: Mapping[str, str], wanted: str) -> str:
        """The value whose conversion to a type equals that of this one."""
        source = self.sources.get(value)
        if source is None:
            return value
        inner, outer, to = (width(each) for each in (types[source], types[value], wanted))
        if outer >= inner or to <= outer:
            return source
        if self.small.get(source, 64) <= outer:
            self.relied.add(source)
            return source
        return value

    def converted(self, source: str, value: str, bits: int) -> None:
        """Records that a value is a conversion of another one, to this many bits."""
        self.sources[value] = source
        if source in self.small:
            self.small[value] = self.small[source]
            if bits < width("index"):
                self.relied.add(source)


def width(type_: str) -> int:
    """The bits of an integer type."""
    return 64 if type_ == "index" else int(type_[1:])


def conversion(source: str, target: str) -> str:
    """The op that converts an integer between two types and keeps its sign."""
    if "index" in (source, target):
        return "index_cast"
    return "extsi" if width(target) > width(source) else "trunci"


def without_unused(lines: Sequence[str]) -> list[str]:
    """The lines of a function without ops that have no effect and whose values nothing uses."""
    used, kept = set[str](), list[str]()
    for line in reversed(lines):
        found = _DEFINED.match(line)
        if found is not None and found[2].startswith(_PURE) and not line.endswith("{"):
            if used.isdisjoint(_VALUE.findall(found[1])):
                continue
            used.update(_VALUE.findall(line[found.end() :]))
        else:
            used.update(_VALUE.findall(line))
        kept.append(line)
    return kept[::-1]

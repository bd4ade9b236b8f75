"""What a loop carries from one iteration to the next: the numbers in the names that it assigns.

A number keeps one dtype in every iteration.  A name that cannot keep its type cannot be read where
it might be two things.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ferrule.compiler.errors import CompileError
from ferrule.language.ir import ops
from ferrule.language.lowering import operators, structures
from ferrule.language.lowering.assumptions import Assumed, Leaf, Retry, retype
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.joins import NOTHING, same, zero
from ferrule.language.promotion import weak
from ferrule.language.values import Number, Undefined
from ferrule.specs import DType, Numeric


@dataclass(frozen=True, slots=True)
class Carried:
    """The names that a loop carries with what they began as, and the numbers in them by path."""

    names: dict[str, Any]
    leaves: dict[str, Leaf]

    @property
    def initial(self) -> tuple[ops.Value, ...]:
        """What the carried numbers begin with."""
        return tuple(leaf.initial for leaf in self.leaves.values())

    @property
    def inside(self) -> tuple[ops.Value, ...]:
        """The carried numbers in an iteration."""
        return tuple(leaf.inside for leaf in self.leaves.values())

    def after(self, results: Iterator[ops.Value]) -> dict[str, Any]:
        """The names after the loop, their numbers from `results`."""

        def rebuilt(path: str, value: Any) -> Any:
            parts = structures.parts(value)
            if parts is not None:
                items = [rebuilt(path + suffix, item) for suffix, item in parts]
                return structures.rebuild(value, items)
            return Number(next(results)) if path in self.leaves else value

        return {name: rebuilt(name, value) for name, value in self.names.items()}


def carry(low: Lowering, names: list[str], assumed: Assumed, node: ast.AST) -> Carried:
    """Gives the names that a loop assigns the values of an iteration."""
    leaves: dict[str, Leaf] = {}

    def enter(path: str, hint: str, value: Any) -> Any:
        parts = structures.parts(value)
        if parts is not None:
            items = [enter(path + suffix, hint, item) for suffix, item in parts]
            return structures.rebuild(value, items)
        if not isinstance(value, Number) and not operators.is_python_number(value):
            return value
        number = operators.as_number(low, value, node, assumed.dtypes.get(path))
        begins = None if isinstance(value, (Number, Numeric)) else operators.plain(value)
        leaves[path] = Leaf(number.value, ops.Value(number.dtype, hint), begins)
        return Number(leaves[path].inside)

    carried = {name: low.names[name] for name in names if name not in assumed.clashes}
    for name, value in carried.items():
        low.names[name] = enter(name, name, value)
    line = low.location(node).line
    low.names.update({name: assumed.undefined(name, line) for name in assumed.clashes})
    return Carried(carried, leaves)


def yielded(low: Lowering, carried: Carried, assumed: Assumed, node: ast.AST) -> list[ops.Value]:
    """The carried numbers at the end of an iteration.  Raises Retry."""
    end = _End(low, carried, node)
    for name, before in carried.names.items():
        try:
            end.visit(name, before, low.names[name])
        except _Changed as changed:
            end.found.clashes[name] = changed.error
    if end.found.dtypes or end.found.clashes:
        raise Retry(end.found, assumed)
    return end.values


class _Changed(Exception):
    """A name is something else after an iteration than before the loop."""

    def __init__(self, error: CompileError) -> None:
        self.error = error


@dataclass(slots=True)
class _End:
    """Compares names before a loop with those after an iteration."""

    low: Lowering
    carried: Carried
    node: ast.AST
    values: list[ops.Value] = field(default_factory=list)
    found: Assumed = field(default_factory=Assumed)

    def visit(self, path: str, before: Any, after: Any) -> None:
        """Adds the numbers of a name, or of a part of it."""
        if isinstance(after, Undefined) and after.error is not None:
            raise _Changed(after.error)
        parts = structures.parts(before)
        if parts is not None:
            if after is not NOTHING and not structures.alike(before, after):
                raise self.changed(path, before, after)
            items = structures.parts(after) or [("", NOTHING)] * len(parts)
            for (suffix, old), (_, new) in zip(parts, items, strict=True):
                self.visit(path + suffix, old, new)
        elif path in self.carried.leaves:
            self.number(path, self.carried.leaves[path], after)
        elif after is not NOTHING and not isinstance(before, Undefined) and not same(before, after):
            raise self.changed(path, before, after)

    def number(self, path: str, leaf: Leaf, after: Any) -> None:
        """Adds a number, if it has kept its dtype."""
        if after is NOTHING:
            self.values.append(zero(self.low, leaf.dtype))
            return
        if not isinstance(after, Number) and not operators.is_python_number(after):
            raise self.changed(path, Number(leaf.inside), after)
        number = operators.as_number(self.low, after, self.node, leaf.dtype)
        if number.dtype is leaf.dtype:
            self.values.append(number.value)
        elif leaf.number is not None and weak(leaf.number, number.dtype) is number.dtype:
            self.found.dtypes[path] = number.dtype
        else:
            retype(self.low, path, (leaf.dtype, number.dtype))
            raise _Changed(self.another_dtype(path, leaf, number.dtype))

    def another_dtype(self, path: str, leaf: Leaf, dtype: DType) -> CompileError:
        """The error of a number whose dtype changes."""
        return self.low.error(
            self.node,
            f"{path!r} changes its type in this loop: it is {leaf.dtype.name} before it "
            f"and {dtype.name} after an iteration",
            hint=f"start with fe.{dtype.__name__}(...), or convert in the loop",
        )

    def changed(self, path: str, before: Any, after: Any) -> _Changed:
        """What a name that becomes something else raises."""
        was = before.dtype.name if isinstance(before, Number) else operators.describe(before)
        return _Changed(
            self.low.error(
                self.node,
                f"{path!r} is {was} before this loop and {operators.describe(after)} after an "
                f"iteration",
                expected="numbers, tuples or dataclasses of numbers, where a loop changes a name",
                hint="give what the loop assigns another name, if it is not needed after an "
                "iteration",
            )
        )

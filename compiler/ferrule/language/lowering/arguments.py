"""Functions that the language itself has: what emits them, and their arguments by name."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ferrule.language.lowering.context import Lowering

Intrinsic = Callable[[Lowering, list[Any], dict[str, Any], ast.Call], Any]
"""What emits a call, and gives its value: of positional arguments, and of those by name."""


def bound(
    low: Lowering, names: str, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> list[Any]:
    """The arguments of a call in the order of `names`, words in a string.

    One with `=` may be left out and is None then.  A CompileError where they do not fit.
    """
    wanted = names.split()
    order = [name.rstrip("=") for name in wanted]
    given = {**dict(zip(order, args, strict=False)), **kwargs}
    needed = {name for name in wanted if not name.endswith("=")}
    twice = kwargs.keys() & set(order[: len(args)])
    if len(args) > len(order) or twice or not needed <= set(given) <= set(order):
        low.fail(
            node,
            f"expected the arguments {', '.join(order)}" if order else "expected no arguments",
            expected=f"({', '.join(order)})",
        )
    return [given.get(name) for name in order]

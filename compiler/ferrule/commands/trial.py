"""A small function that is compiled and called: whether ferrule works on this machine."""

from __future__ import annotations

from typing import Any

import ferrule as fe


@fe.jit
def _add_one(value: Any) -> Any:
    return value + 1


def add_one() -> int:
    """Compile a function and call it with 41."""
    compiled = fe.compile(_add_one, fe.Int32(0), options="--target cpu")
    return int(compiled(41))

"""A small function that is compiled and called: whether ferrule works on this machine."""

from __future__ import annotations

from typing import Any

from ferrule.language.compilation import compile
from ferrule.language.decorators import jit
from ferrule.specs import Int32


@jit
def _add_one(value: Any) -> Any:
    return value + 1


def add_one() -> int:
    """Compile a function and call it with 41."""
    compiled = compile(_add_one, Int32(0), options="--target cpu")
    return int(compiled(41))

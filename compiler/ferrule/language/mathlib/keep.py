"""What a target computes itself, so that the library leaves it alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ferrule.language.ir import ops

Keep: TypeAlias = Callable[[ops.Unary | ops.Binary | ops.Cast], bool]
"""Whether a target has an instruction for this op of the library, or this conversion of a float of
fewer than 16 bits, with the required result."""


def keep_none(_: ops.Unary | ops.Binary | ops.Cast) -> bool:
    """For a target without such instructions."""
    return False

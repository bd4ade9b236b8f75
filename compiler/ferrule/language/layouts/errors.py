"""What an operation on layouts raises."""

from __future__ import annotations

from typing import NoReturn


class LayoutError(ValueError):
    """An operation on layouts that has no result.

    The text names the operation, the layouts and modes, what was wanted, and what to write.
    """


def refuse(operation: str, problem: str, advice: str | None = None) -> NoReturn:
    """Raises LayoutError: `operation: problem; advice`."""
    raise LayoutError(f"{operation}: {problem}" + (f"; {advice}" if advice else ""))

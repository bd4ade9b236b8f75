"""The error of operations on layouts."""

from __future__ import annotations

from typing import NoReturn


class LayoutError(ValueError):
    """An operation on layouts that has no result.

    The text names the operation, the layouts and modes, the requirement, and a fix.
    """


def refuse(operation: str, problem: str, advice: str | None = None) -> NoReturn:
    """Raises LayoutError: `operation: problem; advice`."""
    raise LayoutError(f"{operation}: {problem}" + (f"; {advice}" if advice else ""))

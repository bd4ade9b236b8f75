"""Attributes of ferrule's own in MLIR's text, which other tools keep and do not read."""

from __future__ import annotations

from typing import Final

UNSIGNED: Final = "ferrule.unsigned"
"""Of an argument or result of a function: its integers, or those of its elements, are unsigned."""

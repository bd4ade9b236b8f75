"""The register of the carry, which no text can name."""

from __future__ import annotations

from typing import Final

CARRY: Final = "CC.CF"

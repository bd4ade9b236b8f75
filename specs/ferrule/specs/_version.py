"""The version of ferrule, written once: packaging, documentation and metadata read it here."""

from __future__ import annotations

__version__ = "0.2.0"

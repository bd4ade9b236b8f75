"""Programs of examples/cute, in a process of their own: see alone/conftest.py."""

from __future__ import annotations

from pathlib import Path

import alone


def test_all() -> None:
    assert alone.passed(Path(__file__).parent / "alone", torch=False) > 5

"""Kernels of other systems on an emulated GPU, in a process of their own: see alone/conftest.py.

The tests skip where the other system is not installed, and the process says so.
"""

from __future__ import annotations

from pathlib import Path

import alone


def test_all() -> None:
    assert alone.passed(Path(__file__).parent / "alone", torch=True)

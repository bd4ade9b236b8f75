"""Compiled functions that the tests of export share."""

from __future__ import annotations

import pytest
from exported import compiled_add_one, compiled_scale

from ferrule.runtime import Function


@pytest.fixture(scope="session")
def add_one() -> Function:
    """`add_one_host(a, b)`: b = a + 1."""
    return compiled_add_one()


@pytest.fixture(scope="session")
def scale() -> Function:
    """`scale_host(a, b, factor=2.0)`: b = factor * a."""
    return compiled_scale()

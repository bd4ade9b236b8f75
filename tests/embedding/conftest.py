"""What the tests of embedding share: the stand-in of the driver, and memory for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cuda_device import fake_cuda as fake_cuda
from embedded import Memory, allocating


@pytest.fixture
def memory() -> Iterator[Memory]:
    """The allocator of every tensor that is made during the test."""
    with allocating() as book:
        yield book

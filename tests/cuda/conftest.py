"""What the tests of launching share: the stand-in of the driver, and a function that launches."""

from __future__ import annotations

import pytest
from cuda_body import Launches
from cuda_device import FakeCuda
from cuda_device import fake_cuda as fake_cuda


@pytest.fixture
def launches(fake_cuda: FakeCuda) -> Launches:
    """A function that has not been called yet, on a machine with two GPUs."""
    return Launches()

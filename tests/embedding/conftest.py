"""What the tests of embedding share: the stand-in of the driver, and memory for it."""

from __future__ import annotations

from cuda_device import fake_cuda as fake_cuda
from host_memory import memory as memory

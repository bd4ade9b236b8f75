"""What the tests of launches share: the stand-in of the driver."""

from __future__ import annotations

from cuda_device import fake_cuda as fake_cuda

"""`cutlass.cuda` of CuTe DSL's programs: contexts and streams, over the CUDA driver.

Without a GPU there is nothing to prepare and nothing to wait for.
"""

from __future__ import annotations

from typing import Any

from ferrule.cutlass import names
from ferrule.runtime.devices import cuda_devices


def initialize_cuda_context(device_id: int = 0) -> None:
    """Nothing: the first call on a GPU makes its context."""


def default_stream() -> Any:
    """The default stream, whose handle is 0."""
    return 0


def stream_sync(stream: Any = None) -> None:
    """Waits for all work on the GPU."""
    if cuda_devices():
        from ferrule.runtime import cuda

        cuda.synchronize()


__getattr__ = names.resolver("cutlass.cuda")

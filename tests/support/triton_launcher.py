"""Triton's own launcher on the stand-in of libcuda: what it hands over is what ours must.

Triton compiles its launcher with a C compiler against the libcuda that it finds, here the
stand-in, and needs a device: a driver object of five methods says that there is one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import cuda_device
from cuda_device import FakeCuda, Launch


@dataclass(frozen=True, slots=True)
class Address:
    """What Triton takes for a tensor on a GPU: a dtype and an address."""

    dtype: str
    address: int

    def data_ptr(self) -> int:
        """As PyTorch's tensors say it."""
        return self.address


def on_stand_in(arch: int) -> Any:
    """The driver object."""
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.driver import CudaDriver, CudaLauncher, CudaUtils

    class StandIn(CudaDriver):  # type: ignore[misc]
        def __init__(self) -> None:
            self.utils = CudaUtils()
            self.launcher_cls = CudaLauncher
            self.get_current_device = lambda: 0
            self.get_current_stream = lambda device=0: 0
            self.set_current_device = lambda device: None

        def get_current_target(self) -> Any:
            return GPUTarget("cuda", arch, 32)

    return StandIn()


@contextmanager
def own_launcher(arch: int) -> Iterator[None]:
    """Let Triton launch on the stand-in, as for a GPU of this architecture."""
    from triton import knobs
    from triton.runtime import driver

    with knobs.nvidia.scope():
        knobs.nvidia.libcuda_path = cuda_device._folder().name
        before = os.environ.pop("TRITON_INTERPRET", None)
        active = driver._active
        driver.set_active(on_stand_in(arch))
        try:
            yield
        finally:
            driver.set_active(active)
            if before is not None:
                os.environ["TRITON_INTERPRET"] = before


def own_launch(
    fake: FakeCuda, kernel: Any, grid: Any, *args: Any, arch: int = 90, **kwargs: Any
) -> Launch:
    """The launch that `kernel[grid](*args, **kwargs)` makes."""
    with own_launcher(arch):
        fake.clear()
        if hasattr(kernel, "device_caches"):
            kernel.device_caches.clear()
        kernel[grid](*args, **kwargs)
        (launch,) = fake.launches()
    return launch


def same(ours: Launch, theirs: Launch, *, apart: Mapping[int, bytes] | None = None) -> None:
    """AssertionError unless two launches are the same; `apart` are parameters, by position, whose
    right bytes are these and which Triton's launcher gets wrong or cannot know."""
    assert ours.kernel == theirs.kernel
    assert (ours.grid, ours.block, ours.smem) == (theirs.grid, theirs.block, theirs.smem)
    wanted = list(theirs.parameters)
    for position, data in (apart or {}).items():
        wanted[position] = data
    assert list(ours.parameters) == wanted

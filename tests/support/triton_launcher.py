"""Triton's own launcher on the stand-in of libcuda: what it hands over is what ours must.

Triton compiles its launcher with a C compiler against the libcuda that it finds, here the
stand-in, and needs a device: a driver object of five methods says that there is one.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import cuda_device
import numpy as np
from cuda_device import FakeCuda, Launch, forged

EXAMPLES = Path(__file__).parents[2] / "examples" / "triton"


def example(name: str) -> ModuleType:
    """A module of the examples."""
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    return importlib.import_module(name)


@dataclass(frozen=True, slots=True)
class Address:
    """What Triton takes for a tensor on a GPU: a dtype and an address."""

    dtype: str
    address: int

    def data_ptr(self) -> int:
        """As PyTorch's tensors say it."""
        return self.address


def tensor(
    *shape: int, dtype: Any = np.float32, shift: int = 0, device: int = 0
) -> tuple[Any, Address]:
    """A tensor on a GPU of the stand-in, `shift` bytes past a multiple of 64, and as Triton takes
    it."""
    itemsize = np.dtype(dtype).itemsize
    memory = np.zeros(int(np.prod(shape)) * itemsize + 128, np.uint8)
    start = -memory.ctypes.data % 64 + shift
    array = memory[start : start + int(np.prod(shape)) * itemsize].view(dtype).reshape(shape)
    name = {"f": "fp", "i": "i", "u": "u"}[array.dtype.kind] + str(8 * itemsize)
    return forged(array, device), Address(name, array.ctypes.data)


def described(
    base: Any, shape: list[int], block: list[int], *, kind: type | None = None, **more: Any
) -> Any:
    """A descriptor of Triton's, or of this kind, of a compact matrix that is not PyTorch's."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    kind = kind or TensorDescriptor
    made: Any = kind.__new__(kind)
    made.base, made.shape, made.strides = base, shape, [shape[1], 1]
    made.block_shape, made.padding, made.round_f32_to_tf32 = block, "zero", False
    for name, value in more.items():
        setattr(made, name, value)
    return made


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

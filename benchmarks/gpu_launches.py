"""What a launch costs on the host, for `gpu.py`: from a loop in machine code, and from Python.

All sides add two vectors that are so short that the device is done before the next launch comes.
The fastest way there can be is cuLaunchKernelEx alone, with a config and parameters made before,
of the same kernel.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
import statistics
import struct
import tempfile
import timeit
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import gpu_kernels
import peers
from gpu_driver import Driver
from harness import Effort, Goal, Row, Side, Skipped, measure
from launch_overhead import reload

import ferrule as fe
from ferrule.runtime import Engine
from ferrule.runtime.abi import DeviceType, TypeIndex

BARE: Final = "cuLaunchKernelEx alone"
FROM_C: Final = "ferrule, from C"
FERRULE: Final = "ferrule, from Python"
TRITON: Final = "Triton"
CUPY: Final = "CuPy's RawKernel"
CUDA_CORE: Final = "cuda.core's launch"
TORCH: Final = "PyTorch"

SIZE: Final = 1000
BURST: Final = 256
"""Launches in a sample: fewer than the driver puts into its queue before it waits."""

LOOP: Final = """
define i64 @bare_loop(ptr %launch, ptr %config, ptr %kernel, ptr %parameters, i64 %times) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %failed = phi i64 [0, %entry], [%sum, %loop]
  %status = call i32 %launch(ptr %config, ptr %kernel, ptr %parameters, ptr null)
  %wrong = icmp ne i32 %status, 0
  %one = zext i1 %wrong to i64
  %sum = add i64 %failed, %one
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %times
  br i1 %more, label %loop, label %end
end:
  ret i64 %sum
}
"""

CUDA_ADD: Final = """
extern "C" __global__ void add(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
"""

Run = Callable[[int], float]
"""Launches so often, and gives the seconds of all."""


# ---- from machine code ----


class Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared", ctypes.c_uint32),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("num_attributes", ctypes.c_uint32),
    ]


class Vector(ctypes.Structure):
    """A kernel's parameter, as docs/kernel_parameters.md says: the address, and the one size."""

    _fields_ = [("data", ctypes.c_uint64), ("n", ctypes.c_int32)]


def bare(driver: Driver, function: fe.Function, vectors: Sequence[int]) -> Run:
    """The kernel of `add`, launched by a loop around cuLaunchKernelEx."""
    ptx = function.inspect_ptx()
    (name,) = re.findall(r"\.entry ([\w$]+)", ptx)
    kernel = driver.kernel(ptx, name)
    blocks = -(-SIZE // gpu_kernels.WIDTH // gpu_kernels.THREADS)
    config = Config((blocks, 1, 1), (gpu_kernels.THREADS, 1, 1), 0, None, None, 0)
    values = [Vector(address, SIZE) for address in vectors]
    parameters = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
    engine = peers.load_text(LOOP, "bare_loop")
    kinds = [ctypes.c_void_p] * 4 + [ctypes.c_int64]
    loop = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(engine.address("bare_loop"))
    launch = driver.address("cuLaunchKernelEx")

    def run(times: int) -> float:
        _ = engine, values  # the loop needs them
        start = perf_counter()
        failed = loop(launch, ctypes.addressof(config), kernel, ctypes.addressof(parameters), times)
        seconds = perf_counter() - start
        if failed:
            raise RuntimeError(f"{failed} of {times} launches failed")
        return seconds

    return run


class Arguments:
    """Vectors of float32 on device 0, as a compiled function takes them."""

    def __init__(self, vectors: Sequence[int]) -> None:
        self._shape, self._strides = (ctypes.c_int64 * 1)(SIZE), (ctypes.c_int64 * 1)(1)
        self._tensors = [self._tensor(address) for address in vectors]
        index = int(TypeIndex.DLTENSOR_PTR)
        places = [peers.Any16(index, 0, ctypes.addressof(tensor)) for tensor in self._tensors]
        self.args = (peers.Any16 * len(vectors))(*places)

    def _tensor(self, address: int) -> ctypes.Array[ctypes.c_char]:
        head = address, int(DeviceType.CUDA), 0, 1, 0x00012002
        tail = ctypes.addressof(self._shape), ctypes.addressof(self._strides), 0
        packed = struct.pack("<QiiiIQQQ", *head, *tail)
        return ctypes.create_string_buffer(packed, len(packed))


def from_c(engine: Engine, arguments: Arguments) -> Run:
    """`add`, called by a loop in machine code."""
    loop, address = peers.call_loop(), engine.address("__tvm_ffi_add")

    def run(times: int) -> float:
        _ = engine  # its code runs
        start = perf_counter()
        loop.run(address, arguments.args, times)
        return perf_counter() - start

    return run


# ---- from Python ----


def from_python(function: Callable[..., Any], *args: Any) -> Run:
    """Calls from a loop in Python, whose own cost, some nanoseconds, is in the figure."""
    names = ", ".join(f"a{i}" for i in range(len(args)))
    timer = timeit.Timer(f"f({names})", f"f, {names} = given", globals={"given": (function, *args)})
    return timer.timeit


def python_runs(
    function: fe.Function, peers: Any, vectors: Sequence[int]
) -> Iterator[tuple[str, Run]]:
    """What can be called with PyTorch's tensors, CuPy's kernel with CuPy's arrays, cuda.core's with
    the addresses of `vectors`."""
    if peers is not None:
        a, b, c = (peers.torch.zeros(SIZE, device="cuda") for _ in range(3))
        yield FERRULE, from_python(function, a, b, c)
        yield TORCH, from_python(partial(peers.torch.add, out=c), a, b)
        if peers.triton is not None:
            launcher = peers.triton.device_add[(1,)]
            yield TRITON, from_python(launcher, a, b, c, SIZE, peers.triton.BLOCK)
    if importlib.util.find_spec("cupy") is not None:
        import cupy

        arrays = [cupy.zeros(SIZE, cupy.float32) for _ in range(3)]
        given = (*arrays, cupy.int32(SIZE))
        grid = (-(-SIZE // 256),)
        yield CUPY, from_python(cupy.RawKernel(CUDA_ADD, "add"), grid, (256,), given)
    if has_cuda_core():
        yield CUDA_CORE, cuda_core(vectors)


def has_cuda_core() -> bool:
    """Whether cuda.core is installed; its first part is a package of packages."""
    return bool(importlib.util.find_spec("cuda") and importlib.util.find_spec("cuda.core"))


def cuda_core(vectors: Sequence[int]) -> Run:
    """The same kernel through cuda.core, which takes an address as an int."""
    import numpy as np
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

    device = Device()
    device.set_current()
    program = Program(CUDA_ADD, "c++", ProgramOptions(arch=f"sm_{device.arch}"))
    kernel = program.compile("cubin").get_kernel("add")
    config = LaunchConfig(grid=-(-SIZE // 256), block=256)
    return from_python(launch, device.default_stream, config, kernel, *vectors, np.int32(SIZE))


# ---- all of it ----


def measured(driver: Driver, peers: Any, effort: Effort) -> Row:
    """The sides, interleaved; `peers` are those of `gpu.py`, or None."""
    function = gpu_kernels.compiled_add("--target cuda")
    vectors = [driver.allocate(4 * SIZE) for _ in range(3)]
    with tempfile.TemporaryDirectory() as folder:
        engine = reload(function, Path(folder) / "add.o")
        runs = {
            BARE: bare(driver, function, vectors),
            FROM_C: from_c(engine, Arguments(vectors)),
            **dict(python_runs(function, peers, vectors)),
        }
        return measure("a launch", [burst(driver, *run) for run in runs.items()], effort)


def burst(driver: Driver, name: str, run: Run) -> Side:
    """Launches in a row, with nothing in the driver's queue before."""

    def sample() -> float:
        driver.synchronize()
        return run(BURST) / BURST

    return Side(name, sample)


def goals(row: Row | None) -> Iterator[Goal]:
    """What the figures are held against."""
    ratio = None if row is None else row.ratio(FROM_C, BARE)
    yield Goal("a launch from a loop in C, over cuLaunchKernelEx alone", 1.1, ratio, "times")
    what = "a launch from Python, over Triton's, less cuLaunchKernelEx on both sides"
    yield Goal(what, 0.1, None if row is None else over_triton(row), "times")


def over_triton(row: Row) -> float | None:
    """What ferrule adds to the bare launch, over what Triton adds; None without Triton."""
    sides = [row.side(name) for name in (BARE, FERRULE, TRITON)]
    if None in sides:
        return None
    rounds = zip(*(side.samples for side in sides if side is not None), strict=True)
    return statistics.median((ours - bare) / (theirs - bare) for bare, ours, theirs in rounds)


def left_out(row: Row) -> Iterator[Skipped]:
    """Which sides are not there."""
    for name in (TRITON, CUPY, CUDA_CORE, TORCH):
        if row.side(name) is None:
            yield Skipped(f"a launch by {name}", "not installed")

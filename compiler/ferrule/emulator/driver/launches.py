"""The driver's functions that launch kernels: sizes, attributes and parameters are checked here.

A launch returns when the kernel has run. An error of one of its threads is the result of the
launch, its words those of cuGetErrorString; the context stays as it was.
"""

from __future__ import annotations

import struct
from ctypes import string_at
from typing import Any, Final

from ferrule.emulator.driver.kernels import (
    CLUSTER,
    LARGE_CLUSTERS,
    LARGEST_CLUSTER,
    PORTABLE_CLUSTER,
    attributes_at,
    blocks_on_processor,
    cluster_of,
    dynamic_shared,
)
from ferrule.emulator.driver.libraries import Function, function_of
from ferrule.emulator.driver.library.exports import Exports, Needs
from ferrule.emulator.driver.machines import Sizes
from ferrule.emulator.driver.nodes import NodeKind, Parameters
from ferrule.emulator.driver.places import get_int, get_word, get_words
from ferrule.emulator.driver.properties import BLOCK, GRID, THREADS_PER_BLOCK, compute_capability
from ferrule.emulator.driver.results import DriverError, Result
from ferrule.emulator.driver.state import LIMITS, STACK_SIZE, Context, Driver
from ferrule.emulator.driver.streams import Event, note_time, stream_of, submit
from ferrule.specs.deferred import dataclass

exports: Final = Exports()

CONFIG: Final = struct.Struct("<7I4xQQI")
"""CUlaunchConfig: grid, block, shared memory, stream, attributes and their number."""

# `CUlaunchAttributeID` of cuda.h.
_COOPERATIVE, _PROGRAMMATIC_EVENT, _COMPLETION_EVENT = 2, 7, 12
_IGNORED: Final = frozenset({0, 1, 3, 5, 6, 8, 9, 10, 14, 16})
"""Attributes that say how fast or in which order, which is nothing here."""
# CU_LAUNCH_PARAM_END, CU_LAUNCH_PARAM_BUFFER_POINTER and CU_LAUNCH_PARAM_BUFFER_SIZE of cuda.h.
_EXTRA_END, _EXTRA_BUFFER, _EXTRA_SIZE = 0, 1, 2

_FAULTS: Final = {
    "memory": Result.ILLEGAL_ADDRESS,
    "misaligned": Result.MISALIGNED_ADDRESS,
    "space": Result.INVALID_ADDRESS_SPACE,
    "assert": Result.ASSERT,
    "deadlock": Result.LAUNCH_TIMEOUT,
    "stack": Result.HARDWARE_STACK_ERROR,
    "cluster": Result.NOT_SUPPORTED,
}
"""The results for the kinds of faults that a machine knows; LAUNCH_FAILED for others."""


@dataclass(slots=True)
class Launch:
    """A launch that was found to be right, to be made once or, in a graph, many times."""

    function: Function
    grid: Sizes
    block: Sizes
    shared: int
    cluster: Sizes
    parameters: bytes
    stack: int
    events: tuple[Event, ...] = ()
    cooperative: bool = False

    def run(self) -> None:
        """Run the kernel to its end."""
        for event in self.events:
            note_time(event)
        kernel = self.function.kernel
        try:
            kernel.launch(
                self.grid,
                self.block,
                smem=self.shared,
                cluster=self.cluster,
                parameters=self.parameters,
                stack=self.stack,
                cooperative=self.cooperative,
            )
        except Exception as error:
            raise _fault(error) from None


def _fault(error: Exception) -> Exception:
    """What a fault of a kernel is for the caller; any other error as it is."""
    kind = getattr(error, "kind", None)
    if kind is None:
        return error
    return DriverError(_FAULTS.get(str(kind), Result.LAUNCH_FAILED), str(error))


# ---- what is checked ----


def checked(
    driver: Driver,
    function: Function,
    sizes: tuple[int, ...],
    attributes: tuple[int, int],
    parameters: bytes,
) -> Launch:
    """A launch with a grid, a block and dynamic shared memory, and where its attributes are."""
    x, y, z, i, j, k, shared = sizes
    grid, block = (x, y, z), (i, j, k)
    kernel = function.kernel
    threads = i * j * k
    if (
        not 0 < threads <= THREADS_PER_BLOCK
        or k > BLOCK[2]
        or not (0 < x <= GRID[0] and 0 < y <= GRID[1] and 0 < z <= GRID[2])
    ):
        raise DriverError(Result.INVALID_VALUE, f"a grid of {grid} blocks of {block} threads")
    if kernel.required_block not in (None, block):
        raise DriverError(
            Result.INVALID_VALUE, f"{kernel.name} takes blocks of {kernel.required_block} threads"
        )
    if threads > kernel.max_threads:
        raise DriverError(
            Result.LAUNCH_OUT_OF_RESOURCES,
            f"{threads} threads in a block; {kernel.name} takes {kernel.max_threads}",
        )
    if shared > dynamic_shared(function):
        raise DriverError(
            Result.INVALID_VALUE,
            f"{shared} bytes of dynamic shared memory; {kernel.name} is allowed "
            f"{dynamic_shared(function)}: cuFuncSetAttribute allows more",
        )
    launch = Launch(function, grid, block, shared, (1, 1, 1), parameters, _stack(driver))
    if attributes[1] or kernel.required_cluster is not None or function.attributes:
        _apply(driver, launch, *attributes)
    return launch


def _stack(driver: Driver) -> int:
    """The bytes of a thread's stack."""
    return driver.current().limits.get(STACK_SIZE, LIMITS[STACK_SIZE])


def _apply(driver: Driver, launch: Launch, address: int, count: int) -> None:
    events = []
    for number, value in attributes_at(address, count):
        if number in (_PROGRAMMATIC_EVENT, _COMPLETION_EVENT):
            events.append(driver.find(get_word(value), Event, "event"))
        elif number == _COOPERATIVE:
            if get_int(value):
                _make_cooperative(driver, launch)
        elif number != CLUSTER and number not in _IGNORED:
            raise DriverError(Result.NOT_SUPPORTED, f"the launch attribute {number}")
    launch.events = tuple(events)
    launch.cluster = cluster_of(launch.function, address, count)
    if launch.cluster != (1, 1, 1):
        _check_cluster(driver, launch)


def keep_attributes(driver: Driver, launch: Launch, before: Launch) -> None:
    """Give a launch what the one before it in a node of a graph has: new parameters of the node
    leave its attributes as they are."""
    launch.events = before.events
    if before.cooperative:
        _make_cooperative(driver, launch)
    if before.cluster != (1, 1, 1):
        launch.cluster = before.cluster
        _check_cluster(driver, launch)


def _check_cluster(driver: Driver, launch: Launch) -> None:
    cluster, kernel = launch.cluster, launch.function.kernel
    if compute_capability(driver.arch)[0] < 9:
        raise DriverError(Result.INVALID_VALUE, f"{driver.arch} has no clusters")
    if kernel.required_cluster not in (None, cluster):
        raise DriverError(
            Result.INVALID_VALUE, f"{kernel.name} takes clusters of {kernel.required_cluster}"
        )
    if any(size < 1 for size in cluster) or any(
        blocks % size for blocks, size in zip(launch.grid, cluster, strict=True)
    ):
        raise DriverError(Result.INVALID_VALUE, f"a grid of {launch.grid} in clusters of {cluster}")
    large = launch.function.attributes.get(LARGE_CLUSTERS)
    most = LARGEST_CLUSTER if large else PORTABLE_CLUSTER
    if cluster[0] * cluster[1] * cluster[2] > most:
        raise DriverError(Result.INVALID_CLUSTER_SIZE, f"{cluster}, of at most {most} blocks")


def _make_cooperative(driver: Driver, launch: Launch) -> None:
    (x, y, z), (i, j, k) = launch.grid, launch.block
    fit = blocks_on_processor(driver, launch.function, i * j * k, launch.shared)
    # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT.
    most = fit * driver.devices[launch.function.device].attributes[16]
    if x * y * z > most:
        raise DriverError(
            Result.COOPERATIVE_LAUNCH_TOO_LARGE, f"{x * y * z} blocks, of which {most} fit at once"
        )
    launch.cooperative = True


def packed(kernel: Any, addresses: int, extra: int) -> bytes:
    """The bytes of all parameters, from an address of each or from a buffer of all."""
    wanted = kernel.parameters
    size = wanted[-1].offset + wanted[-1].size if wanted else 0
    if extra:
        if addresses:
            raise DriverError(Result.INVALID_VALUE, "parameters are given in both ways")
        return _from_buffer(extra, size)
    if not wanted:
        return b""
    if not addresses:
        raise DriverError(Result.INVALID_VALUE, f"{kernel.name} has {len(wanted)} parameters")
    data = bytearray(size)
    for parameter, address in zip(wanted, get_words(addresses, len(wanted)), strict=True):
        if not address:
            raise DriverError(Result.INVALID_VALUE, "a parameter's address is null")
        at, size = parameter.offset, parameter.size
        data[at : at + size] = string_at(address, size)
    return bytes(data)


def _from_buffer(extra: int, size: int) -> bytes:
    given: dict[int, int] = {}
    while (key := get_word(extra)) != _EXTRA_END:
        if key not in (_EXTRA_BUFFER, _EXTRA_SIZE):
            raise DriverError(Result.INVALID_VALUE, f"no kind {key} of extra parameters")
        given[key] = get_word(extra + 8)
        extra += 16
    buffer, where = given.get(_EXTRA_BUFFER, 0), given.get(_EXTRA_SIZE, 0)
    have = get_word(where) if where else 0
    if size and (not buffer or have < size):
        raise DriverError(Result.INVALID_VALUE, f"{have} bytes of parameters, of {size}")
    return string_at(buffer, size) if size else b""


def _device_of(driver: Driver, handle: int, context: Context) -> Context:
    """The context that a launch is for: the stream's, which must be of the current device."""
    stream = stream_of(driver, handle) if handle else None
    if stream is not None and stream.context.device is not context.device:
        raise DriverError(Result.INVALID_HANDLE, "the stream is of another device than is current")
    return context


def _launch(
    driver: Driver,
    sizes: tuple[int, ...],
    stream: int,
    attributes: tuple[int, int],
    given: tuple[int, int, int],
) -> None:
    handle, parameters, extra = given
    context = _device_of(driver, stream, driver.current())
    function = function_of(driver, handle, context)
    if function.device != context.device.ordinal:
        raise DriverError(Result.INVALID_HANDLE, f"the function is of device {function.device}")
    data = packed(function.kernel, parameters, extra)
    launch = checked(driver, function, sizes, attributes, data)
    if not stream and not driver.captures:
        launch.run()
        return
    submit(driver, stream, NodeKind.KERNEL, launch.run, Parameters(launch=launch))


# ---- the functions ----


@exports("cuLaunchKernelEx", "oppp", Needs.ITSELF)
def launch_with(driver: Driver, config: int, function: int, parameters: int, extra: int) -> None:
    fields = CONFIG.unpack(string_at(config, CONFIG.size))
    _launch(driver, fields[:7], fields[7], fields[8:], (function, parameters, extra))


@exports("cuLaunchKernel", "puuuuuuuppp", Needs.ITSELF)
def launch(driver: Driver, function: int, *rest: int) -> None:
    stream, parameters, extra = rest[7:]
    _launch(driver, rest[:7], stream, (0, 0), (function, parameters, extra))


@exports("cuLaunchCooperativeKernel", "puuuuuuupp")
def launch_cooperative(driver: Driver, handle: int, *rest: int) -> None:
    sizes, stream, parameters = rest[:7], rest[7], rest[8]
    function = function_of(driver, handle, driver.current())
    made = checked(driver, function, sizes, (0, 0), packed(function.kernel, parameters, 0))
    _make_cooperative(driver, made)
    submit(driver, stream, NodeKind.KERNEL, made.run, Parameters(launch=made))

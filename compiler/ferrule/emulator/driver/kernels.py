"""The driver's functions about a kernel's attributes, and how many blocks fit on a processor."""

from __future__ import annotations

import struct
from typing import Final

from ferrule.emulator.driver.libraries import Function, function_of, kernel_on
from ferrule.emulator.driver.library.exports import Exports, Needs
from ferrule.emulator.driver.machines import Sizes
from ferrule.emulator.driver.places import get_int, put_int, put_word, unpacked
from ferrule.emulator.driver.properties import (
    SHARED_BY_DEFAULT,
    WARP,
    compute_capability,
    most_shared,
    properties,
    reserved_shared,
)
from ferrule.emulator.driver.results import DriverError, Result
from ferrule.emulator.driver.state import Driver

WIDTH, HEIGHT, DEPTH = 11, 12, 13
LARGE_CLUSTERS, CLUSTER_SCHEDULING = 14, 15
"""Attributes of functions."""

PORTABLE_CLUSTER: Final = 8
LARGEST_CLUSTER: Final = 16
"""The most blocks of a cluster; the second needs `LARGE_CLUSTERS`."""

CLUSTER: Final = 4
"""The attribute of a launch with the sizes of its cluster."""

_ATTRIBUTE: Final = 72
"""Bytes of a CUlaunchAttribute: its number, 4 bytes of nothing, its value."""


def attributes_at(address: int, count: int) -> list[tuple[int, int]]:
    """Attributes of a launch: the number of each, and where its value is."""
    if count and not address:
        raise DriverError(Result.INVALID_VALUE, f"{count} attributes, and no place of them")
    places = range(address, address + _ATTRIBUTE * count, _ATTRIBUTE)
    return [(get_int(at), at + 8) for at in places]


def cluster_of(function: Function, address: int, count: int) -> Sizes:
    """The cluster of a launch: the one that the launch gives, else that of the kernel."""
    for number, value in attributes_at(address, count):
        if number == CLUSTER:
            x, y, z = (get_int(value + 4 * axis) for axis in range(3))
            return x, y, z
    if function.kernel.required_cluster is not None:
        x, y, z = function.kernel.required_cluster
        return x, y, z
    x, y, z = (function.attributes.get(WIDTH + axis, 0) or 1 for axis in range(3))
    return x, y, z


exports: Final = Exports()

# `CUfunction_attribute` of cuda.h.
MAX_THREADS, SHARED, CONSTANT, LOCAL, REGISTERS, PTX, BINARY, CACHE = range(8)
DYNAMIC_SHARED, CARVEOUT, MUST_CLUSTER = 8, 9, 10
_REGISTERS_AT_ONCE: Final = 256
"""Registers are given to warps in such units."""
# The unit in which shared memory is given to blocks, by the occupancy calculator of CUDA.
_SHARED_AT_ONCE: Final = 128


def _value(driver: Driver, function: Function, wanted: int) -> int:
    kernel = function.kernel
    version = compute_capability(driver.arch)
    number = version[0] * 10 + version[1]
    fixed = {
        MAX_THREADS: kernel.max_threads,
        SHARED: kernel.static_shared,
        CONSTANT: 0,
        LOCAL: kernel.local_bytes,
        REGISTERS: kernel.registers,
        PTX: number,
        BINARY: number,
        CACHE: 0,
        MUST_CLUSTER: int(kernel.required_cluster is not None),
    }
    if wanted in fixed:
        return int(fixed[wanted])
    if wanted in function.attributes:
        return function.attributes[wanted]
    if wanted == DYNAMIC_SHARED:
        return dynamic_shared(function)
    # CU_SHAREDMEM_CARVEOUT_DEFAULT.
    if wanted == CARVEOUT:
        return -1
    if wanted in (WIDTH, HEIGHT, DEPTH):
        return int((kernel.required_cluster or (0, 0, 0))[wanted - WIDTH])
    if wanted in (LARGE_CLUSTERS, CLUSTER_SCHEDULING):
        return 0
    raise DriverError(Result.INVALID_VALUE, f"no function attribute {wanted}")


def dynamic_shared(function: Function) -> int:
    """Bytes of dynamic shared memory that a launch may ask for."""
    default: int = max(0, SHARED_BY_DEFAULT - function.kernel.static_shared)
    return function.attributes.get(DYNAMIC_SHARED, default)


def _set(driver: Driver, function: Function, wanted: int, value: int) -> None:
    _check(driver, function, wanted, value)
    function.attributes[wanted] = value


def _check(driver: Driver, function: Function, wanted: int, value: int) -> None:
    if wanted == DYNAMIC_SHARED:
        most = most_shared(driver.arch) - function.kernel.static_shared
        if not 0 <= value <= most:
            raise DriverError(
                Result.INVALID_VALUE,
                f"{value} bytes of dynamic shared memory; {function.kernel.name} can have {most}",
            )
        return
    allowed = {
        CARVEOUT: range(-1, 101),
        WIDTH: range(LARGEST_CLUSTER + 1),
        HEIGHT: range(LARGEST_CLUSTER + 1),
        DEPTH: range(LARGEST_CLUSTER + 1),
        LARGE_CLUSTERS: range(2),
        CLUSTER_SCHEDULING: range(3),
    }
    if wanted not in allowed:
        raise DriverError(Result.INVALID_VALUE, f"the attribute {wanted} cannot be set")
    if value not in allowed[wanted]:
        raise DriverError(Result.INVALID_VALUE, f"{value} is no value of attribute {wanted}")


@exports("cuFuncGetAttribute", "oip")
def get_attribute(driver: Driver, out: int, wanted: int, handle: int) -> None:
    put_int(out, _value(driver, function_of(driver, handle, driver.current()), wanted))


@exports("cuFuncSetAttribute", "pii")
def set_attribute(driver: Driver, handle: int, wanted: int, value: int) -> None:
    _set(driver, function_of(driver, handle, driver.current()), wanted, value)


@exports("cuKernelGetAttribute", "oipi", Needs.INIT)
def get_kernel_attribute(driver: Driver, out: int, wanted: int, handle: int, device: int) -> None:
    put_int(out, _value(driver, kernel_on(driver, handle, device), wanted))


@exports("cuKernelSetAttribute", "iipi", Needs.INIT)
def set_kernel_attribute(driver: Driver, wanted: int, value: int, handle: int, device: int) -> None:
    _set(driver, kernel_on(driver, handle, device), wanted, value)


@exports("cuFuncSetCacheConfig cuFuncSetSharedMemConfig", "pi")
def set_cache(driver: Driver, handle: int, config: int) -> None:
    function_of(driver, handle, driver.current())
    if not 0 <= config <= 3:
        raise DriverError(Result.INVALID_VALUE, f"no configuration {config}")


@exports("cuKernelSetCacheConfig", "pii", Needs.INIT)
def set_kernel_cache(driver: Driver, handle: int, config: int, device: int) -> None:
    kernel_on(driver, handle, device)
    if not 0 <= config <= 3:
        raise DriverError(Result.INVALID_VALUE, f"no configuration {config}")


# ---- occupancy ----


def blocks_on_processor(driver: Driver, function: Function, threads: int, dynamic: int) -> int:
    """Blocks of a kernel that are on one processor at once."""
    p, kernel = properties(driver.arch), function.kernel
    if not 1 <= threads <= kernel.max_threads:
        return 0
    warps = -(-threads // WARP)
    registers = max(1, -(-kernel.registers * WARP // _REGISTERS_AT_ONCE)) * _REGISTERS_AT_ONCE
    shared = kernel.static_shared + dynamic + reserved_shared(driver.arch)
    shared = -(-shared // _SHARED_AT_ONCE) * _SHARED_AT_ONCE
    if kernel.static_shared + dynamic > most_shared(driver.arch):
        return 0
    by_shared = (p.shared << 10) // shared if shared else p.blocks
    # 65536 registers of a processor, as on every GPU since compute capability 5.0.
    return int(min(p.blocks, p.warps // warps, 65536 // (registers * warps), by_shared))


@exports("cuOccupancyMaxActiveBlocksPerMultiprocessor", "opiz")
def max_blocks(driver: Driver, out: int, handle: int, threads: int, dynamic: int) -> None:
    function = function_of(driver, handle, driver.current())
    if threads < 1:
        raise DriverError(Result.INVALID_VALUE, f"{threads} threads in a block")
    put_int(out, blocks_on_processor(driver, function, threads, dynamic))


@exports("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", "opizu")
def max_blocks_with(
    driver: Driver, out: int, handle: int, threads: int, dynamic: int, flags: int
) -> None:
    # CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE is 1; nothing is cached here.
    if flags not in (0, 1):
        raise DriverError(Result.INVALID_VALUE, f"no flags {flags}")
    max_blocks(driver, out, handle, threads, dynamic)


@exports("cuOccupancyMaxPotentialBlockSize", "ooppzi")
def block_size(
    driver: Driver, grid: int, block: int, handle: int, sizes: int, dynamic: int, limit: int
) -> None:
    if sizes:
        raise DriverError(Result.NOT_SUPPORTED, "shared memory that depends on the size of a block")
    function = function_of(driver, handle, driver.current())
    most = min(function.kernel.max_threads, limit or function.kernel.max_threads)
    choices = range(WARP, most + 1, WARP) if most >= WARP else (most,)
    best = max(choices, key=lambda n: (n * blocks_on_processor(driver, function, n, dynamic), n))
    blocks = blocks_on_processor(driver, function, best, dynamic)
    put_int(block, best)
    put_int(grid, blocks * properties(driver.arch).processors)


@exports("cuOccupancyMaxPotentialBlockSizeWithFlags", "ooppziu")
def block_size_with(
    driver: Driver, grid: int, block: int, handle: int, sizes: int, dynamic: int, limit: int,
    flags: int,
) -> None:  # fmt: skip
    if flags not in (0, 1):
        raise DriverError(Result.INVALID_VALUE, f"no flags {flags}")
    block_size(driver, grid, block, handle, sizes, dynamic, limit)


@exports("cuOccupancyAvailableDynamicSMemPerBlock", "opii")
def available_shared(driver: Driver, out: int, handle: int, blocks: int, threads: int) -> None:
    function = function_of(driver, handle, driver.current())
    if blocks < 1 or threads < 1:
        raise DriverError(Result.INVALID_VALUE, f"{blocks} blocks of {threads} threads")
    each = (properties(driver.arch).shared << 10) // blocks // _SHARED_AT_ONCE * _SHARED_AT_ONCE
    left = each - reserved_shared(driver.arch) - function.kernel.static_shared
    put_word(out, max(0, min(left, most_shared(driver.arch) - function.kernel.static_shared)))


_CONFIG: Final = struct.Struct("<7I4xQQI")


@exports("cuOccupancyMaxActiveClusters", "opo")
def max_clusters(driver: Driver, out: int, handle: int, config: int) -> None:
    function = function_of(driver, handle, driver.current())
    *_, x, y, z, dynamic, _, attributes, count = unpacked(_CONFIG, config)
    sizes = cluster_of(function, attributes, count)
    blocks = sizes[0] * sizes[1] * sizes[2]
    if compute_capability(driver.arch)[0] < 9:
        raise DriverError(Result.NOT_SUPPORTED, f"{driver.arch} has no clusters")
    fits = blocks_on_processor(driver, function, x * y * z, dynamic)
    put_int(out, fits * properties(driver.arch).processors // blocks)


@exports("cuOccupancyMaxPotentialClusterSize", "opo")
def cluster_size(driver: Driver, out: int, handle: int, config: int) -> None:
    function = function_of(driver, handle, driver.current())
    if compute_capability(driver.arch)[0] < 9:
        raise DriverError(Result.NOT_SUPPORTED, f"{driver.arch} has no clusters")
    large = function.attributes.get(LARGE_CLUSTERS, 0)
    put_int(out, LARGEST_CLUSTER if large else PORTABLE_CLUSTER)

"""Clusters of blocks: what kernels and launches say of them."""

from __future__ import annotations

from typing import Final

from ferrule.emulator.driver.libraries import Function
from ferrule.emulator.driver.machines import Sizes
from ferrule.emulator.driver.places import get_int
from ferrule.emulator.driver.results import DriverError, Result

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
    """The cluster of a launch: what it says, else what the kernel does."""
    for number, value in attributes_at(address, count):
        if number == CLUSTER:
            x, y, z = (get_int(value + 4 * axis) for axis in range(3))
            return x, y, z
    if function.kernel.required_cluster is not None:
        x, y, z = function.kernel.required_cluster
        return x, y, z
    x, y, z = (function.attributes.get(WIDTH + axis, 0) or 1 for axis in range(3))
    return x, y, z

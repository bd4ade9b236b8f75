"""A profile as a table."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ferrule.emulator.checks.profile import KernelProfile, Profile

_THREADS: Final = {
    "75": 1024,
    "86": 1536,
    "87": 1536,
    "89": 1536,
    "110": 1536,
    "120": 1536,
    "121": 1536,
}
_SHARED: Final = {"75": 64, "80": 164, "86": 100, "87": 164, "89": 100, "120": 100, "121": 100}
_MOST_THREADS: Final = 2048
_MOST_SHARED: Final = 228
_MOST_BLOCKS: Final = 32
_RESERVED: Final = 1024
"""Bytes of shared memory that the system takes for each block."""


def ranked(profile: Profile) -> list[KernelProfile]:
    """All kernels, those with the most instructions first."""
    return sorted(profile.kernels.values(), key=lambda each: -each.thread_instructions)


def table(profile: Profile) -> str:
    """All kernels."""
    kernels = ranked(profile)
    if not kernels:
        return "no kernel was launched"
    return "\n\n".join("\n".join(_kernel(each, profile.arch)) for each in kernels)


def _kernel(one: KernelProfile, arch: str) -> Iterator[str]:
    yield f"{one.name}: {one.launches} launches, {one.threads} threads, blocks of {one.block}"
    yield f"  {'thread instructions':<28}{one.thread_instructions:>16,}"
    yield f"  {'warp instructions':<28}{one.warp_instructions:>16,}"
    yield f"  {'threads of a warp, mean':<28}{one.active_lanes:>16.2f}"
    for name, count in one.classes().items():
        if count:
            yield f"    {name:<26}{count:>16,}"
    for name, count in one.moved().items():
        yield f"  {'bytes, ' + name:<28}{count:>16,}"
    yield from _requests(one)
    yield f"  blocks at a time, by threads {by_threads(one, arch)}, by shared memory " + (
        f"{by_shared(one, arch)}; by registers is not known before ptxas has chosen them"
    )


def _requests(one: KernelProfile) -> Iterator[str]:
    requests, sectors = one.total("requests"), one.total("sectors")
    if requests:
        least = one.total("least_sectors")
        few = f"{least / requests:.2f} would do"
        yield f"  {'sectors per request':<28}{sectors / requests:>16.2f}   {few}"
    waves, least = one.total("wavefronts"), one.total("least_wavefronts")
    if waves:
        yield f"  {'shared wavefronts':<28}{waves:>16,}   {waves - least:,} of bank conflicts"


def _number(arch: str) -> str:
    return "".join(each for each in arch.removeprefix("sm_") if each.isdigit())


def by_threads(one: KernelProfile, arch: str) -> int:
    """How many blocks fit a processor, by its threads."""
    warps = -(-prod(one.block) // 32)
    return min(_MOST_BLOCKS, _THREADS.get(_number(arch), _MOST_THREADS) // 32 // warps)


def by_shared(one: KernelProfile, arch: str) -> str:
    """The same by shared memory."""
    if not one.shared:
        return "any"
    fits = (_SHARED.get(_number(arch), _MOST_SHARED) << 10) // (one.shared + _RESERVED)
    return str(min(_MOST_BLOCKS, fits))

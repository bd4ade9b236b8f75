"""Grids that are functions of a kernel's arguments: what they gave when the kernel was launched.

A function reads variables around it, which the host function may change after the launch.  So it is
asked at the launch, with each configuration that the kernel has.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.triton.autotuned.configs import PLAIN, Version, versions_of
from ferrule.frontends.triton.recorded.asked import Asked
from ferrule.frontends.triton.recorded.bound import Asking, Bound
from ferrule.frontends.triton.recorded.followed import follow, trees_of
from ferrule.frontends.triton.recorded.functions import functions_watched
from ferrule.frontends.triton.recorded.numbers.base import plain


def asked_early(launch: Bound) -> dict[Hashable, Asking]:
    """What the grid of a launch gives for each of the kernel's configurations.

    Raises what the grid raises if there is one way to launch, as Triton's launch does.
    """
    found: dict[Hashable, Asking] = {}
    if not callable(launch.grid):
        return found
    for version in _own_versions(launch):
        try:
            found[key_of(version)] = _asked(launch, version, contextlib.nullcontext())
        except Exception:
            if not launch.kernel.configs:
                raise
            continue  # another configuration's error, perhaps: it is met again if it counts
    return found


def asked(launch: Bound, version: Version) -> Asking:
    """What the grid of a launch gives for a version."""
    known = launch.early.get(key_of(version))
    if known is not None:
        return known
    check_early(launch)
    try:
        return _asked(launch, version, functions_watched(launch.reading))
    except CompileError:
        raise
    except Exception as error:
        raise CompileError(
            Diagnostic(
                f"{launch.kernel.name}: the grid fails for {version.constants or 'the launch'}: "
                f"{type(error).__name__}: {error}",
                hint="choose another configuration, by configs=",
            )
        ) from error


def check_early(launch: Bound) -> None:
    """Raises CompileError for a grid that is another one now than at the launch."""
    for version in _own_versions(launch) if launch.early else ():
        known = launch.early.get(key_of(version))
        watched = functions_watched(launch.reading)
        if known is not None and _asked(launch, version, watched).grid != known.grid:
            raise CompileError(
                Diagnostic(
                    f"{launch.kernel.name}: the grid was {known.grid} at the launch, and is "
                    "another one now: it reads what was changed after the launch",
                    expected="a grid of the kernel's arguments, and of what stays as it is",
                )
            )


def meta_of(launch: Bound, version: Version) -> Asked:
    """The arguments that a grid gets, with the constants of a version and of heuristics."""
    kernel = launch.kernel
    known = {each.name: each.default for each in kernel.parameters if each.has_default}
    return Asked({**known, **launch.given, **version.constants}, kernel.heuristics)


def key_of(version: Version) -> Hashable:
    """What tells a version from others, for a grid."""
    return tuple(sorted((name, repr(value)) for name, value in version.constants.items()))


def _own_versions(launch: Bound) -> Iterator[Version]:
    configs = launch.kernel.configs
    for number in range(len(configs)):
        yield from versions_of(launch.kernel, number)
    if not configs:
        yield PLAIN


def _asked(launch: Bound, version: Version, watched: AbstractContextManager[None]) -> Asking:
    """`watched` is nothing at the launch, where functions of PyTorch are watched already."""
    log, known = launch.reading.log, meta_of(launch, version)
    known |= {k: follow(known[k], each, log) for k, each in launch.trees.items() if k in known}
    before = len(log.compared)
    try:
        with watched:
            grid = listed(launch.grid(known))
        compared = log.compared[before:]
    finally:
        del log.compared[before:]
    trees: Mapping[int, Any] = trees_of(dict(enumerate(grid)))
    return Asking(tuple(plain([*grid])), trees, tuple(compared))


def listed(grid: Any) -> Sequence[Any]:
    """The sizes of a grid."""
    return grid if isinstance(grid, tuple | list) else (grid,)

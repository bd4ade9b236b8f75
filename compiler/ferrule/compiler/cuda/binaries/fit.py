"""Checks the constant sizes of a launch against the limits in the kernel's binaries.

A launch that every driver would refuse at every call is an error of the build.  A cubin is for the
architecture that it names; PTX without a suffix is for newer GPUs too, and a launch that one of
those supports is not refused: on the other GPUs the call is a LaunchError or an error of the
driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from ferrule.compiler.cuda.archs import capability
from ferrule.compiler.cuda.limits import CLUSTER_ARCH, REGISTERS, shared_limit
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.compiler.cuda.binaries.parameters import Dims, KernelParameters
    from ferrule.specs import Dim


@dataclass(frozen=True, slots=True)
class LaunchSizes:
    """The sizes of a launch: three each, None without a cluster, and bytes."""

    block: Sequence[Dim] | None = None
    cluster: Sequence[Dim] | None = None
    smem: Dim = 0
    grid: Sequence[Dim] | None = None


def check_launch(kernel: KernelParameters, sizes: LaunchSizes, or_newer: bool = False) -> None:
    """Raise CompileError if the constant sizes are impossible for the kernel: on its architecture,
    or with `or_newer` on it and every newer one."""
    block, cluster = sizes.block, sizes.cluster
    if block is not None:
        _check_block(kernel, block)
        _check_registers(kernel, block)
    if cluster is not None and kernel.cluster is not None and _differ(cluster, kernel.cluster):
        raise CompileError(
            Diagnostic(
                f"{kernel} was compiled for clusters of {_dims(kernel.cluster)} blocks, but the "
                f"launch asks for {_dims(cluster)}",
                hint=f"write cluster={kernel.cluster}, or leave it away",
            )
        )
    clusters = kernel.cluster or cluster or (1, 1, 1)
    if not or_newer:
        _check_has_clusters(kernel, clusters)
    _check_whole(kernel, clusters, sizes.grid or ())
    if isinstance(sizes.smem, int):
        _check_shared(kernel, sizes.smem, or_newer)


def _check_block(kernel: KernelParameters, block: Sequence[Dim]) -> None:
    wanted, most = kernel.required_block, kernel.max_block
    if wanted is not None and _differ(block, wanted):
        raise CompileError(
            Diagnostic(
                f"{kernel} was compiled for blocks of {_dims(wanted)} threads (reqntid), but the "
                f"launch has blocks of {_dims(block)}",
                hint=f"write block={wanted}",
            )
        )
    threads = _known(block)
    if most is not None and threads > prod(most):
        raise CompileError(
            Diagnostic(
                f"{kernel} was compiled for blocks of {prod(most)} threads at most (maxntid), but "
                f"the launch has blocks of {_dims(block)}, {threads} threads",
                hint="launch smaller blocks, or compile the kernel for larger ones",
            )
        )


def _check_registers(kernel: KernelParameters, block: Sequence[Dim]) -> None:
    threads = _known(block)
    if kernel.registers is None or threads * kernel.registers <= REGISTERS:
        return
    raise CompileError(
        Diagnostic(
            f"{kernel} has {kernel.registers} registers for each thread, but the launch has blocks "
            f"of {_dims(block)}, {threads} threads, and an SM has {REGISTERS} registers",
            hint=f"launch at most {REGISTERS // kernel.registers} threads, or compile the kernel "
            "for larger blocks (__launch_bounds__, -maxrregcount)",
        )
    )


def _check_has_clusters(kernel: KernelParameters, cluster: Sequence[Dim]) -> None:
    if _known(cluster) > 1 and capability(kernel.arch) < CLUSTER_ARCH:
        raise CompileError(
            Diagnostic(
                f"{kernel} is to be launched in clusters of {_dims(cluster)} blocks, but GPUs have "
                f"clusters since sm_{CLUSTER_ARCH}",
                hint="leave this image away, or compile it for an architecture that has them",
            )
        )


def _check_whole(kernel: KernelParameters, cluster: Sequence[Dim], grid: Sequence[Dim]) -> None:
    for axis, blocks, size in zip("xyz", grid, cluster, strict=False):
        if isinstance(blocks, int) and isinstance(size, int) and blocks % size:
            raise CompileError(
                Diagnostic(
                    f"{kernel} is launched in clusters of {_dims(cluster)} blocks, but the grid "
                    f"{_dims(grid)} is not made of whole ones along {axis}",
                    hint=f"make grid {axis} a multiple of {size}",
                )
            )


def _check_shared(kernel: KernelParameters, smem: int, or_newer: bool) -> None:
    most = shared_limit(capability(kernel.arch), or_newer)
    if most is None or smem + kernel.static_shared <= most:
        return
    has = f"no GPU since {kernel.arch} has more than" if or_newer else f"{kernel.arch} has"
    static = f" and {kernel.static_shared} of its own" if kernel.static_shared else ""
    raise CompileError(
        Diagnostic(
            f"{kernel} is to be launched with {smem} bytes of shared memory{static} for a block, "
            f"but {has} {most}",
            hint=f"ask for at most {max(0, most - kernel.static_shared)}, or leave this image away",
        )
    )


def _known(sizes: Sequence[Dim]) -> int:
    """The product of the constant sizes."""
    return prod(size for size in sizes if isinstance(size, int))


def _differ(sizes: Sequence[Dim], wanted: Dims) -> bool:
    return any(
        isinstance(size, int) and size != each for size, each in zip(sizes, wanted, strict=True)
    )


def _dims(dims: Sequence[Dim]) -> str:
    return f"({', '.join(map(str, dims))})"

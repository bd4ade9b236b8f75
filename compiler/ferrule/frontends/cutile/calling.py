"""Cubins of cuTile, and their launch.

A tile kernel is launched with blocks of one thread, regardless of the number that its cubin
requires: the driver replaces it by the number for which the code was compiled.  From sm_90 on
cuTile's assembler makes architecture-specific code, such as sm_90a for sm_90, and the cubin names
that architecture.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from ferrule.compiler import conventions
from ferrule.compiler.conventions.launches.cuda import CudaLaunch
from ferrule.compiler.conventions.protocol import CallingConvention
from ferrule.compiler.cuda.binaries.fit import LaunchSizes
from ferrule.compiler.cuda.binaries.parameters import KernelParameters
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.cutile.checks import Checks
from ferrule.frontends.cutile.constraints import Parameter, arrays, handed
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class TileCode(DeviceCode):
    """Kernels of tiles, whose block sizes are not those of the launch."""

    def check_launch(
        self, kernel: str, packed: Sequence[tuple[int, str]], sizes: LaunchSizes | None = None
    ) -> list[KernelParameters]:
        """See `DeviceCode`; the sizes are not checked."""
        return DeviceCode.check_launch(self, kernel, packed)


def launch(
    cutile: Any,
    kernel: Any,
    name: str,
    parameters: Sequence[Parameter],
    grid: Any,
    archs: Sequence[str],
) -> CallingConvention:
    """The launch of a kernel, after the checks of its constraints."""
    symbol = f"{name}_kernel"
    c = cutile.compilation
    version = c.CallingConvention.cutile_python_v2()
    signature = c.KernelSignature([each.constraint for each in parameters], version, symbol)
    cubins = [_cubin(c, kernel, name, signature, arch) for arch in archs]
    found = DeviceCode.from_cubin(cubins, [symbol])
    code = TileCode(found.images, found.kernels, found.ptxas_options)
    arguments = [a for each in parameters for a in handed(cutile, each.spec, each.constraint)]
    given = [array for each in parameters for array in arrays(each.spec, each.constraint)]
    launched = CudaLaunch(code, symbol, arguments, grid=grid, block=1)
    return conventions.Sequence([Checks(tuple(given)), launched])


def _cubin(c: Any, kernel: Any, name: str, signature: Any, arch: str) -> bytes:
    """The kernel for one architecture.  Raises CompileError with cuTile's message."""
    if arch[-1] in "af":
        raise CompileError(
            Diagnostic(
                f"cuTile has no architecture {arch}: its own have no letter",
                hint=f"write target='{arch[:-1]}'",
            )
        )
    output = io.BytesIO()
    try:
        c.export_kernel(kernel, [signature], output, gpu_code=arch, output_format="cubin")
    except Exception as error:
        raise CompileError(
            Diagnostic(f"cuTile cannot compile {name} for {arch}: {error}")
        ) from error
    return output.getvalue()

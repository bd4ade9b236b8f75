"""The options for the compilation of kernels, after the target is chosen."""

from __future__ import annotations

import shlex
from typing import Final

from ferrule.compiler.cuda.launcher.driver import JitOption
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.options import IndexBitwidth, Options
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class DeviceOptions:
    """The options for kernels; `archs` are the architectures, each once."""

    archs: tuple[str, ...]
    opt_level: int = 3
    cubin: bool = False
    ptxas_options: tuple[str, ...] = ()
    line_info: bool = False
    fast_math: bool = False
    libdevice: bool = False
    noalias: bool = False
    paths: bool = True
    """Whether the code contains the paths of source files."""
    index_bitwidth: IndexBitwidth | None = None

    @property
    def assembling(self) -> tuple[str, ...]:
        """The options of ptxas."""
        lines = ("-lineinfo",) if self.line_info else ()
        return (f"-O{self.opt_level}", *lines, *self.ptxas_options)

    @property
    def jit(self) -> dict[JitOption, int]:
        """The options of the driver's assembler that differ from its defaults."""
        found = {}
        if self.opt_level < _BEST:
            found[JitOption.OPTIMIZATION_LEVEL] = self.opt_level
        if self.line_info:
            found[JitOption.GENERATE_LINE_INFO] = 1
        return found


_BEST: Final = 3


def device_options(options: Options) -> DeviceOptions:
    """The options of a compilation with known architectures."""
    assert isinstance(options.gpu_arch, str)
    if options.ptxas_options and not (options.cubin or options.keep_cubin):
        raise CompileError(
            Diagnostic(
                "--ptxas-options are for ptxas, but the driver will assemble these kernels",
                hint="add --cubin, which assembles them here",
            )
        )
    return DeviceOptions(
        tuple(options.gpu_arch.split(",")),
        options.opt_level,
        options.cubin or options.keep_cubin,
        _words(options.ptxas_options),
        options.generate_line_info,
        options.fast_math,
        options.libdevice,
        options.noalias,
        not options.strip_paths,
        options.index_bitwidth,
    )


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise CompileError(f"--ptxas-options {text!r} cannot be read: {error}") from None

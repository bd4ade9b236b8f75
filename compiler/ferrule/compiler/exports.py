"""The target of exported code: the options --host-target and --host-cpu.

The default is this machine's platform and the baseline CPU of its architecture.
"""

from __future__ import annotations

import re
from typing import Final

import llvmlite.binding as llvm

from ferrule.compiler import targets
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.targets import HostTarget
from ferrule.runtime import cpus
from ferrule.specs.deferred import dataclass

_PLATFORMS: Final = re.compile(
    r"(x86_64|aarch64|riscv64)(-[a-z0-9_]+)?-linux-(gnu|musl)"
    r"|(x86_64|arm64|aarch64)-apple-(macosx?|darwin)[0-9.]*"
)

_OF_BASELINE: Final = frozenset({"64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2", "x87"})


@dataclass(frozen=True, slots=True)
class ExportTarget:
    """A target, and the CPU features that it needs beyond the baseline of the architecture."""

    target: HostTarget
    needs: tuple[str, ...] = ()


def export_target(host_target: str | None = None, host_cpu: str | None = None) -> ExportTarget:
    """The target of these options.  Raises CompileError for a target that ferrule cannot emit."""
    triple = targets.host_triple() if host_target is None else host_target
    if not _PLATFORMS.fullmatch(triple) and host_target is not None:
        raise CompileError(
            Diagnostic(
                f"there is no code for the host target {host_target!r}",
                expected="a triple of Linux or macOS on x86_64 or aarch64, or Linux on riscv64",
                hint="write for example --host-target aarch64-linux-gnu",
            )
        )
    match host_cpu:
        case None | "baseline":
            return ExportTarget(targets.baseline(triple))
        case "native":
            return _native(triple)
        case _:
            return _level(triple, host_cpu)


def _native(triple: str) -> ExportTarget:
    """This machine's CPU, with the features that a loader can check."""
    here = targets.host()
    if triple != here.triple:
        raise CompileError(
            f"--host-cpu native is the CPU of this machine, {here.triple}, "
            f"and cannot go with --host-target {triple}"
        )
    found = llvm.get_host_cpu_features()
    needs = cpus.host_features(targets.architecture(triple)) & {n for n in found if found[n]}
    left_out = (name for name in found if name not in needs and name not in _OF_BASELINE)
    words = [*(f"+{name}" for name in sorted(needs)), *(f"-{name}" for name in sorted(left_out))]
    return ExportTarget(HostTarget(triple, here.cpu, ",".join(words)), tuple(sorted(needs)))


def _level(triple: str, cpu: str) -> ExportTarget:
    """One of the processor levels of x86-64."""
    if cpu not in cpus.LEVELS or targets.architecture(triple) != "x86_64":
        levels = ", ".join(cpus.LEVELS) if targets.architecture(triple) == "x86_64" else ""
        raise CompileError(
            Diagnostic(
                f"--host-cpu {cpu} is no kind of CPU to export for on {triple}",
                expected=", ".join(filter(None, ("baseline", "native", levels))),
            )
        )
    return ExportTarget(HostTarget(triple, cpu, ""), cpus.LEVELS[cpu])

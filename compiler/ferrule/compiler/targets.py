"""Targets of code generation: triple, CPU and features, and LLVM's machine for them.

The engine compiles for the host's own CPU, export for the baseline of the architecture, so that an
exported object runs on every machine of that architecture.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import llvmlite.binding as llvm

from ferrule.specs.deferred import dataclass

_BASELINES: Final = {
    "x86_64": ("x86-64", ""),
    "aarch64": ("generic", ""),
    "riscv64": ("generic-rv64", "+m,+a,+f,+d,+c"),
}
"""The baseline CPU of an architecture, and the features that LLVM does not imply for it."""


@dataclass(frozen=True, slots=True)
class HostTarget:
    """A target of code generation."""

    triple: str
    cpu: str
    features: str


@cache
def host() -> HostTarget:
    """This machine, with every feature of its CPU."""
    features = llvm.get_host_cpu_features().flatten()
    return HostTarget(host_triple(), llvm.get_host_cpu_name(), features)


@cache
def host_triple() -> str:
    """The triple of this process."""
    return str(llvm.get_process_triple())


def architecture(triple: str) -> str:
    """The architecture of a triple, under one name for each architecture."""
    word = triple.partition("-")[0]
    return "aarch64" if word == "arm64" else word


def baseline(triple: str | None = None) -> HostTarget:
    """The target that every CPU of the architecture can run; by default of this machine's."""
    chosen = host_triple() if triple is None else triple
    return HostTarget(chosen, *_BASELINES.get(architecture(chosen), ("generic", "")))


def target(cpu: str, triple: str) -> HostTarget:
    """The target with this CPU and triple; the host's CPU has the host's features."""
    here = host()
    if (cpu, triple) == (here.cpu, here.triple):
        return here
    return HostTarget(triple, cpu, "")


def has_assembler(triple: str) -> bool:
    """Whether LLVM can read assembly for this target: llvmlite has only the host's assembler.

    LLVM aborts the process if it gets assembly for another target.
    """
    return architecture(triple) == architecture(host_triple())


@cache
def machine(chosen: HostTarget, opt_level: int = 2) -> Any:
    """LLVM's machine for position-independent code of a target.

    `opt_level`, from 0 to 2, is the effort of instruction selection.  One machine serves all
    compilations: it has only facts about its target, which take a millisecond to look up, and
    llvmlite lets only one thread at a time into LLVM.
    """
    if has_assembler(chosen.triple):
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()
    else:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(chosen.triple).create_target_machine(
        cpu=chosen.cpu, features=chosen.features, opt=opt_level, reloc="pic", codemodel="default"
    )

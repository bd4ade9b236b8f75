"""What this process runs on: its processor, LLVM's names of that, and the library of tvm-ffi."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from ferrule.runtime.binaries.elf import Machine

_MACHINES: Final[Mapping[str, Machine]] = MappingProxyType(
    {
        "x86_64": Machine.X86_64,
        "amd64": Machine.X86_64,
        "aarch64": Machine.AARCH64,
        "arm64": Machine.AARCH64,
    }
)

_BASELINE_CPUS: Final[Mapping[Machine, str]] = MappingProxyType(
    {Machine.X86_64: "x86-64", Machine.AARCH64: "generic"}
)


def host_machine() -> Machine:
    """The processor of this process."""
    try:
        return _MACHINES[platform.machine().lower()]
    except KeyError:
        raise RuntimeError(f"ferrule has no code generator for {platform.machine()}") from None


def host_triple() -> str:
    """The LLVM triple of this process."""
    from llvmlite import binding

    return str(binding.get_process_triple())


def host_baseline_cpu() -> str:
    """LLVM's name of the baseline CPU of this architecture, the default CPU for exported code."""
    return _BASELINE_CPUS[host_machine()]


@cache
def libtvm_ffi() -> ctypes.CDLL:
    """The library of tvm-ffi that this process has loaded."""
    import tvm_ffi

    if isinstance(loaded := getattr(tvm_ffi, "LIB", None), ctypes.CDLL):
        return ctypes.CDLL(loaded._name)  # its own functions with types of their own
    return ctypes.CDLL(tvm_ffi.libinfo.find_libtvm_ffi())


@cache
def initialize_llvm() -> None:
    """Make LLVM's code generator for this machine known; needed before any target machine."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()

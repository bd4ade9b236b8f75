"""A program as the text of one MLIR module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ferrule.compiler.artefacts import Fault
from ferrule.language.codegen.device import entry_names
from ferrule.language.codegen.functions import Faults
from ferrule.language.codegen.parameters import MapParameter, kernel_parameters
from ferrule.language.ir import ops
from ferrule.language.ir.walk import all_ops
from ferrule.language.mlir.device import MODULE, emit_device
from ferrule.language.mlir.host import FOREIGN, emit_host, is_plain
from ferrule.language.mlir.kernels import emit_kernel, symbol
from ferrule.language.mlir.launching import Launches
from ferrule.language.mlir.text import Text


@dataclass(frozen=True, slots=True)
class HostText:
    """A program for the CPU as MLIR, and the faults whose numbers its functions return.

    `whole`: the host function is there, not only the kernels.
    """

    text: str
    faults: tuple[Fault, ...]
    whole: bool


def host_text(program: ops.Program) -> HostText:
    """The module of a program for the CPU, whose work in the background was made at once.

    Raises CodegenError for a kernel that MLIR cannot express on a CPU.
    """
    t, faults, whole = Text(), Faults(), is_plain(program)
    for kernel in program.kernels:
        emit_kernel(t, program, kernel, faults, external=False)
    if whole:
        emit_host(t, program, faults)
    return HostText(t.module(), tuple(faults.known), whole)


@dataclass(frozen=True, slots=True)
class KernelText:
    """A kernel's function for the CPU as a module of its own."""

    kernel: str
    symbol: str
    text: str


@dataclass(frozen=True, slots=True)
class KernelTexts:
    """The kernels of a program, and the faults whose numbers they return."""

    kernels: tuple[KernelText, ...]
    faults: tuple[Fault, ...]


def kernel_texts(program: ops.Program) -> KernelTexts:
    """The kernels of a program for the CPU, each callable from other modules.

    Raises CodegenError for a kernel that MLIR cannot express on a CPU.
    """
    faults, found = Faults(), []
    for kernel in program.kernels:
        t = Text()
        emit_kernel(t, program, kernel, faults, external=True)
        found.append(KernelText(kernel.name, symbol(kernel), t.module()))
    return KernelTexts(tuple(found), tuple(faults.known))


_LEFT_OUT: Final = "// The host function is left out: MLIR has no "


def program_text(program: ops.Program) -> str:
    """A program as people read it: kernels as a `gpu.module`, maths as `math`, the host function.

    A host function that calls TVM-FFI or hands over tensor maps is left out, and the first line
    says why.  Raises
    CodegenError for an op that MLIR cannot express.
    """
    t, names = Text(), entry_names(program)
    if program.kernels:
        emit_device(t, program, names)
    mapped = any(
        isinstance(parameter, MapParameter)
        for kernel in program.kernels
        for parameter in kernel_parameters(kernel)
    )
    if is_plain(program) and not mapped:
        emit_host(t, program, Faults(), Launches(program, names, MODULE).launch)
        return t.module(container=bool(program.kernels))
    every = all_ops(program.host.body)
    found = dict.fromkeys(type(op).__name__ for op in every if isinstance(op, FOREIGN))
    why = ", ".join(found) or ("tensor maps" if mapped else "results that are objects or texts")
    return f"{_LEFT_OUT}{why}.\n{t.module(container=bool(program.kernels))}"

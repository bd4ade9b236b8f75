"""A program as the text of one MLIR module."""

from __future__ import annotations

from ferrule.compiler.artefacts import Fault
from ferrule.language.checks.places import Places
from ferrule.language.codegen.cuda.kernels import entry_names
from ferrule.language.codegen.functions.lowering import Faults
from ferrule.language.ir import ops
from ferrule.language.mathlib import expand_narrow
from ferrule.language.mlir import coroutines
from ferrule.language.mlir.device.lines import Lines, with_aliases
from ferrule.language.mlir.device.module import MODULE
from ferrule.language.mlir.host import emit_host as emit_cpu_host
from ferrule.language.mlir.host import is_plain
from ferrule.language.mlir.kernels import emit_kernel, symbol
from ferrule.language.mlir.readable.host import emit_host
from ferrule.language.mlir.readable.kernels import emit_kernels
from ferrule.language.mlir.readable.launches import Launches
from ferrule.language.mlir.text import Text
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class HostText:
    """A program for the CPU as MLIR, and the faults whose numbers its functions return.

    `whole`: the text contains the host function, not only the kernels.
    """

    text: str
    faults: tuple[Fault, ...]
    whole: bool


def host_text(program: ops.Program) -> HostText:
    """The module of a program for the CPU, in which asynchronous work has been made synchronous.

    Raises CodegenError for a kernel that MLIR cannot express on a CPU.
    """
    t, faults, whole = Text(), Faults(), is_plain(program)
    for kernel in program.kernels:
        emit_kernel(t, program, kernel, faults, external=False)
    if whole:
        emit_cpu_host(t, program, faults)
    return HostText(t.module(), tuple(faults.known), whole)


@dataclass(frozen=True, slots=True)
class KernelText:
    """A kernel's function for the CPU as a module of its own.

    `is_thread`: the function runs one thread of the kernel as a coroutine, not blocks of it.
    """

    kernel: str
    symbol: str
    text: str
    is_thread: bool = False


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
        t, is_thread = Text(), coroutines.waits_apart(kernel)
        if is_thread:
            coroutines.emit_thread(t, program, kernel, faults)
            name = coroutines.symbol(kernel)
        else:
            emit_kernel(t, program, kernel, faults, external=True)
            name = symbol(kernel)
        found.append(KernelText(kernel.name, name, t.module(), is_thread))
    return KernelTexts(tuple(found), tuple(faults.known))


def program_text(program: ops.Program, places: Places | None = None) -> str:
    """A program as text for people: kernels as a `gpu.module`, maths as `math`, and the host
    function under its own name, with its launches.  Requests to TVM-FFI are calls of functions that
    are only declared.  With `places` ops have the lines of the source.

    Raises CodegenError for an op that MLIR cannot express.
    """
    program = expand_narrow(program)
    t, names = Text(), entry_names(program)
    lines = None if places is None else Lines(places, paths=False)
    if program.kernels:
        emit_kernels(t, program, names, lines)
    emit_host(t, program, Launches(program, names, MODULE), lines)
    return with_aliases(t.module(container=bool(program.kernels)))

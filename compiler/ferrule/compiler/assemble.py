"""From the two kept LLVM modules to an object: optimise, link, make internal, emit.

The body gets LLVM's pipeline, the wrapper none: its code is straight as it is generated.  The
support code that the two call was compiled before, once for a triple and the baseline CPU.
Nothing but `__tvm_ffi_*` stays visible, so that any number of objects link together.  Every
compilation has an LLVM context of its own.  The same input gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Final

import llvmlite.binding as llvm
from typing_extensions import assert_never

from ferrule.compiler import targets
from ferrule.compiler.artefacts import HostModule
from ferrule.compiler.natives import with_instructions
from ferrule.compiler.support import (
    ALLOCATION,
    CALLING,
    CHECKS,
    CUDA,
    VALUES,
    Support,
    support_assembly,
    support_data,
    support_text,
)
from ferrule.compiler.targets import HostTarget
from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.artefacts import ExportForm, ObjectCode

_VISIBLE: Final = (SYMBOL_PREFIX, "llvm.")
"""What symbols begin with that keep their linkage: tvm-ffi's, and what means something to LLVM."""


def assemble(module: HostModule, name: str, cpu: str, triple: str) -> ObjectCode:
    """The object of a module for a CPU; `name` is the name that its wrapper exports."""
    module, machine = _for_target(module, targets.target(cpu, triple))
    with _linked(module, triple, machine, support_data) as linked:
        data = bytes(machine.emit_object(linked))
    return ObjectCode(name=name, data=data, triple=triple, cpu=cpu)


def assembly_text(module: HostModule, cpu: str, triple: str) -> str:
    """What `assemble` puts into the object, as assembly."""
    module, machine = _for_target(module, targets.target(cpu, triple))
    with _linked(module, triple, machine, support_assembly) as linked:
        return str(machine.emit_assembly(linked))


def export(module: HostModule, target: HostTarget, description: str, form: ExportForm) -> bytes:
    """The bytes of a file: what `assemble` makes, with the functions that describe it.

    `description` is the LLVM text of these.
    """
    module, machine = _for_target(module, target)
    carried = support_assembly if form == ".s" else support_data
    with _linked(module, target.triple, machine, carried, description) as linked:
        match form:
            case ".o":
                return bytes(machine.emit_object(linked))
            case ".bc":
                return bytes(linked.as_bitcode())
            case ".ll":
                return str(linked).encode()
            case ".s":
                return str(machine.emit_assembly(linked)).encode()
            case _:
                assert_never(form)


def _for_target(module: HostModule, target: HostTarget) -> tuple[HostModule, Any]:
    """The module with the instructions that the CPU has, and LLVM's machine."""
    text = with_instructions(module.body.text, target)
    module = replace(module, body=replace(module.body, text=text))
    return module, targets.machine(target, min(module.opt_level, 2))


def verified(text: str) -> str:
    """The text of an LLVM module.  Raises RuntimeError where LLVM finds it wrong."""
    with llvm.parse_assembly(text, llvm.create_context()) as module:
        module.verify()
    return text


@contextmanager
def _linked(
    module: HostModule,
    triple: str,
    machine: Any,
    form: Callable[[Support, str], str],
    description: str = "",
) -> Iterator[Any]:
    """The module of all; `form` says as what the support code goes there.

    Modules are closed here: left to the garbage collector, one that an error kept alive could go
    after its context, which ends the process.
    """
    context = llvm.create_context()
    with ExitStack() as opened:

        def parsed(text: str) -> Any:
            return opened.enter_context(_parse(text, triple, machine, context))

        body = parsed(module.body.text)
        supports = _support_of(module.wrapper, body)
        if targets.has_assembler(triple):
            wrapper = parsed(module.wrapper + "".join(form(each, triple) for each in supports))
        else:
            wrapper = parsed(module.wrapper)
            for each in supports:
                wrapper.link_in(_internal(parsed(support_text(each)), each.entries))
        _optimise(body, machine, module.opt_level)
        wrapper.link_in(body)
        if description:
            wrapper.link_in(parsed(description))
        yield _internal(wrapper)


def _internal(module: Any, entries: Sequence[str] = ()) -> Any:
    """The module, verified, with these symbols and tvm-ffi's visible alone."""
    for symbol in (*module.functions, *module.global_variables):
        name = symbol.name
        if not (symbol.is_declaration or name.startswith(_VISIBLE) or name in entries):
            symbol.linkage = llvm.Linkage.internal
    module.verify()
    return module


def _support_of(wrapper: str, body: Any) -> list[Support]:
    """The support code that a module needs: what its wrapper and its body call."""
    called = {function.name for function in body.functions if function.is_declaration}
    called.update(name for name in VALUES.entries if f"@{name}(" in wrapper)
    known = (CUDA, ALLOCATION, VALUES, CALLING)
    return [CHECKS, *(each for each in known if not called.isdisjoint(each.entries))]


@contextmanager
def _parse(text: str, triple: str, machine: Any, context: Any) -> Iterator[Any]:
    with llvm.parse_assembly(text, context) as module:
        module.triple = triple
        module.data_layout = str(machine.target_data)
        module.verify()
        yield module


def _optimise(module: Any, machine: Any, level: int) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = options.slp_vectorization = level > 1
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)

"""From the two kept LLVM modules to an object: optimise, link, make internal, emit.

The body gets LLVM's pipeline, the wrapper none: its code is straight as it is generated.  The
support code that wrappers share was compiled before, once for a triple and the baseline CPU.
Nothing but `__tvm_ffi_*` stays visible, so that any number of objects link together.  Every
compilation has an LLVM context of its own.  The same input gives the same bytes.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import llvmlite.binding as llvm

from ferrule.compiler import targets
from ferrule.compiler.artefacts import HostModule
from ferrule.compiler.messages.assembly import (
    as_module_assembly,
    support_assembly,
    support_text,
)
from ferrule.compiler.precompiled import as_data
from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.artefacts import ObjectCode

_SUPPORT: Final = ("ferrule_check", "ferrule_raise")
"""What wrappers call of the support code."""


def assemble(module: HostModule, name: str, cpu: str, triple: str) -> ObjectCode:
    """The object of a module for a CPU; `name` is the name that its wrapper exports."""
    machine = _machine(module, cpu, triple)
    linked = _link(module, triple, machine, _support(triple))
    return ObjectCode(name=name, data=bytes(machine.emit_object(linked)), triple=triple, cpu=cpu)


def assembly_text(module: HostModule, cpu: str, triple: str) -> str:
    """What `assemble` puts into the object, as assembly."""
    machine = _machine(module, cpu, triple)
    support = as_module_assembly(support_assembly(triple))
    return str(machine.emit_assembly(_link(module, triple, machine, support)))


def _machine(module: HostModule, cpu: str, triple: str) -> Any:
    return targets.machine(targets.target(cpu, triple), min(module.opt_level, 2))


@cache
def _support(triple: str) -> str:
    """The support code as module-level assembly.  Pure: it depends on the triple alone."""
    machine = targets.machine(targets.baseline(triple))
    context = llvm.create_context()
    code = machine.emit_object(_parse(support_text(), triple, machine, context))
    text = as_data(bytes(code), _SUPPORT)
    return as_module_assembly(support_assembly(triple) if text is None else text)


def verified(text: str) -> str:
    """The text of an LLVM module.  Raises RuntimeError where LLVM finds it wrong."""
    llvm.parse_assembly(text, llvm.create_context()).verify()
    return text


def _link(module: HostModule, triple: str, machine: Any, support: str) -> Any:
    context = llvm.create_context()
    wrapper = _parse(module.wrapper + support, triple, machine, context)
    body = _parse(module.body.text, triple, machine, context)
    _optimise(body, machine, module.opt_level)
    wrapper.link_in(body)
    for symbol in (*wrapper.functions, *wrapper.global_variables):
        if not symbol.is_declaration and not symbol.name.startswith(SYMBOL_PREFIX):
            symbol.linkage = llvm.Linkage.internal
    wrapper.verify()
    return wrapper


def _parse(text: str, triple: str, machine: Any, context: Any) -> Any:
    module = llvm.parse_assembly(text, context)
    module.triple = triple
    module.data_layout = str(machine.target_data)
    module.verify()
    return module


def _optimise(module: Any, machine: Any, level: int) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = options.slp_vectorization = level > 1
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)

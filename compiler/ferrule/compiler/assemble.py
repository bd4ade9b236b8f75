"""From the two kept LLVM modules to an object: optimise, link, make internal, emit.

The body gets LLVM's full pipeline, the wrapper none: its code is straight as it is generated.
Nothing but `__tvm_ffi_*` stays visible, so that any number of objects link together.  Every
compilation has an LLVM context of its own.  The same input gives the same bytes.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm

from ferrule.compiler import targets
from ferrule.compiler.artefacts import HostModule
from ferrule.compiler.messages.assembly import as_module_assembly, support_assembly
from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.artefacts import ObjectCode


def assemble(module: HostModule, name: str, cpu: str, triple: str) -> ObjectCode:
    """The object of a module for a CPU; `name` is the name that its wrapper exports."""
    machine = targets.machine(targets.target(cpu, triple))
    linked = _link(module, triple, machine)
    return ObjectCode(name=name, data=bytes(machine.emit_object(linked)), triple=triple, cpu=cpu)


def assembly_text(module: HostModule, cpu: str, triple: str) -> str:
    """What `assemble` puts into the object, as assembly."""
    machine = targets.machine(targets.target(cpu, triple))
    return str(machine.emit_assembly(_link(module, triple, machine)))


def verified(text: str) -> str:
    """The text of an LLVM module.  Raises RuntimeError where LLVM finds it wrong."""
    llvm.parse_assembly(text, llvm.create_context()).verify()
    return text


def _link(module: HostModule, triple: str, machine: Any) -> Any:
    context = llvm.create_context()
    support = as_module_assembly(support_assembly(triple))
    wrapper = _parse(module.wrapper + support, triple, machine, context)
    body = _parse(module.body.text, triple, machine, context)
    _optimise(body, machine)
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


def _optimise(module: Any, machine: Any) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)

"""Machine code of this process's own, from LLVM text: for what is never exported."""

from __future__ import annotations

from llvmlite import binding

from ferrule.runtime.artefacts import ObjectCode
from ferrule.runtime.engine import host_triple, initialize_llvm


def compile_native(name: str, text: str) -> ObjectCode:
    """The object of a module that defines `__tvm_ffi_<name>`, for this process's processor."""
    initialize_llvm()
    module = binding.parse_assembly(text)
    module.verify()
    triple = host_triple()
    machine = binding.Target.from_triple(triple).create_target_machine(
        opt=2, reloc="pic", codemodel="default"
    )
    options = binding.create_pipeline_tuning_options(speed_level=2)
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return ObjectCode(name, bytes(machine.emit_object(module)), triple, "")

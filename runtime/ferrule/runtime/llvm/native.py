"""Machine code for this process only, compiled from LLVM text; it is never exported."""

from __future__ import annotations

from llvmlite import binding

from ferrule.runtime.artefacts import ObjectCode
from ferrule.runtime.linking.engine import host_triple, initialize_llvm
from ferrule.runtime.llvm.passes import run_pipeline


def compile_native(name: str, text: str, *, optimize: bool = True) -> ObjectCode:
    """The object of a module that defines `__tvm_ffi_<name>`, for this process's processor.

    Without `optimize` no LLVM passes run, and it takes a third of the time.
    """
    initialize_llvm()
    module = binding.parse_assembly(text)
    module.verify()
    triple = host_triple()
    machine = binding.Target.from_triple(triple).create_target_machine(
        opt=2, reloc="pic", codemodel="default"
    )
    if optimize:
        options = binding.create_pipeline_tuning_options(speed_level=2)
        # Its loops have only a few iterations (dims or arguments), so vector code does not pay.
        options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
        run_pipeline(module, machine, options)
    return ObjectCode(name, bytes(machine.emit_object(module)), triple, "")

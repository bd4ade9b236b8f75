"""Compiles programs of the kernel IR as the assembler does, and calls them through ctypes.

`compiled(program)` optimises, emits and loads the program's body; what it gives is called with
arrays and numbers in the order of the parameters, then the symbols in their order.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from llvmlite import binding as llvm

from ferrule.compiler.artefacts import MAX_FAULT_VALUES, Body
from ferrule.language.codegen import lower_cpu
from ferrule.language.codegen.mathlib import expand_maths
from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.language.ir.verifier import verify

BASELINE = "x86-64"


def pytest_configure() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def optimise(text: str, cpu: str) -> tuple[str, bytes]:
    """The optimised module as text, and the object."""
    host = cpu == llvm.get_host_cpu_name()
    features = llvm.get_host_cpu_features().flatten() if host else ""
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="pic", codemodel="small"
    )
    module = llvm.parse_assembly(text, context=llvm.create_context())
    module.triple, module.data_layout = target.triple, str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = tuning.slp_vectorization = True
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(module, passes)
    return str(module), machine.emit_object(module)


_C_TYPES: dict[str, Any] = {
    "bool": ctypes.c_uint8,
    "int8": ctypes.c_int8,
    "int16": ctypes.c_int16,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "uint8": ctypes.c_uint8,
    "uint16": ctypes.c_uint16,
    "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64,
    "float16": ctypes.c_uint16,
    "bfloat16": ctypes.c_uint16,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}


@dataclass
class Compiled:
    """A program that can be called.  `status` and `values` are those of the last call."""

    body: Body
    optimised: str
    data: bytes
    entry: Callable[..., int]
    keep: Any
    status: int = 0
    values: tuple[int, ...] = ()

    def __call__(self, *arguments: Any) -> int:
        values = (ctypes.c_int64 * MAX_FAULT_VALUES)()
        raw = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments]
        self.status = self.entry(values, *raw)
        self.values = tuple(values)
        return self.status


def compile_body(body: Body, types: list[Any], cpu: str | None = None) -> Compiled:
    """Optimises and loads a body whose parameters have these C types."""
    text, data = optimise(body.text, cpu or llvm.get_host_cpu_name())
    jit = llvm.create_lljit_compiler()
    library = llvm.JITLibraryBuilder().add_object_img(data).add_current_process()
    tracker = library.export_symbol(body.symbol).link(jit, "body")
    signature = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, *types)
    return Compiled(body, text, data, signature(tracker[body.symbol]), (jit, tracker))


def compile_program(program: ops.Program, cpu: str | None = None) -> Compiled:
    """Verifies, expands, lowers, optimises and loads a program."""
    verify(program)
    expanded = expand_maths(program)
    verify(expanded)
    types = [
        ctypes.c_void_p if isinstance(p.type, TensorType) else _C_TYPES[p.type.name]
        for p in program.host.params
    ]
    types += [ctypes.c_int32 if s.width == 32 else ctypes.c_int64 for s in program.symbols]
    return compile_body(lower_cpu(expanded), types, cpu)


@pytest.fixture
def compiled() -> Callable[..., Compiled]:
    """See the module."""
    return compile_program

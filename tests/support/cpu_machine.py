"""Programs of the kernel IR, compiled as the assembler does and called through ctypes.

`compile_program(program)` verifies, lowers, optimises, emits and loads; what it gives is called
with arrays and numbers in the order of the parameters, then the symbols in their order.
`elementwise` and `threads` make the small programs that most tests need.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from llvmlite import binding as llvm

from ferrule.compiler.artefacts import MAX_FAULT_VALUES, Body
from ferrule.compiler.assemble import with_instructions
from ferrule.compiler.support.library import CHECKS, THREADS, support_text
from ferrule.compiler.targets import HostTarget
from ferrule.language.codegen import lower_cpu
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.rules.verifier import verify
from ferrule.language.ir.types import TensorType
from ferrule.language.mathlib import expand_maths
from ferrule.runtime import Engine
from ferrule.runtime.artefacts import ObjectCode
from ferrule.runtime.linking.lljit import linking_machine
from ferrule.specs import DType, Int32, Int64, Sym, sym_int

BASELINE = "x86-64"
EMPTY = ops.Region()

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()

C_TYPES: dict[str, Any] = {
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
    "tfloat32": ctypes.c_float,
    "float64": ctypes.c_double,
}


def optimise(text: str, cpu: str) -> tuple[str, bytes]:
    """The optimised module as text, and the object."""
    host = cpu == llvm.get_host_cpu_name()
    features = llvm.get_host_cpu_features().flatten() if host else ""
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine(
        cpu=cpu, features=features, opt=2, reloc="pic", codemodel="default"
    )
    text = with_instructions(text, HostTarget(target.triple, cpu, features))
    module = llvm.parse_assembly(text, context=llvm.create_context())
    module.triple, module.data_layout = target.triple, str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = tuning.slp_vectorization = True
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(module, passes)
    return str(module), machine.emit_object(module)


@dataclass
class Compiled:
    """A program that can be called.  `values` are the fault's of the last call."""

    body: Body
    optimised: str
    data: bytes
    entry: Callable[..., int]
    keep: Any
    values: tuple[int, ...] = ()

    def __call__(self, *arguments: Any) -> int:
        values = (ctypes.c_int64 * MAX_FAULT_VALUES)()
        assert all(a.flags.c_contiguous for a in arguments if isinstance(a, np.ndarray))
        raw = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments]
        status = self.entry(values, *raw)
        self.values = tuple(values)
        return status


def compile_program(
    program: ops.Program,
    cpu: str | None = None,
    lower: Callable[[ops.Program], Body] = lower_cpu,
) -> Compiled:
    """Verifies, expands, lowers, optimises and loads a program."""
    verify(program)
    expanded = expand_maths(program)
    verify(expanded)
    body = lower(expanded)
    text, data = optimise(_with_parts(body), cpu or llvm.get_host_cpu_name())
    # LLVM's older linker ends the process where two sections are too far apart, as in long runs.
    jit = llvm.create_lljit_compiler(linking_machine(), use_jit_link=True)
    library = llvm.JITLibraryBuilder().add_object_img(data).add_current_process()
    for name, address in _support(body.text):
        library.import_symbol(name, address)
    tracker = library.export_symbol(body.symbol).link(jit, "body")
    entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, *_argument_types(program))
    return Compiled(body, text, data, entry(tracker[body.symbol]), (jit, tracker))


def _with_parts(body: Body) -> str:
    """The text of a body, with the modules that have some of its functions."""
    if not body.parts:
        return body.text
    context = llvm.create_context()
    with llvm.parse_assembly(body.text, context) as module:
        for part in body.parts:
            module.link_in(llvm.parse_assembly(part.text, context))
        return str(module)


def _support(text: str) -> list[tuple[str, int]]:
    """What the body calls of the code that every object with kernels has."""
    called = [name for name in THREADS.entries if f'@"{name}"' in text]
    return [(name, _threads().address(name)) for name in called]


@cache
def _threads() -> Engine:
    with llvm.parse_assembly(support_text(THREADS)) as module:
        module.link_in(llvm.parse_assembly(support_text(CHECKS)))
        _, data = optimise(str(module), BASELINE)
    return Engine.load(ObjectCode("threads", data, llvm.get_process_triple(), BASELINE))


def _argument_types(program: ops.Program) -> list[Any]:
    params = [
        ctypes.c_void_p if isinstance(p.type, TensorType) else C_TYPES[p.type.name]
        for p in program.host.params
    ]
    return params + [ctypes.c_int32 if s.width == 32 else ctypes.c_int64 for s in program.symbols]


# ---- programs ----


def vector(dtype: DType, size: Sym | int) -> TensorType:
    """A compact tensor of one dim."""
    return TensorType(dtype, (size,), (1,), dtype.itemsize)


def host(name: str, params: Sequence[ops.Value], body: ops.Region, *symbols: Sym) -> ops.Program:
    """A program that is a host function alone."""
    function = ops.Function(name, "host", tuple(params), body)
    return ops.Program(name, (), function, {symbol: str(symbol) for symbol in symbols})


def elementwise(
    make: Callable[..., ops.Value], sources: Sequence[DType], target: DType
) -> ops.Program:
    """`out[i] = make(builder, a[i], b[i], …)` for all i below the symbol n."""
    return elementwise_each([(make, target)], sources)


def elementwise_each(
    made: Sequence[tuple[Callable[..., ops.Value], DType]], sources: Sequence[DType]
) -> ops.Program:
    """The same for several that are made, each with an `out` and a loop of its own: it is compiled
    in a third of the time that programs of one each take."""
    n, b = sym_int(symbol="n"), Builder()
    inputs = [ops.Value(vector(dtype, n), f"in{i}") for i, dtype in enumerate(sources)]
    outs = [ops.Value(vector(target, n), "out") for _, target in made]
    with b.region() as body:
        extent = b.size(Int64, n)
        for (make, _), out in zip(made, outs, strict=True):
            index = ops.Value(Int64, "i")
            with b.region() as inner:
                loaded = [b.load(tensor, (index,)) for tensor in inputs]
                b.store(out, (index,), make(b, *loaded))
            b.append(ops.Parallel((index,), (extent,), inner.freeze()))
    return host("elementwise", [*inputs, *outs], body.freeze(), n)


def threads(
    kernel: ops.Function, sizes: Sequence[ops.Value], symbols: Sequence[Sym] = ()
) -> ops.Program:
    """Launches a kernel once, with its own parameters and grid and block from parameters.

    `sizes`: Int64 values for grid x, y, z and block x, y, z, which the host function takes.
    """
    params = tuple(ops.Value(p.type, p.hint) for p in kernel.params)
    launch = ops.Launch(kernel.name, tuple(sizes[:3]), tuple(sizes[3:]), params)
    body = ops.Region((launch,))
    function = ops.Function("launch", "host", (*params, *sizes), body)
    return ops.Program("launch", (kernel,), function, {s: str(s) for s in symbols})


def add_one(dtype: DType, block: int = 128) -> ops.Program:
    """The kernel `if i < n: b[i] = a[i] + 1` with blocks of a constant size."""
    n, b = sym_int(symbol="n"), Builder()
    a, out = (ops.Value(vector(dtype, n), name) for name in ("a", "b"))
    with b.region() as body:
        base = b.binary("mul", b.special("block_idx", 0), b.constant(Int32, block))
        i = b.binary("add", base, b.special("thread_idx", 0))
        with b.region() as guarded:
            one = b.constant(dtype, 1)
            b.store(out, (i,), b.binary("add", b.load(a, (i,)), one))
        b.if_(b.compare("lt", i, b.size(Int32, n)), guarded.freeze(), EMPTY, ())
    kernel = ops.Function("device_add_one", "kernel", (a, out), body.freeze())
    params = tuple(ops.Value(p.type, p.hint) for p in kernel.params)
    with b.region() as launch:
        blocks = b.size(Int64, (n + (block - 1)) // block)
        one, size = b.constant(Int64, 1), b.constant(Int64, block)
        b.append(ops.Launch(kernel.name, (blocks, one, one), (size, one, one), params))
    function = ops.Function("add_one", "host", params, launch.freeze())
    return ops.Program("add_one", (kernel,), function, {n: "n"})

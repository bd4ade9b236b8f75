"""The second lowering of a program: upstream's passes lower its MLIR text to LLVM IR, a `Body`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import Body, Fault, Part
from ferrule.compiler.cuda import archs
from ferrule.compiler.cuda.assembly import with_cubin
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.cuda.kernelfacts import KernelImage
from ferrule.compiler.cuda.launcher.tensor_maps import ALIGN, BYTES
from ferrule.compiler.cuda.options import DeviceOptions
from ferrule.compiler.host.owned import SYMBOL
from ferrule.compiler.mlir.child import in_child
from ferrule.compiler.mlir.session import Session
from ferrule.language.checks.places import Places
from ferrule.language.codegen.cpu.target import lower_cpu
from ferrule.language.codegen.cuda.kernels import entry_names, parameter_bytes, ptx
from ferrule.language.codegen.cuda.target import lower_cuda
from ferrule.language.codegen.cuda.threads import require_cooperation
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.codegen.host.linking import device_code_of, links_of, parts_of
from ferrule.language.codegen.passes.decided import decided
from ferrule.language.codegen.passes.synchronous import synchronous
from ferrule.language.ir import ops
from ferrule.language.ir.passes.outline import outline
from ferrule.language.mathlib import expand_maths
from ferrule.language.mlir import coroutines
from ferrule.language.mlir.device.lines import PASS
from ferrule.language.mlir.device.module import device_text
from ferrule.language.mlir.host import is_plain
from ferrule.language.mlir.module import KernelText, KernelTexts, host_text, kernel_texts
from ferrule.runtime.llvm.layouts import I32
from ferrule.specs.deferred import dataclass

TO_LLVM: Final = (
    "convert-scf-to-cf,convert-math-to-llvm,convert-func-to-llvm,expand-strided-metadata,"
    "finalize-memref-to-llvm,convert-arith-to-llvm,convert-index-to-llvm,convert-cf-to-llvm,"
    "convert-ub-to-llvm,reconcile-unrealized-casts"
)
"""The passes that lower the dialects of the text to `llvm`."""
HOST: Final = f"builtin.module({TO_LLVM})"
_INTRINSIC: Final = re.compile(
    r"^(.*\bcall\b.*@llvm\.nvvm\.(?!read\.)[\w.]+\(.*\))(?=(?: #\d+)?(?:, !dbg !\d+)?$)", re.M
)
_KERNEL: Final = re.compile(r"^define ptx_kernel .*$", re.M)
_C_INTERFACE: Final = re.compile(r"^define (?=[^@\n]*@_mlir_ciface_)", re.M)
_DEVICE: Final = "convert-scf-to-cf,{first}expand-strided-metadata,convert-gpu-to-nvvm"


def device_pipeline(*, libdevice: bool = False, lines: bool = False) -> str:
    """The passes for kernels of a GPU; `lines`: their locations become LLVM's debug metadata.

    `convert-gpu-to-nvvm` turns the ops of `math` into calls of libdevice; unless `libdevice` is
    set, `convert-math-to-llvm` runs before it and leaves none of them.
    """
    first = "" if libdevice else "convert-math-to-llvm,"
    last = f",{PASS}" if lines else ""
    inside = _DEVICE.format(first=first)
    return f"builtin.module(gpu.module({inside}),reconcile-unrealized-casts{last})"


def lower_cpu_by_mlir(program: ops.Program) -> Body:
    """The body of a verified program for the CPU.

    Where the host function makes requests to TVM-FFI (new tensors, objects, other functions), only
    its kernels and whole-tensor expressions go through MLIR, and `lower_cpu` makes the function
    that calls them.  The same holds where threads of a kernel wait at different places, so that
    each is a coroutine.

    Raises CodegenError for a construct that MLIR cannot express, ImportError if no package with
    MLIR is installed.
    """
    if not is_plain(program):
        return _kernels_alone(program)
    program = decided(synchronous(expand_maths(program)))
    if any(map(coroutines.waits_apart, program.kernels)):
        return _kernels_alone(program)
    made = host_text(program)
    (text,) = in_child(_lowered, (made.text,))
    return Body(
        text,
        SYMBOL,
        tuple(program.given),
        made.faults,
        program.relations,
        device_code=device_code_of(program, None),
        parts=parts_of(program),
        links=links_of(program),
    )


def lower_cuda_by_mlir(
    program: ops.Program, options: DeviceOptions, places: Places | None = None
) -> Body:
    """The body of a program whose kernels go through MLIR, for GPUs of these architectures.

    With `places` the kernels have the lines of the source.  The host function, which launches them,
    is that of `lower_cuda`.  Raises CodegenError for a construct that MLIR or the target cannot
    express, ImportError if no package with MLIR is installed.
    """
    return lower_cuda(program, options, places, kernels=_device_code)


def _device_code(program: ops.Program, options: DeviceOptions, places: Places | None) -> DeviceCode:
    """The kernels as PTX for each architecture."""
    names = entry_names(program)
    jobs = tuple(_job(program, arch, names, options, places) for arch in options.archs)
    pipeline = device_pipeline(libdevice=options.libdevice, lines=places is not None)
    made = in_child(_assembled, jobs, pipeline, options.opt_level)
    images = [KernelImage(job.arch, (text,)) for job, text in zip(jobs, made, strict=True)]
    if options.cubin:
        images = [with_cubin(image, options.assembling) for image in images]
    return DeviceCode(tuple(images), tuple(names.values()), options.assembling)


@dataclass(frozen=True, slots=True)
class _DeviceJob:
    """The kernels for one architecture; `most` is the greatest size of their parameters in
    bytes."""

    arch: str
    text: str
    most: int


def _job(
    program: ops.Program,
    arch: str,
    names: Mapping[str, str],
    options: DeviceOptions,
    places: Places | None,
) -> _DeviceJob:
    for kernel in program.kernels:
        require_cooperation(kernel, arch)
    text = device_text(program, names, archs.capability(arch), options, places)
    return _DeviceJob(arch, text, parameter_bytes(program, archs.parameter_limit(arch)))


def _assembled(
    session: Session, jobs: tuple[_DeviceJob, ...], pipeline: str, opt_level: int
) -> tuple[str, ...]:
    """The PTX of each job.  It is made in the child process, because LLVM ends its process where
    PTX has no instruction."""
    found = []
    for job in jobs:
        module = session.parse(job.text)
        session.run(module, pipeline)
        (text,) = session.translate_gpu(module).values()
        found.append(ptx(_completed(text), job.arch, job.most, opt_level))
    return tuple(found)


def _completed(text: str) -> str:
    """Kernels as LLVM IR, with the facts that MLIR cannot express.

    The lanes of a warp run all intrinsics together, and LLVM does not know this about some of them,
    so they become `convergent`.  A parameter that is a tensor map is passed by value and is
    constant: `gpu.func` loses that.  `convert-gpu-to-nvvm` makes a C interface for each function,
    which is not called and becomes internal.
    """
    by_value = f'ptr byval([{BYTES} x i8]) align {ALIGN} "nvvm.grid_constant" %'
    text = _C_INTERFACE.sub("define internal ", text)
    text = _KERNEL.sub(lambda found: found[0].replace(f"ptr align {ALIGN} %", by_value), text)
    return _INTRINSIC.sub(r"\1 convergent", text)


def _lowered(session: Session, texts: tuple[str, ...]) -> tuple[str, ...]:
    """The LLVM IR of these modules."""
    found = []
    for text in texts:
        module = session.parse(text)
        session.run(module, HOST)
        found.append(session.translate(module))
    return tuple(found)


def _kernels_alone(program: ops.Program) -> Body:
    """A body in which only the kernels, with the whole-tensor expressions, go through MLIR."""
    program = decided(synchronous(expand_maths(outline(program))))
    made = kernel_texts(program)
    texts = in_child(_lowered, tuple(each.text for each in made.kernels))
    body = lower_cpu(program, _Elsewhere(made))
    parts = (
        Part(each.symbol, each.symbol, coroutines.completed(text) if each.is_thread else text)
        for each, text in zip(made.kernels, texts, strict=True)
    )
    return replace(body, parts=(*body.parts, *parts))


@dataclass(frozen=True, slots=True)
class _Elsewhere:
    """Kernels in modules of their own: see `codegen.cpu.target.KernelsElsewhere`."""

    made: KernelTexts

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The faults whose numbers the kernels' functions may return."""
        return self.made.faults

    def thread(self, kernel: ops.Function) -> str | None:
        """The symbol of the kernel's thread, if it is a coroutine."""
        found = self.of(kernel)
        return found.symbol if found.is_thread else None

    def call(
        self, lowering: FunctionLowering, kernel: ops.Function, given: list[ir.Value]
    ) -> ir.Value:
        """The call of a kernel's function with the values of its parameters."""
        e, symbol = lowering.emitter, self.of(kernel).symbol
        kind = ir.FunctionType(I32, [value.type for value in given])
        return e.call(e.symbol(symbol, kind), given, "status")

    def of(self, kernel: ops.Function) -> KernelText:
        """The module of a kernel."""
        return next(each for each in self.made.kernels if each.kernel == kernel.name)

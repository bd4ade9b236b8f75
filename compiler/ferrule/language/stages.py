"""The stages of one compilation: from a job to a program, a body for its target, and an origin.

    Job ──lowering──► Program ──collapse, code generator──► Body ──wrapper──► CompiledOrigin

Modules of a stage are imported when it runs: a compilation for the CPU imports nothing for a GPU.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from ferrule.compiler.artefacts import Stage, recorded, stage
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.options import Options, for_target, parse_options
from ferrule.language.source import definition_of
from ferrule.runtime.garbage import with_fewer_collections
from ferrule.specs import Signature, params
from ferrule.specs.copies import changed, mapped, substituted
from ferrule.specs.strides import exactly

if TYPE_CHECKING:
    from ferrule.compiler.artefacts import Body, Kept, Location
    from ferrule.compiler.origin import CompiledOrigin
    from ferrule.language.codegen.functions.lowering import Lines
    from ferrule.language.compilation import Job
    from ferrule.language.ir.ops import Function as IRFunction
    from ferrule.language.ir.ops import Op, Program, Value
    from ferrule.language.reports.collecting import Subject
    from ferrule.runtime import Function
    from ferrule.runtime.artefacts import Remarks
    from ferrule.runtime.llvm.emitter import Emitter


def build_program(
    program: Program,
    signature: Signature,
    options: str | Options | None,
    doc: str | None,
) -> Function:
    """The function of a verified program for a signature.  Raises CompileError."""
    from ferrule.compiler.binding import load

    placed, chosen = for_target(signature.params, parse_options(options))
    if chosen.enable_checks:
        raise CompileError(
            Diagnostic(
                f"{signature.name}: --enable-checks is for functions of Python's text",
                hint="leave it out: a program that was built names no lines",
            )
        )
    known = _with_facts(signature.altered(params=placed), program)
    return with_fewer_collections(lambda: load(_origin(program, known, chosen, None, None, doc)))


def _with_facts(signature: Signature, program: Program) -> Signature:
    """Marks the tensors that the program never writes as read-only, so that calls may pass
    read-only arrays, and those that it may return as owning.

    A tensor that is written, or returned to somebody who may write it, is not read-only, even if
    its example was.
    """
    from ferrule.language.ir.effects import written_params
    from ferrule.language.ir.walk import sizes_read

    written, values = written_params(program).union(program.held), iter(program.host.params)
    marked = [_writable(param, values, written)[1] for param in signature.params]
    arguments = {id(param): position for position, param in enumerate(signature.params)}
    of = [arguments[id(param)] for param in signature.arguments]
    for _, (first, *inner) in program.objects:
        marked[of[first]] = _owning(marked[of[first]], inner)
    own = {symbol: symbol for symbol in signature.symbols}  # in the program they are tighter
    result = None if program.result is None else substituted(program.result, own)
    params = exactly(tuple(marked), signature, sizes_read(program))
    return signature.altered(params=params, result=result)


def _owning(param: params.Param, place: Sequence[int]) -> params.Param:
    """A parameter whose tensor, or whose item at this place, has an object."""
    if isinstance(param, params.Tuple):
        items = list(param.items)
        items[place[0]] = _owning(items[place[0]], place[1:])
        return changed(param, items=tuple(items))
    return changed(param, owning=True)


def _writable(
    param: params.Param, values: Iterator[Value], written: set[Value]
) -> tuple[list[Value], params.Param]:
    """The values of a parameter, and its spec, in which read-only marks are on the tensors that
    are not written, and on no others."""
    from ferrule.compiler.wrapper.leaves import leaves_of

    if isinstance(param, params.Tuple):
        found = [_writable(item, values, written) for item in param.items]
        every = [value for taken, _ in found for value in taken]
        return every, changed(param, items=tuple(item for _, item in found))
    taken = list(islice(values, len(leaves_of(param))))
    if any(value in written for value in taken):
        param = mapped(param, _not_read_only)
    elif isinstance(param, (params.Tensor, params.Optional)):
        param = mapped(param, _read_only)
    return taken, param


def _not_read_only(param: params.Param) -> params.Param:
    return changed(param, read_only=False) if isinstance(param, params.Tensor) else param


def _read_only(param: params.Param) -> params.Param:
    return changed(param, read_only=True) if isinstance(param, params.Tensor) else param


def _lowered(program: Program, options: Options, origins: dict[Op, object] | None) -> Body:
    """The body for the target."""
    if options.gpu_arch is not None:
        from ferrule.compiler.cuda.options import device_options
        from ferrule.language.checks.places import Places
        from ferrule.language.codegen.cuda.target import lower_cuda

        places = None if origins is None else Places.of(origins)
        if options.pipeline == "mlir":
            from ferrule.language.mlir.pipeline import lower_cuda_by_mlir

            return lower_cuda_by_mlir(program, device_options(options), places)
        return lower_cuda(program, device_options(options), places)
    if options.pipeline == "mlir":
        from ferrule.language.mlir.pipeline import lower_cpu_by_mlir

        if options.generate_line_info:
            raise CompileError(
                Diagnostic(
                    "--generate-line-info with --pipeline mlir is for GPUs",
                    hint="leave one of them out: MLIR's code for the CPU has no lines",
                )
            )
        return lower_cpu_by_mlir(program)
    from ferrule.language.codegen import lower_cpu

    lines = None if origins is None else _line_tables(origins, options)
    with stage("expand", "functions of the maths library become operations"):
        program = _for_cpu(program)
    with stage("write", "the text of kernels and launches"):
        return lower_cpu(program, lines=lines)


def _line_tables(origins: dict[Op, object], options: Options) -> Callable[[Emitter], Lines] | None:
    """What puts the lines of the source into code for the CPU, if the options ask for it."""
    if not options.generate_line_info:
        return None
    from ferrule.language.checks.places import Places
    from ferrule.language.codegen.functions.lines import LineInfo

    places, paths = Places.of(origins), not options.strip_paths
    return lambda emitter: LineInfo(emitter, places, paths=paths, emission="LineTablesOnly")


def _for_cpu(program: Program) -> Program:
    """The program with its functions expanded, some of them apart from sums, and recurrences with a
    short way round."""
    from ferrule.language.codegen.passes.separated import separated
    from ferrule.language.mathlib import expand_maths

    if any(map(_has_extremes, (program.host, *program.kernels))):
        from ferrule.language.codegen.passes.recurrences import shortened

        program = shortened(program)
    # `separated` looks for functions of the maths library, and finds none once they are expanded.
    return expand_maths(separated(program), rests=True)


def _has_extremes(function: IRFunction) -> bool:
    """Whether a function has a loop and a smallest or largest number."""
    from ferrule.language.ir import ops

    facts = function.facts
    return facts.has(ops.For) and any(op.op in ("min", "max") for op in facts.each(ops.Binary))


def compiled(job: Job) -> CompiledOrigin:
    """Lowers and wraps one function."""
    with recorded() as stages, stage("kernel IR", "Python's functions, lowered and verified"):
        program, signature, origins = _program(job)
    place = None if job.options.strip_paths else definition_of(job.function)
    doc = inspect.getdoc(job.function)
    return _origin(program, signature, job.options, origins, place, doc, stages)


def _origin(
    program: Program,
    signature: Signature,
    options: Options,
    origins: dict[Op, object] | None,
    place: Location | None,
    doc: str | None,
    stages: Sequence[Stage] = (),
) -> CompiledOrigin:
    """A program, compiled and wrapped; `stages` made it."""
    from ferrule.compiler.artefacts import Pages
    from ferrule.compiler.exports import export_target
    from ferrule.compiler.origin import CompiledOrigin, host_module
    from ferrule.language.codegen.host.linking import sources_of, traits_of

    placed = options.enable_checks or options.generate_line_info
    shown = origins if placed else None
    body = _body(program, options, signature.name, shown).placed(place)
    on_gpu = options.gpu_arch is not None
    told = None
    if origins is not None and not on_gpu and options.pipeline != "mlir":
        told = partial(_remarks, program, options, origins)
    pages: Pages | None = None
    if origins is not None:
        subject = partial(_subject, program, signature, options, origins, told, doc, stages)
        pages = Pages((subject,), _shown)
    return CompiledOrigin(
        host_module(signature, body, opt_level=options.opt_level),
        partial(_printed, program),
        doc=doc,
        target=export_target(options.host_target, options.host_cpu),
        traits=traits_of(program, signature, on_gpu=on_gpu, release_gil=options.release_gil),
        sources=sources_of(program),
        mlir=partial(_mlir, program, origins or {}),
        remarks=told,
        pages=pages,
    )


def _printed(program: Program) -> str:
    """The text of a program, which is made where somebody asks for it."""
    from ferrule.language.ir.printer import print_program

    return print_program(program)


def _program(job: Job) -> tuple[Program, Signature, dict[Op, object]]:
    """The kernel IR of the function, its signature, and the origins of its ops."""
    from ferrule.language.ir.rules.verifier import verify
    from ferrule.language.lowering.program import lower_program

    options, examples = job.options, job.examples
    origins: dict[Op, object] = {}
    with stage("lower", "Python's syntax trees become kernel IR, which passes make simpler"):
        program = lower_program(
            job.function,
            _tightened(job.signature),
            examples.constants,
            examples.classes,
            examples.variadic,
            options.target or "cpu",
            origins,
            job.witness,
            _fast_math(options),
            _fmad(options),
        )
    with stage("verify", "the rules of kernel IR"):
        verify(program)
    signature = _with_facts(job.signature, program)
    if options.enable_checks:
        from ferrule.language.checks.instrument import instrument
        from ferrule.language.checks.places import Places

        program = instrument(program, Places.of(origins, stripped=options.strip_paths))
        verify(program)
    return program, signature, origins


def _tightened(signature: Signature) -> Signature:
    """The signature for the lowering, whose symbols say what the requirements imply."""
    if not signature.requires:
        return signature
    from ferrule.specs.implied import tightened

    return tightened(signature)


def _fast_math(options: Options) -> tuple[str, ...]:
    """The flags of all functions; for a GPU the meaning of the option is CUDA's, see `relaxed`."""
    from ferrule.language.fastmath import RELAXED

    return RELAXED if options.fast_math and options.gpu_arch is None else ()


def _fmad(options: Options) -> bool | None:
    """Whether products and sums are contracted where a function does not say: by default for a
    GPU, as CUDA does it."""
    by_default = None if options.gpu_arch is None else True
    return by_default if options.fmad is None else options.fmad


def _body(program: Program, options: Options, name: str, origins: dict[Op, object] | None) -> Body:
    """The body of a program for the target; writes GPU code to files if the options request it."""
    from ferrule.language.codegen import CodegenError
    from ferrule.language.ir.passes.collapse import collapse

    try:
        body = _lowered(collapse(program), options, origins)
    except CodegenError as error:
        raise CompileError(f"{name}: {error}") from None
    if options.gpu_arch is None and program.contracted:
        body = replace(body, fused=True)
    if body.device_code is not None:
        from ferrule.compiler.cuda.dumps import keep

        keep(name, body.device_code, options)
    return body


def _mlir(program: Program, origins: dict[Op, object]) -> str:
    """The kernel IR as MLIR, with the lines of the source."""
    from ferrule.language.checks.places import Places
    from ferrule.language.codegen import CodegenError
    from ferrule.language.mlir.module import program_text

    try:
        return program_text(program, Places.of(origins))
    except CodegenError as error:
        raise CompileError(f"{program.name}: {error}") from None


def _shown(subjects: Sequence[Subject], kept: Kept) -> str:
    """The page about these."""
    from ferrule.language.reports.collecting import page_of

    return page_of(subjects, kept)


def _subject(
    program: Program,
    signature: Signature,
    options: Options,
    origins: dict[Op, object],
    told: Callable[[], Remarks] | None,
    doc: str | None,
    stages: Sequence[Stage],
) -> Subject:
    """What a page about a compilation is made of."""
    from ferrule.language.reports.collecting import Subject

    def lower() -> Body:
        if options.pipeline == "mlir" and options.gpu_arch is None:
            return _body(program, options, signature.name, None)  # it has no lines
        same = replace(options, dump_dir=None, keep_ptx=False, keep_cubin=False)
        shown = replace(same, generate_line_info=True, strip_paths=False)
        return _body(program, shown, signature.name, origins)

    return Subject(program, signature, options, origins, stages, lower, told, doc)


def _remarks(program: Program, options: Options, origins: dict[Op, object]) -> Remarks:
    """What became of the loops of a program for the CPU."""
    from ferrule.compiler.targets import host
    from ferrule.language.checks.places import Places
    from ferrule.language.codegen import lower_cpu
    from ferrule.language.codegen.functions.report import Report
    from ferrule.language.ir.passes.collapse import collapse
    from ferrule.language.remarks import remarks

    report = Report(Places.of(origins))
    body = lower_cpu(_for_cpu(collapse(program)), lines=report.begin)
    return remarks(report, body, options.opt_level, host(), program.symbols)

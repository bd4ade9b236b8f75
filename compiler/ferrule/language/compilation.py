"""`compile`: from a Python function and examples to a callable function."""

from __future__ import annotations

import inspect
import reprlib
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from ferrule.compiler.artefacts import Stage, recorded, stage
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.options import Options, choose_target, default_environment, parse_options
from ferrule.language.decorators import JitFunction, KernelFunction, check_undecorated
from ferrule.language.dependencies.snapshots import Same, snapshot
from ferrule.language.dependencies.witness import Witness
from ferrule.language.dispatch import Choice, FreeExamples, free_examples, shown, told
from ferrule.language.examples import Examples, bind_examples, check_binds
from ferrule.language.source import definition_of, is_hashable, place_of, refuse_kinds, too_deep
from ferrule.language.stacks import on_enough_stack
from ferrule.runtime.devices import cuda_devices, emulated_arch
from ferrule.runtime.garbage import with_fewer_collections
from ferrule.specs import Condition, Requirement, Signature, params
from ferrule.specs.copies import changed, mapped, substituted
from ferrule.specs.deferred import dataclass
from ferrule.specs.requirements import checked_requirements

if TYPE_CHECKING:
    from ferrule.compiler.artefacts import Body, Kept, Location
    from ferrule.compiler.cache.keys import Key
    from ferrule.compiler.cache.through import Wanted
    from ferrule.compiler.origin import CompiledOrigin
    from ferrule.language.codegen.functions.lowering import Lines
    from ferrule.language.ir.ops import Function as IRFunction
    from ferrule.language.ir.ops import Op, Program, Value
    from ferrule.language.reports.collecting import Subject
    from ferrule.runtime import Function
    from ferrule.runtime.artefacts import Remarks
    from ferrule.runtime.llvm.emitter import Emitter

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Job:
    """One compilation: the function, its signature for a target, its examples, and the options.

    `witness` records the outer values that the compilation reads.
    """

    function: Callable[..., Any]
    signature: Signature
    examples: Examples
    options: Options
    witness: Witness = field(default_factory=Witness)


class _Compile:
    """`compile`, a function that also takes options as objects: `compile[OptLevel(2)](f, a)`."""

    __name__ = "compile"

    def __call__(
        self,
        fn: JitFunction | Callable[..., Any],
        *args: Any,
        options: str | Options | None = None,
        requires: Sequence[Condition | Requirement] = (),
        **kwargs: Any,
    ) -> Function:
        """Compiles a host function for its example arguments.

        `args`, `kwargs`: one example for each parameter without a default: fake tensors, tensors,
        numbers, dtypes.  If they have free dtypes, it is compiled for each combination.  `options`:
        `Options`, or a string such as "--target cpu".  `requires`: relations between sizes and
        integers that every call is to keep, such as `n * m <= 4096`, see `specs.require`.  The
        result is a TVM-FFI function: it can be called with NumPy arrays, torch tensors and anything
        else with DLPack, and passed to every tvm-ffi API.  Raises CompileError with a hint for the
        fix.
        """
        from ferrule.compiler.cache.through import through
        from ferrule.language.cachekeys.again import asked, recall, remember

        fn, args = _unbound(fn, args)
        function = _host_function(fn)
        call = None if requires else asked(args, kwargs, options)
        known = None if call is None else recall(function, call)
        if known is not None:
            return known
        given = wanted_of(fn, args, kwargs, options, requires)
        found = _guarded(function, lambda: through(given))
        if call is not None and found.origin == "from the cache":
            remember(function, call, given)
        return found

    def __getitem__(self, chosen: Any) -> Callable[..., Function]:
        """`compile` with these options, objects of `option_objects`."""
        from ferrule.compiler.option_objects import with_objects

        def with_options(
            *args: Any, options: str | Options | None = None, **kwargs: Any
        ) -> Function:
            return self(*args, options=with_objects(options, chosen), **kwargs)

        return with_options


compile = _Compile()


def wanted_of(
    fn: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    options: str | Options | None,
    requires: Sequence[Condition | Requirement] = (),
) -> Wanted:
    """The compilation that `compile` makes of these arguments, not done yet."""
    fn, args = _unbound(fn, tuple(args))
    function = _host_function(fn)
    required = checked_requirements(function.__name__, requires)
    free = free_examples(function, tuple(args), dict(kwargs))
    if free is not None:
        return _guarded(
            function, lambda: _wanted_each(function, free, parse_options(options), required)
        )
    examples = bind_examples(function, tuple(args), dict(kwargs))
    examples.requires += required
    return _guarded(function, lambda: wanted(_job(function, examples, parse_options(options))))


def _wanted_each(
    function: Callable[..., Any],
    free: FreeExamples,
    options: Options,
    requires: tuple[Requirement, ...],
) -> Wanted:
    """The compilation of one function for all combinations of free dtypes."""
    from ferrule.compiler.cache.through import Wanted
    from ferrule.language.cachekeys.compilations import key_of_several

    choices = list(free.choices())
    jobs = []
    for choice in choices:
        args, kwargs = free.chosen(choice)
        with _naming(choice):
            examples = bind_examples(function, args, kwargs)
            examples.requires += requires
            jobs.append(wanted(_job(function, examples, options)))
    name = function.__name__
    return Wanted(
        name,
        lambda: key_of_several(name, [each.key_of() for each in jobs], "free dtypes"),
        lambda: _guarded(function, lambda: _joined(name, jobs, choices)),
        options.cache,
    )


def _joined(name: str, jobs: list[Wanted], choices: list[Choice]) -> CompiledOrigin:
    from ferrule.compiler.progress import progress
    from ferrule.language.overloads import joined

    origins = []
    with progress(f"compiling {name}", len(jobs)) as tell:
        for job, choice in zip(jobs, choices, strict=True):
            with _naming(choice):
                origins.append(job.make())
            tell("")
    signatures = [origin.module.signature for origin in origins]
    return joined(name, origins, shown=shown(signatures, choices))


@contextmanager
def _naming(choice: Choice) -> Iterator[None]:
    """Errors say for which dtypes they are."""
    try:
        yield
    except CompileError as error:
        raise told(error, choice) from None


@dataclass(frozen=True, slots=True)
class Called:
    """A direct call: the key of its arguments and of what it is compiled for, the arguments for the
    compiled function, the values of constants, and a function that compiles and records the outer
    values."""

    key: object
    positional: list[Any]
    named: dict[str, Any]
    constants: Mapping[str, Any]
    build: Callable[[], tuple[Function, Witness]]


def compile_for_call(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Called:
    """What a call of a `@jit` function is compiled for.

    Raises TypeError, as Python does, for arguments that do not fit the parameters.
    """
    try:
        examples = bind_examples(function, args, kwargs)
    except CompileError:
        check_binds(function, args, kwargs)
        raise
    job = _guarded(function, lambda: _job(function, examples, Options()))
    given = {name: v for name, v in examples.given.items() if name not in examples.constants}
    if examples.variadic is not None:
        name, names = examples.variadic
        given.update(zip(names, given.pop(name, ()), strict=True))
    specs = _params_key(job.signature.params)
    key = (function, specs, _constants_key(examples.constants), job.options)
    unnamed = (param.name for param in job.signature.arguments[: job.signature.unnamed])
    positional = [given.pop(name) for name in unnamed if name in given]
    build = partial(_guarded, function, lambda: _for_call(job))
    return Called(key, positional, given, examples.constants, build)


def _for_call(job: Job) -> tuple[Function, Witness]:
    """The function of a job, and the test whether a later call may use it."""
    found = build(job)
    if found.origin == "compiled":
        return found, job.witness
    from ferrule.language.cachekeys.compilations import watched

    return found, watched(job)[1]


def _params_key(given: tuple[params.Param, ...]) -> tuple[object, ...]:
    """The parameters as a key; an unhashable default is replaced like a constant's value."""
    return tuple(
        each if is_hashable(each) else (changed(each, default=params.REQUIRED), _told(each.default))
        for each in given
    )


def _constants_key(constants: dict[str, Any]) -> tuple[object, ...]:
    """A key for the values of Constexpr parameters.

    An object of a user's class is compared by value if it has a hash, else by identity.
    """
    return tuple((name, _told(value)) for name, value in constants.items())


def _told(value: Any) -> object:
    found = snapshot(value)
    known_by_value = isinstance(found, Same) and is_hashable(value)
    return (type(value), value) if known_by_value else found


def _guarded(function: Callable[..., Any], compute: Callable[[], T]) -> T:
    """Runs a compilation; ferrule's own frames are removed from the traceback of a CompileError."""
    try:
        return with_fewer_collections(lambda: on_enough_stack(compute))
    except CompileError as error:
        raise error.with_traceback(None) from None
    except RecursionError:
        raise too_deep(place_of(function)) from None


def _unbound(fn: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """A function and its arguments; for a method or an object that is called, its object is the
    first."""
    if not callable(fn) or isinstance(fn, (JitFunction, KernelFunction, types.FunctionType)):
        return fn, args
    if isinstance(fn, types.MethodType):
        return fn.__func__, (fn.__self__, *args)
    method = inspect.getattr_static(type(fn), "__call__", None)
    return (method, (fn, *args)) if isinstance(method, JitFunction) else (fn, args)


def _host_function(fn: Any) -> Callable[..., Any]:
    if isinstance(fn, JitFunction):
        return fn.function
    if isinstance(fn, KernelFunction):
        raise CompileError(
            Diagnostic(
                f"{fn.function.__name__} is a kernel; what is compiled is a host function",
                hint="write a @ferrule.jit function that launches it",
            )
        )
    if inspect.isfunction(fn):
        check_undecorated(fn)
        return fn
    raise CompileError(
        Diagnostic(
            f"compile takes a @ferrule.jit function, but got {reprlib.repr(fn)}",
            hint=_inside(fn) if isinstance(fn, dict) else None,
        )
    )


def _inside(namespace: dict[Any, Any]) -> str | None:
    """The hint for a namespace, as `from_source` returns it, in place of one of its functions."""
    name = next((key for key, each in namespace.items() if isinstance(each, JitFunction)), None)
    return name and f"the namespace of a text has its functions by name, [{name!r}]"


def _job(function: Callable[..., Any], examples: Examples, options: Options) -> Job:
    placed, options = _for_target(examples.parameters, options)
    try:
        signature = Signature(
            function.__name__,
            placed,
            positional_only=examples.positional_only,
            keyword_only=examples.keyword_only,
            requires=examples.requires,
        )
    except ValueError as error:
        refuse_kinds(function, place_of(function))
        raise CompileError(str(error)) from None
    return Job(function, signature, examples, options)


def _for_target(
    parameters: Sequence[params.Param], options: Options
) -> tuple[tuple[params.Param, ...], Options]:
    """The parameters on the target of a compilation, and the options with it."""
    devices = [device for param in parameters for device in _devices(param)]
    environ = default_environment()
    target = choose_target(options, devices, environ, cuda_devices)
    arch = None
    if target == "cuda" and options.enable_checks:
        raise CompileError(
            Diagnostic(
                "--enable-checks is for the CPU: code for a GPU has no checks",
                hint='compile for the CPU, options="--target cpu --enable-checks"',
            )
        )
    if target == "cuda":
        from ferrule.compiler.cuda.archs import choose_archs

        assert isinstance(options.gpu_arch, str | None), "Options joins a list"
        arch = ",".join(choose_archs(options.gpu_arch, environ, cuda_devices))
        if emulated_arch() is not None:  # its errors name the lines of the source
            options = replace(options, generate_line_info=True)
    placed = tuple(_placed(param, target) for param in parameters)
    return placed, replace(options, target=target, gpu_arch=arch)


def build_program(
    program: Program,
    signature: Signature,
    options: str | Options | None,
    doc: str | None,
) -> Function:
    """The function of a verified program for a signature.  Raises CompileError."""
    from ferrule.compiler.binding import load

    placed, chosen = _for_target(signature.params, parse_options(options))
    if chosen.enable_checks:
        raise CompileError(
            Diagnostic(
                f"{signature.name}: --enable-checks is for functions of Python's text",
                hint="leave it out: a program that was built names no lines",
            )
        )
    known = _with_read_only(signature.altered(params=placed), program)
    return with_fewer_collections(lambda: load(_origin(program, known, chosen, None, None, doc)))


def _devices(param: params.Param) -> Iterator[str]:
    """The devices in the specs of a parameter's tensors."""
    match param:
        case params.Tensor(device=str(device)):
            yield device
        case params.Tuple(items=items) | params.Union(members=items):
            for item in items:
                yield from _devices(item)
        case params.Optional(item=item):
            yield from _devices(item)


def _placed(param: params.Param, target: str) -> params.Param:
    """The parameter with the target's device in tensors without one; a tensor on another device is
    an error."""

    def change(each: params.Param) -> params.Param:
        if not isinstance(each, params.Tensor):
            return each
        if each.device in (None, target):
            return changed(each, device=target)
        raise CompileError(
            Diagnostic(
                f"the example for {param.name!r} lives on {each.device}, but the target is "
                f"{target}",
                hint=f"pass a tensor on {target}, or a fake tensor, which need not be anywhere",
            )
        )

    return mapped(param, change)


def _with_read_only(signature: Signature, program: Program) -> Signature:
    """Marks the tensors that the program never writes as read-only, so that calls may pass
    read-only arrays.

    A tensor that is written is not read-only, even if its example was.
    """
    from ferrule.language.ir.effects import written_params

    written, values = written_params(program), iter(program.host.params)
    marked = tuple(_writable(param, values, written)[1] for param in signature.params)
    own = {symbol: symbol for symbol in signature.symbols}  # in the program they are tighter
    result = None if program.result is None else substituted(program.result, own)
    return signature.altered(params=marked, result=result)


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
    return expand_maths(separated(program))


def _has_extremes(function: IRFunction) -> bool:
    """Whether a function has a loop and a smallest or largest number."""
    from ferrule.language.ir import ops

    facts = function.facts
    return facts.has(ops.For) and any(op.op in ("min", "max") for op in facts.each(ops.Binary))


def build(job: Job) -> Function:
    """The function of a job, from the cache or compiled."""
    from ferrule.compiler.cache.through import through

    return through(wanted(job))


def wanted(job: Job) -> Wanted:
    """A job for the cache, without the arguments that it was made of."""
    from ferrule.compiler.cache.through import Wanted
    from ferrule.language.cachekeys.compilations import key_of_job, watched

    def watch() -> tuple[Key, Witness] | None:
        key, witness, sees_all = watched(lasting)
        return (key, witness) if sees_all else None

    lasting = replace(job, examples=replace(job.examples, given={}))
    return Wanted(
        job.function.__name__,
        lambda: key_of_job(lasting),
        lambda: _guarded(job.function, lambda: compiled(lasting)),
        job.options.cache,
        watch,
    )


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
    from ferrule.language.codegen.host.linking import sources_of
    from ferrule.language.ir.printer import print_program
    from ferrule.language.traits import traits_of

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
        partial(print_program, program),
        doc=doc,
        target=export_target(options.host_target, options.host_cpu),
        traits=traits_of(program, signature, on_gpu=on_gpu, release_gil=options.release_gil),
        sources=sources_of(program),
        mlir=partial(_mlir, program, origins or {}),
        remarks=told,
        pages=pages,
    )


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
    signature = _with_read_only(job.signature, program)
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

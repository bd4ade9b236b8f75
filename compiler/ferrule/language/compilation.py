"""`compile`: from a Python function and examples to a callable function."""

from __future__ import annotations

import inspect
import reprlib
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.options import Options, for_target, parse_options
from ferrule.language.dependencies.witness import Witness
from ferrule.language.dispatch import Choice, FreeExamples, free_examples, shown, told
from ferrule.language.examples import Examples, bind_examples, check_binds
from ferrule.language.marks import JitFunction, KernelFunction, check_undecorated
from ferrule.language.source import place_of, refuse_kinds, too_deep
from ferrule.language.stacks import on_enough_stack
from ferrule.runtime.garbage import with_fewer_collections
from ferrule.specs import Condition, Requirement, Signature
from ferrule.specs.deferred import dataclass
from ferrule.specs.requirements import checked_requirements

if TYPE_CHECKING:
    from ferrule.compiler.cache.keys import Key
    from ferrule.compiler.cache.through import Wanted
    from ferrule.compiler.origin import CompiledOrigin
    from ferrule.runtime import Function

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
        from ferrule.compiler.cache.settings import is_on
        from ferrule.compiler.cache.through import through

        fn, args = _unbound(fn, args)
        function = _host_function(fn)
        if requires or not is_on():
            alone = wanted_of(fn, args, kwargs, options, requires)
            return _guarded(function, lambda: through(alone))
        from ferrule.language.cachekeys.compilations import asked, recall, remember

        call = asked(args, kwargs, options)
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
    chosen = parse_options(options)
    examples = bind_examples(function, tuple(args), dict(kwargs), chosen.dynamic_layout)
    examples.requires += required
    return _guarded(function, lambda: wanted(_job(function, examples, chosen)))


def _wanted_each(
    function: Callable[..., Any],
    free: FreeExamples,
    options: Options,
    requires: tuple[Requirement, ...],
) -> Wanted:
    """The compilation of one function for all combinations of free dtypes."""
    from ferrule.compiler.cache.through import Wanted
    from ferrule.compiler.joining import key_of_several

    choices = list(free.choices())
    jobs = []
    for choice in choices:
        args, kwargs = free.chosen(choice)
        with _naming(choice):
            examples = bind_examples(function, args, kwargs, options.dynamic_layout)
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
    from ferrule.compiler.joining import joined
    from ferrule.compiler.progress import progress

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
    from ferrule.language import callkeys  # what is only compiled needs none

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
    specs = callkeys.params_key(job.signature.params)
    constants = callkeys.constants_key(examples.constants)
    # Two dataclasses of the same fields have the same specs, and methods of their own.
    classes = callkeys.classes_key(examples.classes)
    key = (function, specs, classes, constants, job.options)
    unnamed = (param.name for param in job.signature.arguments[: job.signature.unnamed])
    positional = [given.pop(name) for name in unnamed if name in given]
    build = partial(_guarded, function, lambda: _for_call(job))
    return Called(key, positional, given, examples.constants, build)


def _for_call(job: Job) -> tuple[Function, Witness]:
    """The function of a job, and the test whether a later call may use it."""
    found = build(job)
    if found.origin == "compiled":
        return found, job.witness
    return found, _watched(job)[1]


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
    placed, options = for_target(examples.parameters, options)
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


def build(job: Job) -> Function:
    """The function of a job, from the cache or compiled."""
    from ferrule.compiler.cache.through import through

    return through(wanted(job))


def wanted(job: Job) -> Wanted:
    """A job for the cache, without the arguments that it was made of."""
    from ferrule.compiler.cache.through import Wanted

    lasting = replace(job, examples=replace(job.examples, given={}))
    return Wanted(
        job.function.__name__,
        lambda: _key(lasting),
        lambda: _guarded(lasting.function, lambda: _compiled(lasting)),
        job.options.cache,
        lambda: _watched(lasting),
    )


# What makes keys is imported where one is asked for: without a cache none is.


def _key(job: Job) -> Key:
    from ferrule.language.cachekeys.compilations import key_of_job

    return key_of_job(job)


def _watched(job: Job) -> tuple[Key, Witness]:
    from ferrule.language.cachekeys.compilations import watched

    return watched(job)


def _compiled(job: Job) -> CompiledOrigin:
    """A job, done: nothing of the stages is imported before."""
    from ferrule.language.stages import compiled

    return compiled(job)

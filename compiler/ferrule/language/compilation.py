"""`compile`: from a Python function and examples to something to call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.options import Options, choose_target, default_environment, parse_options
from ferrule.language.decorators import JitFunction, KernelFunction
from ferrule.language.examples import bind_examples
from ferrule.specs import Param, Signature, Tensor

if TYPE_CHECKING:
    from ferrule.runtime import Function


@dataclass(frozen=True, slots=True)
class Job:
    """One compilation: the function, its signature for a target, and the options."""

    function: Callable[..., Any]
    signature: Signature
    options: Options


def compile(
    fn: JitFunction | Callable[..., Any],
    *args: Any,
    options: str | Options | None = None,
    **kwargs: Any,
) -> Function:
    """Compiles a host function for its example arguments.

    `args`, `kwargs`: one example for each parameter without a default: fake tensors, tensors,
    numbers, dtypes.  `options`: `Options`, or a string such as "--target cpu".  The result is a
    TVM-FFI function: it can be called with NumPy arrays, torch tensors and anything else with
    DLPack, and given to every tvm-ffi API.  Raises CompileError, which says what to change.
    """
    function = _host_function(fn)
    examples = bind_examples(function, args, kwargs)
    return _guarded(lambda: build(_job(function, examples.params, parse_options(options))))


def compile_for_call(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[object, dict[str, Any], Callable[[], Function]]:
    """For a call of a `@jit` function: the key of its arguments' specs, the arguments by name, and
    what compiles for them."""
    examples = bind_examples(function, args, kwargs)
    job = _job(function, examples.params, Options())
    return job.signature.params, examples.given, lambda: _guarded(lambda: build(job))


def _guarded(compute: Callable[[], Function]) -> Function:
    """Runs a compilation; a CompileError leaves it without ferrule's own frames."""
    try:
        return compute()
    except CompileError as error:
        raise error.with_traceback(None) from None
    except RecursionError:
        raise CompileError(
            Diagnostic(
                "the function is nested too deeply to be compiled",
                hint="split long expressions, and replace compile-time recursion by a loop",
            )
        ) from None


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
        return fn
    raise CompileError(f"compile takes a @ferrule.jit function, but got {fn!r}")


def _job(function: Callable[..., Any], params: tuple[Param, ...], options: Options) -> Job:
    devices = [p.device for p in params if isinstance(p, Tensor) and p.device is not None]
    target = choose_target(options, devices, default_environment())
    placed = tuple(_placed(param, target) for param in params)
    try:
        signature = Signature(function.__name__, placed)
    except ValueError as error:
        raise CompileError(str(error)) from None
    return Job(function, signature, replace(options, target=target))


def _placed(param: Param, target: str) -> Param:
    """A tensor without a device takes the target's; one on another device cannot be used."""
    if not isinstance(param, Tensor):
        return param
    if param.device is None:
        return replace_device(param, target)
    if param.device != target:
        raise CompileError(
            f"the example for {param.name!r} lives on {param.device}, but the target is {target}"
        )
    return param


def replace_device(param: Tensor, device: str) -> Tensor:
    """The same tensor parameter on another device."""
    return Tensor(
        param.name,
        param.shape,
        param.dtype,
        strides=param.strides,
        device=device,
        align=param.align,
    )


def build(job: Job) -> Function:
    """Lowers, wraps, assembles and loads one function."""
    from ferrule.compiler import targets
    from ferrule.compiler.origin import CompiledOrigin, host_module
    from ferrule.language.codegen import lower_cpu
    from ferrule.language.codegen.mathlib import expand_maths
    from ferrule.language.ir.printer import print_program
    from ferrule.language.ir.verifier import verify
    from ferrule.language.lowering.program import lower_program
    from ferrule.runtime import Engine, make_function

    program = lower_program(job.function, job.signature, {})
    verify(program)
    body = lower_cpu(expand_maths(program))
    module = host_module(job.signature, body)
    origin = CompiledOrigin(module, print_program(program))
    host = targets.host()
    engine = Engine.load(origin.emit(job.signature.name, host.cpu, host.triple))
    name = job.signature.name
    return make_function(
        engine.address(f"__tvm_ffi_{name}"),
        job.signature,
        origin,
        owner=engine,
        doc=inspect.getdoc(job.function),
    )

"""The configurations of an autotuned kernel that are measured for a call: `prune_configs_by`.

Triton's autotuner calls one function that selects the configurations that are valid for a call, and
another that estimates the time of each; both get the arguments of the launch.  Here they get them
as from Triton's launcher: the caller's tensors and numbers, and the values that follow from these.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from typing_extensions import assert_never

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.triton.arguments import (
    Argument,
    Arguments,
    ConstantArgument,
    DescriptorArgument,
    IntegerArgument,
    NumberArgument,
    PointerArgument,
)
from ferrule.frontends.triton.installed import Kernel
from ferrule.frontends.triton.traced.functions import trace
from ferrule.frontends.triton.traced.paths import Path
from ferrule.frontends.triton.traced.refusals import CallRefused
from ferrule.frontends.triton.traced.tensors import TracedTensor
from ferrule.frontends.triton.tuples import nest
from ferrule.runtime.calls.variants import call_values
from ferrule.specs import REQUIRED, Dim, Scalar, Sym, Tensor
from ferrule.specs.conditions import Computed, Real, evaluate_float
from ferrule.specs.expr import evaluate


def kept(kernel: Kernel, arguments: Arguments, call: Sequence[Any]) -> tuple[int, ...]:
    """The numbers of the configurations to measure for a call, according to `prune_configs_by`.

    Raises CompileError if its functions fail, leave no configuration, or return an unknown one.
    """
    asked, found = kernel.pruning, list(kernel.configs)
    if asked.early is None and asked.model is None:
        return tuple(range(len(found)))
    named = launched_with(kernel, arguments, call)
    if asked.early is not None:
        what = f"{kernel.name}: early_config_prune"
        found = list(_asked(what, asked.early, (list(found), dict(named)), named) or ())
        if not found:
            raise CompileError(f"{what} leaves no config for a call")
    most = asked.top if isinstance(asked.top, int) else int(len(kernel.configs) * asked.top)
    if asked.model is not None and len(found) > most:
        what = f"{kernel.name}: perf_model"
        times = [_asked(what, asked.model, (), {**named, **c.all_kwargs()}) for c in found]
        found = [found[at] for at in sorted(range(len(found)), key=times.__getitem__)[:most]]
    return tuple(_number(kernel, config) for config in found)


def launched_with(kernel: Kernel, arguments: Arguments, call: Sequence[Any]) -> dict[str, Any]:
    """The arguments of the kernel by name, for a call of the function, without those that
    configurations and heuristics choose.  Raises CompileError for a call with too few arguments."""
    params = arguments.signature.params
    given: dict[str, Any] = {
        param.name: param.default
        for param in params
        if isinstance(param, Scalar) and param.default is not REQUIRED
    }
    given |= {param.name: value for param, value in zip(params, call, strict=False)}
    if len(given) < len(params):
        raise CompileError(
            Diagnostic(
                f"{kernel.name}: a call to measure has {len(call)} arguments",
                expected=str(arguments.signature),
            )
        )
    values = call_values(arguments.signature, given)
    chosen = {*kernel.heuristics, *(name for config in kernel.configs for name in config.kwargs)}
    seen = {
        argument.name: _value(argument, given, values)
        for argument in arguments.each
        if argument.name not in chosen
    }
    tuples = arguments.tuples.items()
    return seen | {name: nest(shape, seen.get) for name, shape in tuples}


def _value(argument: Argument, given: Mapping[str, Any], values: Mapping[Sym, int]) -> Any:
    match argument:
        case PointerArgument(name=name) if name in given:
            return given[name]
        case PointerArgument(tensor=tensor):
            return TracedTensor(_known(tensor, values))
        case DescriptorArgument(tensor=tensor, viewed=viewed):
            known = (TracedTensor(_known(each, values)) for each in (tensor, viewed))
            return argument.traced(*known)
        case IntegerArgument(scalar=Scalar(name=name)) | NumberArgument(scalar=Scalar(name=name)):
            return given[name]
        case IntegerArgument(size=size):
            return evaluate(size, values)
        case NumberArgument(scalar=Real() | Computed() as number):
            return evaluate_float(number, values, given)
        case NumberArgument(scalar=number):
            return number
        case ConstantArgument(value=value):
            return value
        case _:
            assert_never(argument)


def _known(tensor: Tensor, values: Mapping[Sym, int]) -> Tensor:
    def value(dim: Dim) -> int:
        return evaluate(dim, values)

    return Tensor(
        tensor.name,
        tuple(map(value, tensor.shape)),
        tensor.dtype,
        strides=tuple(map(value, tensor.strides)),
    )


def _asked(
    what: str, function: Callable[..., Any], first: tuple[Any, ...], named: Mapping[str, Any]
) -> Any:
    """The result of a function by the kernel's author; it is called with the keyword arguments that
    it accepts."""
    try:
        return function(*first, **_taken(function, len(first), named))
    except Exception as error:
        raise CompileError(f"{what} fails: {type(error).__name__}: {error}") from error


def _taken(function: Callable[..., Any], first: int, named: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that a function takes by their names, behind its first ones."""
    parameters = list(inspect.signature(function).parameters.values())
    takes = parameters[first:]
    every = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in takes)
    places = {each.name for each in parameters[:first]}
    names = named.keys() - places if every else {each.name for each in takes}
    return {key: named[key] for key in named if key in names}


def refuse_pruned(kernel: Kernel, config: Any, seen: Mapping[str, Any], path: Path) -> None:
    """Raises CallRefused on a path whose calls have a configuration that `early_config_prune`
    leaves out, CompileError if that cannot be traced.

    Triton asks it where there are several; a configuration of the caller's own is in none.
    """
    early = kernel.pruning.early
    if early is None or len(kernel.configs) < 2 or not any(_is(config, c) for c in kernel.configs):
        return
    chosen = {*kernel.heuristics, *(name for each in kernel.configs for name in each.kwargs)}
    named = {name: each for name, each in seen.items() if name not in chosen}
    what = f"{kernel.name}: early_config_prune"

    def asked(given: Any) -> list[Any]:
        return list(early(list(kernel.configs), dict(given), **_taken(early, 2, named)) or ())

    advice = "with prune=False its config is for every call"
    left = trace(asked, named, what, advice, path)
    if not any(_is(config, each) for each in left):
        shown = ", ".join(f"{name}={value}" for name, value in config.kwargs.items())
        raise CallRefused(what, "ValueError", f"it leaves out the config {shown}")


def _is(config: Any, other: Any) -> bool:
    return config is other or (isinstance(config, type(other)) and bool(config == other))


def _number(kernel: Kernel, config: Any) -> int:
    for number, each in enumerate(kernel.configs):
        if _is(config, each):
            return number
    raise CompileError(
        f"{kernel.name}: early_config_prune gives a config that the kernel does not have: {config}"
    )

"""Which configurations of an autotuned kernel are measured for a call: `prune_configs_by`.

Triton's autotuner asks a function which configurations a call can have, and may have another guess
how long each takes; both get the arguments of the launch.  They get them here as Triton's launcher
has them: the caller's tensors and numbers, and what follows from these.
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
from ferrule.frontends.triton.traced_tensors import TracedTensor
from ferrule.frontends.triton.tuples import nest
from ferrule.runtime.views import view_of
from ferrule.specs import REQUIRED, Dim, Scalar, Sym, Tensor
from ferrule.specs.binding import ACTUAL
from ferrule.specs.expr import evaluate


def kept(kernel: Kernel, arguments: Arguments, call: Sequence[Any]) -> tuple[int, ...]:
    """The numbers of the configurations to measure for a call, as `prune_configs_by` says.

    Raises CompileError where its functions fail, leave none, or give one that there is not.
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
    """The arguments of the kernel by name, for a call of the function, without what configurations
    and heuristics choose.  Raises CompileError for a call with too few arguments."""
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
    values = _sizes(arguments, given)
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
        case NumberArgument(scalar=number):
            return number
        case ConstantArgument(value=value):
            return value
        case _:
            assert_never(argument)


def _sizes(arguments: Arguments, given: Mapping[str, Any]) -> dict[Sym, int]:
    """The values of symbols, as a call binds them."""
    values: dict[Sym, int] = {}
    for binding in arguments.signature.bindings:
        place = binding.places[0]
        view = view_of(given[place.param.name])
        actual = (view.shape if place.kind == "shape" else view.strides)[place.axis]
        values[binding.symbol] = evaluate(binding.solution, {**values, ACTUAL: actual})
    return values


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
    """What a function of the kernel's author gives; it gets the names that it takes."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
        takes = parameters[len(first) :]
        every = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in takes)
        places = {each.name for each in parameters[: len(first)]}
        names = named.keys() - places if every else {each.name for each in takes}
        return function(*first, **{key: named[key] for key in named if key in names})
    except Exception as error:
        raise CompileError(f"{what} fails: {type(error).__name__}: {error}") from error


def _number(kernel: Kernel, config: Any) -> int:
    for number, each in enumerate(kernel.configs):
        if each is config or (isinstance(config, type(each)) and each == config):
            return number
    raise CompileError(
        f"{kernel.name}: early_config_prune gives a config that the kernel does not have: {config}"
    )

"""How a compiled function gives the gradients of an operation of a framework, by its names.

Its parameters are gradients of results, `grad_y` or `grad`; values that the forward call saved;
and what it writes: the gradients of the operation's tensors, `grad_x`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ferrule import specs
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Names:
    """What an operation has, by name; `what` is the operation, for messages.

    `inputs` are the tensors that have gradients, `results` its results in order, `saved` what the
    forward call saves.
    """

    what: str
    inputs: tuple[str, ...]
    results: tuple[str, ...]
    saved: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Backward:
    """How a compiled function gives the gradients.

    Its results are the gradients of `inputs`; `sources` say where each argument, with the spec in
    `params`, comes from: a saved name, or the position of the result whose gradient it is.
    """

    inputs: tuple[str, ...]
    sources: tuple[str | int, ...]
    params: tuple[specs.Param, ...]


def result_names(own: int, made: Sequence[str]) -> tuple[str, ...]:
    """The names of an operation's results: `result`, or `result0` …, then the tensors it makes."""
    return (*(["result"] if own == 1 else [f"result{i}" for i in range(own)]), *made)


def backward_of(names: Names, signature: specs.Signature) -> Backward:
    """Where the arguments of a compiled backward function come from, by their names.

    Raises ValueError for a name that says nothing or two things, and for a function that writes to
    what it is given.
    """
    results = {f"grad_{name}": i for i, name in enumerate(names.results)}
    if len(results) == 1:
        results["grad"] = 0
    inputs = {f"grad_{name}": name for name in names.inputs}
    made: list[str] = []
    sources: list[str | int] = []
    given: list[specs.Param] = []
    for param in signature.arguments:
        name, written = param.name, _is_written(param)
        if written and name in inputs and name not in names.saved:
            made.append(inputs[name])
        elif name not in results and name not in names.saved:
            known = [*results, *names.saved]
            raise ValueError(_no_source(names, signature, param, known, [*inputs]))
        elif written:
            raise ValueError(_writes_a_source(names, signature, param))
        elif name in results and name in names.saved:
            raise ValueError(_two_sources(names, name))
        else:
            sources.append(results[name] if name in results else name)
            given.append(param)
    if not made:
        raise ValueError(
            f"{names.what}: the backward {signature} writes no gradient; it writes to parameters "
            f"with the names {', '.join(inputs)}"
        )
    if not any(isinstance(source, int) for source in sources):
        raise ValueError(
            f"{names.what}: the backward {signature} takes no gradient of a result; it takes those "
            f"with the names {', '.join(results)}"
        )
    return Backward(tuple(made), tuple(sources), tuple(given))


def _is_written(param: specs.Param) -> bool:
    return isinstance(param, specs.Tensor) and not param.read_only


def _writes_a_source(names: Names, signature: specs.Signature, param: specs.Param) -> str:
    return (
        f"{names.what}: the backward function writes to {signature.describe(param)}, which others "
        f"still have: gradients of results and saved tensors are only read; write to a gradient, a "
        f"parameter named grad_<argument>"
    )


def _two_sources(names: Names, name: str) -> str:
    return (
        f"{names.what}: {name!r} is both a saved value and the gradient of a result; give the "
        f"argument or the result of that name another one"
    )


def _no_source(
    names: Names, signature: specs.Signature, param: specs.Param, given: list[str], made: list[str]
) -> str:
    return (
        f"{names.what}: nothing says what {signature.describe(param)} of the backward function is: "
        f"its parameters are gradients of results and saved values, by the names "
        f"{', '.join(given)}, and the gradients that it writes, {', '.join(made)}"
    )

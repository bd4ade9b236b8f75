"""The slow path of a call: keywords, defaults, and values that need a look by Python.

A call that the gate does not pass comes here whole, before anything has run. Errors of binding are
those that Python raises for its own functions. What becomes of each value is in `values.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ferrule import specs
from ferrule.runtime.cupystream import on_current_stream
from ferrule.runtime.plan import Accepted
from ferrule.runtime.values import Place, Refusal, convert, refuse_hidden

_MISSING = object()


def prepare_call(
    function: Any, values: tuple[Any, ...], kwnames: tuple[str, ...] | None
) -> tuple[Any, ...]:
    """The arguments for tvm-ffi's generic call; the last of `values` belong to `kwnames`.

    They are let go of when the call has ended, not before: `OnStream` counts on it.
    """
    if function.__chandle__() == 0:
        raise RuntimeError("the function object of this function was moved away")
    signature, places, taken = _candidate(function, len(values))
    params = signature.arguments
    bound = bind(signature.name, params, places, values, kwnames or ())
    try:
        converted = [
            value if accepted.takes(value) else convert(Place(signature, i), params[i], value)
            for i, (value, accepted) in enumerate(zip(bound, taken, strict=True))
        ]
        return on_current_stream(tuple(converted))
    except Refusal as refusal:
        error = refusal.error
    # Out here the error has no context and one frame, and without its name there is no cycle.
    try:
        raise error
    finally:
        del error


def name_hidden(function: Any, values: Sequence[Any]) -> None:
    """After a call that failed: TypeError where tvm-ffi had no name for the argument that did it.

    Those are tensors of torch without elements in memory; before a call nobody looks for them.
    """
    signature, _, _ = _candidate(function, len(values))
    try:
        for i, value in enumerate(values):
            refuse_hidden(Place(signature, i), signature.arguments[i], value)
        return
    except Refusal as refusal:
        error = refusal.error
    try:
        raise error
    finally:
        del error


def _candidate(
    function: Any, count: int
) -> tuple[specs.Signature, Mapping[str, int], tuple[Accepted, ...]]:
    """What a call with so many arguments calls, of an overload; of others there is one."""
    signature, plan = function.signature, function.call_plan
    if not plan.others or count == len(plan.accepted):
        return signature, plan.places, plan.accepted
    other = plan.others.get(count)
    if other is None:
        counts = [len(plan.accepted), *plan.others]
        raise TypeError(_no_candidate(signature.name, counts, count))
    return other.signature, other.places, other.accepted


def bind(
    name: str,
    params: Sequence[specs.Param],
    places: Mapping[str, int],
    values: Sequence[Any],
    kwnames: Sequence[str],
) -> list[Any]:
    """The values in the order of the parameters; TypeError like Python's if unfit.

    `name` is the function's, `places` are the positions of its parameters by name.
    """
    given = len(values) - len(kwnames)
    bound = [_MISSING] * len(params)
    bound[: min(given, len(params))] = values[: min(given, len(params))]
    for keyword, value in zip(kwnames, values[given:], strict=True):
        if keyword not in places:
            raise TypeError(f"{name}() got an unexpected keyword argument {keyword!r}")
        if bound[places[keyword]] is not _MISSING:
            raise TypeError(f"{name}() got multiple values for argument {keyword!r}")
        bound[places[keyword]] = value
    if given > len(params):
        raise TypeError(_too_many(name, params, given))
    if len(values) < len(params):
        _fill_defaults(name, params, bound)
    return bound


def _fill_defaults(name: str, params: Sequence[specs.Param], bound: list[Any]) -> None:
    missing = []
    for i, param in enumerate(params):
        if bound[i] is not _MISSING:
            continue
        bound[i] = param.default
        if param.default is specs.REQUIRED:
            missing.append(repr(param.name))
    if missing:
        plural = "s" if len(missing) > 1 else ""
        raise TypeError(
            f"{name}() missing {len(missing)} required positional argument{plural}: "
            f"{_listed(missing)}"
        )


def _too_many(name: str, params: Sequence[specs.Param], given: int) -> str:
    most = len(params)
    least = sum(param.default is specs.REQUIRED for param in params)
    takes = f"from {least} to {most}" if least != most else f"{most}"
    plural = "" if most == 1 and least == most else "s"
    were = "was" if given == 1 else "were"
    return f"{name}() takes {takes} positional argument{plural} but {given} {were} given"


def _no_candidate(name: str, counts: Sequence[int], given: int) -> str:
    *most, last = map(str, sorted(counts))
    were = "was" if given == 1 else "were"
    return f"{name}() takes {', '.join(most)} or {last} arguments but {given} {were} given"


def _listed(names: Sequence[str]) -> str:
    if len(names) <= 2:
        return " and ".join(names)
    return f"{', '.join(names[:-1])}, and {names[-1]}"

"""The slow path of a call: keywords, defaults, and values that Python must convert.

The gate hands a call that it cannot make to this module, before any other code has run. Errors of
binding are the same that Python raises for its own functions. `values.py` converts the values.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ferrule import specs
from ferrule.runtime.calls.cupystream import on_current_stream
from ferrule.runtime.calls.plan import Accepted
from ferrule.runtime.values.convert import Place, Refusal, convert, refuse_hidden
from ferrule.runtime.values.versions import count_writes

_MISSING = object()


def prepare_call(
    function: Any, values: tuple[Any, ...], kwnames: tuple[str, ...] | None
) -> tuple[Any, ...]:
    """The arguments for tvm-ffi's generic call; the last of `values` belong to `kwnames`.

    The caller releases them after the call, not before: `OnStream` relies on this order.
    """
    if function.__chandle__() == 0:
        raise RuntimeError("the function object of this function was moved away")
    signature, places, taken = _candidate(function, len(values))
    params = signature.arguments
    bound = bind(signature, places, values, kwnames or ())
    try:
        converted = [
            value if accepted.takes(value) else convert(Place(signature, i), params[i], value)
            for i, (value, accepted) in enumerate(zip(bound, taken, strict=True))
        ]
        if "torch" in sys.modules:
            count_writes(params, bound)
        return on_current_stream(tuple(converted))
    except Refusal as refusal:
        error = refusal.error
    # Out here the error has no context and one frame, and without its name there is no cycle.
    try:
        raise error
    finally:
        del error


def ordered(
    function: Any, values: Sequence[Any], kwnames: Sequence[str]
) -> tuple[specs.Signature, list[Any]]:
    """The signature that matches a call, and the call's values in the order of its parameters.

    The last of `values` belong to `kwnames`. TypeError like Python's if unfit.
    """
    signature, places, _ = _candidate(function, len(values))
    return signature, bind(signature, places, values, kwnames)


def name_hidden(function: Any, values: Sequence[Any]) -> None:
    """After a failed call: TypeError that names the argument, if tvm-ffi's error does not name it.

    This is the case for torch tensors without elements in memory. To look for them before each call
    would cost time.
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
    """The signature, positions by name and accepted types for a call with `count` arguments.

    Only an overload has several.
    """
    signature, plan = function.signature, function.call_plan
    if not plan.others or count == len(plan.accepted):
        return signature, plan.places, plan.accepted
    other = plan.others.get(count)
    if other is None:
        counts = [len(plan.accepted), *plan.others]
        raise TypeError(_no_candidate(signature.name, counts, count))
    return other.signature, other.places, other.accepted


def ways_of(signature: specs.Signature) -> list[Any]:
    """How a call of Python gives each argument: a kind of `inspect.Parameter`."""
    kind = inspect.Parameter
    plain = signature.positional - signature.unnamed
    ways = [kind.POSITIONAL_ONLY] * signature.unnamed + [kind.POSITIONAL_OR_KEYWORD] * plain
    return ways + [kind.KEYWORD_ONLY] * (len(signature.arguments) - signature.positional)


def bind(
    signature: specs.Signature,
    places: Mapping[str, int],
    values: Sequence[Any],
    kwnames: Sequence[str],
) -> list[Any]:
    """The values in the order of the parameters; TypeError like Python's if unfit.

    `places` are the positions of the parameters by name.
    """
    name, most = signature.name, signature.positional
    given = len(values) - len(kwnames)
    bound = [_MISSING] * len(signature.arguments)
    bound[: min(given, most)] = values[: min(given, most)]
    for keyword, value in zip(kwnames, values[given:], strict=True):
        if places.get(keyword, -1) < signature.unnamed:
            raise TypeError(f"{name}() got {_unfit(signature, kwnames, keyword)}")
        if bound[places[keyword]] is not _MISSING:
            raise TypeError(f"{name}() got multiple values for argument {keyword!r}")
        bound[places[keyword]] = value
    if given > most:
        raise TypeError(_too_many(signature, given, bound))
    if len(values) < len(bound):
        _fill_defaults(signature, bound)
    return bound


def _unfit(signature: specs.Signature, kwnames: Sequence[str], keyword: str) -> str:
    """The error text for a keyword that is not the name of a parameter."""
    unnamed = (param.name for param in signature.arguments[: signature.unnamed])
    wrong = [name for name in unnamed if name in kwnames]
    if not wrong:
        return f"an unexpected keyword argument {keyword!r}"
    return f"some positional-only arguments passed as keyword arguments: '{', '.join(wrong)}'"


def _fill_defaults(signature: specs.Signature, bound: list[Any]) -> None:
    missing = []
    for i, param in enumerate(signature.arguments):
        if bound[i] is not _MISSING:
            continue
        bound[i] = param.default
        if param.default is specs.REQUIRED:
            missing.append(i)
    if missing:
        raise TypeError(f"{signature.name}() missing {_missing(signature, missing)}")


def _missing(signature: specs.Signature, places: Sequence[int]) -> str:
    """The text about missing arguments, in Python's words; positional ones are reported first."""
    by_position = [i for i in places if i < signature.positional]
    way, told = ("positional", by_position) if by_position else ("keyword-only", places)
    names = _listed([repr(signature.arguments[i].name) for i in told])
    return f"{len(told)} required {way} argument{'s' * (len(told) > 1)}: {names}"


def _too_many(signature: specs.Signature, given: int, bound: Sequence[Any]) -> str:
    most = signature.positional
    least = sum(param.default is specs.REQUIRED for param in signature.arguments[:most])
    takes = f"from {least} to {most}" if least != most else f"{most}"
    plural = "" if most == 1 and least == most else "s"
    were = "was" if given == 1 else "were"
    named = sum(value is not _MISSING for value in bound[most:])
    if named:
        were = (
            f"positional argument{'s' * (given != 1)} (and {named} keyword-only "
            f"argument{'s' * (named != 1)}) were"
        )
    head = f"{signature.name}() takes {takes} positional argument{plural}"
    return f"{head} but {given} {were} given"


def _no_candidate(name: str, counts: Sequence[int], given: int) -> str:
    *most, last = map(str, sorted(counts))
    were = "was" if given == 1 else "were"
    return f"{name}() takes {', '.join(most)} or {last} arguments but {given} {were} given"


def _listed(names: Sequence[str]) -> str:
    if len(names) <= 2:
        return " and ".join(names)
    return f"{', '.join(names[:-1])}, and {names[-1]}"

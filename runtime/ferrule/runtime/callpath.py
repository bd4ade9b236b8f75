"""The slow path of a call: keywords, defaults, and values that need a look by Python.

A call that the gate does not pass comes here whole, before anything has run. Errors of binding are
those that Python raises for its own functions. Values that a parameter's kind can mean are turned
into plain ones; every other value goes on as it is, and the wrapper refuses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrule import specs

_MISSING = object()


def prepare_call(
    function: Any, values: tuple[Any, ...], kwnames: tuple[str, ...] | None
) -> tuple[Any, ...]:
    """The arguments for tvm-ffi's generic call; the last of `values` belong to `kwnames`."""
    if function.__chandle__() == 0:
        raise RuntimeError("the function object of this function was moved away")
    signature = function.signature
    bound = bind(signature, values, kwnames or ())
    return tuple(
        plain_value(signature, i, param, bound[i]) for i, param in enumerate(signature.params)
    )


def bind(signature: specs.Signature, values: Sequence[Any], kwnames: Sequence[str]) -> list[Any]:
    """The values in the order of the parameters; TypeError like Python's if unfit."""
    params = signature.params
    given = len(values) - len(kwnames)
    bound = [_MISSING] * len(params)
    bound[: min(given, len(params))] = values[: min(given, len(params))]
    places = {param.name: i for i, param in enumerate(params)}
    for name, value in zip(kwnames, values[given:], strict=True):
        if name not in places:
            raise TypeError(f"{signature.name}() got an unexpected keyword argument {name!r}")
        if bound[places[name]] is not _MISSING:
            raise TypeError(f"{signature.name}() got multiple values for argument {name!r}")
        bound[places[name]] = value
    if given > len(params):
        raise TypeError(_too_many(signature, given))
    return _with_defaults(signature, bound)


def _with_defaults(signature: specs.Signature, bound: list[Any]) -> list[Any]:
    missing = []
    for i, param in enumerate(signature.params):
        if bound[i] is not _MISSING:
            continue
        bound[i] = param.default
        if param.default is specs.REQUIRED:
            missing.append(repr(param.name))
    if missing:
        plural = "s" if len(missing) > 1 else ""
        raise TypeError(
            f"{signature.name}() missing {len(missing)} required positional argument{plural}: "
            f"{_listed(missing)}"
        )
    return bound


def _too_many(signature: specs.Signature, given: int) -> str:
    most = len(signature.params)
    least = sum(param.default is specs.REQUIRED for param in signature.params)
    takes = f"from {least} to {most}" if least != most else f"{most}"
    plural = "" if most == 1 and least == most else "s"
    were = "was" if given == 1 else "were"
    return f"{signature.name}() takes {takes} positional argument{plural} but {given} {were} given"


def _listed(names: Sequence[str]) -> str:
    if len(names) <= 2:
        return " and ".join(names)
    return f"{', '.join(names[:-1])}, and {names[-1]}"


def plain_value(signature: specs.Signature, index: int, param: specs.Param, value: Any) -> Any:
    """The value as tvm-ffi's generic call takes it."""
    match param:
        case specs.Tensor():
            return _tensor(signature, index, param, value)
        case specs.Scalar():
            return plain_number(value)


def plain_number(value: Any) -> Any:
    """A number of NumPy, of an enum or of a dtype as Python's own; anything else as it is."""
    match value:
        case specs.Numeric():
            return value.value
        case bool() | np.bool_():
            return bool(value)
        case int() | np.integer():
            return int(value)
        case float() | np.floating():
            return float(value)
        case _:
            return value


def _tensor(signature: specs.Signature, index: int, param: specs.Tensor, value: Any) -> Any:
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        raise BufferError(
            f"Mismatched {param.name} on argument #{index} when calling: `{signature}`, "
            f"expected an array that can be written, but got a read-only one"
        )
    return value

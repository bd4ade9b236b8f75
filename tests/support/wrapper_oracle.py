"""What a wrapper must do with a call, in plain Python, written from the specs alone.

`judge` gives the values that the body must see, or the class and the opening words of the first
error.  It shares no code with the wrapper builder.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from wrapper_calls import Argument, NullView, Raw, View, compact

from ferrule.specs import DEVICE_CODES, Dim, Scalar, Signature, Sym, Tensor, evaluate

INT64 = (-(1 << 63), (1 << 63) - 1)


@dataclass(frozen=True)
class Accepted:
    """What the body sees: parameters, then symbols."""

    seen: tuple[Any, ...]


@dataclass(frozen=True)
class Wrong:
    """The first error: its class and how its message begins."""

    kind: str
    opening: str


class _Found(Exception):
    def __init__(self, kind: str, opening: str) -> None:
        super().__init__(kind, opening)
        self.wrong = Wrong(kind, opening)


def judge(signature: Signature, arguments: Sequence[Argument]) -> Accepted | Wrong:
    """The one right outcome of a call."""
    try:
        if len(arguments) != len(signature.params):
            raise _Found("TypeError", "Expects ")
        for place, (param, argument) in enumerate(zip(signature.params, arguments, strict=True)):
            _check_kind(place, param, argument)
        symbols = _bind(signature, arguments)
        seen = [
            _check_value(signature, arguments, symbols, place) for place in range(len(arguments))
        ]
    except _Found as found:
        return found.wrong
    return Accepted((*seen, *(symbols[symbol] for symbol in signature.symbols)))


def _check_kind(place: int, param: Tensor | Scalar, argument: Argument) -> None:
    on = f"on argument #{place} "
    if isinstance(param, Scalar):
        takes: tuple[type, ...] = (bool, int)
        if param.dtype.kind == "float":
            takes = (bool, int, float)
        if not isinstance(argument, takes):
            raise _Found("TypeError", f"Mismatched type {on}")
        return
    if not isinstance(argument, View):
        raise _Found("TypeError", f"Mismatched type {on}")
    dtypes = {param.dtype.dlpack}
    if param.dtype.name in ("int8", "uint8"):
        dtypes = {0x00010800, 0x00010801}
    tests = [
        len(argument.shape) == len(param.shape),
        argument.dtype in dtypes,
        argument.device[0] == DEVICE_CODES[str(param.device)],
    ]
    if not all(tests):
        raise _Found("ValueError", f"Mismatched Tensor {on}")


def strides_of(argument: View) -> tuple[int, ...]:
    """The strides as the wrapper reads them."""
    return compact(argument.shape) if argument.strides is None else argument.strides


def _counts(argument: View, axis: int) -> bool:
    """Whether a stride means something."""
    return argument.shape[axis] > 1 and 0 not in argument.shape


def _dims(signature: Signature, which: str) -> Iterator[tuple[int, int, Dim]]:
    for place, param in enumerate(signature.params):
        if isinstance(param, Tensor):
            for axis, dim in enumerate(getattr(param, which)):
                yield place, axis, dim


def _bind(signature: Signature, arguments: Sequence[Argument]) -> dict[Sym, int]:
    values: dict[Sym, int] = {}
    for place, axis, dim in _dims(signature, "shape"):
        if isinstance(dim, Sym):
            values.setdefault(dim, arguments[place].shape[axis])
    in_shapes = set(values)
    for place, axis, dim in _dims(signature, "strides"):
        if isinstance(dim, Sym) and dim not in in_shapes and _counts(arguments[place], axis):
            values.setdefault(dim, strides_of(arguments[place])[axis])
    return {symbol: values.get(symbol, 1) for symbol in signature.symbols}


def _check_value(
    signature: Signature,
    arguments: Sequence[Argument],
    symbols: dict[Sym, int],
    place: int,
) -> Any:
    param, argument = signature.params[place], arguments[place]
    if isinstance(param, Scalar):
        return _check_scalar(place, param, argument)
    in_shapes = {dim for _, _, dim in _dims(signature, "shape")}
    for axis, dim in enumerate(param.shape):
        what = f"{param.name}.shape[{axis}] on argument #{place} "
        _check_dim(what, dim, argument.shape[axis], symbols, size=True, ranged=True)
    for axis, dim in enumerate(param.strides):
        if _counts(argument, axis):
            what = f"{param.name}.strides[{axis}] on argument #{place} "
            ranged = dim not in in_shapes
            _check_dim(what, dim, strides_of(argument)[axis], symbols, size=False, ranged=ranged)
    address = (argument.data + argument.byte_offset) % (1 << 64)
    if address % param.align:
        raise _Found("ValueError", f"Misaligned Tensor data on argument #{place} ")
    if argument.data == 0 and 0 not in argument.shape:
        raise _Found("ValueError", f"Invalid Tensor data on argument #{place} ")
    return address - (1 << 64) if address >= 1 << 63 else address


def _check_dim(
    what: str, dim: Dim, value: int, symbols: dict[Sym, int], *, size: bool, ranged: bool
) -> None:
    if isinstance(dim, int):
        if value != dim:
            raise _Found("ValueError", f"Mismatched {what}")
    elif isinstance(dim, Sym):
        high = (1 << (dim.width - 1)) - 1
        low = 0 if size else -high - 1
        bound = ranged and value == symbols[dim]
        if bound and not low <= value <= high:
            raise _Found("ValueError", f"Out of bound {what}")
        if bound and value % dim.divisibility:
            raise _Found("ValueError", f"Invalid {what}")
        if value != symbols[dim]:
            _mismatched_symbol(what, dim, value, size, ranged)
    else:
        _check_expression(what, dim, value, symbols, size)


def _mismatched_symbol(what: str, dim: Sym, value: int, size: bool, ranged: bool) -> None:
    """A later place of a symbol; a stride that could have bound it is checked for itself first."""
    if not size and ranged:
        half = 1 << (dim.width - 1)
        if not -half <= value < half:
            raise _Found("ValueError", f"Out of bound {what}")
        if value % dim.divisibility:
            raise _Found("ValueError", f"Invalid {what}")
    raise _Found("ValueError", f"Mismatched {what}")


def _check_expression(what: str, dim: Dim, value: int, symbols: dict[Sym, int], size: bool) -> None:
    try:
        wanted = evaluate(dim, symbols)
    except (OverflowError, ZeroDivisionError):
        raise _Found("ValueError", f"Invalid {what}") from None
    if value != wanted:
        raise _Found("ValueError", f"Mismatched {what}")
    if size and value < 0:
        raise _Found("ValueError", f"Out of bound {what}")


def _check_scalar(place: int, param: Scalar, argument: Argument) -> Any:
    on = f"on argument #{place} "
    match param.dtype.kind:
        case "bool":
            if argument not in (0, 1):
                raise _Found("ValueError", f"Invalid value {on}")
            return int(argument)
        case "float":
            return _rounded(float(argument), param.dtype.bits)
        case _:
            low, high = param.dtype.range
            if not low <= argument <= high:
                raise _Found("ValueError", f"Out of bound value {on}")
            value, bits = int(argument), param.dtype.bits
            return value - (1 << bits) if value >= 1 << (bits - 1) else value


def _rounded(value: float, bits: int) -> float:
    if bits == 64 or math.isnan(value) or math.isinf(value):
        return value
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


__all__ = ["INT64", "Accepted", "NullView", "Raw", "Wrong", "judge"]

"""The second round of checks: values of arguments whose kinds fit, from left to right."""

from __future__ import annotations

import struct
from typing import Any

from ferrule.specs import DEVICE_CODES, Dim, Sym, evaluate
from ferrule.specs import params as kinds
from oracle.arguments import INT64, Big, Dev, Dtype, Items, Numbers, Opaque, Text, View, fits
from oracle.places import Spot, Symbols, spots
from oracle.walk import Site, Where
from oracle.wrong import Found

DTYPE_NAMES = {
    "float32": 0x00012002,
    "int8": 0x00010800,
    "uint64": 0x00014001,
    "bfloat16": 0x00011004,
    "bool": 0x00010806,
    "float16x4": 0x00041002,
    "float8_e4m3fn": 0x0001080A,
    "": 0x00000003,
}
"""Names of dtypes that tests use, with what tvm-ffi takes them for; any other is none."""


def check_value(part: Site, symbols: Symbols) -> None:
    """Sizes, strides, alignment and ranges of one parameter.  Raises Found."""
    where = part.where
    match part.param, part.argument:
        case kinds.Tensor() as spec, View() as view:
            _check_spots(part, symbols)
            _check_data(spec, view, where)
        case kinds.Shape(), (Numbers() | Items()):
            _check_spots(part, symbols)
        case kinds.Scalar() as spec, argument:
            _check_number(spec, argument, where)
        case kinds.Pointer() as spec, argument:
            address = _address(argument)
            refused = address < 0 or (address == 0 and not spec.nullable) or address % spec.align
            if refused:
                raise Found("ValueError", f"*{where.on}")
        case kinds.Stream(), argument:
            if _address(argument) < 0:
                raise Found("ValueError", f"*{where.on}")
        case kinds.Constant(value=value), argument:
            if not _equal(value, argument):
                raise Found("ValueError", f"Mismatched constant value {where.on}")
        case kinds.DataType(), Text(data):
            if data.decode() not in DTYPE_NAMES:
                raise Found("ValueError", f"*{where.on}")
        case kinds.Device(), Text(data):
            if device_of(data.decode()) is None:
                raise Found("ValueError", f"*{where.on}")


def _address(argument: Any) -> int:
    match argument:
        case Big():
            return -1  # as any other that is none
        case Opaque(address):
            return address
        case None:
            return 0
    return int(argument)


def dtype_code(argument: Dtype | Text) -> int:
    """The four bytes of a dtype that was accepted."""
    return argument.code if isinstance(argument, Dtype) else DTYPE_NAMES[argument.data.decode()]


def device_of(argument: Dev | str) -> tuple[int, int] | None:
    """Type and index of a device, or None for a text that names none."""
    if isinstance(argument, Dev):
        return argument.type, argument.index
    name, colon, index = argument.partition(":")
    if name not in DEVICE_CODES or (colon and not (index.isascii() and index.isdigit())):
        return None
    number = int(index or "0")
    return (DEVICE_CODES[name], number) if number < 1 << 31 else None


def _equal(value: object, argument: Any) -> bool:
    match value:
        case str():
            return value.encode() == argument.data
        case float():
            return struct.pack("<d", value) == struct.pack("<d", argument)
    return bool(value == argument)  # which no Big is


def _check_number(spec: kinds.Scalar, argument: Any, where: Where) -> None:
    number = argument.value if isinstance(argument, Big) else argument
    if spec.dtype.kind == "bool" and number not in (0, 1):
        actual = "an int " if isinstance(argument, Big) else number
        raise Found("ValueError", f"Invalid value {where.on}", f"but got {actual}")
    if spec.dtype.is_integer:
        low, high = spec.dtype.range
        if not low <= number <= high:
            clause = f"range [{low}, {high}], but got "
            raise Found("ValueError", f"Out of bound value {where.on}", clause)
    if spec.dtype.kind == "float" and isinstance(argument, Big):
        _check_big_float(argument.value, where)


def _check_big_float(number: int, where: Where) -> None:
    clause = f"int64 range [{INT64[0]}, {INT64[1]}], but got an int "
    try:
        float(number)
    except OverflowError:
        side = "above 1.8e308" if number > 0 else "below -1.8e308"
        clause = f"float64 range [-1.8e308, 1.8e308], but got an int {side}"
    else:
        if not where.contained:
            return
    raise Found("ValueError", f"Out of bound value {where.on}", clause)


def _check_data(spec: kinds.Tensor, view: View, where: Where) -> None:
    if (view.data + view.byte_offset) % (1 << 64) % spec.align:
        clause = f"expected data alignment={spec.align} bytes, but got address "
        raise Found("ValueError", f"Misaligned Tensor data {where.on}", clause)
    if view.data == 0 and 0 not in view.shape:
        raise Found("ValueError", f"Invalid Tensor data {where.on}")


def _check_spots(part: Site, symbols: Symbols) -> None:
    for spot in spots(part):
        match spot.dim:
            case int():
                if spot.value != spot.dim:
                    raise _found(spot, "Mismatched", f"expected to be {spot.dim}, but got ")
            case Sym():
                _check_symbol(spot, spot.dim, symbols)
            case _:
                _check_expression(spot, spot.dim, symbols)


def _found(spot: Spot, problem: str, clause: str = "") -> Found:
    if problem == "*":
        return Found("ValueError", f"*{spot.label} on ", clause)
    return Found("ValueError", spot.where.named(f"{problem} {spot.label}"), clause)


def _range_problem(spot: Spot, symbol: Sym, value: int) -> str | None:
    high = (1 << symbol.width - 1) - 1
    if not (value if symbol.min is None else symbol.min) <= value:
        return "Out of bound"
    if not value <= (value if symbol.max is None else symbol.max):
        return "Out of bound"
    if not (-high - 1 if spot.signed else 0) <= value <= high:
        return "Out of bound"
    return "Invalid" if value % symbol.divisibility else None


def _check_symbol(spot: Spot, symbol: Sym, symbols: Symbols) -> None:
    value, wanted = spot.value, symbols.values[symbol]
    assert value is not None
    binder = symbols.binders.get(symbol)
    # A place that could have bound the symbol is checked for itself, whether it did or not.
    could_bind = symbol in symbols.open or (binder is not None and binder.key == spot.key)
    own = _range_problem(spot, symbol, value)
    if own and could_bind:
        raise _found(spot, own)
    if value != wanted:
        raise _found(spot, "Mismatched", f" = {wanted}, but got {value}")
    if value < 0 and not spot.signed:
        raise _found(spot, "Out of bound")


def _check_expression(spot: Spot, dim: Dim, symbols: Symbols) -> None:
    solved = [s for s in symbols.solved if symbols.binders[s].key == spot.key]
    if not all(fits(symbols.values[symbol]) for symbol in solved):
        raise _found(spot, "*")
    try:
        wanted = evaluate(dim, symbols.values)
    except (OverflowError, ZeroDivisionError):
        # What a symbol is that could not be solved for within 64 bits is nobody's business.
        raise _found(spot, "*" if solved else "Invalid") from None
    if spot.value != wanted:
        raise _found(spot, "Mismatched", f" = {wanted}, but got {spot.value}")
    assert spot.value is not None
    if spot.value < 0 and not spot.signed:
        raise _found(spot, "Out of bound")
    for symbol in solved:
        problem = _range_problem(spot, symbol, symbols.values[symbol])
        if problem:
            name = symbols.names[symbol]
            raise Found("ValueError", spot.where.named(f"{problem} {name}"))

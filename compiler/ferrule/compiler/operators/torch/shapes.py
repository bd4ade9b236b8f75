"""The sizes of a call in Python: of torch tensors with or without memory, also symbolic ones.

`bound` finds the value of each symbol and compares all that a call's checks compare of sizes,
strides, dtypes and devices. A comparison of symbolic sizes is a guard of what is traced. That
elements of two tensors may share memory, alignment, and the range of numbers are for the call.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

from ferrule import specs
from ferrule.compiler.operators.dims import Mismatch, Symbolic, Symbols
from ferrule.compiler.operators.torch.words import device_name, dlpack_word
from ferrule.specs import params
from ferrule.specs.binding import ACTUAL, Place, bindings_of, places_of


def _smaller(left: Any, right: Any) -> Any:
    return sys.modules["torch"].sym_min(left, right)


def _larger(left: Any, right: Any) -> Any:
    return sys.modules["torch"].sym_max(left, right)


def _opposite(truth: Any) -> Any:
    return sys.modules["torch"].sym_not(truth)


_SIZES: Final = Symbolic(_smaller, _larger, lambda size: size == 0, _opposite)
value_of: Final = _SIZES.value


def loosely_bound(given: tuple[specs.Param, ...], values: Sequence[Any]) -> Symbols:
    """The values of the symbols for arguments that a call refuses, as far as they tell them: a dim
    that is not there counts as 0."""
    symbols: Symbols = {}
    for binding in bindings_of(given):
        actual = _loose(binding.places[0], values)
        symbols[binding.symbol] = value_of(binding.solution, {**symbols, ACTUAL: actual})
    return symbols


def _loose(place: Place, values: Sequence[Any]) -> Any:
    try:
        actual = _actual(place, values)
    except (AttributeError, IndexError, TypeError):
        actual = None
    return 0 if actual is None else actual


def bound(given: tuple[specs.Param, ...], values: Sequence[Any]) -> Symbols:
    """The values of the symbols, for these values of the parameters that a call gives.

    Raises Mismatch if the call would be refused.
    """
    for param, value in zip(given, values, strict=True):
        _check(param, value)
    symbols: Symbols = {}
    for binding in bindings_of(given):
        actual = next((a for p in binding.places if (a := _actual(p, values)) is not None), None)
        if actual is None and all(place.kind == "strides" for place in binding.places):
            actual = binding.symbol.fallback
        if actual is not None:
            symbols[binding.symbol] = value_of(binding.solution, {**symbols, ACTUAL: actual})
    for place in places_of(given):
        _compare(place, _actual(place, values), symbols)
    for symbol, value in symbols.items():
        _require(value % symbol.divisibility == 0, f"{symbol} is no multiple")
        if symbol.min is not None:
            _require(value >= symbol.min, f"{symbol} is less than {symbol.min}")
        if symbol.max is not None:
            _require(value <= symbol.max, f"{symbol} is more than {symbol.max}")
        if isinstance(value, int) and symbol.width == 32:
            _require(-(1 << 31) <= value < 1 << 31, f"{symbol} leaves the range of 32 bits")
    return symbols


def check_required(
    signature: specs.Signature,
    given: tuple[specs.Param, ...],
    values: Sequence[Any],
    symbols: Symbols,
) -> None:
    """Raises Mismatch unless the requirements hold of which these arguments tell the sizes."""
    numbers = {
        param.value: value
        for param, value in zip(given, values, strict=True)
        if isinstance(param, params.Scalar) and param.dtype.kind != "float"
    }
    for required in signature.requires:
        try:
            holds = _SIZES.holds(required.condition, {**symbols, **numbers})
        except KeyError:
            continue
        _require(holds, f"it requires {required.text(signature.known)}")


def _check(param: specs.Param, value: Any) -> None:
    match param:
        case params.Tensor():
            _check_tensor(param, value)
        case params.Optional(item=item):
            if value is not None:
                _check(item, value)
        case params.Tuple(items=items):
            _require(len(value) == len(items), f"{param.name} has another number of items")
            for item, part in zip(items, value, strict=True):
                _check(item, part)
        case params.Array(item=item) | params.List(item=item) if item is not None:
            for part in value:
                _check(item, part)
        case params.Shape(dims=dims):
            _require(len(value) == len(dims), f"{param.name} has another number of dims")


def _check_tensor(param: specs.Tensor, tensor: Any) -> None:
    _require(tensor is not None, f"{param.name} is None")
    word = dlpack_word(tensor.dtype)
    wanted = _words_of(param)
    _require(word in wanted, f"{param.name} has another dtype")
    _require(tensor.dim() == len(param.shape), f"{param.name} has another number of dims")
    other = f"{param.name} is on another device"
    if tensor.device.type == "meta":
        return  # it stands for tensors of all devices
    _require(tensor.device.type == device_name(param.device), other)
    _require(param.device_id is None or (tensor.device.index or 0) == param.device_id, other)


_BYTES: Final = (specs.Int8, specs.Uint8)


def _words_of(param: specs.Tensor) -> set[int]:
    if param.packed:
        return {param.dtype.dlpack + (1 << 16)}
    if param.dtype in _BYTES and not param.exact:
        return {each.dlpack for each in _BYTES}
    return {param.dtype.dlpack}


def _require(condition: Any, why: str) -> None:
    if isinstance(condition, bool):
        fits = condition
    else:
        fits = _holds(condition)
    if not fits:
        raise Mismatch(why)


def _holds(condition: Any) -> bool:
    """Whether a symbolic condition holds; what is traced then depends on it."""
    try:
        sys.modules["torch"]._check(condition)
    except RuntimeError:
        return False
    return True


def _actual(place: Place, values: Sequence[Any]) -> Any:
    """The size or stride of a call at a place; None where it is absent or has no meaning."""
    value = values[place.path[0]]
    for step in place.path[1:]:
        value = None if value is None else value[step]
    if value is None:
        return None
    if place.kind == "dims":
        return value[place.axis]
    return _of_tensor(place, value)


def _of_tensor(place: Place, tensor: Any) -> Any:
    shape, strides = tensor.shape, tensor.stride()
    if place.kind == "strides" and (shape[place.axis] <= 1 or tensor.numel() == 0):
        return None
    found = shape[place.axis] if place.kind == "shape" else strides[place.axis]
    if not isinstance(place.param, specs.Tensor) or not place.param.packed:
        return found
    # An element of torch's tensor is two of the spec's along the dim of stride 1.
    is_unit = place.axis == place.param.strides.index(1)
    return found if is_unit == (place.kind == "strides") else found * 2


def _compare(place: Place, actual: Any, symbols: Symbols) -> None:
    if actual is None:
        return
    try:
        expected = value_of(place.dim, symbols)
    except KeyError:
        return
    _require(actual == expected, f"{place.name} is another one")

"""What a wrapper must do with a call, from the specs alone.

`judge` gives the leaves and symbols that the body must see, or the first error.  It shares no code
with the compiler, and none with the part of specs that says where symbols bind.

The order: the number of arguments; kind, ndim, dtype and device from left to right; then symbols
bind; then sizes, strides, alignment and values from left to right; then the requirements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ferrule.specs import (
    ALSO_TAKEN,
    DEVICE_NAMES,
    HOST_DEVICES,
    Signature,
    evaluate,
    holds,
)
from ferrule.specs import params as kinds
from ferrule.specs.conditions import dims_of
from oracle.arguments import (
    UNREGISTERED,
    Argument,
    Big,
    Items,
    Numbers,
    Opaque,
    View,
    derives,
    type_key_of,
)
from oracle.leaves import Leaf, leaves_of
from oracle.places import Symbols, bind
from oracle.values import check_value
from oracle.walk import Site, Where, chosen, elements, present, takes, tops
from oracle.wrong import Found, Wrong


@dataclass(frozen=True)
class Accepted:
    """What the body sees: the leaves of all parameters, then the symbols."""

    leaves: tuple[Leaf, ...]
    symbols: tuple[Leaf, ...]


def judge(signature: Signature, arguments: Sequence[Argument]) -> Accepted | Wrong:
    """The one right outcome of a call."""
    try:
        return _judge(signature, arguments)
    except Found as found:
        return found.wrong


def _judge(signature: Signature, arguments: Sequence[Argument]) -> Accepted:
    wanted = [p for p in signature.params if not isinstance(p, kinds.EnvStream)]
    if len(arguments) != len(wanted):
        raise Found("TypeError", "Expects ")
    sites = list(tops(signature, arguments))
    gpu = _Gpu()
    for site in sites:
        _check_kind(site, gpu)
    parts = [part for site in sites for part in present(site)]
    symbols = bind(signature, parts)
    for part in parts:
        check_value(part, symbols)
    _check_required(signature, sites, symbols)
    leaves = leaves_of(signature, sites, gpu.device)
    return Accepted(tuple(leaves), tuple(_read(symbols, signature)))


def _check_required(signature: Signature, sites: Sequence[Site], symbols: Symbols) -> None:
    """The requirements, in their order; every part of one is computed."""
    known = dict(symbols.values)
    for site in sites:
        if isinstance(site.param, kinds.Scalar) and site.param.dtype.kind != "float":
            if isinstance(site.argument, int | Big):
                given = site.argument
                known[site.param.value] = given.value if isinstance(given, Big) else int(given)
    for required in signature.requires:
        try:
            if any(known[symbol] >= 1 << 63 for symbol in required.symbols):
                raise OverflowError
            for dim in dims_of(required.condition):
                evaluate(dim, known)
            kept = holds(required.condition, known)
        except (OverflowError, ZeroDivisionError):
            kept = False
        if not kept:
            text = required.text(signature.known)
            raise Found("ValueError", "Invalid sizes when calling", f"expected {text}, ")


def _read(symbols: Symbols, signature: Signature) -> list[Leaf]:
    return [symbols.values[symbol] % (1 << symbol.width) for symbol in signature.symbols]


@dataclass
class _Gpu:
    """The device of the first tensor of a call that is not the CPU's."""

    device: tuple[int, int] | None = None


def _refuse(kind: str, what: str, where: Where, clause: str = "") -> Found:
    return Found(kind, f"{what} {where.on}", clause)


def _check_kind(site: Site, gpu: _Gpu) -> None:
    """The kind of an argument, and the header of a tensor; of items in their order."""
    param, argument, where = site.param, site.argument, site.where
    if isinstance(param, kinds.Optional):
        if argument is not None:
            _check_kind(Site(param.item, argument, where), gpu)
        return
    if not _accepts(site):
        raise _refuse("TypeError", "Mismatched type", where)
    match param, argument:
        case kinds.Union(members=members), _:
            _check_kind(Site(members[chosen(members, argument)], argument, where), gpu)
        case kinds.Tensor(), View():
            _check_header(param, argument, where, gpu)
        case kinds.Tensor(), _:
            raise _refuse("TypeError", "Mismatched type", where)
        case kinds.Shape(), (Numbers() | Items()):
            _check_shape(param, argument, where)
        case kinds.Tuple(items=items), Items(items=values):
            if len(items) != len(values):
                clause = f"expected tuple size={len(items)}, but got tuple size={len(values)}"
                raise _refuse("ValueError", "Mismatched tuple size", where, clause)
            for i, (item, value) in enumerate(zip(items, values, strict=True)):
                _check_kind(Site(item, value, where.item(i)), gpu)
        case _:
            for element in elements(site):
                _check_kind(element, gpu)


def _accepts(site: Site) -> bool:
    param, argument = site.param, site.argument
    match param:
        case kinds.Pointer() | kinds.Stream():
            return argument is None or type(argument) is int or isinstance(argument, Opaque | Big)
        case kinds.Object(type_key=base):
            key = type_key_of(argument)
            return key is not None and base != UNREGISTERED and derives(key, base)
    return takes(param, argument)


def _check_header(param: kinds.Tensor, view: View, where: Where, gpu: _Gpu) -> None:
    if len(view.shape) != len(param.shape):
        clause = f"expected ndim={len(param.shape)}, but got ndim={len(view.shape)}"
        raise _refuse("ValueError", "Mismatched Tensor", where, clause)
    dtypes = {param.dtype.dlpack}
    if param.dtype.name in ("int8", "uint8"):
        dtypes = {0x00010800, 0x00010801}
    if param.packed:
        dtypes = {0x00020411}
    if view.dtype not in dtypes:
        raise _refuse("ValueError", "Mismatched Tensor", where, "expected dtype=")
    names = (str(param.device), *ALSO_TAKEN.get(str(param.device), ()))
    if DEVICE_NAMES[view.device[0]] not in names:
        clause = f"expected device_type={param.device}, but got device="
        raise _refuse("ValueError", "Mismatched Tensor", where, clause)
    _check_device_index(param, view, where, gpu)


def _check_device_index(param: kinds.Tensor, view: View, where: Where, gpu: _Gpu) -> None:
    wrong = _refuse("ValueError", "Mismatched device index", where, f"but got {view.device[1]}")
    if param.device_id not in (None, view.device[1]):
        raise wrong
    if DEVICE_NAMES[view.device[0]] in HOST_DEVICES:
        return
    gpu.device = gpu.device or view.device
    if gpu.device[1] != view.device[1]:
        raise wrong


def _check_shape(param: kinds.Shape, argument: Numbers | Items, where: Where) -> None:
    values = argument.values if isinstance(argument, Numbers) else argument.items
    if len(values) != len(param.dims):
        clause = f"expected shape size={len(param.dims)}, but got shape size={len(values)}"
        raise _refuse("ValueError", "Mismatched Shape", where, clause)
    for i, value in enumerate(values):
        if isinstance(value, Big):
            what = f"Out of bound {where.label}[{i}]"
            raise Found("ValueError", where.named(what), "int64 range [-9223372036854775808, ")
        if type(value) is not int:
            what = f"Invalid shape element type {where.label}[{i}]"
            raise Found("TypeError", where.named(what), "expected int, but got ")

"""Sizes, strides and shape elements of a call, and the values that symbols get from them.

A symbol's value is that of its first bare size in a parameter that is always there.  One that has
none gets it from the first place where it stands bare that the call has and that means something:
strides mean nothing in a dim of size 0 or 1 or in a tensor without elements, unless they are exact.
One that stands bare nowhere is solved from an expression.  What no place of the call tells reads
as 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ferrule.specs import Compound, Dim, Signature, Sym, evaluate, symbols_of
from ferrule.specs import params as kinds
from ferrule.specs.params import Param
from oracle.arguments import INT64, Items, Numbers, View, compact
from oracle.walk import Site, Where


@dataclass(frozen=True)
class Spot:
    """A size, stride or shape element: of a spec, or of a call, where it has a value too.

    `where` is the parameter that has it and `label` what messages call it.  `size`: a size or
    shape element; `signed`: it may be negative.
    """

    where: Where
    label: str
    dim: Dim
    size: bool
    signed: bool
    value: int | None = None

    @property
    def key(self) -> tuple[tuple[int, ...], str]:
        return self.where.path, self.label


@dataclass
class Symbols:
    """The values of the symbols of a call, and their names in text.

    `solved` are those that stand bare nowhere; `binders` the places that gave a value; `open` are
    those whose value it takes a call to tell where it comes from.
    """

    names: dict[Sym, str]
    values: dict[Sym, int] = field(default_factory=dict)
    binders: dict[Sym, Spot] = field(default_factory=dict)
    open: set[Sym] = field(default_factory=set)
    solved: set[Sym] = field(default_factory=set)


def spots(part: Site) -> Iterator[Spot]:
    """The places of one parameter at a call, sizes first, without strides that mean nothing."""
    where, label = part.where, part.where.label
    match part.param, part.argument:
        case kinds.Shape() as spec, (Numbers() | Items()) as argument:
            values = argument.values if isinstance(argument, Numbers) else argument.items
            signed = spec.kind in ("Stride", "Coord", "IntTuple")
            for i, (dim, value) in enumerate(zip(spec.dims, values, strict=True)):
                yield Spot(where, f"{label}[{i}]", dim, True, signed, value)
        case kinds.Tensor() as spec, View() as view:
            sizes, strides = logical(spec, view)
            for i, (dim, size) in enumerate(zip(spec.shape, sizes, strict=True)):
                yield Spot(where, f"{label}.shape[{i}]", dim, True, False, size)
            for i, (dim, stride) in enumerate(zip(spec.strides, strides, strict=True)):
                if i in spec.exact_strides or (view.shape[i] > 1 and 0 not in view.shape):
                    yield Spot(where, f"{label}.strides[{i}]", dim, False, True, stride)


def logical(spec: kinds.Tensor, view: View) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides in elements of the spec's dtype: two of those are packed in each byte."""
    strides = wrapped(compact(view.shape)) if view.strides is None else view.strides
    if not spec.packed:
        return view.shape, strides
    unit = [axis for axis, stride in enumerate(spec.strides) if stride == 1]
    sizes = tuple(_twice(size) if i == unit[0] else size for i, size in enumerate(view.shape))
    return sizes, tuple(s if i in unit else _twice(s) for i, s in enumerate(strides))


def wrapped(numbers: Sequence[int]) -> tuple[int, ...]:
    """Strides that no tensor has, because its elements would not fit in memory: modulo 2**64."""
    return tuple((number + (1 << 63)) % (1 << 64) - (1 << 63) for number in numbers)


def _twice(number: int) -> int:
    """The double; past 64 bits the last number that they have."""
    return max(INT64[0], min(INT64[1], number * 2))


def stated(params: Sequence[Param]) -> Iterator[Spot]:
    """Every place of a signature, present or not, without a value."""
    for i, param in enumerate(params):
        yield from _stated(param, Where(param.name, (i,)))


def _stated(param: Param, where: Where) -> Iterator[Spot]:
    match param:
        case kinds.Tensor(shape=shape, strides=strides):
            for dim in shape:
                yield Spot(where, "", dim, True, False)
            for dim in strides:
                yield Spot(where, "", dim, False, True)
        case kinds.Shape(dims=dims):
            for dim in dims:
                yield Spot(where, "", dim, True, False)
        case kinds.Tuple(items=items):
            for i, item in enumerate(items):
                yield from _stated(item, where.item(i))
        case kinds.Optional(item=item):
            yield from _stated(item, where.maybe())
        case kinds.Union(members=members):
            for i, member in enumerate(members):
                yield from _stated(member, where.part(str(i)).maybe())


def bind(signature: Signature, parts: Sequence[Site]) -> Symbols:
    """The values of all symbols for a call whose kinds fit."""
    statements = list(stated([p for p in signature.params if not isinstance(p, kinds.EnvStream)]))
    here = [(part.where.optional, spot) for part in parts for spot in spots(part)]
    sizes = [(optional, spot) for optional, spot in here if spot.size]
    strides = [(optional, spot) for optional, spot in here if not spot.size]
    symbols = Symbols(signature.symbols)
    bare = {spot.dim for spot in statements if isinstance(spot.dim, Sym)}
    certain = {s.dim for s in statements if s.size and not s.where.optional}
    for symbol in signature.symbols:
        if symbol in bare:
            places = [s for opt, s in sizes if not (opt and symbol in certain)]
            if symbol not in certain:
                symbols.open.add(symbol)
            rest = [s for opt, s in strides if not opt] + [s for opt, s in strides if opt]
            _bind_first(symbols, symbol, places + rest)
    _solve(symbols, [s for s in signature.symbols if s not in bare], sizes)
    return symbols


def _bind_first(symbols: Symbols, symbol: Sym, places: Sequence[Spot]) -> None:
    symbols.values[symbol] = _unbound(symbol)
    for spot in places:
        if spot.dim == symbol and spot.value is not None:
            symbols.values[symbol] = spot.value
            symbols.binders[symbol] = spot
            return


def _unbound(symbol: Sym) -> int:
    """1, or the nearest value that a symbol's bounds and divisibility allow, from 1 on where there
    is one."""
    half = 1 << symbol.width - 1
    high = half - 1 if symbol.max is None else symbol.max
    start = 1 if symbol.min is None else max(1, symbol.min)
    for value in range(start, min(start + symbol.divisibility, high + 1)):
        if value % symbol.divisibility == 0:
            return value
    return next(v for v in range(high, -half - 1, -1) if v % symbol.divisibility == 0)


def _solve(symbols: Symbols, pending: list[Sym], sizes: Sequence[tuple[bool, Spot]]) -> None:
    while pending:
        symbol, spot = next(
            (unknown[0], spot)
            for optional, spot in sizes
            if not optional
            and len(unknown := [s for s in set(symbols_of(spot.dim)) if s in pending]) == 1
            and invertible(spot.dim, unknown[0])
        )
        symbols.values[symbol] = _solution(spot, symbol, symbols.values)
        symbols.binders[symbol] = spot
        symbols.solved.add(symbol)
        pending.remove(symbol)


def invertible(dim: Dim, symbol: Sym) -> bool:
    """Whether an expression is a sum in which the symbol stands once, times numbers."""
    match dim:
        case Sym():
            return dim == symbol
        case Compound("add" | "sub", lhs, rhs):
            has = [symbol in set(symbols_of(side)) for side in (lhs, rhs)]
            return has != [True, True] and any(invertible(side, symbol) for side in (lhs, rhs))
        case Compound("mul", lhs, rhs):
            return isinstance(rhs, int) and rhs != 0 and invertible(lhs, symbol)
    return False


def _solution(spot: Spot, symbol: Sym, values: dict[Sym, int]) -> int:
    """The expression is a line in the symbol: where it has the value of the call, rounded down."""
    start, following = (evaluate(spot.dim, {**values, symbol: x}) for x in (0, 1))
    assert spot.value is not None
    return (spot.value - start) // (following - start)

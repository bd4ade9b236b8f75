"""Where each symbol of a signature gets its value.

A symbol binds at its first bare occurrence in a parameter that is always there: sizes of tensors
and dims of shapes first, from left to right, then strides.  A stride means nothing in a dim of
size 0 or 1 or in a tensor without elements, so a symbol that stands only in strides binds at the
first occurrence that means something at the call, those that are always there before the others,
and reads as 1 where none does.  A symbol that stands bare nowhere is solved from its first
occurrence in an expression that can be inverted.  A symbol that stands only in parameters that can
be absent binds in the first of them that is there; expressions can have it only where one is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from typing_extensions import assert_never

from ferrule.specs.expr import Compound, Dim, Sym, make, symbols_of
from ferrule.specs.params import (
    Constant,
    Elements,
    EnvStream,
    Object,
    Optional,
    Pairs,
    Param,
    Plain,
    Pointer,
    Scalar,
    Shape,
    Tensor,
    Tuple,
    Union,
)

Path = tuple[int, ...]
"""Position of an argument, then of items inside it."""


@dataclass(frozen=True, slots=True)
class Place:
    """A size, stride or shape element at a call.

    `param` is the parameter that holds it and `path` where that is; `name` is what messages call
    it, `t[1].shape[0]`.  `within`: what must have come for the parameter to be there, each the path
    of an optional or a union and the position of its member.
    """

    param: Tensor | Shape
    path: Path
    name: str
    kind: Literal["shape", "strides", "dims"]
    axis: int
    within: tuple[tuple[Path, int], ...]
    dim: Dim

    @property
    def optional(self) -> bool:
        """Whether the parameter can be absent."""
        return bool(self.within)

    def implies(self, other: Place) -> bool:
        """Whether the parameter of the other is there wherever this one's is."""
        return self.within[: len(other.within)] == other.within


ACTUAL: Final = Sym("actual value of a place", "actual")
"""Stands for the value at the call in the solution of an inverted expression."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A symbol's value: what the first of `places` that counts at the call holds.

    `solution` is the symbol as an expression of `ACTUAL` and of symbols bound before: `ACTUAL`
    itself where it stands bare.
    """

    symbol: Sym
    places: tuple[Place, ...]
    solution: Dim = ACTUAL


def places_of(params: tuple[Param, ...]) -> tuple[Place, ...]:
    """Every size and shape element from left to right, then every stride."""
    found = [place for i, param in enumerate(params) for place in _walk(param, (i,), param.name)]
    return tuple(
        [p for p in found if p.kind != "strides"] + [p for p in found if p.kind == "strides"]
    )


def _walk(
    param: Param, path: Path, name: str, within: tuple[tuple[Path, int], ...] = ()
) -> Iterator[Place]:
    match param:
        case Tensor(shape=shape, strides=strides):
            for kind, dims in (("shape", shape), ("strides", strides)):
                for axis, dim in enumerate(dims):
                    label = f"{name}.{kind}[{axis}]"
                    yield Place(param, path, label, kind, axis, within, dim)  # type: ignore[arg-type]
        case Shape(dims=dims):
            for axis, dim in enumerate(dims):
                yield Place(param, path, f"{name}[{axis}]", "dims", axis, within, dim)
        case Tuple(items=items):
            for i, item in enumerate(items):
                yield from _walk(item, (*path, i), f"{name}[{i}]", within)
        case Optional(item=item):
            yield from _walk(item, path, name, (*within, (path, 0)))
        case Union(members=members):
            for i, member in enumerate(members):
                yield from _walk(member, path, name, (*within, (path, i)))
        case Plain() | Scalar() | Constant() | Pointer() | EnvStream() | Object():
            return
        case Elements() | Pairs():  # whose elements bind nothing
            return
        case _:
            assert_never(param)


def bindings_of(params: tuple[Param, ...]) -> tuple[Binding, ...]:
    """How each symbol is bound, in the order in which that can be done.

    Raises ValueError for a symbol whose value no call, or not every call, could tell.
    """
    places = places_of(params)
    symbols = list(dict.fromkeys(s for place in places for s in symbols_of(place.dim)))
    bound: dict[Sym, Binding] = {}
    for symbol in symbols:
        bare = _bare(symbol, places)
        if bare:
            bound[symbol] = Binding(symbol, bare)
    pending = [symbol for symbol in symbols if symbol not in bound]
    while pending:
        solved = _solve_one(pending, places, bound)
        if solved is None:
            where = next(p.name for p in places if pending[0] in set(symbols_of(p.dim)))
            raise ValueError(
                f"the symbol {pending[0].name or 'without a name'} in {where} stands only inside "
                f"expressions that no call can be solved for; use it as a whole size or stride of "
                f"some parameter"
            )
        bound[solved.symbol] = solved
        pending.remove(solved.symbol)
    _check_known(places, bound)
    return tuple(bound.values())


def _check_known(places: tuple[Place, ...], bound: dict[Sym, Binding]) -> None:
    """Every symbol of an expression has a value wherever the expression is."""
    for place in places:
        if not isinstance(place.dim, Compound):
            continue
        for symbol in symbols_of(place.dim):
            owners = bound[symbol].places
            if not any(place.implies(owner) for owner in owners):
                raise ValueError(
                    f"{place.name} has the symbol {symbol.name or 'without a name'} of "
                    f"{owners[0].name}, which can be absent; use it as a whole size of a "
                    f"parameter that is always there"
                )


def _bare(symbol: Sym, places: tuple[Place, ...]) -> tuple[Place, ...]:
    """The places at which a symbol can bind: one that always counts, or all that can."""
    standing = [place for place in places if place.dim == symbol]
    certain = [p for p in standing if not p.optional and p.kind != "strides"]
    if certain:
        return (certain[0],)
    sizes = [place for place in standing if place.kind != "strides"]
    strides = [place for place in standing if place.kind == "strides"]
    return (*sizes, *sorted(strides, key=lambda place: place.optional))


def _solve_one(
    pending: list[Sym], places: tuple[Place, ...], bound: dict[Sym, Binding]
) -> Binding | None:
    for place in places:
        unknown = [symbol for symbol in symbols_of(place.dim) if symbol in pending]
        if len(unknown) != 1 or place.optional or place.kind == "strides":
            continue
        solution = invert(place.dim, unknown[0], ACTUAL)
        if solution is not None:
            return Binding(unknown[0], (place,), solution)
    return None


def invert(dim: Dim, symbol: Sym, value: Dim) -> Dim | None:
    """The symbol for which `dim` has this value, as an expression; None where none is certain.

    Division is floored: whether the value really is one of `dim` is a check of its own.
    """
    if dim == symbol:
        return value
    if not isinstance(dim, Compound):
        return None
    inside_left = symbol in set(symbols_of(dim.lhs))
    if inside_left and symbol in set(symbols_of(dim.rhs)):
        return None
    known = dim.rhs if inside_left else dim.lhs
    inner = dim.lhs if inside_left else dim.rhs
    match dim.op:
        case "add":
            return invert(inner, symbol, make("sub", value, known))
        case "sub" if inside_left:
            return invert(inner, symbol, make("add", value, known))
        case "sub":
            return invert(inner, symbol, make("sub", known, value))
        case "mul" if isinstance(known, int) and known != 0:
            return invert(inner, symbol, make("floordiv", value, known))
    return None

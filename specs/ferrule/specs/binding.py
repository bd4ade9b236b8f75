"""Where each symbol of a signature gets its value.

A symbol is *bare* where it is a whole dim, not a part of an expression.

- A symbol binds at its first bare occurrence in a parameter that is always present.  Sizes of
  tensors and dims of shapes come first, from left to right, then strides.
- A stride has no meaning in a dim of size 0 or 1, or in a tensor without elements, unless it is
  one of the tensor's `exact_strides`, which a function is given as numbers.  So a symbol
  that occurs only in strides binds at the first stride that has a meaning in this call; strides of
  parameters that are always present come before strides of optional ones.  If no stride has a
  meaning, the symbol is 1, or the nearest value that its bounds and its divisibility allow.
- A symbol that is never bare is solved from the first expression that can be inverted.
- A symbol that occurs only in optional parameters binds in the first one that is present.  An
  expression can use such a symbol only where one of these parameters is present.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from typing_extensions import assert_never

from ferrule.specs.deferred import dataclass
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

    `param` is the parameter that holds it, and `path` the position of that parameter.  `name` is
    its name in messages, `t[1].shape[0]`.  `within` lists the conditions under which the parameter
    is present: for each optional or union around it, the path and the position of the member.
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
        """Whether the other place's parameter is present whenever this place's parameter is."""
        return self.within[: len(other.within)] == other.within


ACTUAL: Final = Sym("actual value of a place", "actual")
"""In the solution of an inverted expression: the value that the call has at this place."""


@dataclass(frozen=True, slots=True)
class Binding:
    """How a symbol gets its value: from the first of `places` that has a meaning at the call.

    `solution` computes the symbol from `ACTUAL` and from symbols that are bound earlier.  For a
    bare symbol it is `ACTUAL` itself.
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
    """The binding of each symbol; a binding uses only symbols that come before it.

    Raises ValueError for a symbol that cannot be determined from the arguments of every call.
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
    """ValueError unless each symbol has a value wherever an expression with it is present."""
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
    """The places at which a symbol can bind: one that is always valid, or else all candidates."""
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
    """Solve `dim == value` for the symbol, as an expression; None where that is not possible.

    Division is floored, so the solution may be inexact: another check compares `dim` with `value`.
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

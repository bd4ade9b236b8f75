"""Sizes of a launch that are the same in every call: said on purpose, or refused.

    fe.frontends.numba.compile(f, x, y, grid=fixed(97), block=256, target="sm_90")

A grid is mostly made of an example's sizes.  As plain ints it would be that of the example in every
call, whatever arrays it brings, and a part of them would be left out without a word.  So where a
call may bring other sizes or numbers, a grid that follows from none of them is a CompileError, and
`fixed` says that it is meant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.specs import Param
from ferrule.specs.expr import Compound
from ferrule.specs.params import Scalar, Tensor

_KEPT: Final = "add radd sub rsub mul rmul floordiv rfloordiv mod rmod neg pos abs".split()
_SCALES: Final = ("mul", "floordiv", "ceildiv", "mod")
AXES: Final = "xyz"


class Told(int):
    """An int that remembers through arithmetic where it is from.

    `sources` names the variables that it was made of; none: it was said on purpose.  `compared`:
    whether a size of the call was compared with it, so that the call decides whether it counts.
    """

    sources: tuple[str, ...]
    compared: bool

    def __new__(cls, value: int, *sources: str) -> Told:
        """An int of this value."""
        made = super().__new__(cls, value)
        made.sources, made.compared = sources, False
        return made

    def __truediv__(self, other: Any) -> Any:
        return _Ratio(self, other) if isinstance(other, int) else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        return _Ratio(other, self) if isinstance(other, int) else NotImplemented


class _Ratio(float):
    """A quotient of such ints, of which `math.ceil` and `math.floor` are such ints again."""

    parts: tuple[int, int]

    def __new__(cls, lhs: int, rhs: int) -> _Ratio:
        made = super().__new__(cls, int(lhs) / int(rhs))
        made.parts = lhs, rhs
        return made

    def __ceil__(self) -> int:
        return _like(math.ceil(Fraction(*map(int, self.parts))), self.parts)

    def __floor__(self) -> int:
        return _like(math.floor(Fraction(*map(int, self.parts))), self.parts)


def _keeping(name: str) -> Callable[..., Any]:
    operation = getattr(int, f"__{name}__")

    def kept(self: Told, *others: Any) -> Any:
        found = operation(self, *others)
        return found if found is NotImplemented else _like(found, (self, *others))

    return kept


for _name in _KEPT:
    setattr(Told, f"__{_name}__", _keeping(_name))


def _like(value: int, parts: Sequence[int]) -> Told:
    """What was made of these: of variables where one of them was, else on purpose."""
    sources = (name for each in parts if isinstance(each, Told) for name in each.sources)
    return Told(value, *dict.fromkeys(sources))


def fixed(sizes: Any) -> Any:
    """Sizes of a grid, or of what is launched, that are the same in every call, on purpose.

    An int or several; what is computed of such an int is one, too.  Raises TypeError for others.
    """
    if isinstance(sizes, tuple | list):
        return tuple(fixed(each) for each in sizes)
    if not isinstance(sizes, int) or isinstance(sizes, bool):
        raise TypeError(f"fixed takes an int or a tuple of ints, but got {sizes!r}")
    return Told(int(sizes))


def plain(dim: Any) -> Any:
    """A size without its origin; anything else as it is."""
    return int(dim) if isinstance(dim, Told) else dim


def free_of(params: Sequence[Param]) -> list[str]:
    """What a call may bring otherwise than the examples did: sizes of tensors, integers."""
    return [name for param in params for name in _free(param)]


def _free(param: Param) -> Iterator[str]:
    match param:
        case Tensor(name=name, shape=shape):
            for axis, size in enumerate(shape):
                if not isinstance(size, int):
                    yield f"{name}.shape[{axis}]"
        case Scalar(name=name, dtype=dtype) if dtype.kind in ("int", "uint"):
            yield name


def check_sizes(
    where: str,
    what: str,
    given: Sequence[Any],
    watched: Sequence[Any],
    free: Sequence[str],
    *,
    decided: bool = False,
    example: str,
) -> None:
    """Refuse sizes that no call changes, of `where` for the argument `what`, such as "grid".

    `given` are the sizes, `watched` the same made of ints that remember where they are from, () if
    they could not be made so.  `free` names what differs between calls, `decided` says that a
    call's sizes choose between these and others.  `example` is what the hint says to write.
    Raises CompileError.
    """
    if not free:
        return
    for axis, size in enumerate(watched):
        if sources := sources_of(size):
            made = f"{int(size)} in every call, of" if isinstance(size, int) else "a multiple of"
            said = f"{what}'s {AXES[axis]} is" if what == "grid" else f"{what} is"
            taken = f"{', '.join(sources)}, which the function takes from its surroundings"
            _refuse(f"{where}: the {said} {made} {taken}", what, free, example)
    if decided or any(isinstance(size, Told) or not isinstance(size, int) for size in given):
        return
    shown = ", ".join(str(int(size)) for size in given)
    shown = f"({shown})" if len(given) > 1 else shown
    _refuse(f"{where}: the {what} is {shown} in every call", what, free, example)


def sources_of(size: Any) -> tuple[str, ...]:
    """The variables that fix a size: one that is made of them alone, or is so many times as much
    as one of the call.  As a divisor or a bound a variable says no size."""
    if isinstance(size, Told):
        return () if size.compared else size.sources
    if not isinstance(size, Compound):
        return ()
    scaled = (size.lhs, size.rhs) if size.op == "mul" else (size.lhs,)
    sides = [each for each in (size.lhs, size.rhs) if isinstance(each, Compound)]
    sides += scaled if size.op in _SCALES else ()
    return next(filter(None, map(sources_of, sides)), ())


def _refuse(said: str, what: str, free: Sequence[str], example: str) -> None:
    listed = ", ".join(free[:4]) + (", …" if len(free) > 4 else "")
    raise CompileError(
        Diagnostic(
            f"{said}, but {listed} {'differs' if len(free) == 1 else 'differ'} between calls",
            expected=f"a {what} that follows from {'it' if len(free) == 1 else 'them'}, {example}",
            hint=f"where it is the same in every call, say so: {what}=fe.frontends.fixed(…), or "
            "fixed(…) around the number; or fix the sizes with specs",
        )
    )

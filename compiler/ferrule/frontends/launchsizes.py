"""Sizes of a launch that are the same in every call: they are refused unless they are marked by
`fixed`.

    fe.frontends.numba.compile(f, x, y, grid=fixed(97), block=256, target="sm_90")

A grid is mostly computed from an example's sizes.  As plain ints it would be the example's grid in
every call, regardless of the arrays, and a part of larger arrays would silently not be processed.
So where sizes or numbers may differ between calls, a grid that depends on none of them is a
CompileError, unless `fixed` marks it as intended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.surroundings import probed
from ferrule.frontends.told import Told, plain
from ferrule.specs import Param, Signature
from ferrule.specs.expr import Compound
from ferrule.specs.params import Scalar, Tensor, Tuple

_SCALES: Final = ("mul", "floordiv", "ceildiv", "mod")
_AXES: Final = "xyz"


def checked_sizes(what: str, given: Any, signature: Signature) -> Any:
    """The sizes of a launch, or the result of a function that computes them from the signature.

    Raises CompileError for sizes that are the same in every call, although the arguments' sizes
    differ.
    """
    found = given(signature) if callable(given) else given
    sizes = listed(found)
    marked = listed(probed(given, signature)) if callable(given) else ()
    example = f"such as {what}=lambda sig: sig[{_first(signature)!r}].shape[0]"
    free = free_of(signature.params)
    check_sizes(signature.name, what, sizes, marked, free, example=example)
    return plain(found) if not isinstance(found, tuple | list) else [plain(each) for each in found]


def listed(found: Any) -> Sequence[Any]:
    """The sizes as a sequence; a single size becomes one of length 1."""
    return found if isinstance(found, tuple | list) else (found,)


def constants_of(*given: Any) -> list[int]:
    """The sizes of a launch that are plain numbers, and so may come from an example.  A number
    marked by `fixed` is not one of them; for functions of the signature see `constants_said`."""
    sizes = (size for each in given for size in listed(each))
    return [each for each in sizes if type(each) is int]


def constants_said(signature: Signature, *given: Any) -> list[int]:
    """The plain numbers that functions of the signature return as sizes of a launch."""
    return constants_of(*(each(signature) for each in given if callable(each)))


def unmarked(sizes: Any) -> Any:
    """The sizes of a launch without the marks of `fixed`."""
    return [plain(each) for each in sizes] if isinstance(sizes, tuple | list) else plain(sizes)


def _first(signature: Signature) -> str:
    arrays = (param.name for param in signature.params if isinstance(param, Tensor))
    return next(arrays, "x")


def free_of(params: Sequence[Param]) -> list[str]:
    """The names of values that may differ between a call and the examples: sizes of tensors,
    integers."""
    return [name for param in params for name in _free(param)]


def _free(param: Param) -> Iterator[str]:
    match param:
        case Tensor(name=name, shape=shape):
            for axis, size in enumerate(shape):
                if not isinstance(size, int):
                    yield f"{name}.shape[{axis}]"
        case Scalar(name=name, dtype=dtype) if dtype.kind in ("int", "uint"):
            yield name
        case Tuple(name=name, items=items):
            yield from (f"{name}.{each}" for each in free_of(items))


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
    """Refuses sizes that are the same in every call; `where` names the launch, `what` the argument,
    such as "grid".

    `given` are the sizes; `watched` are the same sizes computed from ints that record their origin,
    or () if that was not possible.  `free` names the values that differ between calls; `decided` is
    set if a call's sizes choose between these sizes and others.  `example` is the code that the
    hint suggests.  Raises CompileError.
    """
    if not free:
        return
    for axis, size in enumerate(watched):
        if sources := sources_of(size):
            made = f"{int(size)} in every call, of" if isinstance(size, int) else "a multiple of"
            said = f"{what}'s {_AXES[axis]} is" if what == "grid" else f"{what} is"
            taken = f"{', '.join(sources)}, which the function takes from its surroundings"
            _refuse(f"{where}: the {said} {made} {taken}", what, free, example)
    if decided or not given or not all(type(size) is int for size in given):
        return
    shown = ", ".join(str(int(size)) for size in given)
    shown = f"({shown})" if len(given) > 1 else shown
    _refuse(f"{where}: the {what} is {shown} in every call", what, free, example)


def check_followed(
    where: str, given: Sequence[Any], others: Sequence[Any], free: Sequence[str], example: str
) -> None:
    """Refuses sizes of a grid that change with outer integers although no mark is left, as in
    `int(n)`; `others` are the sizes for other values of these integers, or ().  Raises
    CompileError."""
    for axis, (size, other) in enumerate(zip(given, others, strict=False)) if free else ():
        if type(size) is int and type(other) is int and size != other:
            said = f"{where}: the grid's {_AXES[axis]} is {size} in every call"
            taken = "of a number that the function takes from its surroundings"
            _refuse(f"{said}, {taken}", "grid", free, example)


def sources_of(size: Any) -> tuple[str, ...]:
    """The variables that fix a size: it is computed from them only, or is a multiple of a size of
    the call by their value.  A variable that is only a divisor or a bound does not fix a size."""
    if isinstance(size, Told):
        return () if size.compared else size.sources
    if not isinstance(size, Compound):
        return ()
    scaled = (size.lhs, size.rhs) if size.op == "mul" else (size.lhs,)
    inner = (each for each in (size.lhs, size.rhs) if isinstance(each, Compound))
    sides = [*inner, *(scaled if size.op in _SCALES else ())]
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

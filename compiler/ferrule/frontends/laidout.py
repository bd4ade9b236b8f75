"""Whether structs, by value, by address and returned, have the members that a C function takes.

Two structs of one size are handed over in other registers where their members are others, and mean
something else where they are not.  What a compiler cannot say is not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from ferrule.compiler.conventions.byvalue import Shape
from ferrule.compiler.conventions.returns import return_type
from ferrule.compiler.conventions.structs import Struct
from ferrule.compiler.conventions.typed import Given, refused
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.spelledtypes import read_type
from ferrule.frontends.layouts import Layout, Leaf, function_layouts

if TYPE_CHECKING:
    from ferrule.compiler.conventions import CFunction
    from ferrule.frontends.sources import Source

_LLVM: Final = {
    "i8": (1, "int"), "i16": (2, "int"), "i32": (4, "int"), "i64": (8, "int"),
    "float": (4, "float"), "double": (8, "float"), "ptr": (8, "pointer"),
}  # fmt: skip
_WORDS: Final = (("int", 8), ("pointer", 8))
"""What an address may be said to be, and the other way round."""
_NEVER: Final = {
    "union": "a union is no Struct: let the function take its address, or a struct",
    "vector": "a vector is no Struct, it goes into registers of its own: let the function take its "
    "address",
    "bits": "a bit-field is no member of a Struct: let the function take a number",
    "other": "let the function take its address",
}


def check_layouts(
    command: Sequence[str],
    source: Source,
    called: CFunction,
    values: Sequence[Given],
    parameters: Sequence[str],
) -> None:
    """CompileError where a struct that a call gives, points to, or expects back has other members
    than the function's."""
    result = return_type(called.returns)
    if not isinstance(result, Shape) and not any(each.memory for each in values):
        return
    found = function_layouts(command, source.text, source.language, called.function)
    if found is None:
        return
    listed = zip(values, parameters, found.parameters, found.pointees, strict=False)
    for position, (given, text, own, pointee) in enumerate(listed):
        actual = own if given.kind == "bytes" else pointee
        hint = _misfit(given, actual) if actual is not None else None
        if hint is not None:
            raise refused(called.function, position, given, read_type(text), hint)
    if isinstance(result, Shape) and found.result is not None:
        _check_result(called.function, result, found.result)


def _misfit(given: Given, actual: Layout) -> str | None:
    """What to do about a struct that is not what is taken; None for one that is."""
    if given.memory is None:
        return None
    if given.kind == "address" and (_is_byte(actual) or not actual.size):
        return None
    count = given.memory.size // actual.size if given.kind == "address" and actual.size else 1
    if given.memory.size != max(count, 1) * actual.size:
        return f"what it takes is {_sized(actual)}, and not of {given.memory.size} bytes"
    if not isinstance(given.memory, Struct):
        return None
    if given.kind == "bytes" and actual.align not in (None, given.memory.align):
        return f"what it takes is aligned to {actual.align}: let it take the address"
    repeated = [
        (at + i * actual.size, size, kind)
        for i in range(max(count, 1)) for at, size, kind in actual.leaves
    ]  # fmt: skip
    return _differ(Shape.of_memory(given.memory).members, repeated)


def _is_byte(actual: Layout) -> bool:
    """Whether an address is one of bytes, which any memory is."""
    return not actual.is_struct and [leaf[1:] for leaf in actual.leaves] == [(1, "int")]


def _sized(actual: Layout) -> str:
    return f"of {actual.size} bytes, {_said(actual.leaves)}"


def _differ(given: Sequence[tuple[int, str]], taken: Sequence[Leaf]) -> str | None:
    """What to say where members differ."""
    odd = next((kind for _, _, kind in taken if kind in _NEVER), None)
    if odd is not None:
        return _NEVER[odd]
    mine = [(at, *_LLVM.get(kind, (0, kind))) for at, kind in given]
    for one, other in zip_longest(mine, taken):
        if one is None or other is None or not _alike(one, other):
            return f"its members are {_said(taken)}, and not {_said(mine)}"
    return None


def _alike(one: Leaf, other: Leaf) -> bool:
    if one == other:
        return True
    kinds = ((one[2], one[1]), (other[2], other[1]))
    return one[0] == other[0] and all(kind in _WORDS for kind in kinds)


def _said(leaves: Sequence[Leaf]) -> str:
    return f"[{', '.join(_names(leaves))}]"


def _names(leaves: Sequence[Leaf]) -> Iterator[str]:
    for at, size, kind in leaves[:8]:
        yield f"{kind if kind == 'pointer' else f'{kind}{8 * size}'} at {at}"
    if len(leaves) > 8:
        yield "…"


def _check_result(function: str, wanted: Shape, actual: Layout) -> None:
    hint = _differ(wanted.members, actual.leaves)
    if hint is not None:
        raise CompileError(
            Diagnostic(
                f"{function} returns another struct of {actual.size} bytes than the call expects",
                hint=hint,
            )
        )

"""Checks that structs passed by value, by address or returned have the members that a C function
takes.

Two structs of equal size are passed in different registers if their members have different classes,
and mean different things if the members are at other offsets.  Facts that a compiler cannot show
are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from ferrule.compiler.conventions.c.by_value import Shape
from ferrule.compiler.conventions.c.returns import return_type
from ferrule.compiler.conventions.c.structs import Struct
from ferrule.compiler.conventions.launches.restrict import Taken, taken_members
from ferrule.compiler.conventions.launches.types import may_be_enum, misfit, refused, too_loose
from ferrule.compiler.conventions.launches.values import Given, given_members
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.spelledtypes import Spelled, read_type
from ferrule.frontends.codetypes import fits_enum, has_values, misfit_of_code
from ferrule.frontends.layouts import Code, Debugging, Layout, Leaf
from ferrule.specs import DType, as_dtype

if TYPE_CHECKING:
    from ferrule.frontends.prototypes import Callee
    from ferrule.specs import Signature

_LLVM: Final = {
    "i8": (1, "int"), "i16": (2, "int"), "i32": (4, "int"), "i64": (8, "int"),
    "float": (4, "float"), "double": (8, "float"), "ptr": (8, "pointer"),
}  # fmt: skip
_NUMBERS: Final = {
    ("int", 1): "signed char", ("int", 2): "short", ("int", 4): "int", ("int", 8): "long",
    ("uint", 1): "unsigned char", ("uint", 2): "unsigned short", ("uint", 4): "unsigned int",
    ("uint", 8): "unsigned long", ("float", 4): "float", ("float", 8): "double",
    ("complex", 8): "_Complex float", ("complex", 16): "_Complex double",
}  # fmt: skip
NO_ADDRESSES: Final = ("int64_t", "uint64_t", "size_t", "ssize_t", "ptrdiff_t")
"""Typedefs of integers that hold no address."""
_NARROW: Final = ("float16", "bfloat16")
_INTEGERS: Final = ("int", "uint", "bool", "enum")
_NEVER: Final = {
    "union": "a union is no Struct: let the function take its address, or a struct",
    "vector": "a vector is no Struct, it goes into registers of its own: let the function take its "
    "address",
    "bits": "a bit-field is no member of a Struct: let the function take a number",
    "other": "let the function take its address",
}


def check_layouts(
    debugging: Debugging,
    signature: Signature,
    called: Callee,
    values: Sequence[Given],
    parameters: Sequence[str],
    *,
    asked: bool,
) -> list[Taken]:
    """The addresses in the structs that a call passes or points to; the compiler is asked if
    `asked` is set, or if the call returns a struct.

    Raises CompileError if a struct has other members than the function's, and for an address whose
    alignment may be less than the function requires.
    """
    result = return_type(called.returns)
    if not isinstance(result, Shape) and not asked:
        return []
    found = debugging.layouts(called.function, called.symbol)
    if found is None:
        _refuse_unknown(called.function, values, parameters)
        return []
    taken: list[Taken] = []
    types = zip(found.parameters, found.pointees, found.aligned, found.codes, strict=True)
    listed = zip(values, parameters, types, strict=False)
    for position, (given, text, (own, pointee, aligned, code)) in enumerate(listed):
        if given.align % aligned:
            raise too_loose(called.function, position, given, read_type(text), aligned)
        actual = own if given.kind == "bytes" else pointee
        hint = _misfit(debugging, signature, given, actual) if actual is not None else None
        hint = hint or _misfit_of_code(debugging, given, code)
        if hint is None and may_be_enum(given, read_type(text)):
            hint = _misfit_of_enum(given, None if pointee is None else pointee.enum)
        if hint is not None:
            raise refused(called.function, position, given, read_type(text), hint)
        if isinstance(given.memory, Struct) and actual is not None:
            declared = {leaf.at: _pointer(leaf) for leaf in _repeated(given.memory, actual)}
            taken += taken_members(f"argument #{position}", given.memory, declared)
    if isinstance(result, Shape) and found.result is not None:
        _check_result(called.function, result, found.result)
        _check_signs(called, found.result)
    return taken


def _refuse_unknown(function: str, values: Sequence[Given], parameters: Sequence[str]) -> None:
    """Raises CompileError for an `Out` of which only debugging information would tell the type."""
    for position, (given, text) in enumerate(zip(values, parameters, strict=False)):
        if may_be_enum(given, read_type(text)):
            hint = "the compiler shows no debugging information, which would tell whether it is one"
            raise refused(function, position, given, read_type(text), hint)


def _misfit_of_enum(given: Given, enum: Leaf | None) -> str | None:
    """The hint about an `Out` for what is no enum, or has other values."""
    if enum is None:
        return "what it points to is no number"
    if fits_enum(as_dtype(given.dtype or ""), enum):
        return None
    least, most = enum.values or (0, 0)
    return f"it is an enum of {8 * enum.size} bits with values from {least} to {most}"


def _misfit_of_code(debugging: Debugging, given: Given, code: Code | None) -> str | None:
    """The hint about a function of another type than C calls."""
    function = given.function
    if function is None or code is None:
        return None
    is_known = function.params is not None or function.name is None
    own = None if is_known else debugging.code(function.name or "")
    return misfit_of_code(function, own, code)


def _misfit(debugging: Debugging, signature: Signature, given: Given, actual: Layout) -> str | None:
    """The hint about a struct that does not match the parameter; None if it matches."""
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
    if given.memory.align % (actual.align or 1):
        return f"what it takes is aligned to {actual.align}: Struct([…], align={actual.align})"
    repeated = _repeated(given.memory, actual)
    members = given_members(signature, given.memory)
    hints = (_misfit_of_member(debugging, members[leaf.at], leaf) for leaf in repeated)
    return _differ(Shape.of_memory(given.memory).members, repeated) or next(
        filter(None, hints), None
    )


def _repeated(memory: Struct, actual: Layout) -> list[Leaf]:
    """The leaves of all structs that fit into the memory, at least one."""
    count = memory.size // actual.size if actual.size else 1
    return [
        replace(leaf, at=leaf.at + i * actual.size)
        for i in range(max(count, 1)) for leaf in actual.leaves
    ]  # fmt: skip


def _misfit_of_member(debugging: Debugging, given: Given, leaf: Leaf) -> str | None:
    """The hint about a member of the right size that has another meaning."""
    is_address = given.kind == "address"
    if is_address != (leaf.kind == "pointer"):
        return _misfit_of_word(given, leaf)
    if given.align % leaf.aligned:
        return (
            f"what its member at byte {leaf.at} points to is aligned to {leaf.aligned}, but "
            f"{given.what}, is only known to be a multiple of {given.align} bytes: say "
            f"align={leaf.aligned} in the spec"
        )
    behind = leaf.pointee
    if behind is not None and (behind.kind, behind.size) == ("float", 2) and given.dtype in _NARROW:
        given = replace(given, dtype=None)  # only the type's name tells which of the two it is
    wanted = _pointer(leaf) if is_address else _number(leaf)
    plain = replace(given, pointer=None, dtype=None) if given.pointer is not None else given
    hint = misfit(plain, wanted)
    enum = leaf.pointee if is_address else leaf
    if given.is_place and hint is None and enum is not None and enum.kind == "enum":
        hint = _misfit_of_enum(given, enum)
    if hint is None:
        hint = _misfit_of_code(debugging, given, leaf.code)
    if hint is None:
        return None
    text = wanted.text if leaf.code is None else "the address of a function"
    said = f"its member at byte {leaf.at} is {text}, but it gets {given.what}"
    return f"{said}; {hint}" if hint else said


def _misfit_of_word(given: Given, leaf: Leaf) -> str | None:
    """The hint about a number for an address, or an address for an integer that holds none."""
    if given.kind == "address" and leaf.named and leaf.named not in NO_ADDRESSES:
        return None
    wanted = "an address" if leaf.kind == "pointer" else f"{leaf.named or leaf.kind}"
    how = (
        "an integer that is an address is a uintptr_t"
        if given.kind == "address"
        else ("an address is the .data of a tensor, a Pointer of the signature, or NULL")
    )
    return f"its member at byte {leaf.at} is {wanted}, but it gets {given.what}: {how}"


def _number(leaf: Leaf) -> Spelled:
    """The type of a number; an enum, which any integer of its size matches, gets a name that is no
    type."""
    name = _NUMBERS.get((leaf.kind, leaf.size), leaf.kind)
    return Spelled(name, name)


def _pointer(leaf: Leaf) -> Spelled:
    """The type of a pointer; a pointer to bytes is one to `char`, which matches either
    signedness."""
    behind, stars = leaf.pointee, 1
    name = "void" if behind is None else _number(behind).name
    if behind is not None and behind.kind == "pointer":
        name, stars = "void", 2
    elif name in ("signed char", "unsigned char"):
        name = "char"
    word = "const " if leaf.is_const else ""
    return Spelled(f"{word}{name}{'*' * stars}", name, stars, leaf.is_const, leaf.is_restrict)


def _is_byte(actual: Layout) -> bool:
    """Whether an address points to bytes, which any memory matches."""
    return not actual.is_struct and [
        (leaf.size, leaf.kind in _INTEGERS) for leaf in actual.leaves
    ] == [(1, True)]


def _sized(actual: Layout) -> str:
    return f"of {actual.size} bytes, {_said(actual.leaves)}"


def _differ(given: Sequence[tuple[int, str]], taken: Sequence[Leaf]) -> str | None:
    """The hint if members differ."""
    odd = next((leaf.kind for leaf in taken if leaf.kind in _NEVER), None)
    if odd is not None:
        return _NEVER[odd]
    mine = [Leaf(at, *_LLVM.get(kind, (0, kind))) for at, kind in given]
    for one, other in zip_longest(mine, taken):
        if one is None or other is None or not _alike(one, other):
            return f"its members are {_said(taken)}, and not {_said(mine)}"
    return None


def _alike(one: Leaf, other: Leaf) -> bool:
    """Whether two leaves are passed alike; an address may be declared as an integer, and the other
    way round."""
    return (one.at, one.size, _class(one)) == (other.at, other.size, _class(other))


def _class(leaf: Leaf) -> str:
    is_word = leaf.kind in _INTEGERS or leaf.kind == "pointer"
    return "int" if is_word else leaf.kind


def _said(leaves: Sequence[Leaf]) -> str:
    return f"[{', '.join(_names(leaves))}]"


def _names(leaves: Sequence[Leaf]) -> Iterator[str]:
    """The first members; an array is one of them."""
    runs = list(_runs(leaves))
    for first, count in runs[:8]:
        word = first.kind if first.kind == "pointer" else f"{first.kind}{8 * first.size}"
        yield f"{word} at {first.at}" if count == 1 else f"{count} of {word} at {first.at}"
    if len(runs) > 8:
        yield "…"


def _runs(leaves: Sequence[Leaf]) -> Iterator[tuple[Leaf, int]]:
    """The members; more than three like ones without gaps are one item with their count."""
    position = 0
    while position < len(leaves):
        first, count = leaves[position], 1
        for other in leaves[position + 1 :]:
            like = (other.kind, other.size) == (first.kind, first.size)
            if not like or other.at != first.at + count * first.size:
                break
            count += 1
        count = count if count > 3 else 1
        yield first, count
        position += count


def _check_signs(called: Callee, actual: Layout) -> None:
    """Raises CompileError for a member of a returned struct whose integer has other values."""
    members = called.returns if isinstance(called.returns, tuple) else ()
    for position, (own, leaf) in enumerate(zip(members, actual.leaves, strict=False)):
        if isinstance(own, DType) and not has_values(own, leaf):
            known = f" from {leaf.values[0]} to {leaf.values[1]}" if leaf.values else ""
            raise CompileError(
                Diagnostic(
                    f"{called.function} returns a struct whose member #{position} is "
                    f"{leaf.kind}{8 * leaf.size}{known}, but the call expects {own.name}"
                )
            )


def _check_result(function: str, wanted: Shape, actual: Layout) -> None:
    hint = _differ(wanted.members, actual.leaves)
    if hint is not None:
        raise CompileError(
            Diagnostic(
                f"{function} returns another struct of {actual.size} bytes than the call expects",
                hint=hint,
            )
        )

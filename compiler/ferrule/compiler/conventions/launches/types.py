"""Compares the types of a call's values with the types that the callee takes.

The callee's types are texts of C or C++, see `spelledtypes`.  Compared are the pointees of pointers
and whether they are const, the width and sign of integers, floats, and `bool`.  A size that cannot
be negative fits signed and unsigned integers.  `void*` accepts every address; `cast(x.data,
"float4*")` passes an address with another type.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from math import prod
from typing import TYPE_CHECKING, Final

from ferrule.compiler.conventions.c.host_arguments import CArgument
from ferrule.compiler.conventions.c.structs import Struct
from ferrule.compiler.conventions.launches.values import (
    Function,
    Given,
    given_members,
    given_values,
)
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.spelledtypes import (
    ARITHMETIC,
    PLURAL,
    Spelled,
    as_called,
    natural_alignment,
    parameter_list,
    read_type,
    result_of,
)
from ferrule.specs import DType, Signature, as_dtype
from ferrule.specs.expr import divisibility_of

if TYPE_CHECKING:
    from ferrule.compiler.cuda.kernelfacts import Member

_INTEGERS: Final = ("int", "uint")


def check_typed(
    callee: str,
    signature: Signature,
    arguments: Sequence[CArgument],
    types: Sequence[str],
    aligned: Sequence[int] = (),
) -> None:
    """Raise CompileError if a callee with these parameter types does not accept the arguments'
    values, or needs a larger alignment (`aligned`).  If the numbers of values and types differ, the
    types are not those of the parameters, and nothing is compared."""
    values = [each for listed in given_values(signature, arguments) for each in listed]
    if len(values) != len(types):
        return
    for position, (given, text) in enumerate(zip(values, types, strict=True)):
        wanted = read_type(text)
        check_value(callee, position, given, wanted)
        needs = max(_alignment_of(given), aligned[position] if aligned else 1)
        if given.align % needs:
            raise too_loose(callee, position, given, wanted, needs)


def check_members(
    callee: str,
    signature: Signature,
    arguments: Sequence[CArgument],
    members: Sequence[tuple[Member, ...] | None],
) -> None:
    """Raise CompileError if the fields of a struct by value differ from its declared members;
    `members` has the declared numbers and addresses."""
    values = [each for listed in given_values(signature, arguments) for each in listed]
    if len(values) != len(members):
        return
    for position, (given, listed) in enumerate(zip(values, members, strict=True)):
        if listed is not None and isinstance(given.memory, Struct):
            _check_struct(f"argument #{position} of {callee}", signature, given.memory, listed)


def _check_struct(
    what: str, signature: Signature, struct: Struct, members: Sequence[Member]
) -> None:
    found = given_members(signature, struct)
    for member in members:
        given, wanted = found.get(member.at), read_type(member.type)
        hint = _misfit_of_member(given, wanted, member.aligned)
        if hint is not None:
            there = "nothing" if given is None else given.what
            raise CompileError(
                Diagnostic(
                    f"{what} is a Struct with {there} at byte {member.at}, where its member is "
                    f"{wanted.text}",
                    hint=hint,
                )
            )


def _misfit_of_member(given: Given | None, wanted: Spelled, aligned: int) -> str | None:
    """The hint for a member of the wrong type; None if it fits."""
    if given is None:
        return "nothing is given there"
    hint = misfit(given, wanted)
    if hint is None and given.kind == "address" and wanted.stars:
        needs = max(_alignment_of(given), aligned)
        return _align_hint(given, needs) if given.align % needs else None
    return hint


def check_value(callee: str, position: int, given: Given, wanted: Spelled) -> None:
    """Raise CompileError if the parameter at a position does not accept a value."""
    hint = misfit(given, wanted)
    if hint is not None:
        raise refused(callee, position, given, wanted, hint)


def refused(callee: str, position: int, given: Given, wanted: Spelled, hint: str) -> CompileError:
    """The error for a value that the parameter at a position does not accept."""
    return CompileError(
        Diagnostic(
            f"argument #{position} of {callee} is {given.what}, but it takes {wanted.text}",
            hint=hint,
        )
    )


def too_loose(
    callee: str, position: int, given: Given, wanted: Spelled, needs: int = 1
) -> CompileError:
    """The error for an address whose alignment may be less than the cast's type, or the callee
    (`needs`), requires."""
    needs = max(needs, _alignment_of(given))
    return refused(callee, position, given, wanted, _align_hint(given, needs))


def _align_hint(given: Given, needs: int) -> str:
    more = f"align={needs}" if needs > 1 else "more, align=…,"
    return (
        f"the address is only known to be a multiple of {given.align} bytes: say {more} in the spec"
    )


# ---- parameters of the callee ----


def misfit(given: Given, wanted: Spelled) -> str | None:
    """None if a value fits the parameter; else the hint, "" if there is none."""
    if given.kind == "address":
        return _misfit_of_address(given, wanted)
    if given.kind == "bytes":
        return _misfit_of_bytes(wanted)
    if wanted.stars:
        return "an address is the .data of a tensor, or a Pointer of the signature"
    if wanted.dtype is None:
        return None if _is_integer(given) else "a struct by value is conventions.Struct([…])"
    return _misfit_of_number(given, wanted)


def _is_integer(given: Given) -> bool:
    return given.dtype is None or as_dtype(given.dtype).kind in ("int", "uint")


def _misfit_of_bytes(wanted: Spelled) -> str | None:
    if wanted.stars:
        return "conventions.Reference(…) is its address"
    return "a number is not a struct" if wanted.name in ARITHMETIC else None


def _misfit_of_number(given: Given, wanted: Spelled) -> str | None:
    if given.dtype is None or given.dtype == wanted.dtype:
        return None
    own, taken = as_dtype(given.dtype), as_dtype(wanted.dtype or "")
    is_exact = own.kind in _INTEGERS and taken.kind in _INTEGERS and own.bits == taken.bits
    if is_exact and given.is_natural and own.kind == "int":
        return None
    if own.kind == "bool" and taken.kind in _INTEGERS and taken.bits == 8:
        return None
    if own.kind == "float" and own.bits == 16 and wanted.name == "unsigned short":
        return None
    if own.kind == "float" and taken.kind != "float":
        return f"give the parameter the dtype {taken.name}"
    return f"conventions.cast(…, {taken.name!r}) makes it one"


def _misfit_of_address(given: Given, wanted: Spelled) -> str | None:
    if not wanted.stars:
        is_address = wanted.dtype in ("int64", "uint64") and given.pointer is None
        return None if is_address else "what it takes is no address"
    if given.function is not None:
        return misfit_of_function(given.function, wanted)
    if wanted.is_function and (given.is_context or given.is_bytes):
        return "it takes a function"
    if given.is_read_only and not wanted.is_const and not wanted.is_function:
        return _written(given)
    if given.is_bytes and wanted.name != "void" and not _is_byte(wanted):
        return f"bytes are no array of {wanted.name}: a tensor of that dtype is one"
    if given.holds_address:
        fits = wanted.stars > 1 or wanted.name == "void"
        if fits and given.holds_text and wanted.name != "void":
            fits = wanted.name == "char" and wanted.stars == 2
            return None if fits else "what it writes there is no char*"
        if fits and given.held is not None and wanted.stars == 2 and wanted.name != "void":
            fits = _points_alike(replace(given, dtype=given.held, shape=()), wanted)
            return None if fits else f"what it points to is no {given.held}*"
        return (
            None if fits else "it takes no address of a pointer: an Out with a dtype has a number"
        )
    if given.is_null or (given.dtype is None and given.pointer is None):
        return None
    if given.pointer is not None:
        named = as_called(wanted)
        same = (named.name, named.stars) == (given.pointer.name, given.pointer.stars)
        return None if same else f"the pointer that it takes is {wanted.text!r}"
    if wanted.name == "void" and wanted.stars == 1:
        return None
    if wanted.stars == 1 and not wanted.is_function and _points_alike(given, wanted):
        return _misplaced(given)
    return None if may_be_enum(given, wanted) else _other_pointer(given, wanted)


def may_be_enum(given: Given, wanted: Spelled) -> bool:
    """Whether an `Out` fits a pointer if that is one to an enum, which its name does not tell."""
    is_named = wanted.stars == 1 and wanted.dtype is None and wanted.name != "void"
    is_integer = given.dtype is not None and as_dtype(given.dtype).kind in _INTEGERS
    return given.is_place and is_named and is_integer and not wanted.is_function


def _is_byte(wanted: Spelled) -> bool:
    return wanted.stars == 1 and wanted.dtype in ("int8", "uint8")


def _misplaced(given: Given) -> str | None:
    if not given.is_between:
        return None
    return f"the offset may be inside of a {given.dtype}: it is in bytes, a multiple of its size"


def _written(given: Given) -> str:
    """The hint for a read-only address that the callee may write."""
    if given.is_text:
        return "it may write there: declare the parameter as const, or give it a tensor of int8"
    say = "the tensor without read_only=True"
    if given.what.startswith(("a Ref", "the addr")):
        say = "say discards=True instead of reads_only=True where what it writes is not wanted"
    return f"it may write there: declare the parameter as const, or {say}"


def _points_alike(given: Given, wanted: Spelled) -> bool:
    """Whether a pointer type fits the elements at an address."""
    if wanted.name == "char":
        return given.dtype in ("int8", "uint8")
    dtype = PLURAL.get(wanted.name, wanted.dtype)
    return dtype == given.dtype and _rows_alike(given, wanted.lengths)


def _rows_alike(given: Given, lengths: tuple[int | None, ...]) -> bool:
    """Whether the last sizes match the array behind a pointer, with contiguous rows.  A length that
    is not constant matches any size; a tensor with one dim matches if all lengths are known and it
    consists of whole rows."""
    if len(given.shape) == 1 and lengths:
        if None in lengths:
            return False
        row = prod(each for each in lengths if each is not None)
        return given.strides == (1,) and divisibility_of(given.shape[0]) % row == 0
    step: int | None = 1
    last = zip_longest(reversed(lengths), reversed(given.shape[-len(lengths) - 1 :]))
    strides = given.strides[::-1]
    for position, (length, size) in enumerate(last):
        if not lengths or size is None or position >= len(strides):
            return True
        if step is not None and strides[position] != step and size != 1:
            return False
        if position < len(lengths) and length is not None and size != length:
            return False
        step = None if step is None or length is None else step * length
    return True


def _other_pointer(given: Given, wanted: Spelled) -> str:
    plain = wanted.text.replace("__restrict__", "").replace("restrict", "").strip()
    name = given.what.partition(",")[0]
    dtype = PLURAL.get(wanted.name, wanted.dtype)
    if None in wanted.lengths and dtype == given.dtype and len(given.shape) == 1:
        flat = f"{wanted.name}*"
        return (
            "how long its rows are the call alone says: give it a tensor with as many sizes; where "
            f"its elements are meant to be those of all rows, conventions.cast({name}, {flat!r})"
        )
    if wanted.lengths and dtype == given.dtype:
        rows = "".join(f"[{'' if each is None else each}]" for each in wanted.lengths)
        return (
            f"its rows are {rows}: the spec's last sizes are these numbers, or its one size a "
            "multiple of all of them, and its strides those of rows one behind the other"
        )
    meant = f"where it is meant to be taken for that, conventions.cast({name}, {plain!r})"
    if dtype is None or dtype == given.dtype or wanted.stars > 1:
        return meant
    return f"give the tensor the dtype {dtype}, or choose the callee for {given.dtype}; {meant}"


def _alignment_of(given: Given) -> int:
    """The alignment that the pointee type of a cast requires, by its name; 1 for a struct, whose
    alignment is unknown."""
    return 1 if given.pointer is None else natural_alignment(given.pointer)


# ---- functions ----


def misfit_of_function(given: Function, wanted: Spelled) -> str | None:
    """None if the address of a function fits a parameter; else the hint.

    What a type without a prototype and a type of the source's own take is not known.
    """
    if not wanted.is_function:
        # The types of members are from debugging information, which says "other" of functions.
        is_any = wanted.stars == 1 and wanted.name in ("void", "other")
        return None if is_any else "it takes no function"
    taken = parameter_list(wanted.text)
    if given.params is None or taken is None:
        return None
    if "..." in taken or len(taken) != len(given.params):
        hint = "; context=… is the position of its void*, which is not among its params"
        return f"C calls it with {len(taken)} arguments{hint if given.name is None else ''}"
    for position, (own, text) in enumerate(zip(given.params, taken, strict=True)):
        if not _takes(own, read_type(text), text):
            return f"C calls it with {text} as argument #{position}"
    result = result_of(wanted.text)
    if result is None or result == "void":
        return None
    fits = given.returns is not None and _takes(given.returns, read_type(result), result)
    return None if fits else f"C wants {result} back: say returns=…"


def _takes(own: DType | str, c_type: Spelled, text: str) -> bool:
    """Whether a parameter or result of a callback is what C has there."""
    if own in ("pointer", "ptr"):
        return c_type.stars > 0
    if own == "string":
        return c_type.stars == 1 and c_type.name in ("char", "void")
    if c_type.stars or re.match(r"(?:const\s+)?(?:struct|union)\b", text):
        return False
    if c_type.dtype is None:  # an enum, or a struct by the name of its typedef
        return not isinstance(own, DType) or own.kind in _INTEGERS
    found = as_dtype(c_type.dtype)
    if not isinstance(own, DType):
        float_name = {32: "float", 64: "double"}.get(found.bits, "")
        words = {"bool": ("i1", "i8"), "float": (float_name,)}
        return own in words.get(found.kind, (f"i{found.bits}",))
    same_bits = own.bits == found.bits and own.kind in ("bool", "uint") and found.kind == "bool"
    return own.name == found.name or same_bits

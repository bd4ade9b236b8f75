"""Compares the types of a call's values with the types that the callee takes.

The callee's types are texts of C or C++, see `spelledtypes`.  Compared are the pointees of pointers
and whether they are const, the width and sign of integers, floats, and `bool`.  A size that cannot
be negative fits signed and unsigned integers.  `void*` accepts every address; `cast(x.data,
"float4*")` passes an address with another type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from math import gcd, prod
from typing import TYPE_CHECKING, Final

from typing_extensions import assert_never

from ferrule.compiler.conventions.arguments import (
    Argument,
    Cast,
    InMemory,
    Null,
    PointerCast,
    cast,
    describe,
)
from ferrule.compiler.conventions.c.callbacks import Callback, UserData
from ferrule.compiler.conventions.c.host_arguments import CArgument, HostArgument, Reference
from ferrule.compiler.conventions.c.outs import Out, OutField, OutValue
from ferrule.compiler.conventions.c.pointers import FunctionPointer
from ferrule.compiler.conventions.c.structs import Struct
from ferrule.compiler.conventions.c.texts import CBytes, CString, Length
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
from ferrule.specs import (
    Compound,
    Data,
    Dim,
    DType,
    Param,
    Scalar,
    Signature,
    Sym,
    Tensor,
    as_dtype,
)
from ferrule.specs import params as kinds
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import divisibility_of

if TYPE_CHECKING:
    from typing import Literal

    from ferrule.compiler.cuda.kernelfacts import Member

    Kind = Literal["address", "number", "bytes"]

_INTEGERS: Final = ("int", "uint")


@dataclass(frozen=True, slots=True)
class Given:
    """A value that a call passes: an address, a number or bytes.

    `dtype` is that of the number or of the pointee, None if that may be anything; `pointer` is the
    type of a cast.  For an address: whether the memory is read-only, its known alignment, the shape
    and strides of the array.  `is_natural`: a number that is never negative.
    """

    what: str
    kind: Kind
    dtype: str | None = None
    pointer: Spelled | None = None
    is_read_only: bool = False
    align: int = 0
    shape: tuple[Dim, ...] = ()
    strides: tuple[Dim, ...] = ()
    is_natural: bool = False
    is_between: bool = False
    """Whether the address may be inside an element of the tensor."""
    is_null: bool = False
    may_be_null: bool = False
    """Whether the address may be null in a call."""
    size: int = 0
    """The number of bytes."""
    memory: InMemory | None = None
    """The argument behind the bytes, or behind the address."""
    is_text: bool = False
    """Whether it is the address of a C string."""
    holds_address: bool = False
    """Whether it is the address of an address."""
    holds_text: bool = False
    """Whether that address is a C string's."""
    is_place: bool = False
    """Whether C writes one number there: an `Out`, or its field."""
    held: str | None = None
    """The dtype behind that address, if it is known."""
    is_bytes: bool = False
    """Whether it is the address of bytes, with or without a sign."""
    function: Function | None = None
    """What is known of it if it is the address of a function."""
    is_context: bool = False
    """Whether it is the context of a callback."""


@dataclass(frozen=True, slots=True)
class Function:
    """The C types of a callback, its context among the parameters; None where they are unknown.
    Those of LLVM IR are its own words, "i32".  `name` is that of a function of C."""

    params: tuple[DType | str, ...] | None = None
    returns: DType | str | None = None
    name: str | None = None


def given_values(signature: Signature, arguments: Sequence[CArgument]) -> list[list[Given]]:
    """For each argument, the values that it becomes."""
    sizes = frozenset(_sizes(signature.params))
    return [[*_given(signature, sizes, each)] for each in arguments]


def given_members(signature: Signature, struct: Struct) -> dict[int, Given]:
    """The numbers and addresses of a struct and of structs inside it, by their offsets."""
    sizes = frozenset(_sizes(signature.params))
    found: dict[int, Given] = {}
    for offset, each in given_fields(struct):
        (found[offset],) = _given(signature, sizes, each)
    return found


def given_fields(struct: Struct) -> Iterator[tuple[int, CArgument]]:
    """The fields of a struct and of structs and arrays inside it, with their offsets."""
    for field, offset in zip(struct.fields, struct.offsets, strict=True):
        if isinstance(field, Struct):
            yield from ((offset + at, each) for at, each in given_fields(field))
        elif isinstance(field, OutField) and field.place.room is not None:
            yield from ((offset + at, cast(0, "int8")) for at in range(field.place.room))
        elif isinstance(field, OutField) or not isinstance(field, InMemory):
            yield offset, field


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


# ---- values of the call ----


def _sizes(params: Sequence[Param]) -> Iterator[Sym]:
    """The symbols that are the size of a tensor, which is never negative."""
    for param in params:
        match param:
            case Tensor(shape=shape):
                yield from (each for each in shape if isinstance(each, Sym))
            case kinds.Optional(item=item):
                yield from _sizes([item])
            case kinds.Tuple(items=items):
                yield from _sizes(items)


def is_natural(dim: Dim, sizes: frozenset[Sym]) -> bool:
    """Whether a size is never negative; `sizes` are symbols that never are."""
    match dim:
        case int():
            return dim >= 0
        case Sym():
            return dim in sizes
        case Compound(op, lhs, rhs):
            left, right = is_natural(lhs, sizes), is_natural(rhs, sizes)
            return (left or right) if op == "max" else op != "sub" and left and right


def _given(signature: Signature, sizes: frozenset[Sym], argument: CArgument) -> Iterator[Given]:
    match argument:
        case Data() | Tensor() | kinds.Pointer() | PointerCast() | Null():
            yield _address(signature, argument)
        case Cast(value=value, dtype=dtype):
            natural = isinstance(value, int | Sym | Compound) and is_natural(value, sizes)
            name = describe(signature, argument)
            yield _number(name, dtype.name, natural)
        case int() | Sym() | Compound():
            narrow = isinstance(argument, Sym) and argument.width == 32
            name, dtype_name = describe(signature, argument), "int32" if narrow else "int64"
            yield _number(name, dtype_name, is_natural(argument, sizes))
        case Scalar(name=name, dtype=dtype):
            yield _number(name, dtype.name, dtype.kind == "uint")
        case HostArgument():
            yield from _of_host(signature, sizes, argument)
        case InMemory():
            what = f"a {type(argument).__name__}, {argument.size} bytes by value"
            yield Given(what, "bytes", size=argument.size, memory=argument)
        case _:
            yield from _parts(signature, sizes, argument)


def _number(name: str, dtype: str, natural: bool) -> Given:
    article = "an" if dtype[0] in "iu" and not dtype.startswith("uint") else "a"
    return Given(f"{name}, {article} {dtype}", "number", dtype, is_natural=natural)


def _address(signature: Signature, argument: Argument) -> Given:
    match argument:
        case Data(tensor=tensor, offset=offset):
            align = gcd(tensor.align, divisibility_of(offset))
            name, shape = f"{tensor.name}.data", tensor.shape
            word = f"{name}, the address of {'read-only ' if tensor.read_only else ''}"
            dtype = "float32" if tensor.dtype.name == "tfloat32" else tensor.dtype.name
            what = f"{word}{tensor.dtype.name}"
            whole = tensor.dtype.bits // 8
            return Given(
                what, "address", dtype, None, tensor.read_only, align, shape, tensor.strides,
                is_between=bool(whole and divisibility_of(offset) % whole),
            )  # fmt: skip
        case Tensor():
            return _address(signature, argument.data)
        case PointerCast(value=value, pointer=pointer):
            inner, named = _address(signature, value), as_called(read_type(pointer))
            what = f"({pointer}){inner.what.partition(',')[0]}"
            return replace(inner, what=what, pointer=named, dtype=None)
        case kinds.Pointer(name=name, dtype=dtype, align=align):
            said = f"{name}, an address" + ("" if dtype is None else f" of {dtype.name}")
            return Given(
                said, "address", None if dtype is None else dtype.name, align=align,
                may_be_null=argument.nullable,
            )  # fmt: skip
    return Given("NULL", "address", is_null=True, may_be_null=True)


def _of_host(
    signature: Signature, sizes: frozenset[Sym], argument: HostArgument
) -> Iterator[Given]:
    match argument:
        case Out() | OutValue() | OutField():
            yield _of_out(argument)
        case CString():
            said = "a CString, the address of char"
            yield Given(said, "address", "int8", is_read_only=True, is_text=True)
        case CBytes(value=value):
            what = f"a CBytes, the address of {value.name}"
            yield Given(what, "address", is_read_only=True, is_bytes=True)
        case Callback():
            yield _callback(argument)
        case FunctionPointer(function=name):
            said = f"the address of the function {name}"
            yield Given(said, "address", function=Function(*argument.said(), name))
        case UserData(callback=callback):
            said = f"the user_data of {callback.name}"
            yield Given(said, "address", is_context=True)
        case Length(value=value, dtype=kind):
            yield _number(f"the length of {value.name}", kind.name, natural=True)
        case Reference(value=value, reads_only=is_read_only) if isinstance(value, InMemory):
            what = f"a Reference, the address of a {type(value).__name__} of {value.size} bytes"
            yield Given(what, "address", is_read_only=is_read_only, memory=value)
        case Reference(value=value, reads_only=is_read_only):
            (inner,) = _given(signature, sizes, value)
            is_number = inner.kind == "number"
            if inner.kind == "address" and inner.dtype is not None and not inner.is_text:
                what = f"the address of {inner.what}"
                yield Given(
                    what, "address", None, None, is_read_only, 8, holds_address=True,
                    held=inner.dtype,
                )  # fmt: skip
                return
            what = f"the address of {inner.what}"
            dtype = inner.dtype if is_number else None
            align = as_dtype(dtype).itemsize if dtype else 0
            yield Given(what, "address", dtype, is_read_only=is_read_only, align=align)
        case _:
            name = type(argument).__name__
            yield from (Given(f"a {name}, an address", "address") for _ in argument.types())


def _of_out(argument: Out | OutValue | OutField) -> Given:
    match argument:
        case Out(name=name, room=int() as room):
            what = f"the Out {name!r}, a buffer of {room} bytes"
            return Given(what, "address", is_bytes=True)
        case OutValue(out=Out(name=name, room=int() as room)):
            return Given(f"the value of the Out {name!r}, {room} bytes", "address", is_bytes=True)
        case Out(name=name, dtype=DType() as kind, size_in_memory=size):
            what = f"the Out {name!r}, the address of {kind.name}"
            return Given(what, "address", kind.name, align=size, is_place=True)
        case Out(name=name, dtype=kind):
            said = f"the Out {name!r}, the address of an address"
            holds_text = kind == "string"
            return Given(said, "address", align=8, holds_address=True, holds_text=holds_text)
        case OutField(place=Out(name=name, dtype=DType() as kind)):
            number = _number(f"the Out {name!r} as a field", kind.name, natural=False)
            return replace(number, is_place=True)
        case OutField(place=Out(name=name)):
            return Given(f"the Out {name!r} as a field, an address", "address", may_be_null=True)
        case OutValue(out=Out(name=name, dtype=DType() as kind)):
            return _number(f"the value of the Out {name!r}", kind.name, natural=False)
        case OutValue(out=Out(name=name)):
            return Given(f"the value of the Out {name!r}, an address", "address")


def _callback(argument: Callback) -> Given:
    params: list[DType | str] = [*argument.params]
    if argument.context is not None:
        params.insert(argument.context, "pointer")
    function = Function(tuple(params), argument.returns)
    words = ", ".join(str(getattr(each, "name", each)) for each in params)
    result = getattr(argument.returns, "name", argument.returns)
    said = f"{argument.name}, a function ({words}) -> {result}"
    return Given(said, "address", function=function)


def _parts(signature: Signature, sizes: frozenset[Sym], argument: CArgument) -> Iterator[Given]:
    """The values of a parameter with several parts, or of one that is a special address."""
    match argument:
        case kinds.Optional(name=name, item=item):
            yield Given(f"whether {name} was given", "number")
            for part in _given(signature, sizes, item):
                yield replace(part, may_be_null=part.kind == "address")
        case kinds.Tuple(items=items):
            for each in items:
                yield from _given(signature, sizes, each)
        case kinds.Union(name=name, members=members):
            yield Given(f"which of its kinds {name} has", "number")
            for each in members:
                yield from _given(signature, sizes, each)
        case kinds.Shape() | kinds.Constant():
            return
        case kinds.WithTraits(traits=traits):
            yield from _plain_parts(argument.name, traits.payload)
        case _:
            yield Given(f"{getattr(argument, 'name', 'it')}, an address", "address")


def _plain_parts(name: str, payload: kinds.Payload) -> Iterator[Given]:
    match payload:
        case kinds.Payload.NOTHING:
            return
        case kinds.Payload.BITS:
            yield Given(name, "number")
        case kinds.Payload.BYTES:
            yield Given(f"{name}, the address of its bytes", "address", "int8", is_read_only=True)
            yield _number(f"the length of {name}", "int64", natural=True)
        case kinds.Payload.ADDRESS | kinds.Payload.OBJECT | kinds.Payload.ANY:
            yield Given(f"{name}, an address", "address")
        case _:
            assert_never(payload)


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

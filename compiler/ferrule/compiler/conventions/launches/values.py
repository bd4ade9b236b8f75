"""The values that a call passes to a kernel or function, with what is known of each.

A struct by value is the bytes of its fields; a number is known to be natural if no call makes it
negative.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import gcd
from typing import TYPE_CHECKING

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
from ferrule.compiler.spelledtypes import (
    Spelled,
    as_called,
    read_type,
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

    Kind = Literal["address", "number", "bytes"]


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

"""Texts as C strings, the address of NUL-terminated bytes; and the two parts of bytes."""

from __future__ import annotations

from llvmlite import ir

from ferrule.compiler.artefacts import RAISED, Fault, literal
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.c.unicode import utf8_prefix
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.layouts import ANY, BYTE_ARRAY, I8, I32, I64, OBJECT, PTR
from ferrule.specs import DType, as_dtype
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import Bytes, String


@dataclass(frozen=True, slots=True)
class CString:
    """A `const char*`: a `String` of the signature, or a constant text.

        CFunction("setenv", [CString(sig["name"]), CString(sig["value"]), cast(1, "int32")])

    It is UTF-8, and valid during the call.  A string that contains a NUL is a ValueError of the
    call.  Raises TypeError for anything else, ValueError for a constant text with a NUL.
    """

    value: String | str

    def __post_init__(self) -> None:
        if not isinstance(self.value, String | str):
            raise TypeError(
                f"CString: expected a String of the signature or a text, but got {self.value!r}"
            )
        if isinstance(self.value, str) and "\0" in self.value:
            raise ValueError(f"CString: {self.value!r} has a zero in it, where C takes it to end")
        if isinstance(self.value, str) and any("\ud800" <= each <= "\udfff" for each in self.value):
            raise ValueError(f"CString: {self.value!r} has no UTF-8")

    def types(self) -> list[ir.Type]:
        """See `HostArgument`."""
        return [PTR]

    def values(self, call: Call, what: str) -> list[ir.Value]:
        """See `HostArgument`."""
        e = call.emitter
        if isinstance(self.value, str):
            return [e.cstring(self.value)]
        address, length = call.leaves(self.value)
        message = f"{literal(what)} has a zero in it, where C takes it to end: {{text}}"
        is_short = e.icmp("ne", e.call("strlen", [address]), length)
        call.refuse(is_short, Fault("ValueError", message), [e.builder.ptrtoint(address, I64)])
        return [address]


@dataclass(frozen=True, slots=True)
class CBytes:
    """A `const void*`: the address of a `Bytes` or `String` of the signature, without its length.

        CFunction("XML_Parse", [parser, CBytes(data), Length(data, "int32"), cast(1, "int32")])

    The parameter itself in a list is both, the length as 64 bits behind the address.  Raises
    TypeError for anything else.
    """

    value: Bytes | String

    def __post_init__(self) -> None:
        _check_bytes("CBytes", self.value)

    def types(self) -> list[ir.Type]:
        """See `HostArgument`."""
        return [PTR]

    def values(self, call: Call, what: str) -> list[ir.Value]:
        """See `HostArgument`."""
        return [call.leaves(self.value)[0]]


@dataclass(frozen=True, slots=True, init=False)
class Length:
    """The number of bytes of a `Bytes` or `String` of the signature, as an integer of 32 or 64
    bits, by default a `size_t`.

    One that does not fit is a ValueError of the call.  Raises TypeError for another parameter,
    ValueError for another type.
    """

    value: Bytes | String
    dtype: DType

    def __init__(self, value: Bytes | String, dtype: DType | str = "uint64") -> None:
        _check_bytes("Length", value)
        found = as_dtype(dtype)
        if found.kind not in ("int", "uint") or found.bits < 32:
            raise ValueError(f"Length: expected an integer of 32 or 64 bits, but got {found.name}")
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "dtype", found)

    def types(self) -> list[ir.Type]:
        """See `HostArgument`."""
        return [ir.IntType(self.dtype.bits)]

    def values(self, call: Call, what: str) -> list[ir.Value]:
        """See `HostArgument`."""
        e, length = call.emitter, call.leaves(self.value)[1]
        if self.dtype.bits == 64:
            return [length]
        most = e.const_i64((1 << self.dtype.bits - (self.dtype.kind == "int")) - 1)
        text = f"{literal(what)} is {{}}, the length of {literal(self.value.name)}, which does not"
        fault = Fault("ValueError", f"{text} fit {self.dtype.name}")
        call.refuse(e.icmp("ugt", length, most), fault, [length])
        return [e.builder.trunc(length, I32)]


def _check_bytes(what: str, value: object) -> None:
    if not isinstance(value, Bytes | String):
        raise TypeError(f"{what}: expected a Bytes or String of the signature, but got {value!r}")


def text_leaves(
    call: Call, address: ir.Value, what: str, room: int | None = None
) -> list[ir.Value]:
    """The leaves of a copy of a string of C; a copy, because the memory may be invalid when the
    call makes its result.  `what` is its name in errors; one that fills `room` bytes may have been
    cut inside of a character, which is left out."""
    e = call.emitter
    call.refuse(
        e.is_null(address), Fault("RuntimeError", f"{literal(what)} a null pointer, not a string")
    )
    size = _characters(call, address, e.call("strlen", [address]), literal(what), room)
    place, text = call.keep(), e.alloca(BYTE_ARRAY, name="text")
    e.store_field(text, BYTE_ARRAY, "data", address)
    e.store_field(text, BYTE_ARRAY, "size", size)
    made = e.call("TVMFFIStringFromByteArray", [text, place])
    with e.if_then(e.icmp("ne", made, ir.Constant(I32, 0)), likely=False):
        call.fail(ir.Constant(I32, RAISED))
    # A short text is inside its TVMFFIAny; the object of a long text begins with such a pair.
    e.store_field(text, BYTE_ARRAY, "data", e.field_ptr(place, ANY, "v_bytes"))
    index = e.load_field(place, ANY, "type_index")
    is_short = e.icmp("eq", index, e.const_i32(TypeIndex.SMALL_STR))
    inside = e.index(e.load_field(place, ANY, "v_obj"), I8, OBJECT.size)
    kept = e.select(is_short, text, inside)
    return [e.load_field(kept, BYTE_ARRAY, name) for name in ("data", "size")]


def _characters(
    call: Call, address: ir.Value, size: ir.Value, what: str, room: int | None
) -> ir.Value:
    """The size of a text; one that is no UTF-8 is a ValueError of the call."""
    e = call.emitter
    whole = utf8_prefix(call, address, size)
    wrong = e.icmp("ne", whole, size)
    good = size
    if room is not None:
        cut = e.binary("and", e.icmp("eq", size, e.const_i64(room - 1)), is_cut(call, whole))
        good = e.select(cut, e.builder.not_(whole), size)
        wrong = e.binary("and", wrong, e.not_(cut))
    at = e.select(is_cut(call, whole), e.builder.not_(whole), whole)
    said = f"{what} a text that is no UTF-8 at byte {{}}: a 'pointer' gives its address, the .data"
    call.refuse(wrong, Fault("ValueError", f"{said} of a tensor its bytes"), [at])
    return good


def is_cut(call: Call, whole: ir.Value) -> ir.Value:
    """Whether `utf8_prefix` says that the text ends inside of a character."""
    return call.emitter.icmp("slt", whole, call.emitter.const_i64(0))

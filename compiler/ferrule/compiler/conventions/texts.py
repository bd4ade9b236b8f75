"""Texts as C has them: the address of bytes that end with a zero."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from ferrule.compiler.artefacts import Fault, literal
from ferrule.compiler.conventions.base import Call
from ferrule.runtime.llvm.layouts import I64, PTR
from ferrule.specs.params import String


@dataclass(frozen=True, slots=True)
class CString:
    """A `const char*`: a `String` of the signature, or a text that is always the same.

        CFunction("setenv", [CString(sig["name"]), CString(sig["value"]), cast(1, "int32")])

    It is lent for the time of the call, UTF-8.  A string with a zero in it is a ValueError of the
    call.  Raises TypeError for anything else, ValueError for a text with a zero in it.
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


def text_leaves(call: Call, address: ir.Value, function: str) -> list[ir.Value]:
    """The leaves of a string that a function returned; a null pointer ends the call."""
    e = call.emitter
    fault = Fault("RuntimeError", f"{literal(function)} returned a null pointer, not a string")
    call.refuse(e.is_null(address), fault)
    return [address, e.call("strlen", [address])]

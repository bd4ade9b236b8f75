"""Failures of C functions as errors of the call: what `ReturnCode` says."""

from __future__ import annotations

from typing import Final, Literal

from llvmlite import ir

from ferrule.compiler.artefacts import Fault, literal
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.c.outs import Out
from ferrule.compiler.conventions.c.returns import ReturnCode, TextCall, buffer_of, widened
from ferrule.compiler.conventions.c.texts import is_cut
from ferrule.compiler.conventions.c.unicode import utf8_prefix
from ferrule.compiler.host.steps import readable
from ferrule.compiler.hostcode import HostCode
from ferrule.runtime.llvm.layouts import I8, I32, I64, PTR
from ferrule.specs import Uint64

# The longest text of a 64-bit number has 20 digits or a sign and 19, and then a zero.
_DIGITS: Final = 24
_SHOWN: Final = 512
"""The room for a library's text whose end is no UTF-8."""
_HERE: Final = "\0"
_ERRNO: Final = "__errno_location"
_LIBC: Final = HostCode.from_library(None)
_OPS: Final[dict[str, Literal["ne", "slt", "eq"]]] = {
    "nonzero": "ne",
    "negative": "slt",
    "zero": "eq",
    "null": "eq",
}


def check_status(call: Call, function: str, status: ReturnCode, value: ir.Value | None) -> None:
    """End the call if a function failed; `value` is what it returned."""
    e = call.emitter
    if status.of is not None:
        status.of.open(call).check_written(f"{function}: the code of its ReturnCode")
        (value,) = status.of.given(call)
    assert value is not None
    failed = e.is_null(value) if value.type == PTR else _has_failed(call, status, value)
    steps = call.steps.block(f"if {function} failed:")
    with steps, e.if_then(failed, likely=False):
        code = _errno(call) if status.errno else value
        kind = status.code
        wide = e.builder.ptrtoint(code, I64) if kind is None else widened(call, code, kind)
        for number, error, text in status.errors:
            flag = e.icmp("eq", wide, e.const_i64(number))
            if text is not None:
                call.refuse(flag, Fault(error, literal(text)))
                continue
            with e.if_then(flag):
                _fail(call, function, status, error, wide)
        _fail(call, function, status, "RuntimeError", wide)


def _has_failed(call: Call, status: ReturnCode, value: ir.Value) -> ir.Value:
    e = call.emitter
    dtype = status.dtype if status.of is None else status.of.dtype
    assert not isinstance(dtype, str)
    if not isinstance(status.fails, str):
        return _says_so(call, status.fails, widened(call, value, dtype))
    return e.icmp(_OPS[status.fails], widened(call, value, dtype), e.const_i64(0))


def _says_so(call: Call, asked: TextCall, code: ir.Value) -> ir.Value:
    """Whether the library's own function says that a code is a failure."""
    before, call.code = call.code, code
    said = asked.value(call)
    call.code = before
    return call.emitter.icmp("ne", said, ir.Constant(said.type, 0))


def _errno(call: Call) -> ir.Value:
    """The errno of the C library, i32."""
    kind = ir.FunctionType(PTR, [])
    _LIBC.bring(call, _ERRNO)
    e = call.emitter
    return e.load(e.call(e.symbol(_ERRNO, kind), []), I32, name="errno")


def _fail(call: Call, function: str, status: ReturnCode, error: str, code: ir.Value) -> None:
    """End the call with an error that shows the code, and the text that the library has for it."""
    e = call.emitter
    call.steps.add(f"{error}: {readable(_shown(function, status, '{}'))}{_and_text(status)}")
    is_size = not isinstance(status.fails, str) and status.code == Uint64
    unsigned = status.code is not None and status.code.kind == "uint"
    unsigned = unsigned and not is_size
    if status.text is None:
        shown = _shown(function, status, "{unsigned}" if unsigned else "{}")
        e.store(code, call.values)
        call.fail(ir.Constant(I32, call.fault(Fault(error, shown))))
        return
    text = _as_utf8(call, _text(call, status, code))
    nothing = e.is_null(text)
    digits = e.alloca(ir.IntType(8), _DIGITS, name="digits")
    form = e.cstring("%llu" if unsigned else "%lld")
    e.call("snprintf", [digits, e.const_i64(_DIGITS), form, code])
    before, code_here, after = _shown(function, status, _HERE).partition(_HERE)
    number = [digits, e.cstring(_plain(after))] if code_here else []
    colon = e.select(nothing, e.null(), e.cstring(": "))
    parts = [e.cstring(_plain(before)), *number, colon, text]
    texts = e.alloca(PTR, len(parts), name="texts")
    for position, part in enumerate(parts):
        e.store(part, e.index(texts, PTR, position))
    given = [e.cstring(error), texts, e.const_i32(len(parts))]
    e.call("TVMFFIErrorSetRaisedFromCStrParts", given)
    call.fail_raised(function)


def _and_text(status: ReturnCode) -> str:
    return "" if status.text is None else ": the text of the library"


def _shown(function: str, status: ReturnCode, code: str) -> str:
    """What the message says before the library's own text."""
    name = literal(function)
    if status.errno:
        return f"{name} failed, errno {code}"
    if status.of is not None:
        return f"{name} left {code} in {status.of.name}"
    if status.fails == "null":
        return f"{name} returned a null pointer"
    return f"{name} returned {code}"


def _plain(text: str) -> str:
    return text.replace("{{", "{").replace("}}", "}")


def _text(call: Call, status: ReturnCode, code: ir.Value) -> ir.Value:
    """The address of the library's text, or null."""
    text = status.text
    assert text is not None
    if isinstance(text, Out):
        place = text.open(call)
        place.check_written(f"{call.signature.name}: the text of a ReturnCode")
        return _unless_empty(call, text)
    before, call.code = call.code, code
    value = text.value(call)
    call.code = before
    return value if text.returns == "string" else _unless_empty(call, buffer_of(text))


def _as_utf8(call: Call, text: ir.Value) -> ir.Value:
    """The text if it is UTF-8, as messages must be; otherwise a copy of its part that is."""
    e, place = call.emitter, call.emitter.alloca(PTR, name="shown")
    e.store(text, place)
    with e.if_then(e.not_(e.is_null(text))):
        size = e.call("strlen", [text])
        whole = utf8_prefix(call, text, size)
        with e.if_then(e.icmp("ne", whole, size), likely=False):
            good = e.select(is_cut(call, whole), e.builder.not_(whole), whole)
            copied = e.alloca(I8, _SHOWN, name="copied")
            most = e.const_i64(_SHOWN - 8)
            good = e.select(e.icmp("ult", good, most), good, e.const_i64(0))
            e.call("memcpy", [copied, text, good])
            e.call("memcpy", [e.index(copied, I8, good), e.cstring("…"), e.const_i64(4)])
            e.store(copied, place)
    return e.load(place, PTR)


def _unless_empty(call: Call, text: Out) -> ir.Value:
    """The address of the text; null for a buffer with an empty one."""
    e, address = call.emitter, text.loaded(call)
    if text.room is None:
        return address
    empty = e.icmp("eq", e.load(address, I8), ir.Constant(I8, 0))
    return e.select(empty, e.null(), address)

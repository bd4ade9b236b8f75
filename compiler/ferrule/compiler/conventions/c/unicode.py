"""Whether the bytes of a C string are UTF-8: values of tvm-ffi that are texts must be.

A function of the body reads the bytes by a table of states (The Unicode Standard, table 3-7), which
is made here.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.compiler.conventions.base import Call
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I8, I64, PTR

_NAME: Final = "ferrule.utf8"
_ENDS: Final = (0x80, 0x90, 0xA0, 0xC0, 0xC2, 0xE0, 0xE1, 0xED, 0xEE, 0xF0, 0xF1, 0xF4, 0xF5, 0x100)
"""Where the next kind of byte begins; below the first is ASCII."""
_KINDS: Final = len(_ENDS)
_LOW, _MIDDLE, _HIGH = 1, 2, 3  # 80..8F, 90..9F, A0..BF: bytes that continue a character
_FOLLOWING: Final = (_LOW, _MIDDLE, _HIGH)
_WHOLE, _WRONG, _ONE, _TWO, _THREE, _AFTER_E0, _AFTER_ED, _AFTER_F0, _AFTER_F4 = range(9)
_NEXT: Final = {
    _WHOLE: {
        0: _WHOLE, 5: _ONE, 6: _AFTER_E0, 7: _TWO, 8: _AFTER_ED, 9: _TWO, 10: _AFTER_F0,
        11: _THREE, 12: _AFTER_F4,
    },
    _ONE: dict.fromkeys(_FOLLOWING, _WHOLE),
    _TWO: dict.fromkeys(_FOLLOWING, _ONE),
    _THREE: dict.fromkeys(_FOLLOWING, _TWO),
    _AFTER_E0: {_HIGH: _ONE},  # less would be a character of two bytes
    _AFTER_ED: {_LOW: _ONE, _MIDDLE: _ONE},  # more would be a surrogate
    _AFTER_F0: {_MIDDLE: _TWO, _HIGH: _TWO},
    _AFTER_F4: {_LOW: _TWO},  # more would be beyond U+10FFFF
}  # fmt: skip
"""The state after a byte of a kind; what is not there is wrong."""


def _kinds() -> bytes:
    """The kind of each byte: its place among `_ENDS`."""
    return bytes(next(i for i, end in enumerate(_ENDS) if byte < end) for byte in range(256))


def _states() -> bytes:
    """For each state and kind the next state."""
    rows = (_NEXT.get(state, {}) for state in range(9))
    return bytes(row.get(kind, _WRONG) for row in rows for kind in range(_KINDS))


def utf8_prefix(call: Call, address: ir.Value, size: ir.Value) -> ir.Value:
    """How many bytes of a text are whole characters of UTF-8; that, inverted, if all others are the
    begin of one more."""
    return call.emitter.call(_function(call.emitter), [address, size])


def _function(e: Emitter) -> ir.Function:
    known = e.module.globals.get(_NAME)
    if known is not None:
        return known
    with e.define(
        _NAME, I64, [PTR, I64], names=["text", "size"], linkage="internal",
        attributes=("nounwind", "noinline"),
    ) as function:  # fmt: skip
        text, size = function.args
        kinds, states = e.bytes_constant(_kinds()), e.bytes_constant(_states())
        state, whole = e.alloca(I64, name="state"), e.alloca(I64, name="whole")
        for place in (state, whole):
            e.store(e.const_i64(0), place)
        with e.loop(size) as i:
            byte = e.builder.zext(e.load(e.index(text, I8, i), I8), I64)
            kind = e.builder.zext(e.load(e.index(kinds, I8, byte), I8), I64)
            row = e.builder.mul(e.load(state, I64), e.const_i64(_KINDS))
            at = e.index(states, I8, e.builder.add(row, kind))
            following = e.builder.zext(e.load(at, I8), I64)
            e.store(following, state)
            with e.if_then(e.icmp("eq", following, e.const_i64(_WRONG)), likely=False):
                e.ret(e.load(whole, I64))
            with e.if_then(e.icmp("eq", following, e.const_i64(_WHOLE))):
                e.store(e.builder.add(i, e.const_i64(1)), whole)
        found = e.load(whole, I64)
        is_whole = e.icmp("eq", e.load(state, I64), e.const_i64(_WHOLE))
        e.ret(e.select(is_whole, found, e.builder.not_(found)))
    return function

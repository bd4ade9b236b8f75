"""Arithmetic on integers."""

from __future__ import annotations

from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.instructions.helpers import helper
from ferrule.emulator.ptx.module import Instruction
from ferrule.emulator.warps.emitter import Emitter, bits_of, splat, vector

_INT = r"\.(?P<t>[us](16|32|64))"


def _binary(e: Emitter, item: Instruction, t: str, op: str) -> None:
    a, b = (e.read(each, t) for each in item.operands[1:3])
    e.write(item.operands[0], t, e.op(f"{op} {vector(t)} {a}, {b}"))


@form("add", _INT, 3)
@form("sub", _INT, 3)
def _add(e: Emitter, item: Instruction, named: Named) -> None:
    _binary(e, item, kind(named), item.opcode)


@form("add", r"\.sat\.(?P<t>s32)", 3)
@form("sub", r"\.sat\.(?P<t>s32)", 3)
def _add_sat(e: Emitter, item: Instruction, named: Named) -> None:
    a, b = (e.read(each, "s32") for each in item.operands[1:3])
    call = f"call <32 x i32> @llvm.s{item.opcode}.sat.v32i32(<32 x i32> {a}, <32 x i32> {b})"
    e.write(item.operands[0], "s32", e.op(call))


@form("mul", r"\.(?P<how>lo|hi|wide)" + _INT, 3)
@form("mad", r"\.(?P<how>lo|hi|wide)" + _INT, 4)
def _mul(e: Emitter, item: Instruction, named: Named) -> None:
    t, how = kind(named), kind(named, "how")
    if how == "wide" and bits_of(t) == 64:
        raise e.refuse()
    a, b = (e.read(each, t) for each in item.operands[1:3])
    result = t if how != "wide" else f"{t[0]}{2 * bits_of(t)}"
    if how == "lo":
        value = e.op(f"mul {vector(t)} {a}, {b}")
    else:
        value = _wide(e, t, a, b, high=how == "hi")
    if item.opcode == "mad":
        c = e.read(item.operands[3], result)
        value = e.op(f"add {vector(result)} {value}, {c}")
    e.write(item.operands[0], result, value)


def _wide(e: Emitter, t: str, a: str, b: str, *, high: bool) -> str:
    """The whole product, or its upper half."""
    bits = bits_of(t)
    narrow, wide = f"<32 x i{bits}>", f"<32 x i{2 * bits}>"
    extend = "sext" if t[0] == "s" else "zext"
    x, y = (e.op(f"{extend} {narrow} {each} to {wide}") for each in (a, b))
    value = e.op(f"mul {wide} {x}, {y}")
    if high:
        value = e.op(f"lshr {wide} {value}, {splat(f'i{2 * bits}', str(bits))}")
        value = e.op(f"trunc {wide} {value} to {narrow}")
    return value


@form("mul24", r"\.(?P<how>lo|hi)\.(?P<t>[us]32)", 3)
@form("mad24", r"\.(?P<how>lo|hi)\.(?P<t>[us]32)", 4)
def _mul24(e: Emitter, item: Instruction, named: Named) -> None:
    """The low or the upper 32 of the 48 bits of the product of the low 24."""
    t = kind(named)
    shift = "ashr" if t[0] == "s" else "lshr"
    extend = "sext" if t[0] == "s" else "zext"
    parts = []
    for each in item.operands[1:3]:
        up = e.op(f"shl <32 x i32> {e.read(each, t)}, splat (i32 8)")
        low = e.op(f"{shift} <32 x i32> {up}, splat (i32 8)")
        parts.append(e.op(f"{extend} <32 x i32> {low} to <32 x i64>"))
    value = e.op(f"mul <32 x i64> {parts[0]}, {parts[1]}")
    if named["how"] == "hi":
        value = e.op(f"lshr <32 x i64> {value}, splat (i64 16)")
    value = e.op(f"trunc <32 x i64> {value} to <32 x i32>")
    if item.opcode == "mad24":
        value = e.op(f"add <32 x i32> {value}, {e.read(item.operands[3], t)}")
    e.write(item.operands[0], t, value)


@form("div", _INT, 3)
@form("rem", _INT, 3)
def _div(e: Emitter, item: Instruction, named: Named) -> None:
    t = kind(named)
    a, b = (e.read(each, t) for each in item.operands[1:3])
    given = [(vector(t), a), (vector(t), b)]
    (value,) = e.call(f"divide:{item.opcode}:{t}", given, [vector(t)])
    e.write(item.operands[0], t, value)


@form("neg", r"\.(?P<t>s(16|32|64))", 2)
def _neg(e: Emitter, item: Instruction, named: Named) -> None:
    t = kind(named)
    value = e.read(item.operands[1], t)
    e.write(item.operands[0], t, e.op(f"sub {vector(t)} zeroinitializer, {value}"))


@form("abs", r"\.(?P<t>s(16|32|64))", 2)
def _abs(e: Emitter, item: Instruction, named: Named) -> None:
    t = kind(named)
    value, llvm = e.read(item.operands[1], t), vector(t)
    name = f"@llvm.abs.v32i{bits_of(t)}"
    e.write(item.operands[0], t, e.op(f"call {llvm} {name}({llvm} {value}, i1 false)"))


@form("min", _INT, 3)
@form("max", _INT, 3)
def _min(e: Emitter, item: Instruction, named: Named) -> None:
    t = kind(named)
    a, b = (e.read(each, t) for each in item.operands[1:3])
    llvm, sign = vector(t), "s" if t[0] == "s" else "u"
    name = f"@llvm.{sign}{item.opcode}.v32i{bits_of(t)}"
    e.write(item.operands[0], t, e.op(f"call {llvm} {name}({llvm} {a}, {llvm} {b})"))


@form("sad", _INT, 4)
def _sad(e: Emitter, item: Instruction, named: Named) -> None:
    t = kind(named)
    a, b, c = (e.read(each, t) for each in item.operands[1:4])
    llvm = vector(t)
    less = e.op(f"icmp {'s' if t[0] == 's' else 'u'}lt {llvm} {a}, {b}")
    x, y = e.op(f"sub {llvm} {b}, {a}"), e.op(f"sub {llvm} {a}, {b}")
    distance = e.op(f"select <32 x i1> {less}, {llvm} {x}, {llvm} {y}")
    e.write(item.operands[0], t, e.op(f"add {llvm} {c}, {distance}"))


@form("popc", r"\.(?P<t>b(32|64))", 2)
@form("clz", r"\.(?P<t>b(32|64))", 2)
def _count(e: Emitter, item: Instruction, named: Named) -> None:
    t = kind(named)
    value, llvm, bits = e.read(item.operands[1], t), vector(t), bits_of(t)
    if item.opcode == "popc":
        found = e.op(f"call {llvm} @llvm.ctpop.v32i{bits}({llvm} {value})")
    else:
        found = e.op(f"call {llvm} @llvm.ctlz.v32i{bits}({llvm} {value}, i1 false)")
    if bits == 64:
        found = e.op(f"trunc {llvm} {found} to <32 x i32>")
    e.write(item.operands[0], "u32", found)


@form("brev", r"\.(?P<t>b(32|64))", 2)
def _brev(e: Emitter, item: Instruction, named: Named) -> None:
    t = kind(named)
    value, llvm = e.read(item.operands[1], t), vector(t)
    found = e.op(f"call {llvm} @llvm.bitreverse.v32i{bits_of(t)}({llvm} {value})")
    e.write(item.operands[0], t, found)


@form("bfind", r"(?P<amount>\.shiftamt)?\.(?P<t>[us](32|64))", 2)
def _bfind(e: Emitter, item: Instruction, named: Named) -> None:
    """The place of the first bit that is not as the sign; all ones if there is none."""
    t = kind(named)
    value, llvm, bits = e.read(item.operands[1], t), vector(t), bits_of(t)
    word = f"i{bits}"
    if t[0] == "s":
        sign = e.op(f"ashr {llvm} {value}, {splat(word, str(bits - 1))}")
        value = e.op(f"xor {llvm} {value}, {sign}")
    zeros = e.op(f"call {llvm} @llvm.ctlz.v32i{bits}({llvm} {value}, i1 false)")
    found = zeros
    if not named["amount"]:
        found = e.op(f"sub {llvm} {splat(word, str(bits - 1))}, {zeros}")
    none = e.op(f"icmp eq {llvm} {value}, zeroinitializer")
    found = e.op(f"select <32 x i1> {none}, {llvm} {splat(word, '-1')}, {llvm} {found}")
    if bits == 64:
        found = e.op(f"trunc {llvm} {found} to <32 x i32>")
    e.write(item.operands[0], "u32", found)


__all__ = ["helper"]

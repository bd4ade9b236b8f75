"""Arithmetic on integers."""

from __future__ import annotations

from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.instructions.helpers import by_lane, helper, lane_value, put
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
        value = widely(e, t, a, b, high=how == "hi")
    if item.opcode == "mad":
        c = e.read(item.operands[3], result)
        value = e.op(f"add {vector(result)} {value}, {c}")
    e.write(item.operands[0], result, value)


def widely(e: Emitter, t: str, a: str, b: str, *, high: bool) -> str:
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
    a, b = (e.read(each, t) for each in item.operands[1:3])
    value = _product24(e, t, a, b, kind(named, "how"))
    if item.opcode == "mad24":
        value = e.op(f"add <32 x i32> {value}, {e.read(item.operands[3], t)}")
    e.write(item.operands[0], t, value)


def _product24(e: Emitter, t: str, a: str, b: str, how: str) -> str:
    shift = "ashr" if t[0] == "s" else "lshr"
    extend = "sext" if t[0] == "s" else "zext"
    parts = []
    for each in (a, b):
        up = e.op(f"shl <32 x i32> {each}, splat (i32 8)")
        low = e.op(f"{shift} <32 x i32> {up}, splat (i32 8)")
        parts.append(e.op(f"{extend} <32 x i32> {low} to <32 x i64>"))
    value = e.op(f"mul <32 x i64> {parts[0]}, {parts[1]}")
    if how == "hi":
        value = e.op(f"lshr <32 x i64> {value}, splat (i64 16)")
    return e.op(f"trunc <32 x i64> {value} to <32 x i32>")


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
    # With true the smallest number, which has no positive one, would be poison.
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


@form("mad", r"\.hi\.sat\.(?P<t>s32)", 4)
@form("mad24", r"\.hi\.sat\.(?P<t>s32)", 4)
def _mad_sat(e: Emitter, item: Instruction, named: Named) -> None:
    a, b, c = (e.read(each, "s32") for each in item.operands[1:4])
    high = _product24(e, "s32", a, b, "hi") if item.opcode == "mad24" else None
    value = high or widely(e, "s32", a, b, high=True)
    call = f"call <32 x i32> @llvm.sadd.sat.v32i32(<32 x i32> {value}, <32 x i32> {c})"
    e.write(item.operands[0], "s32", e.op(call))


@form("szext", r"\.(?P<mode>clamp|wrap)\.(?P<t>[us]32)", 3)
def _szext(e: Emitter, item: Instruction, named: Named) -> None:
    """The low bits of a number, as many as said, extended by their sign or by zeros."""
    t = kind(named)
    value, count = e.read(item.operands[1], t), e.read(item.operands[2], "u32")
    count = _counted(e, count, kind(named, "mode"))
    up = e.op(f"sub <32 x i32> splat (i32 32), {count}")
    # No bits would be a shift by 32, which is poison in LLVM.
    none = e.op(f"icmp eq <32 x i32> {count}, zeroinitializer")
    up = e.op(f"select <32 x i1> {none}, <32 x i32> zeroinitializer, <32 x i32> {up}")
    op = "ashr" if t[0] == "s" else "lshr"
    value = e.op(f"{op} <32 x i32> {e.op(f'shl <32 x i32> {value}, {up}')}, {up}")
    found = e.op(f"select <32 x i1> {none}, <32 x i32> zeroinitializer, <32 x i32> {value}")
    e.write(item.operands[0], t, found)


@form("bmsk", r"\.(?P<mode>clamp|wrap)\.b32", 3)
def _bmsk(e: Emitter, item: Instruction, named: Named) -> None:
    """Ones: so many, from a place on."""
    place, count = (e.read(each, "u32") for each in item.operands[1:3])
    mode = kind(named, "mode")
    place, count = (_counted(e, each, mode) for each in (place, count))
    # In 64 bits: a shift by 32 is defined there.
    ones = []
    for each in (place, count):
        wide = e.op(f"zext <32 x i32> {each} to <32 x i64>")
        ones.append(wide)
    mask = e.op(f"shl <32 x i64> splat (i64 -1), {ones[1]}")
    mask = e.op(f"xor <32 x i64> {mask}, splat (i64 -1)")
    mask = e.op(f"shl <32 x i64> {mask}, {ones[0]}")
    e.write(item.operands[0], "b32", e.op(f"trunc <32 x i64> {mask} to <32 x i32>"))


def _counted(e: Emitter, count: str, mode: str) -> str:
    """At most 32, or the low 5 bits."""
    if mode == "wrap":
        return e.op(f"and <32 x i32> {count}, splat (i32 31)")
    over = e.op(f"icmp ugt <32 x i32> {count}, splat (i32 32)")
    return e.op(f"select <32 x i1> {over}, <32 x i32> splat (i32 32), <32 x i32> {count}")


@form("fns", r"\.b32", 4)
def _fns(e: Emitter, item: Instruction, named: Named) -> None:
    given = [("<32 x i32>", e.read(each, "b32")) for each in item.operands[1:4]]
    (found,) = e.call("fns:", given, ["<32 x i32>"])
    e.write(item.operands[0], "b32", found)


@helper("fns")
def _fns_by_lane(name: str, _: str) -> str:
    """The place of the n-th one of a mask from a place on, upwards or downwards; else all ones.

    0 asks for a one at the place itself, 1 for the first from there on upwards.
    """
    body = lane_value("%p0", "i32", "word") + lane_value("%p1", "i32", "base")
    body += lane_value("%p2", "i32", "n")
    body += """  %down = icmp slt i32 %n, 0
  %minus = sub i32 0, %n
  %count = select i1 %down, i32 %minus, i32 %n
  %none = icmp eq i32 %count, 0
  %wanted = select i1 %none, i32 1, i32 %count
  %step = select i1 %down, i32 -1, i32 1
  br label %look
look:
  %at = phi i32 [%base, %body], [%at.1, %more]
  %seen = phi i32 [0, %body], [%seen.1, %more]
  %out = icmp ugt i32 %at, 31
  br i1 %out, label %lost, label %see
see:
  %shifted = lshr i32 %word, %at
  %bit = and i32 %shifted, 1
  %seen.1 = add i32 %seen, %bit
  %is = icmp ne i32 %bit, 0
  %enough = icmp eq i32 %seen.1, %wanted
  %hit = and i1 %is, %enough
  br i1 %hit, label %found, label %on
on:
  br i1 %none, label %lost, label %more
more:
  %at.1 = add i32 %at, %step
  br label %look
lost:
  br label %found
found:
  %r = phi i32 [%at, %see], [-1, %lost]
"""
    return by_lane(name, 4, "", body + put("%p3", "i32", "%r") + "  br label %next\n")

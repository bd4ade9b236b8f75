"""Atomics: lane after lane, each by an atomic instruction of the processor or a loop around one."""

from __future__ import annotations

from typing import Final

from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.instructions.helpers import (
    by_lane,
    helper,
    lane_value,
    located,
    prepared,
)
from ferrule.emulator.ptx.cursor import BYTES
from ferrule.emulator.ptx.module import Instruction, Operand
from ferrule.emulator.warps.emitter import Emitter, items_of, splat

_SCOPE = r"(\.(cta|cluster|gpu|sys))?"
_SPACE = r"(\.(?P<space>global|shared|shared::cta|shared::cluster))?"
_WHERE = rf"(\.(relaxed|acquire|release|acq_rel))?{_SCOPE}{_SPACE}"
_AT = rf"(\.(relaxed|acquire|release|acq_rel))?{_SCOPE}(\.(?P<space>global))?"
_HINT = r"(?P<hint>\.L2::cache_hint)?"
_FORMS: Final = (
    rf"\.(?P<op>and|or|xor){_HINT}\.(?P<t>b32|b64)",
    rf"\.(?P<op>add){_HINT}\.(?P<t>u32|s32|u64|f32|f64)",
    rf"\.(?P<op>add)\.noftz{_HINT}\.(?P<t>f16|bf16|f16x2|bf16x2)",
    rf"\.(?P<op>inc|dec){_HINT}\.(?P<t>u32)",
    rf"\.(?P<op>min|max){_HINT}\.(?P<t>[us](32|64))",
)
_VECTORS: Final = (
    rf"\.(?P<op>add){_HINT}\.(?P<v>v2|v4)\.(?P<t>f32)",
    rf"\.(?P<op>add|min|max)\.noftz{_HINT}\.(?P<v>v2|v4|v8)\.(?P<t>f16|bf16)",
    rf"\.(?P<op>add|min|max)\.noftz{_HINT}\.(?P<v>v2|v4)\.(?P<t>f16x2|bf16x2)",
)
"""Several places, each of which is changed by itself."""
_INTEGER: Final = {
    "and": "and", "or": "or", "xor": "xor", "exch": "xchg", "add": "add", "inc": "uinc_wrap",
    "dec": "udec_wrap", "min": "umin", "max": "umax",
}  # fmt: skip


def _atom(e: Emitter, item: Instruction, named: Named) -> None:
    reduces = item.opcode == "red"
    place, *operands = _without_policy(e, item, named)[0 if reduces else 1 :]
    t = kind(named)
    bits = 8 * BYTES[t]
    given = [("<32 x i64>", e.address(place, _space(named)))]
    for each in operands:
        given.append((f"<32 x i{bits}>", e.cast(e.read(each, t), t, f"b{bits}")))
    (old,) = e.call(_name(e, named), given, [f"<32 x i{bits}>"])
    if not reduces:
        e.write(item.operands[0], t, e.cast(old, f"b{bits}", t))


def _without_policy(e: Emitter, item: Instruction, named: Named) -> tuple[Operand, ...]:
    """The operands without the cache policy, which is ignored."""
    if not named.get("hint"):
        return item.operands
    e.read(item.operands[-1], "b64")
    return item.operands[:-1]


def _space(named: Named) -> str:
    if named["space"] == "shared::cluster":
        return "cluster"
    return (named["space"] or "generic").partition("::")[0]


def _name(e: Emitter, named: Named, align: int = 0) -> str:
    """The helper's; `align` are the bytes of all elements, of the first one."""
    how = "checked" if e.names.checked else "free"
    whole = f":{align}" if align else ""
    return f"atomic:{kind(named, 'op')}:{_space(named)}:{kind(named)}:{how}{whole}"


def _vector_atom(e: Emitter, item: Instruction, named: Named) -> None:
    """One element after the other; the address is that of all."""
    reduces = item.opcode == "red"
    place, values, *_ = _without_policy(e, item, named)[0 if reduces else 1 :]
    results = () if reduces else items_of(item.operands[0])
    t, count = kind(named), int(kind(named, "v")[1:])
    if len(items_of(values)) != count or len(results) not in (0, count):
        raise e.refuse("the number of registers is another")
    bits, size = 8 * BYTES[t], BYTES[t]
    address = e.address(place, _space(named))
    given = [e.cast(e.read(each, t), t, f"b{bits}") for each in items_of(values)]
    found = []
    for i, value in enumerate(given):
        at = e.op(f"add <32 x i64> {address}, {splat('i64', str(i * size))}")
        name = _name(e, named, 0 if i else size * count)
        pair = [("<32 x i64>", at), (f"<32 x i{bits}>", value)]
        found += e.call(name, pair, [f"<32 x i{bits}>"])
    for register, old in zip(results, found, strict=False):
        e.write(register, t, e.cast(old, f"b{bits}", t))


def _wide_atom(e: Emitter, item: Instruction, named: Named) -> None:
    """128 bits, in registers of which each is two of 64."""
    space = _space(named)
    result, place, *operands = _without_policy(e, item, named)
    halves = [each for operand in operands for each in items_of(operand)]
    if len(items_of(result)) != 2 or len(halves) != 2 * len(operands):
        raise e.refuse("wanted registers of 128 bits")
    given = [("<32 x i64>", e.address(place, space))]
    given += [("<32 x i64>", e.read(each, "b64")) for each in halves]
    how = "checked" if e.names.checked else "free"
    old = e.call(f"atomic:{kind(named, 'op')}:{space}:b128:{how}", given, ["<32 x i64>"] * 2)
    for register, value in zip(items_of(result), old, strict=True):
        e.write(register, "b64", value)


form("atom", rf"{_WHERE}\.(?P<op>exch){_HINT}\.b128", 3, 4)(_wide_atom)
form("atom", rf"{_WHERE}\.(?P<op>cas){_HINT}\.b128", 4, 5)(_wide_atom)
form("atom", rf"{_WHERE}\.(?P<op>exch){_HINT}\.(?P<t>b32|b64)", 3, 4)(_atom)
form("atom", rf"{_WHERE}\.(?P<op>cas){_HINT}\.(?P<t>b16|b32|b64)", 4, 5)(_atom)
for _form in _FORMS:
    form("atom", _WHERE + _form, 3, 4)(_atom)
    form("red", _WHERE + _form, 2, 3)(_atom)
for _form in _VECTORS:
    form("atom", _AT + _form, 3, 4)(_vector_atom)
    form("red", _AT + _form, 2, 3)(_vector_atom)


@helper("atomic")
def _by_lane(name: str, op: str, space: str, t: str, how: str, align: str = "") -> str:
    """`atomic:add:global:u32:checked`: addresses, operands, and a place for the old values."""
    if t == "b128":
        return _wide_by_lane(name, op, space, how)
    word = f"i{8 * BYTES[t]}"
    size = int(align or BYTES[t])
    body = lane_value("%p0", "i64", "a") + located(space, size, how == "checked", stores=True)
    body += lane_value("%p1", word, "b")
    result = "%p2"
    if op == "cas":
        body += lane_value("%p2", word, "new")
        body += f"  %pair = cmpxchg ptr %q, {word} %b, {word} %new seq_cst seq_cst\n"
        body += f"  %old = extractvalue {{ {word}, i1 }} %pair, 0\n"
        result = "%p3"
    elif t[0] in "fb" and t not in ("b32", "b64"):
        body += _float_loop(op, t, word, space)
    else:
        body += f"  %old = atomicrmw {_operation(op, t)} ptr %q, {word} %b seq_cst\n"
    body += f"  %to = getelementptr {word}, ptr {result}, i64 %i\n  store {word} %old, ptr %to\n"
    count = 4 if op == "cas" else 3
    return by_lane(
        name, count, prepared(space, how == "checked"), body + "  br label %next\n", "", True
    )


def _wide_by_lane(name: str, op: str, space: str, how: str) -> str:
    """Addresses, both halves of each operand, and places for those of the old values.

    No instruction of the processor: not every one has one of 128 bits, and all threads of a GPU are
    executed by one thread of the host.
    """
    compares = op == "cas"
    body = lane_value("%p0", "i64", "a") + located(space, 16, how == "checked", stores=True)
    body += "  %q1 = getelementptr i64, ptr %q, i64 1\n"
    body += "  %old0 = load volatile i64, ptr %q\n  %old1 = load volatile i64, ptr %q1\n"
    for half in range(2):
        body += lane_value(f"%p{1 + half}", "i64", f"b{half}")
        if compares:
            body += lane_value(f"%p{3 + half}", "i64", f"c{half}")
            body += f"  %same{half} = icmp eq i64 %old{half}, %b{half}\n"
    if compares:
        body += "  %same = and i1 %same0, %same1\n"
    for half, place in enumerate(("%q", "%q1")):
        new = f"%b{half}"
        if compares:
            new = f"%new{half}"
            body += f"  {new} = select i1 %same, i64 %c{half}, i64 %old{half}\n"
        body += f"  store volatile i64 {new}, ptr {place}\n"
        result = f"%p{(5 if compares else 3) + half}"
        body += f"  %to{half} = getelementptr i64, ptr {result}, i64 %i\n"
        body += f"  store i64 %old{half}, ptr %to{half}\n"
    count = 7 if compares else 5
    return by_lane(
        name, count, prepared(space, how == "checked"), body + "  br label %next\n", "", True
    )


def _operation(op: str, t: str) -> str:
    found = _INTEGER[op]
    return found[1:] if t[0] == "s" and op in ("min", "max") else found


def _float_loop(op: str, t: str, word: str, space: str) -> str:
    """A loop: compute, and try again where another has changed the place."""
    return f"""  br label %again
again:
  %old = load atomic {word}, ptr %q seq_cst, align {BYTES[t]}
{_sum(op, t, space)}  %pair = cmpxchg ptr %q, {word} %old, {word} %sum seq_cst seq_cst
  %same = extractvalue {{ {word}, i1 }} %pair, 1
  br i1 %same, label %added, label %again
added:
"""


def _sum(op: str, t: str, space: str) -> str:
    if t == "f64":
        return """  %x = bitcast i64 %old to double
  %y = bitcast i64 %b to double
  %s = fadd double %x, %y
  %sum = bitcast double %s to i64
"""
    if t == "f32":
        return _sum_single(space)
    if t in ("f16", "bf16"):
        return _half(op, "old", "b", "sum", t)
    parts = ""
    for name in ("old", "b"):
        parts += f"  %{name}.lo = trunc i32 %{name} to i16\n  %{name}.s = lshr i32 %{name}, 16\n"
        parts += f"  %{name}.hi = trunc i32 %{name}.s to i16\n"
    for half in ("lo", "hi"):
        parts += _half(op, f"old.{half}", f"b.{half}", f"sum.{half}", t[:-2])
    return (
        parts
        + """  %sum.l = zext i16 %sum.lo to i32
  %sum.h = zext i16 %sum.hi to i32
  %sum.u = shl i32 %sum.h, 16
  %sum = or i32 %sum.l, %sum.u
"""
    )


def _sum_single(space: str) -> str:
    """In global memory subnormal numbers become 0 of the same sign, in shared memory they stay."""
    text = ""
    names = {"old": "x", "b": "y"}
    for name, float_name in names.items():
        value = f"%{name}"
        if space not in ("shared", "cluster"):
            text += _flush(name, f"{name}.f")
            value = f"%{name}.f"
        text += f"  %{float_name} = bitcast i32 {value} to float\n"
    text += "  %s = fadd float %x, %y\n  %s.nan = fcmp uno float %s, %s\n"
    text += "  %s.b = bitcast float %s to i32\n"
    text += "  %s.c = select i1 %s.nan, i32 2147483647, i32 %s.b\n"
    if space in ("shared", "cluster"):
        return text + "  %sum = or i32 %s.c, 0\n"
    return text + _flush("s.c", "sum")


def _flush(name: str, to: str) -> str:
    return f"""  %{name}.e = and i32 %{name}, 2139095040
  %{name}.z = icmp eq i32 %{name}.e, 0
  %{name}.m = and i32 %{name}, -2147483648
  %{to} = select i1 %{name}.z, i32 %{name}.m, i32 %{name}
"""


def _half(op: str, a: str, b: str, to: str, t: str) -> str:
    """One result of 16 bits: exact enough in float32, rounded once, its NaN canonical."""
    text = ""
    for name in (a, b):
        if t == "f16":
            text += f"  %{name}.h = bitcast i16 %{name} to half\n"
            text += f"  %{name}.x = fpext half %{name}.h to float\n"
        else:
            text += f"  %{name}.z = zext i16 %{name} to i32\n  %{name}.u = shl i32 %{name}.z, 16\n"
            text += f"  %{name}.x = bitcast i32 %{name}.u to float\n"
    text += _single(op, f"%{a}.x", f"%{b}.x", f"%{to}.s")
    text += f"  %{to}.n = fcmp uno float %{to}.s, %{to}.s\n"
    if t == "f16":
        text += f"  %{to}.t = fptrunc float %{to}.s to half\n"
        text += f"  %{to}.b = bitcast half %{to}.t to i16\n"
    else:
        text += f"""  %{to}.w = bitcast float %{to}.s to i32
  %{to}.p = lshr i32 %{to}.w, 16
  %{to}.o = and i32 %{to}.p, 1
  %{to}.m = add i32 %{to}.o, 32767
  %{to}.r = add i32 %{to}.w, %{to}.m
  %{to}.q = lshr i32 %{to}.r, 16
  %{to}.b = trunc i32 %{to}.q to i16
"""
    return text + f"  %{to} = select i1 %{to}.n, i16 32767, i16 %{to}.b\n"


def _single(op: str, a: str, b: str, to: str) -> str:
    """A float32 of two: of the smaller and the larger NaN is none, and -0 is below 0."""
    if op == "add":
        return f"  {to} = fadd float {a}, {b}\n"
    return f"  {to} = call float @llvm.{op}imumnum.f32(float {a}, float {b})\n"

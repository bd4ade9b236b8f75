"""Comparisons, choices, logic, shifts and bit fields."""

from __future__ import annotations

from ferrule.emulator.instructions.floats import flushed, flushed_half, read_float
from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.ptx.module import Group, Immediate, Instruction, Operand
from ferrule.emulator.warps.emitter import Emitter, bits_of, splat, vector

ORDERED = {"eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge",
            "equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge",
            "num": "ord", "nan": "uno"}  # fmt: skip
_UNSIGNED = {"lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"}


@form(
    "setp",
    r"\.(?P<cmp>eq|ne|lt|le|gt|ge|lo|ls|hi|hs)(\.(?P<bool>and|or|xor))?\.(?P<t>[bsu](16|32|64))",
    3,
    4,
)
@form(
    "setp",
    r"\.(?P<cmp>eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan)(\.(?P<bool>and|or|xor))?(?P<ftz>\.ftz)?\.(?P<t>f32|f64|f16|bf16)",
    3,
    4,
)
def _setp(e: Emitter, item: Instruction, named: Named) -> None:
    t = kind(named)
    value = compared(e, named, item.operands[1], item.operands[2])
    to = item.operands[0]
    second = None
    if isinstance(to, Group):
        if to.kind != "|" or len(to.items) != 2:
            raise e.refuse()
        second = e.op(f"xor <32 x i1> {value}, splat (i1 true)")
    if (named["bool"] is None) != (len(item.operands) == 3):
        raise e.refuse(f".{t} with {len(item.operands)} operands")
    if named["bool"] is not None:
        other = e.read(item.operands[3], "pred")
        value = e.op(f"{named['bool']} <32 x i1> {value}, {other}")
        if second is not None:
            second = e.op(f"{named['bool']} <32 x i1> {second}, {other}")
    if isinstance(to, Group):
        assert second is not None
        e.write(to.items[0], "pred", value)
        e.write(to.items[1], "pred", second)
    else:
        e.write(to, "pred", value)


def compared(e: Emitter, named: Named, left: Operand, right: Operand) -> str:
    """A comparison as a vector of bits."""
    t, cmp = kind(named), kind(named, "cmp")
    if t[0] in "bsu" and t != "bf16":
        a, b = e.read(left, t), e.read(right, t)
        return e.op(f"icmp {_integer(e, t, cmp)} {vector(t)} {a}, {b}")
    if named.get("ftz") and t not in ("f32", "f16"):
        raise e.refuse()
    wide, a = read_float(e, left, t)
    _, b = read_float(e, right, t)
    if named.get("ftz"):
        flush = flushed if t == "f32" else flushed_half
        a, b = flush(e, a), flush(e, b)
    return e.op(f"fcmp {ORDERED[cmp]} {wide} {a}, {b}")


def _integer(e: Emitter, t: str, cmp: str) -> str:
    if cmp in ("eq", "ne"):
        return cmp
    if t[0] == "b":
        raise e.refuse()
    if cmp in _UNSIGNED:
        if t[0] != "u":
            raise e.refuse()
        return _UNSIGNED[cmp]
    return ("s" if t[0] == "s" else "u") + cmp


@form("selp", r"\.(?P<t>[bsu](16|32|64)|f(16|32|64)|bf16|f16x2|bf16x2)", 4)
def _selp(e: Emitter, item: Instruction, named: Named) -> None:
    t = kind(named)
    a, b = (e.read(each, t) for each in item.operands[1:3])
    chosen = e.read(item.operands[3], "pred")
    llvm = vector(t)
    e.write(item.operands[0], t, e.op(f"select <32 x i1> {chosen}, {llvm} {a}, {llvm} {b}"))


@form("slct", r"\.(?P<t>[bsu](16|32|64)|f(32|64))\.(?P<c>s32)", 4)
@form("slct", r"(?P<ftz>\.ftz)?\.(?P<t>[bsu](16|32|64)|f(32|64))\.(?P<c>f32)", 4)
def _slct(e: Emitter, item: Instruction, named: Named) -> None:
    """The first where the third is not negative; -0 is not, NaN is."""
    t = kind(named)
    a, b = (e.read(each, t) for each in item.operands[1:3])
    third = e.read(item.operands[3], kind(named, "c"))
    if named["c"] == "s32":
        chosen = e.op(f"icmp sge <32 x i32> {third}, zeroinitializer")
    else:
        # A subnormal number that .ftz makes 0 is not negative.
        value = flushed(e, third) if named["ftz"] else third
        chosen = e.op(f"fcmp oge <32 x float> {value}, zeroinitializer")
    llvm = vector(t)
    e.write(item.operands[0], t, e.op(f"select <32 x i1> {chosen}, {llvm} {a}, {llvm} {b}"))


@form("and", r"\.(?P<t>pred|b(16|32|64))", 3)
@form("or", r"\.(?P<t>pred|b(16|32|64))", 3)
@form("xor", r"\.(?P<t>pred|b(16|32|64))", 3)
def _logic(e: Emitter, item: Instruction, named: Named) -> None:
    t = kind(named)
    a, b = (e.read(each, t) for each in item.operands[1:3])
    e.write(item.operands[0], t, e.op(f"{item.opcode} {vector(t)} {a}, {b}"))


@form("not", r"\.(?P<t>pred|b(16|32|64))", 2)
def _not(e: Emitter, item: Instruction, named: Named) -> None:
    t = kind(named)
    ones = splat("i1", "true") if t == "pred" else splat(f"i{bits_of(t)}", "-1")
    e.write(item.operands[0], t, e.op(f"xor {vector(t)} {e.read(item.operands[1], t)}, {ones}"))


@form("cnot", r"\.(?P<t>b(16|32|64))", 2)
def _cnot(e: Emitter, item: Instruction, named: Named) -> None:
    t = kind(named)
    zero = e.op(f"icmp eq {vector(t)} {e.read(item.operands[1], t)}, zeroinitializer")
    e.write(item.operands[0], t, e.op(f"zext <32 x i1> {zero} to {vector(t)}"))


@form("lop3", r"(\.(?P<bool>and|or))?\.b32", 5, 6)
def _lop3(e: Emitter, item: Instruction, named: Named) -> None:
    """Any function of three bits; `d|p` with .and or .or, and a predicate: is it not 0?"""
    table, to = item.operands[4], item.operands[0]
    if (named["bool"] is None) != (len(item.operands) == 5):
        raise e.refuse(f"it has {len(item.operands)} operands")
    if not isinstance(table, Immediate) or not 0 <= table.value <= 255:
        raise e.refuse("its table is no number of 8 bits")
    a, b, c = (e.read(each, "b32") for each in item.operands[1:4])
    inverse = [e.op(f"xor <32 x i32> {each}, splat (i32 -1)") for each in (a, b, c)]
    value = "zeroinitializer"
    for row in range(8):
        if table.value >> row & 1:
            parts = [each if row >> (2 - i) & 1 else inverse[i] for i, each in enumerate((a, b, c))]
            both = e.op(f"and <32 x i32> {parts[0]}, {parts[1]}")
            term = e.op(f"and <32 x i32> {both}, {parts[2]}")
            value = e.op(f"or <32 x i32> {value}, {term}")
    if named["bool"] is not None:
        if not isinstance(to, Group) or to.kind != "|" or len(to.items) != 2:
            raise e.refuse("wanted a register and a predicate d|p")
        some = e.op(f"icmp ne <32 x i32> {value}, zeroinitializer")
        given = e.read(item.operands[5], "pred")
        e.write(to.items[1], "pred", e.op(f"{named['bool']} <32 x i1> {some}, {given}"))
        to = to.items[0]
    e.write(to, "b32", value)


@form("shl", r"\.(?P<t>b(16|32|64))", 3)
@form("shr", r"\.(?P<t>[bsu](16|32|64))", 3)
def _shift(e: Emitter, item: Instruction, named: Named) -> None:
    """The count is an unsigned number of 32 bits; from the width on, all bits are gone."""
    t = kind(named)
    value, count = e.read(item.operands[1], t), e.read(item.operands[2], "u32")
    op = "shl" if item.opcode == "shl" else "ashr" if t[0] == "s" else "lshr"
    e.write(item.operands[0], t, shifted(e, op, value, count, bits_of(t)))


def shifted(e: Emitter, op: str, value: str, count: str, bits: int) -> str:
    """A shift by a count of 32 bits that may be as large as it likes."""
    llvm, last = f"<32 x i{bits}>", splat("i32", str(bits - 1))
    over = e.op(f"icmp ugt <32 x i32> {count}, {last}")
    small = e.op(f"select <32 x i1> {over}, <32 x i32> {last}, <32 x i32> {count}")
    if bits != 32:
        how = "trunc" if bits < 32 else "zext"
        small = e.op(f"{how} <32 x i32> {small} to {llvm}")
    found = e.op(f"{op} {llvm} {value}, {small}")
    if op == "ashr":
        return found
    return e.op(f"select <32 x i1> {over}, {llvm} zeroinitializer, {llvm} {found}")


@form("shf", r"\.(?P<way>l|r)\.(?P<mode>clamp|wrap)\.b32", 4)
def _shf(e: Emitter, item: Instruction, named: Named) -> None:
    low, high, count = (e.read(each, "b32") for each in item.operands[1:4])
    if named["mode"] == "wrap":
        count = e.op(f"and <32 x i32> {count}, splat (i32 31)")
    else:
        over = e.op(f"icmp ugt <32 x i32> {count}, splat (i32 32)")
        count = e.op(f"select <32 x i1> {over}, <32 x i32> splat (i32 32), <32 x i32> {count}")
    x, y, n = (e.op(f"zext <32 x i32> {each} to <32 x i64>") for each in (low, high, count))
    up = e.op(f"shl <32 x i64> {y}, splat (i64 32)")
    both = e.op(f"or <32 x i64> {up}, {x}")
    if named["way"] == "l":
        moved = e.op(f"shl <32 x i64> {both}, {n}")
        moved = e.op(f"lshr <32 x i64> {moved}, splat (i64 32)")
    else:
        moved = e.op(f"lshr <32 x i64> {both}, {n}")
    e.write(item.operands[0], "b32", e.op(f"trunc <32 x i64> {moved} to <32 x i32>"))


@form("bfe", r"\.(?P<t>[us](32|64))", 4)
def _bfe(e: Emitter, item: Instruction, named: Named) -> None:
    """Position and length are the low 8 bits; the sign is the field's last bit in the value."""
    t = kind(named)
    bits, llvm, word = bits_of(t), vector(t), f"i{bits_of(t)}"
    value = e.read(item.operands[1], t)
    place, size = (
        e.op(f"and <32 x i32> {e.read(each, 'u32')}, splat (i32 255)")
        for each in item.operands[2:4]
    )
    low = shifted(e, "ashr" if t[0] == "s" else "lshr", value, place, bits)
    mask = e.op(
        f"xor {llvm} {shifted(e, 'shl', splat(word, '-1'), size, bits)}, {splat(word, '-1')}"
    )
    found = e.op(f"and {llvm} {low}, {mask}")
    if t[0] == "s":
        found = _signed(e, found, mask, value, place, size, bits)
    e.write(item.operands[0], t, found)


def _signed(e: Emitter, found: str, mask: str, value: str, place: str, size: str, bits: int) -> str:
    llvm = f"<32 x i{bits}>"
    end = e.op(f"add <32 x i32> {place}, {size}")
    last = e.op(f"sub <32 x i32> {end}, splat (i32 1)")
    over = e.op(f"icmp sgt <32 x i32> {last}, {splat('i32', str(bits - 1))}")
    last = e.op(
        f"select <32 x i1> {over}, <32 x i32> {splat('i32', str(bits - 1))}, <32 x i32> {last}"
    )
    bit = shifted(e, "lshr", value, last, bits)
    bit = e.op(f"and {llvm} {bit}, {splat(f'i{bits}', '1')}")
    filled = e.op(f"xor {llvm} {mask}, {splat(f'i{bits}', '-1')}")
    sign = e.op(f"sub {llvm} zeroinitializer, {bit}")
    extended = e.op(f"or {llvm} {found}, {e.op(f'and {llvm} {filled}, {sign}')}")
    none = e.op(f"icmp eq <32 x i32> {size}, zeroinitializer")
    return e.op(f"select <32 x i1> {none}, {llvm} zeroinitializer, {llvm} {extended}")


@form("bfi", r"\.(?P<t>b(32|64))", 5)
def _bfi(e: Emitter, item: Instruction, named: Named) -> None:
    t = kind(named)
    bits, llvm, word = bits_of(t), vector(t), f"i{bits_of(t)}"
    field, value = (e.read(each, t) for each in item.operands[1:3])
    place, size = (
        e.op(f"and <32 x i32> {e.read(each, 'u32')}, splat (i32 255)")
        for each in item.operands[3:5]
    )
    ones = splat(word, "-1")
    mask = e.op(f"xor {llvm} {shifted(e, 'shl', ones, size, bits)}, {ones}")
    mask = shifted(e, "shl", mask, place, bits)
    field = e.op(f"and {llvm} {shifted(e, 'shl', field, place, bits)}, {mask}")
    kept = e.op(f"and {llvm} {value}, {e.op(f'xor {llvm} {mask}, {ones}')}")
    e.write(item.operands[0], t, e.op(f"or {llvm} {kept}, {field}"))


_PERMUTED = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543), "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333), "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210), "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}  # fmt: skip
"""The bytes that each of the modes takes, by the low two bits of the last operand."""


@form("prmt", r"\.b32(\.(?P<mode>f4e|b4e|rc8|ecl|ecr|rc16))?", 4)
def _prmt(e: Emitter, item: Instruction, named: Named) -> None:
    """Each byte is one of eight, or its sign eight times."""
    a, b, chosen = (e.read(each, "b32") for each in item.operands[1:4])
    if named["mode"] is not None:
        low = e.op(f"and <32 x i32> {chosen}, splat (i32 3)")
        chosen = "zeroinitializer"
        for number, each in enumerate(_PERMUTED[named["mode"]]):
            here = e.op(f"icmp eq <32 x i32> {low}, {splat('i32', str(number))}")
            chosen = e.op(
                f"select <32 x i1> {here}, <32 x i32> {splat('i32', str(each))}, "
                f"<32 x i32> {chosen}"
            )
    x, y = (e.op(f"zext <32 x i32> {each} to <32 x i64>") for each in (a, b))
    both = e.op(f"or <32 x i64> {e.op(f'shl <32 x i64> {y}, splat (i64 32)')}, {x}")
    value = "zeroinitializer"
    for i in range(4):
        four = e.op(f"lshr <32 x i32> {chosen}, {splat('i32', str(4 * i))}")
        which = e.op(f"and <32 x i32> {four}, splat (i32 7)")
        count = e.op(
            f"zext <32 x i32> {e.op(f'shl <32 x i32> {which}, splat (i32 3)')} to <32 x i64>"
        )
        byte = e.op(f"trunc <32 x i64> {e.op(f'lshr <32 x i64> {both}, {count}')} to <32 x i8>")
        sign = e.op(f"ashr <32 x i8> {byte}, splat (i8 7)")
        turned = e.op(
            f"icmp ne <32 x i32> {e.op(f'and <32 x i32> {four}, splat (i32 8)')}, zeroinitializer"
        )
        byte = e.op(f"select <32 x i1> {turned}, <32 x i8> {sign}, <32 x i8> {byte}")
        wide = e.op(f"zext <32 x i8> {byte} to <32 x i32>")
        wide = e.op(f"shl <32 x i32> {wide}, {splat('i32', str(8 * i))}")
        value = e.op(f"or <32 x i32> {value}, {wide}")
    e.write(item.operands[0], "b32", value)

"""The meaning of instructions on integers and bits, from the PTX manual."""

from __future__ import annotations

from collections.abc import Callable

from ptx_meanings import REFUSED, Meaning, Name, Result, cut, means, on_integers, signed, width

Two = Callable[[int, int], int]


def towards_zero(a: int, b: int) -> int:
    """A quotient; all ones where the divisor is 0."""
    if not b:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int:
    return a - b * towards_zero(a, b) if b else -1


def low24(value: int, kind: str) -> int:
    value &= (1 << 24) - 1
    return value - (1 << 24) if kind[0] == "s" and value >> 23 else value


PLAIN: dict[str, Two] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "min": min, "max": max,
    "div": towards_zero, "rem": remainder,
}  # fmt: skip


def integral(name: Name) -> bool:
    return bool(name.types) and all(t[0] in "bsu" and not t.startswith("bf") for t in name.types)


@means("add", "sub", "min", "max", "div", "rem")
def plain(name: Name) -> Meaning | None:
    if not integral(name) or name.has("cc"):
        return None
    t, compute = name.t, PLAIN[name.opcode]
    if t.endswith("x2"):
        return pairs(name, t[:-2], compute)
    if name.has("sat"):
        return on_integers([t, t], t, lambda a, b: clamped(compute(a, b), t))
    if name.has("relu"):
        return on_integers([t, t], t, lambda a, b: max(0, compute(a, b)))
    return on_integers([t, t], t, compute)


def pairs(name: Name, t: str, compute: Two) -> Meaning:
    def both(a: int, b: int) -> Result:
        found = 0
        for place in (0, 16):
            value = compute(signed(a >> place, t), signed(b >> place, t))
            found |= cut(max(0, value) if name.has("relu") else value, t) << place
        return found

    return Meaning(("b32", "b32"), ("b32",), both)


def clamped(value: int, t: str) -> int:
    low = -(1 << width(t) - 1) if t[0] == "s" else 0
    high = (1 << width(t) - (t[0] == "s")) - 1
    return max(low, min(high, value))


@means("mul", "mad", "mul24", "mad24")
def multiplied(name: Name) -> Meaning | None:
    if not integral(name) or name.has("cc"):
        return None
    t, bits = name.t, width(name.t)
    if name.has("wide") and bits == 64:
        return REFUSED
    wide = f"{t[0]}{2 * bits}" if name.has("wide") else t
    shift = (16 if "24" in name.opcode else bits) if name.has("hi") else 0

    def times(a: int, b: int) -> int:
        if "24" in name.opcode:
            a, b = low24(a, t), low24(b, t)
        return a * b >> shift

    if name.opcode.startswith("mul"):
        return on_integers([t, t], wide, times)
    if name.has("sat"):
        return on_integers([t, t, t], t, lambda a, b, c: clamped(signed(times(a, b), t) + c, t))
    return on_integers([t, t, wide], wide, lambda a, b, c: times(a, b) + c)


@means("neg", "abs")
def negated(name: Name) -> Meaning | None:
    if not integral(name):
        return None
    compute = (lambda a: -a) if name.opcode == "neg" else abs
    return on_integers([name.t], name.t, compute)


@means("sad")
def distance(name: Name) -> Meaning:
    return on_integers([name.t] * 3, name.t, lambda a, b, c: c + abs(a - b))


@means("popc", "clz", "brev", "not", "cnot")
def of_one(name: Name) -> Meaning | None:
    t = name.t
    if t == "pred":
        return Meaning(("pred",), ("pred",), lambda a: 1 - a)
    bits = width(t)
    computes: dict[str, Callable[[int], int]] = {
        "popc": lambda a: bin(a).count("1"),
        "clz": lambda a: bits - a.bit_length(),
        "brev": lambda a: int(f"{a:0{bits}b}"[::-1], 2),
        "not": lambda a: ~a,
        "cnot": lambda a: int(a == 0),
    }
    return on_integers([t], "u32" if name.opcode in ("popc", "clz") else t, computes[name.opcode])


@means("bfind")
def highest(name: Name) -> Meaning:
    t, bits = name.t, width(name.t)

    def place(a: int) -> int:
        found = (~a if a < 0 else a).bit_length() - 1
        return bits - 1 - found if name.has("shiftamt") and found >= 0 else found

    return on_integers([t], "u32", place)


@means("and", "or", "xor")
def logic(name: Name) -> Meaning:
    computes: dict[str, Two] = {
        "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    }  # fmt: skip
    return on_integers([name.t] * 2, name.t, computes[name.opcode])


@means("shl", "shr")
def shifted(name: Name) -> Meaning:
    bits = width(name.t)
    if name.opcode == "shl":
        return on_integers([name.t, "count"], name.t, lambda a, n: a << n if n < bits else 0)
    return on_integers([name.t, "count"], name.t, lambda a, n: a >> min(n, bits))


@means("shf")
def funnel(name: Name) -> Meaning:
    def compute(low: int, high: int, n: int) -> int:
        n = n & 31 if name.has("wrap") else min(n, 32)
        both = high << 32 | low
        return both << n >> 32 if name.has("l") else both >> n

    return on_integers(["b32", "b32", "count"], "b32", compute)


@means("bfe")
def field(name: Name) -> Meaning:
    t, bits = name.t, width(name.t)

    def compute(a: int, place: int, size: int) -> int:
        place, size, a = place & 255, size & 255, cut(a, t)
        sign = a >> min(place + size - 1, bits - 1) & 1 if t[0] == "s" and size else 0
        inside = (
            (a >> place + i & 1 if i < size and place + i < bits else sign) << i
            for i in range(bits)
        )
        return sum(inside)

    return on_integers([t, "count", "count"], t, compute)


@means("bfi")
def put_in(name: Name) -> Meaning:
    bits = width(name.t)

    def compute(a: int, b: int, place: int, size: int) -> int:
        place, size = place & 255, size & 255
        for i in range(min(size, max(0, bits - place))):
            b = b & ~(1 << place + i) | (a >> i & 1) << place + i
        return b

    return on_integers([name.t, name.t, "count", "count"], name.t, compute)


@means("bmsk")
def ones(name: Name) -> Meaning:
    def compute(place: int, size: int) -> int:
        if name.has("wrap"):
            place, size = place & 31, size & 31
        return ((1 << min(size, 32)) - 1) << min(place, 32)

    return on_integers(["count", "count"], "b32", compute)


@means("szext")
def extended(name: Name) -> Meaning:
    def compute(a: int, size: int) -> int:
        size = size & 31 if name.has("wrap") else min(size, 32)
        a &= (1 << size) - 1
        return a - (1 << size) if name.t == "s32" and size and a >> size - 1 else a

    return on_integers(["b32", "count"], name.t, compute)


@means("fns")
def nth(name: Name) -> Meaning:
    def compute(mask: int, base: int, n: int) -> int:
        if base > 31:
            return -1
        if n == 0:
            return base if mask >> base & 1 else -1
        places = range(base, 32) if n > 0 else range(base, -1, -1)
        found = [each for each in places if mask >> each & 1]
        return found[abs(n) - 1] if len(found) >= abs(n) else -1

    return on_integers(["b32", "count", "s32"], "b32", compute)


MODES = {"f4e": "3210 4321 5432 6543", "b4e": "5670 6701 7012 0123", "rc8": "0000 1111 2222 3333",
         "ecl": "3210 3211 3222 3333", "ecr": "0000 1110 2210 3210",
         "rc16": "1010 3232 1010 3232"}  # fmt: skip


@means("prmt")
def permuted(name: Name) -> Meaning:
    mode = name.words[-1]

    def compute(a: int, b: int, chosen: int) -> int:
        if mode in MODES:
            chosen = int(MODES[mode].split()[chosen & 3], 16)
        both, value = b << 32 | a, 0
        for i in range(4):
            which = chosen >> 4 * i & 15
            byte = both >> 8 * (which & 7) & 255
            value |= (255 * (byte >> 7) if which & 8 else byte) << 8 * i
        return value

    return on_integers(["b32", "b32", "b32"], "b32", compute)


@means("lop3")
def any_function(name: Name) -> Meaning:
    table = 0b01101010

    def value(a: int, b: int, c: int) -> int:
        return sum(
            (table >> (4 * (a >> i & 1) + 2 * (b >> i & 1) + (c >> i & 1)) & 1) << i
            for i in range(32)
        )

    if name.t == "b32" and len(name.words) == 1:
        return on_integers(["b32"] * 3, "b32", value, f"{table}")

    def both(a: int, b: int, c: int, q: int) -> tuple[Result, ...]:
        found = value(a, b, c)
        some = int(found != 0)
        return found, some & q if name.has("and") else some | q

    return Meaning(("b32", "b32", "b32", "pred"), ("b32", "pred"), both, f"{table}@3")


@means("selp")
def chosen(name: Name) -> Meaning:
    return Meaning((name.t, name.t, "pred"), (name.t,), lambda a, b, p: a if p else b)


@means("mov")
def moved(name: Name) -> Meaning:
    return Meaning((name.t,), (name.t,), lambda a: a)


@means("dp4a", "dp2a")
def dotted(name: Name) -> Meaning:
    first, second = name.types

    def compute(a: int, b: int, c: int) -> int:
        found = c
        if name.opcode == "dp4a":
            for i in range(4):
                found += signed(a >> 8 * i, f"{first[0]}8") * signed(b >> 8 * i, f"{second[0]}8")
            return found
        start = 16 if name.has("hi") else 0
        for i in range(2):
            byte = signed(b >> start + 8 * i, f"{second[0]}8")
            found += signed(a >> 16 * i, f"{first[0]}16") * byte
        return found

    return Meaning(("b32", "b32", "b32"), ("b32",), lambda *bits: cut(compute(*bits), "b32"))


@means("cvt")
def packing(name: Name) -> Meaning | None:
    """`cvt.pack`: a behind b, each as near as the type has it, and c behind both."""
    if not name.has("pack"):
        return None
    small = name.words[2]
    bits = int(small[1:])
    least = -(1 << bits - 1) if small[0] == "s" else 0

    def one(a: int, b: int, c: int = 0) -> Result:
        ta, tb = (
            max(least, min(least + (1 << bits) - 1, signed(x, "s32"))) & (1 << bits) - 1
            for x in (a, b)
        )
        return (c << 2 * bits | ta << bits | tb) & 0xFFFFFFFF

    operands = ("s32", "s32") if bits == 16 else ("s32", "s32", "b32")
    return Meaning(operands, ("b32",), one)

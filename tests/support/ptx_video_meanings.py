"""What video instructions mean, from the pseudo-code of the PTX manual, on whole texts.

`result("vadd.u32.s32.u32.sat", "r0.h1", "a.b2", "b", "c", values)` has the 32 bits that the first
operand gets; `cases(rng)` are texts of all of the instructions with selectors by chance.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

SIGNS = ("u32", "s32")
COMPARISONS = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip
PARTS = ("", "", "b0", "b1", "b2", "b3", "h0", "h1")
Case = tuple[str, tuple[str, ...]]


def number(bits: int, size: int, signed: bool) -> int:
    """The number that the low bits are."""
    bits %= 1 << size
    return bits - (1 << size) if signed and bits >= 1 << (size - 1) else bits


def limited(value: int, size: int, signed: bool) -> int:
    low, high = (-(2 ** (size - 1)), 2 ** (size - 1) - 1) if signed else (0, 2**size - 1)
    return min(max(value, low), high)


def result(name: str, operands: tuple[str, ...], values: Mapping[str, int]) -> int:
    """The bits of the result; `values` are those of the registers a, b and c."""
    opcode, *words = name.split(".")
    if opcode[-1] in "24":
        return of_rows(opcode, words, operands, values)
    if opcode == "vmad":
        return of_products(words, operands, values)
    return of_one(opcode, words, operands, values)


# ---- single numbers ----


def taken(text: str, kind: str, values: Mapping[str, int]) -> int:
    """An operand, of which a selector takes a part."""
    name, _, selector = text.lstrip("-").partition(".")
    if not selector:
        return number(values[name], 32, kind == "s32")
    size = {"b": 8, "h": 16}[selector[0]]
    return number(values[name] >> size * int(selector[1]), size, kind == "s32")


def primary(opcode: str, words: list[str], a: int, b: int) -> int:
    if opcode == "vset":
        return int(COMPARISONS[words[2]](a, b))
    if opcode in ("vshl", "vshr"):
        count = min(b, 32) if "clamp" in words else b % 32
        # The intermediate result has 34 bits.
        return number(a << count if opcode == "vshl" else a >> count, 34, True)
    return {"vadd": a + b, "vsub": a - b, "vabsdiff": abs(a - b), "vmin": min(a, b),
            "vmax": max(a, b)}[opcode]  # fmt: skip


def of_one(
    opcode: str, words: list[str], operands: tuple[str, ...], values: Mapping[str, int]
) -> int:
    types = [each for each in words if each in SIGNS]
    kind = "u32" if opcode == "vset" else types[0]
    a, b = (taken(text, t, values) for text, t in zip(operands[1:3], types[-2:], strict=True))
    value = primary(opcode, words, a, b)
    selector = operands[0].partition(".")[2]
    size = {"": 32, "b": 8, "h": 16}[selector[:1]]
    if "sat" in words:
        value = limited(value, size, kind == "s32")
    value = number(value, 32, kind == "s32")
    c = number(values["c"], 32, kind == "s32")
    if selector:
        at = size * int(selector[1])
        kept = values["c"] - ((values["c"] >> at) % 2**size << at)
        return kept + (value % 2**size << at)
    then = words[-1]
    return {"add": value + c, "min": min(value, c), "max": max(value, c)}.get(then, value) % 2**32


def of_products(words: list[str], operands: tuple[str, ...], values: Mapping[str, int]) -> int:
    _, first, second = words[:3]
    minus = [text.startswith("-") for text in operands]
    flipped = minus[1] != minus[2]
    signed = "s32" in (first, second) or flipped or minus[3]
    value = taken(operands[1], first, values) * taken(operands[2], second, values)
    c = values["c"]
    if flipped:
        value = -value - 1
    elif minus[3]:
        c = 2**32 - 1 - c
    value += number(c, 32, signed) + int("po" in words or flipped or minus[3])
    value >>= 7 if "shr7" in words else 15 if "shr15" in words else 0
    value = number(value, 64, signed)
    return (limited(value, 32, signed) if "sat" in words else value) % 2**32


# ---- rows ----


def of_rows(
    opcode: str, words: list[str], operands: tuple[str, ...], values: Mapping[str, int]
) -> int:
    count = int(opcode[-1])
    size, types = 32 // count, [each for each in words if each in SIGNS]
    both = [(values[n] >> size * i) % 2**size for n in "ab" for i in range(count)]
    rows = []
    for text, t, usual in zip(operands[1:3], types[-2:], (0, count), strict=True):
        selector = text.partition(".")[2]
        chosen = [int(each) for each in reversed(selector[1:])] or range(usual, usual + count)
        rows.append([number(both[i], size, t == "s32") for i in chosen])
    mask = operands[0].partition(".")[2][1:] or "0123"[:count]
    done = [lane(opcode[:-1], words, a, b) for a, b in zip(*rows, strict=True)]
    if "sat" in words:
        done = [limited(each, size, types[0] == "s32") for each in done]
    if "add" in words:
        return (values["c"] + sum(done[int(i)] for i in mask)) % 2**32
    old = [(values["c"] >> size * i) % 2**size for i in range(count)]
    new = [done[i] % 2**size if str(i) in mask else old[i] for i in range(count)]
    return sum(each << size * i for i, each in enumerate(new))


def lane(opcode: str, words: list[str], a: int, b: int) -> int:
    if opcode != "vavrg":
        return primary(opcode, words, a, b)
    return (a + b + 1) // 2 if a + b >= 0 else (a + b) // 2


# ---- all of them ----


def cases(rng: random.Random) -> Iterator[Case]:
    """Every name, with selectors by chance; those of the result need a fourth operand."""
    for name in single():
        source = [f"{each}.{p}" if (p := rng.choice(PARTS)) else each for each in "ab"]
        if name.startswith("vmad"):
            yield name, ("r", *negated(name, source, rng))
        elif name.endswith((".add", ".min", ".max")):
            yield name, ("r", *source, "c")
        else:
            yield name, ("r", *source)
            yield name, (f"r.{rng.choice(PARTS[2:])}", *source, "c")
    for name in rows():
        count, letter = (2, "h") if name.partition(".")[0].endswith("2") else (4, "b")
        mask = "".join(str(i) for i in reversed(range(count)) if rng.random() < 0.6)
        places = ["".join(rng.choices("01234567"[: 2 * count], k=count)) for _ in "ab"]
        source = [
            f"{each}.{letter}{p}" if rng.random() < 0.7 else each
            for each, p in zip("ab", places, strict=True)
        ]
        yield name, (f"r.{letter}{mask}" if mask else "r", *source, "c")


def negated(name: str, source: list[str], rng: random.Random) -> tuple[str, ...]:
    choice = 0 if ".po" in name else rng.randrange(5)
    signs = [("", "", ""), ("-", "", ""), ("", "-", ""), ("-", "-", ""), ("", "", "-")][choice]
    return tuple(sign + text for sign, text in zip(signs, (*source, "c"), strict=True))


def single() -> Iterator[str]:
    for a in SIGNS:
        for b in SIGNS:
            for then in ("", ".add", ".min", ".max"):
                yield from (f"vset.{a}.{b}.{how}{then}" for how in COMPARISONS)
                for d in SIGNS:
                    for sat in ("", ".sat"):
                        for opcode in ("vadd", "vsub", "vabsdiff", "vmin", "vmax"):
                            yield f"{opcode}.{d}.{a}.{b}{sat}{then}"
                        for mode in ("clamp", "wrap"):
                            for opcode in ("vshl", "vshr") if b == "u32" else ():
                                yield f"{opcode}.{d}.{a}.{b}{sat}.{mode}{then}"
            for po in ("", ".po"):
                for sat in ("", ".sat"):
                    yield from (f"vmad.{d}.{a}.{b}{po}{sat}{scale}" for d in SIGNS
                                for scale in ("", ".shr7", ".shr15"))  # fmt: skip


def rows() -> Iterator[str]:
    for count in "24":
        for a in SIGNS:
            for b in SIGNS:
                for then in ("", ".add"):
                    yield from (f"vset{count}.{a}.{b}.{how}{then}" for how in COMPARISONS)
                for opcode in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"):
                    for d in SIGNS:
                        for then in ("", ".sat", ".add"):
                            yield f"{opcode}{count}.{d}.{a}.{b}{then}"

"""The meaning of instructions on floats, comparisons and conversions, from the PTX manual."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from ptx_meanings import (
    FLOATS,
    REFUSED,
    Meaning,
    Name,
    Near,
    Result,
    cut,
    halves,
    means,
    signed,
    width,
)
from ptx_numbers import (
    NAN,
    Number,
    decoded,
    encoded,
    flushed,
    number,
    product,
    quotient,
    root,
    saturated,
    total,
    whole,
)

Exact = Callable[..., Number]


def floating(kind: str) -> bool:
    return kind.removesuffix("x2") in FLOATS


def on_floats(name: Name, count: int, compute: Exact) -> Meaning:
    """A function of exact numbers, with .ftz, .sat and .relu, half by half where it is of pairs."""
    kind = name.t.removesuffix("x2")

    def one(*bits: int) -> Result:
        given = [decoded(each, kind) for each in bits]
        if name.has("ftz"):
            given = [flushed(each, kind) for each in given]
        return finished(name, compute(*given), kind)

    if name.t != kind:
        return halves([name.t] * count, name.t, one)
    return Meaning((kind,) * count, (kind,), one)


def finished(name: Name, found: Number, kind: str) -> int:
    if name.has("sat"):
        found = saturated(found)
    if name.has("relu") and found.sign and not found.nan:
        found = number(0)
    if name.has("ftz"):
        # The result is rounded before it is looked at.
        found = flushed(decoded(encoded(found, kind, name.mode), kind), kind)
    return encoded(found, kind, name.mode)


def opposite(a: Number) -> Number:
    return Number(1 - a.sign, a.size, a.nan)


@means("add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt")
def arithmetic(name: Name) -> Meaning | None:
    if not floating(name.t) or name.has("approx") or name.has("full"):
        return None
    mode = name.mode
    computes: dict[str, tuple[int, Exact]] = {
        "add": (2, lambda a, b: total(a, b, mode)),
        "sub": (2, lambda a, b: total(a, opposite(b), mode)),
        "mul": (2, product),
        "fma": (3, lambda a, b, c: total(product(a, b), c, mode)),
        "div": (2, quotient),
        "rcp": (1, lambda a: quotient(number(1), a)),
        "sqrt": (1, root),
    }
    return on_floats(name, *computes["fma" if name.opcode == "mad" else name.opcode])


def order(a: Number) -> tuple[int, Fraction]:
    """Numbers by this are in their order, -0 before 0."""
    assert not a.nan
    if a.size is None:
        return (-1 if a.sign else 1), Fraction(0)
    return 0, a.value


@means("min", "max")
def extreme(name: Name) -> Meaning | None:
    if not floating(name.t):
        return None
    less = name.opcode == "min"

    def compute(a: Number, b: Number) -> Number:
        sign = a.sign ^ b.sign
        if name.has("xorsign"):
            a, b = (Number(0, each.size, each.nan) for each in (a, b))
        if a.nan or b.nan:
            found = NAN if name.has("NaN") or (a.nan and b.nan) else b if a.nan else a
        else:
            found = (min if less else max)(a, b, key=lambda each: (*order(each), -each.sign))
        return Number(sign, found.size, found.nan) if name.has("xorsign") else found

    return on_floats(name, 2, compute)


@means("neg", "abs", "copysign")
def signs(name: Name) -> Meaning | None:
    """Of the bits alone; what becomes of NaN is not said."""
    if not floating(name.t):
        return None
    kind = name.t.removesuffix("x2")
    top = 1 << width(kind) - 1

    def one(*bits: int) -> Result:
        if any(decoded(each, kind).nan for each in bits[-1:]):
            return None
        if name.has("ftz"):
            bits = tuple(encoded(flushed(decoded(each, kind), kind), kind) for each in bits)
        if name.opcode == "copysign":
            return bits[0] & top | bits[1] & top - 1
        return bits[0] ^ top if name.opcode == "neg" else bits[0] & top - 1

    count = 2 if name.opcode == "copysign" else 1
    if name.t != kind:
        return halves([name.t], name.t, one)
    return Meaning((kind,) * count, (kind,), one)


@means("testp")
def classes(name: Name) -> Meaning:
    kind = name.t

    def one(bits: int) -> Result:
        a = decoded(bits, kind)
        small = not a.nan and a.size is not None and flushed(a, kind).zero
        return int({
            "finite": not a.nan and not a.infinite, "infinite": a.infinite, "number": not a.nan,
            "notanumber": a.nan, "normal": not a.nan and not a.infinite and not small,
            "subnormal": small and not a.zero,
        }[name.words[0]])  # fmt: skip

    return Meaning((kind,), ("pred",), one)


# ---- comparisons ----


def holds(compare: str, a: Number, b: Number) -> bool:
    """A comparison of floats; those with a u hold for NaN, too."""
    if a.nan or b.nan:
        return compare == "nan" or (compare.endswith("u") and compare != "num")
    if compare in ("num", "nan"):
        return compare == "num"
    x, y = order(a), order(b)
    plain = {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}
    return plain[compare.removesuffix("u")]


def integers_hold(compare: str, a: int, b: int) -> bool:
    compare = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(compare, compare)
    return {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[
        compare
    ]


def joined(name: Name, value: int, more: tuple[int, ...]) -> int:
    """With the predicate of .and, .or and .xor."""
    if name.has("and"):
        return value & more[0]
    if name.has("or"):
        return value | more[0]
    return value ^ more[0] if name.has("xor") else value


def comparison(name: Name, kind: str) -> Callable[[int, int], int] | None:
    compare = name.words[0]
    if floating(kind):

        def floats(a: int, b: int) -> int:
            given = [decoded(each, kind) for each in (a, b)]
            if name.has("ftz"):
                given = [flushed(each, kind) for each in given]
            return int(holds(compare, *given))

        return floats
    unknown = kind[0] == "b" and compare not in ("eq", "ne")
    if unknown or (compare in ("lo", "ls", "hi", "hs") and kind[0] != "u"):
        return None
    return lambda a, b: int(integers_hold(compare, signed(a, kind), signed(b, kind)))


def _more(name: Name) -> tuple[str, ...]:
    return ("pred",) if {"and", "or", "xor"} & set(name.words[1:2]) else ()


@means("setp")
def predicate(name: Name) -> Meaning:
    kind = name.t.removesuffix("x2")
    compare = comparison(name, kind)
    if compare is None or (name.has("ftz") and kind not in ("f32", "f16")):
        return REFUSED
    if kind != name.t:

        def two(a: int, b: int, *more: int) -> tuple[Result, ...]:
            return tuple(
                joined(name, compare(a >> i & 0xFFFF, b >> i & 0xFFFF), more) for i in (0, 16)
            )

        return Meaning((name.t, name.t, *_more(name)), ("pred", "pred"), two)

    def one(a: int, b: int, *more: int) -> tuple[Result, ...]:
        value = compare(a, b)
        return joined(name, value, more), joined(name, 1 - value, more)

    return Meaning((kind, kind, *_more(name)), ("pred", "pred"), one)


@means("set")
def number_of(name: Name) -> Meaning:
    target, source = name.types
    kind = source.removesuffix("x2")
    compare = comparison(name, kind)
    if compare is None:
        return REFUSED
    base = target.removesuffix("x2")
    one = (
        encoded(number(1), base)
        if floating(base)
        else (1 << width(kind if source != kind else base)) - 1
    )

    def single(a: int, b: int, *more: int) -> Result:
        return one if joined(name, compare(a, b), more) else 0

    if source != kind:
        return halves([source, source, *_more(name)], target, single)
    return Meaning((kind, kind, *_more(name)), (target,), single)


@means("slct")
def by_sign(name: Name) -> Meaning:
    t, third = name.types

    def compute(a: int, b: int, c: int) -> Result:
        if third == "s32":
            return a if signed(c, "s32") >= 0 else b
        given = decoded(c, "f32")
        given = flushed(given, "f32") if name.has("ftz") else given
        return b if given.nan or (given.sign and not given.zero) else a

    return Meaning((t, t, third), (t,), compute)


# ---- approximations ----

_SPECIAL: dict[str, Callable[[Number], Number | None]] = {
    "rcp": lambda a: quotient(number(1), a) if a.zero or a.infinite else None,
    "sqrt": lambda a: root(a) if a.zero or a.infinite or a.sign else None,
    "rsqrt": lambda a: (
        Number(a.sign, None) if a.zero else NAN if a.sign else number(0) if a.infinite else None
    ),
    "sin": lambda a: NAN if a.infinite else a if a.zero else None,
    "cos": lambda a: NAN if a.infinite else number(1) if a.zero else None,
    "lg2": lambda a: Number(1, None) if a.zero else NAN if a.sign else a if a.infinite else None,
    "ex2": lambda a: (number(0) if a.sign else a) if a.infinite else number(1) if a.zero else None,
    "tanh": lambda a: Number(a.sign, Fraction(1)) if a.infinite else a if a.zero else None,
}  # fmt: skip
_VALUE: dict[str, Callable[[float], float]] = {
    "rcp": lambda x: 1 / x, "sqrt": math.sqrt, "rsqrt": lambda x: 1 / math.sqrt(x),
    "sin": math.sin, "cos": math.cos, "lg2": math.log2, "tanh": math.tanh,
    "ex2": lambda x: 2.0**x if x < 1000 else math.inf,
}  # fmt: skip
_ERRORS: dict[tuple[str, str], tuple[float, float]] = {
    ("rcp", "f32"): (2**-23, 0), ("sqrt", "f32"): (2**-23, 0), ("rsqrt", "f32"): (2**-22.9, 0),
    ("sin", "f32"): (0, 2**-20.5), ("cos", "f32"): (0, 2**-20.5), ("lg2", "f32"): (2**-22, 2**-22),
    ("ex2", "f32"): (2**-22, 0), ("tanh", "f32"): (2**-11, 0), ("rcp", "f64"): (2**-20, 0),
    ("rsqrt", "f64"): (2**-20, 0), ("ex2", "f16"): (2**-9.9, 0), ("ex2", "bf16"): (2**-7, 0),
    ("tanh", "f16"): (0, 2**-10.987), ("tanh", "bf16"): (0, 2**-8),
}  # fmt: skip
"""Relative and absolute, of which the greater counts."""


@means(*_VALUE)
def approximated(name: Name) -> Meaning | None:
    kind = name.t.removesuffix("x2")
    if not name.has("approx"):
        return None

    def one(bits: int) -> Result:
        a = decoded(bits, kind)
        a = flushed(a, kind) if name.has("ftz") else a
        special = NAN if a.nan else _SPECIAL[name.opcode](a)
        if special is not None:
            return encoded(special, kind)
        if name.opcode in ("sin", "cos") and abs(a.value) > 3:
            return None
        return near(name, _VALUE[name.opcode](float(a.value)), kind)

    if kind != name.t:
        return Meaning((name.t,), (name.t,), lambda bits: Both(one(bits & 0xFFFF), one(bits >> 16)))
    return Meaning((kind,), (kind,), one)


class Both:
    """What the two halves of a result may be."""

    def __init__(self, low: Result, high: Result) -> None:
        self.low, self.high = low, high


def near(name: Name, value: float, kind: str) -> Near:
    relative, absolute = _ERRORS[name.opcode, kind]
    return Near(value, kind, relative, absolute)


@means("div")
def divided_nearly(name: Name) -> Meaning | None:
    """2 units in the last place; .approx is 0 where the divisor is beyond 2**126."""
    if not (name.has("approx") or name.has("full")):
        return None

    def one(x: int, y: int) -> Result:
        a, b = decoded(x, "f32"), decoded(y, "f32")
        if name.has("ftz"):
            a, b = flushed(a, "f32"), flushed(b, "f32")
        found = quotient(a, b)
        if b.size is not None and b.size > 2**126 and name.has("approx") and not a.nan:
            return encoded(NAN if a.infinite else Number(a.sign ^ b.sign, Fraction(0)), "f32")
        if found.nan or found.zero or found.infinite:
            return encoded(found, "f32")
        if found.size is not None and found.size > 2**128:
            return encoded(found, "f32")
        return Near(float(found.value), "f32", 2**-22, 2**-126 if name.has("ftz") else 2**-148)

    return Meaning(("f32", "f32"), ("f32",), one)


# ---- conversions ----


@means("cvt")
def converted(name: Name) -> Meaning | None:
    if name.has("pack"):
        return None
    small = {each.removesuffix("x2") for each in name.types} & {"e4m3", "e5m2"}
    if small:
        return of_bytes(name, small.pop())
    if name.types[0].endswith("x2"):
        return packed_from_two(name)
    target, source = name.types
    if target == "tf32":
        return Meaning(("f32",), ("b32",), lambda bits: tensor_float(name, bits))
    if floating(source):
        return from_float(name, target, source)
    return from_integer(name, target, source)


def from_integer(name: Name, target: str, source: str) -> Meaning:
    def compute(bits: int) -> Result:
        value = signed(bits, source)
        if floating(target):
            found = number(value)
            return encoded(saturated(found) if name.has("sat") else found, target, name.mode)
        if name.has("sat"):
            value = within(value, target)
        return kept(value, target)

    return Meaning((source,), (target,), compute)


def within(value: int, kind: str) -> int:
    least = -(1 << width(kind) - 1) if kind[0] == "s" else 0
    return max(least, min((1 << width(kind) - (kind[0] == "s")) - 1, value))


def kept(value: int, kind: str) -> int:
    """An integer as a register of its size holds it; one of 8 bits is in a register of 32."""
    value = signed(cut(value, kind), kind)
    return value & (1 << (32 if width(kind) == 8 else width(kind))) - 1


def from_float(name: Name, target: str, source: str) -> Meaning:
    def compute(bits: int) -> Result:
        a = decoded(bits, source)
        if name.has("ftz") and source == "f32":
            a = flushed(a, "f32")
        if not floating(target):
            if a.nan:
                return kept(not_a_number(source, target), target)
            return kept(integer(a, name.mode, target), target)
        if name.mode in ("rni", "rzi", "rmi", "rpi"):
            a = whole(a, name.mode)
        if name.has("sat"):
            a = saturated(a)
        if name.has("relu") and a.sign and not a.nan:
            a = number(0)
        found = encoded(a, target, "rn" if name.mode.endswith("i") else name.mode)
        if name.has("satfinite"):
            found = finite(found, target)
        if name.has("ftz") and target == "f32":
            found = encoded(flushed(decoded(found, "f32"), "f32"), "f32")
        return found

    return Meaning((source,), (target,), compute)


def integer(a: Number, mode: str, target: str) -> int:
    """Rounded, NaN as 0, and inside of the target's numbers."""
    if a.nan:
        return 0
    if a.size is None:
        return within(-(1 << 80) if a.sign else 1 << 80, target)
    return within(int(whole(a, mode).value), target)


def not_a_number(source: str, target: str) -> int:
    """What NaN becomes as an integer."""
    return 1 << width(target) - 1 if source == "f64" or width(target) == 64 else 0


def finite(bits: int, kind: str) -> int:
    found = decoded(bits, kind)
    return bits - 1 if found.infinite else bits


def packed_from_two(name: Name) -> Meaning:
    half = name.types[0].removesuffix("x2")

    def compute(high: int, low: int) -> Result:
        parts = []
        for each in (low, high):
            a = decoded(each, "f32")
            if name.has("relu") and a.sign and not a.nan:
                a = number(0)
            found = encoded(a, half, name.mode)
            parts.append(finite(found, half) if name.has("satfinite") else found)
        return Both(parts[0], parts[1])

    return Meaning(("f32", "f32"), (name.types[0],), compute)


def tensor_float(name: Name, bits: int) -> Result:
    """10 bits behind the point: a float32 of which the last 13 bits are 0."""
    a = decoded(bits, "f32")
    if a.nan:
        return 0x7FFFFFFF
    if name.has("relu") and a.sign:
        a = number(0)
    found = encoded(a, "tf32", name.mode)
    if name.has("satfinite") and decoded(found, "tf32").infinite:
        found -= 1
    return found << 13


def byte_value(code: int, shape: str) -> Fraction:
    """What the 7 lower bits of a byte say, where they are a number."""
    digits, bias = (3, 7) if shape == "e4m3" else (2, 15)
    exponent, rest = code >> digits, code & (1 << digits) - 1
    whole_part = rest + (1 << digits if exponent else 0)
    return Fraction(whole_part) * Fraction(2) ** (max(exponent, 1) - bias - digits)


def to_byte(a: Number, shape: str, relu: bool) -> int:
    """The nearest, of two the even one; the greatest for all that is beyond it."""
    if a.nan:
        return 0x7F
    if relu and a.sign:
        return 0
    most = 0x7E if shape == "e4m3" else 0x7B
    if a.size is None:
        return a.sign << 7 | most
    size = a.size
    nearest = min(range(most + 1), key=lambda c: (abs(byte_value(c, shape) - size), c & 1))
    return a.sign << 7 | nearest


def from_byte(byte: int, shape: str) -> Number:
    sign, code = byte >> 7 & 1, byte & 0x7F
    if code == 0x7F or (shape == "e5m2" and code > 0x7C):
        return NAN
    return Number(sign, None if shape == "e5m2" and code == 0x7C else byte_value(code, shape))


def of_bytes(name: Name, shape: str) -> Meaning:
    relu = name.has("relu")
    if name.types[0] == "f16x2":

        def halves_of(bits: int) -> Result:
            parts = []
            for each in (bits & 255, bits >> 8):
                a = from_byte(each, shape)
                parts.append(encoded(number(0) if relu and a.sign else a, "f16"))
            return Both(parts[0], parts[1])

        return Meaning(("b16",), ("f16x2",), halves_of)
    if name.types[1] == "f16x2":
        return Meaning(
            ("f16x2",),
            ("b16",),
            lambda bits: sum(
                to_byte(decoded(bits >> 16 * i & 0xFFFF, "f16"), shape, relu) << 8 * i
                for i in (0, 1)
            ),
        )
    return Meaning(
        ("f32", "f32"),
        ("b16",),
        lambda high, low: (
            to_byte(decoded(high, "f32"), shape, relu) << 8
            | to_byte(decoded(low, "f32"), shape, relu)
        ),
    )


__all__: Sequence[str] = ("Both",)

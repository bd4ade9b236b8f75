"""What instructions mean, in plain Python, from the PTX manual alone.

`meaning(name)` has the kinds of an instruction's operands and results and a function from bits to
bits. It is written without a look at the emulated GPU, to which it is held by tests/emulator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

ROUND = ("rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi")
FLOATS = ("f16", "bf16", "f32", "f64")


@dataclass(frozen=True)
class Near:
    """A float of a kind that may be off by some."""

    value: float
    kind: str
    relative: float = 0.0
    absolute: float = 0.0


Result = int | Near | None
"""Bits; None where the manual says nothing."""


@dataclass(frozen=True)
class Meaning:
    """Kinds are types such as s32, f16x2 or pred; `count` is a number of 32 bits, mostly small."""

    operands: tuple[str, ...]
    results: tuple[str, ...]
    compute: Callable[..., Result | tuple[Result, ...]]
    more: str = ""
    """Further operands, as text."""


@dataclass(frozen=True)
class Name:
    """An instruction's name, taken apart."""

    opcode: str
    words: tuple[str, ...]

    def has(self, word: str) -> bool:
        return word in self.words

    @property
    def types(self) -> list[str]:
        return [each for each in self.words if is_type(each)]

    @property
    def t(self) -> str:
        return self.types[-1]

    @property
    def mode(self) -> str:
        return next((each for each in self.words if each in ROUND), "rn")


REFUSED = Meaning((), (), lambda: None)
"""A name that the table's patterns have and that no GPU has: it must be refused."""

Maker = Callable[[Name], Meaning | None]
MAKERS: dict[str, list[Maker]] = {}


def means(*opcodes: str) -> Callable[[Maker], Maker]:
    """Marks what knows the meaning of some instructions with these opcodes."""

    def mark(maker: Maker) -> Maker:
        for each in opcodes:
            MAKERS.setdefault(each, []).append(maker)
        return maker

    return mark


def meaning(text: str) -> Meaning | None:
    """The meaning of an instruction by its name; None where no one knows."""
    opcode, *words = text.split(".")
    name = Name(opcode, tuple(words))
    for maker in MAKERS.get(opcode, ()):
        found = maker(name)
        if found is not None:
            return found
    return None


def is_type(word: str) -> bool:
    """Whether a modifier is a type."""
    base = word[:-2] if word.endswith("x2") else word
    if base in (*FLOATS, "pred", "tf32", "e4m3", "e5m2"):
        return True
    return base[:1] in ("b", "s", "u") and base[1:] in ("8", "16", "32", "64")


def width(kind: str) -> int:
    """The bits of a type."""
    if kind.endswith("x2"):
        return 2 * width(kind[:-2])
    return {"pred": 1, "bf16": 16, "count": 32, "tf32": 32, "e4m3": 8, "e5m2": 8}.get(kind) or int(
        kind[1:]
    )


def signed(bits: int, kind: str) -> int:
    """An integer of a type from its bits."""
    size = width(kind)
    bits &= (1 << size) - 1
    return bits - (1 << size) if kind[0] == "s" and bits >> size - 1 else bits


def cut(value: int, kind: str) -> int:
    """The low bits."""
    return value & (1 << width(kind)) - 1


def on_integers(
    kinds: Sequence[str], result: str, compute: Callable[..., Any], more: str = ""
) -> Meaning:
    """A function of integers."""
    return Meaning(
        tuple(kinds),
        (result,),
        lambda *bits: cut(
            int(compute(*(signed(b, k) for b, k in zip(bits, kinds, strict=True)))), result
        ),
        more,
    )


def halves(kinds: Sequence[str], result: str, one: Callable[..., Result]) -> Meaning:
    """The same on the lower and on the upper half."""

    size = width(result) // 2
    most = (1 << size) - 1

    def compute(*bits: int) -> Result:
        parts = []
        for place in (0, size):
            given = [
                b >> place & most if k.endswith("x2") else b
                for b, k in zip(bits, kinds, strict=True)
            ]
            parts.append(one(*given))
        low, high = parts
        if not isinstance(low, int) or not isinstance(high, int):
            return None
        return low | high << size

    return Meaning(tuple(kinds), (result,), compute)

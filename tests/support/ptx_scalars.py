"""Runs PTX of kernels whose threads only load, compute with integers, branch and store.

After the PTX ISA's sections "Integer Arithmetic", "Logic and Shift", "Comparison and Selection" and
"Data Movement and Conversion".  An instruction or modifier that is not here is an error, never
taken for another one.  A register holds its bits, as an int that is not negative.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

_ENTRY: Final = re.compile(r"\.entry (\S+?)\((.*?)\)\s*[^{]*\{(.*?)^\}", re.DOTALL | re.MULTILINE)
_PART: Final = re.compile(r"(?:@(!?)(%\w+)\s+)?([\w.]+)\s*(.*);$")
_FLOATS: Final = {"f32": "f", "f64": "d"}
_STEPS: Final = 10_000


class UnknownPtx(AssertionError):
    """An instruction that this does not know."""


@dataclass(slots=True)
class _Thread:
    """One thread: `memory` is addressed from 0, `params` are by name."""

    memory: bytearray
    params: dict[str, int]
    index: int
    registers: dict[str, int] = field(default_factory=dict)

    def get(self, operand: str) -> int:
        if operand.startswith("%tid"):
            return self.index if operand == "%tid.x" else 0
        if operand.startswith("%"):
            return self.registers[operand]
        if operand.startswith(("0f", "0d")):
            return int(operand[2:], 16)
        return int(operand, 0)

    def address(self, operand: str) -> int:
        base, _, offset = operand.strip("[]").partition("+")
        return self.get(base) + int(offset or 0)


def run(ptx: str, kernel: str, buffers: Sequence[bytes], threads: int) -> list[bytes]:
    """What is in each buffer after these threads of a kernel, whose parameters begin with their
    addresses, have run one after another."""
    names, body = _entry(ptx, kernel)
    memory, starts = bytearray(16), list[int]()
    for buffer in buffers:
        starts.append(len(memory))
        memory += buffer + bytes(-len(buffer) % 16)
    params = dict(zip(names, starts, strict=False))
    lines, labels = list[_Line](), dict[str, int]()
    for text in body:
        if text.endswith(":"):
            labels[text[:-1]] = len(lines)
        else:
            lines.append(_read(text))
    for index in range(threads):
        _run(lines, labels, _Thread(memory, params, index))
    return [bytes(memory[at : at + len(old)]) for at, old in zip(starts, buffers, strict=True)]


def bodies(ptx: str) -> dict[str, str]:
    """The text of each kernel by name, which is often the same for several architectures."""
    return {name: body for name, _, body in _ENTRY.findall(ptx)}


def _entry(ptx: str, kernel: str) -> tuple[list[str], list[str]]:
    for name, params, body in _ENTRY.findall(ptx):
        if name == kernel:
            names = re.findall(r"(\w+_param_\d+)", params)
            lines = (re.sub(r"//.*", "", line).strip() for line in body.splitlines())
            return names, [line for line in lines if line and not line.startswith(".")]
    raise UnknownPtx(f"there is no kernel {kernel}")


@dataclass(frozen=True, slots=True)
class _Line:
    """An instruction, with the predicate that it needs and whether that has to be false."""

    predicate: str | None
    negated: bool
    opcode: str
    modifiers: list[str]
    operands: list[str]


def _read(line: str) -> _Line:
    found = _PART.match(line)
    if found is None:
        raise UnknownPtx(line)
    negated, predicate, name, rest = found.groups()
    opcode, *modifiers = name.split(".")
    if opcode not in (*_INSTRUCTIONS, "bra", "ret"):
        raise UnknownPtx(line)
    operands = [part.strip() for part in rest.split(",")] if rest else []
    return _Line(predicate, bool(negated), opcode, modifiers, operands)


def _run(lines: list[_Line], labels: dict[str, int], thread: _Thread) -> None:
    at = 0
    for _ in range(_STEPS):
        line = lines[at]
        at += 1
        if line.predicate and bool(thread.get(line.predicate)) == line.negated:
            continue
        if line.opcode == "ret":
            return
        if line.opcode == "bra":
            at = labels[line.operands[0]]
        else:
            _INSTRUCTIONS[line.opcode](thread, line.modifiers, line.operands)
    raise UnknownPtx("a kernel that does not end")


# ---- numbers ----


def _bits(kind: str) -> int:
    found = re.fullmatch(r"[subf](8|16|32|64)|pred", kind)
    if found is None:
        raise UnknownPtx(kind)
    return int(found[1] or 1)


def _value(kind: str, raw: int) -> int:
    """A register's bits as an integer of this type."""
    bits = _bits(kind)
    raw &= (1 << bits) - 1
    return raw - (1 << bits) if kind[0] == "s" and raw >> bits - 1 else raw


def _float(kind: str, raw: int) -> float:
    letter, size = _FLOATS[kind], _bits(kind) // 8
    return float(struct.unpack("<" + letter, raw.to_bytes(size, "little"))[0])


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


# ---- instructions: thread, modifiers, operands ----

_Do = Callable[[_Thread, list[str], list[str]], None]


def _computing(
    make: Callable[..., int], *, allowed: Sequence[str] = (), counts: Sequence[int] = ()
) -> _Do:
    """An instruction on values of one type; operands in `counts` are always 32 bits wide."""

    def do(thread: _Thread, modifiers: list[str], operands: list[str]) -> None:
        *before, kind = modifiers
        if any(modifier not in allowed for modifier in before):
            raise UnknownPtx(".".join(modifiers))
        if kind in _FLOATS and make.__name__ != "make":
            raise UnknownPtx(kind)
        types = ["u32" if i in counts else kind for i in range(len(operands) - 1)]
        given = [_value(t, thread.get(o)) for t, o in zip(types, operands[1:], strict=True)]
        thread.registers[operands[0]] = make(*given, kind) & (1 << _bits(kind)) - 1

    return do


def _load(thread: _Thread, modifiers: list[str], operands: list[str]) -> None:
    place, *_, kind = modifiers
    target, address = operands
    if place == "param":
        base, _, offset = address.strip("[]").partition("+")
        if offset:
            raise UnknownPtx(f"ld.param of {address}")
        thread.registers[target] = thread.params[base]
    elif modifiers[:-1] in (["global"], ["global", "nc"]):
        at, size = thread.address(address), _bits(kind) // 8
        raw = _value(kind, int.from_bytes(thread.memory[at : at + size], "little"))
        thread.registers[target] = raw & (1 << 64) - 1
    else:
        raise UnknownPtx("ld." + ".".join(modifiers))


def _store(thread: _Thread, modifiers: list[str], operands: list[str]) -> None:
    if modifiers[:-1] != ["global"]:
        raise UnknownPtx("st." + ".".join(modifiers))
    at, bits = thread.address(operands[0]), _bits(modifiers[-1])
    raw = thread.get(operands[1]) & (1 << bits) - 1
    thread.memory[at : at + bits // 8] = raw.to_bytes(bits // 8, "little")


def _move(thread: _Thread, modifiers: list[str], operands: list[str]) -> None:
    if modifiers[-1] not in ("b16", "b32", "b64", "u32", "u64", "pred") and modifiers != [
        "to",
        "global",
        "u64",
    ]:
        raise UnknownPtx("mov." + ".".join(modifiers))
    bits = _bits(modifiers[-1])
    thread.registers[operands[0]] = thread.get(operands[1]) & (1 << bits) - 1


def _multiply(thread: _Thread, modifiers: list[str], operands: list[str]) -> None:
    part, kind = modifiers
    a, b, *c = (_value(kind, thread.get(operand)) for operand in operands[1:3])
    bits, product = _bits(kind), a * b
    if part == "hi":
        product >>= bits
    elif part == "wide":
        bits *= 2
    elif part != "lo":
        raise UnknownPtx(part)
    for operand in operands[3:]:
        product += thread.get(operand)
    thread.registers[operands[0]] = product & (1 << bits) - 1


_TESTS: Final[dict[str, Callable[[float, float], bool]]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    # The unordered ones are true of a NaN.
    "equ": lambda a, b: not (a < b or a > b),
    "neu": lambda a, b: not a == b,
    "ltu": lambda a, b: not a >= b,
    "leu": lambda a, b: not a > b,
    "gtu": lambda a, b: not a <= b,
    "geu": lambda a, b: not a < b,
    "num": lambda a, b: a == a and b == b,
    "nan": lambda a, b: a != a or b != b,
}


def _set(thread: _Thread, modifiers: list[str], operands: list[str]) -> None:
    test, kind = modifiers
    read = _float if kind in _FLOATS else _value
    left, right = (read(kind, thread.get(operand)) for operand in operands[1:])
    thread.registers[operands[0]] = int(_TESTS[test](left, right))


def _select(thread: _Thread, modifiers: list[str], operands: list[str]) -> None:
    target, yes, no, condition = operands
    raw = thread.get(yes if thread.get(condition) else no)
    thread.registers[target] = raw & (1 << _bits(modifiers[-1])) - 1


def _convert(thread: _Thread, modifiers: list[str], operands: list[str]) -> None:
    *how, to, source = modifiers
    raw, bits = thread.get(operands[1]), _bits(to)
    if source in _FLOATS and to not in _FLOATS and how == ["rzi"]:
        value = _truncated(_float(source, raw), to)
    elif to in _FLOATS and source in _FLOATS and not how:
        number = _float(source, raw)
        value = int.from_bytes(struct.pack("<" + _FLOATS[to], number), "little")
    elif to not in _FLOATS and source not in _FLOATS and how in ([], ["sat"]):
        value = _value(source, raw)
        value = _clamped(value, to) if how else value
    else:
        raise UnknownPtx("cvt." + ".".join(modifiers))
    # A register that is wider than a converted number is sign- or zero-extended.
    thread.registers[operands[0]] = value & ((1 << max(bits, 64)) - 1 if to[0] == "s" else -1)


def _truncated(number: float, to: str) -> int:
    """Towards zero, kept within the type; NaN is 0."""
    if number != number:
        return 0
    low, high = _range(to)
    return high if number > high else low if number < low else _clamped(int(number), to)


def _clamped(value: int, to: str) -> int:
    low, high = _range(to)
    return min(max(value, low), high)


def _range(kind: str) -> tuple[int, int]:
    bits = _bits(kind)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)


def _counting(make: Callable[[int, int], int]) -> _Do:
    def do(thread: _Thread, modifiers: list[str], operands: list[str]) -> None:
        bits = _bits(modifiers[0])
        thread.registers[operands[0]] = make(thread.get(operands[1]) & (1 << bits) - 1, bits)

    return do


def _extract(raw: int, start: int, size: int, kind: str) -> int:
    bits, start, size = _bits(kind), start & 255, size & 255
    if kind[0] == "u":
        return raw >> start & (1 << size) - 1
    value = _value(kind, raw)
    field_ = value >> start & (1 << size) - 1
    if not size:
        return 0
    last = min(start + size - 1, bits - 1)
    sign = value >> last & 1
    return field_ & (1 << last - start + 1) - 1 | (-sign << max(last - start + 1, 0))


def _permuted(a: int, b: int, selector: int, _: str) -> int:
    data, result = (b << 32 | a).to_bytes(8, "little"), 0
    for i in range(4):
        nibble = selector >> 4 * i & 15
        byte = data[nibble & 7]
        result |= (255 * (byte >> 7) if nibble & 8 else byte) << 8 * i
    return result


def _funnel(thread: _Thread, modifiers: list[str], operands: list[str]) -> None:
    way, mode, _ = modifiers
    low, high, count = (thread.get(operand) & 0xFFFFFFFF for operand in operands[1:])
    count = min(count, 32) if mode == "clamp" else count & 31
    both = high << 32 | low
    raw = both << count >> 32 if way == "l" else both >> count
    thread.registers[operands[0]] = raw & 0xFFFFFFFF


def _picked(least: bool) -> Callable[[int, int, str], int]:
    """`min` or `max`; of floats the other one where one is a NaN."""

    def make(a: int, b: int, kind: str) -> int:
        if kind not in _FLOATS:
            return min(a, b) if least else max(a, b)
        x, y = _float(kind, a), _float(kind, b)
        if x != x or y != y:
            return b if x != x else a
        return a if (x < y) == least else b

    return make


def _shifted_left(value: int, count: int, kind: str) -> int:
    return value << min(count, _bits(kind))


def _shifted_right(value: int, count: int, kind: str) -> int:
    return value >> min(count, _bits(kind))


_INSTRUCTIONS: Final[dict[str, _Do]] = {
    "ld": _load,
    "st": _store,
    "mov": _move,
    "cvta": _move,
    "add": _computing(lambda a, b, _: a + b),
    "sub": _computing(lambda a, b, _: a - b),
    "mul": _multiply,
    "mad": _multiply,
    "div": _computing(lambda a, b, _: _quotient(a, b)),
    "rem": _computing(lambda a, b, _: a - b * _quotient(a, b)),
    "min": _computing(_picked(least=True)),
    "max": _computing(_picked(least=False)),
    "abs": _computing(lambda a, _: abs(a)),
    "neg": _computing(lambda a, _: -a),
    "not": _computing(lambda a, _: ~a),
    "and": _computing(lambda a, b, _: a & b),
    "or": _computing(lambda a, b, _: a | b),
    "xor": _computing(lambda a, b, _: a ^ b),
    "shl": _computing(_shifted_left, counts=(1,)),
    "shr": _computing(_shifted_right, counts=(1,)),
    "bfe": _computing(_extract, counts=(1, 2)),
    "prmt": _computing(_permuted),
    "shf": _funnel,
    "setp": _set,
    "selp": _select,
    "cvt": _convert,
    "clz": _counting(lambda raw, bits: bits - raw.bit_length()),
    "popc": _counting(lambda raw, _: raw.bit_count()),
    "brev": _counting(lambda raw, bits: int(f"{raw:0{bits}b}"[::-1], 2)),
}

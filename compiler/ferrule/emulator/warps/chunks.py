"""Straight code on vectors of 32 lanes becomes loops over single lanes, or over parts of 8 lanes.

LLVM cuts a vector that no register of the processor holds into pieces, instruction by instruction,
and takes milliseconds for each. A loop over parts has a quarter of the instructions; one over lanes
has only scalars, which LLVM's quick way of compiling knows. What crosses from one loop to the next
goes through memory; what crosses lanes stays as it is, between loops.

A line belongs to the open loop if it does lane by lane what it does. Lines on scalars stand before
the loop if they need none of its results, else behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field
from typing import Final

from ferrule.specs.deferred import dataclass

PARTS: Final = (1, 8)
"""How many lanes an iteration can do."""
SLOT: Final = "%slot"
LOCALS: Final = "%locals"

_BITS: Final = {"i1": 1, "half": 16, "float": 32, "double": 64}
_NAME: Final = re.compile(r"%[\w.]+")
_DEFINED: Final = re.compile(r"  (%[\w.]+) = (.*)")
_VECTOR: Final = re.compile(r"<32 x (\w+)>")
_RESULT: Final = re.compile(r" to <32 x (\w+)>$")
_SPLATTED: Final = re.compile(r"splat \(\w+ ([^()]+)\)")
_LISTED: Final = re.compile(r"<(?:i\d+|half|float|double) [^<>]*>")
_TO_WORD: Final = re.compile(r"bitcast <32 x i1> (.+) to i32$")
_TO_LANES: Final = re.compile(r"bitcast i32 (\S+) to <32 x i1>$")
_SPLAT: Final = re.compile(r"shufflevector <32 x \w+> (\S+), <32 x \w+> poison, <32 x i32> zeroini")
_FIRST: Final = re.compile(r"insertelement <32 x (\w+)> poison, \w+ (\S+), i32 0$")
_LOAD: Final = re.compile(r"load <32 x (\w+)>, ptr ([^, ]+)(?:, align (\d+))?(, !.*)?$")
_STORE: Final = re.compile(r"  store <32 x (\w+)> (.+), ptr ([^, ]+)(?:, align (\d+))?$")
_ACROSS: Final = re.compile(
    r"@llvm\.vector\.reduce|extractelement|insertelement|shufflevector|phi "
)
_ENDS: Final = ("  br ", "  ret ", "  switch ", "  unreachable")


def _bytes(kind: str) -> int:
    bits = _BITS.get(kind) or int(kind[1:])
    return bits // 8


@dataclass(slots=True)
class Chunked:
    """The new text, the label that stands for each old one at its end, and constants it needs."""

    lines: list[str]
    labels: dict[str, str]
    constants: dict[str, str]
    slots: int


@dataclass(slots=True)
class _Loop:
    before: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    """As they were."""
    after: list[str] = field(default_factory=list)
    defined: set[str] = field(default_factory=set)
    """What is known only when the loop is done."""
    places: dict[str, str] = field(default_factory=dict)
    """The element that each place in memory is read or written as."""


def chunked(lines: Iterable[str], label: str, prefix: str, part: int) -> Chunked:
    """A block's lines as loops over `part` lanes; `label` is the one that it begins with."""
    return _Chunker(label, prefix, part).run(lines)


class _Chunker:
    def __init__(self, label: str, prefix: str, part: int) -> None:
        self._part = part
        self._out: list[str] = []
        self._label = self._old = label
        self._prefix = prefix
        self._labels: dict[str, str] = {}
        self._constants: dict[str, str] = {}
        self._count = 0
        self._kinds: dict[str, str] = {LOCALS: "i64"}
        """The element of each vector."""
        self._sources: dict[str, str] = {}
        """How a vector that is made of a scalar is made again."""
        self._parts: list[_Loop | str] = []
        self._loop = _Loop()
        self._slots: dict[str, str] = {LOCALS: f"{LOCALS}.p"}
        self._home: dict[str, int] = {}
        """The part that defines each vector."""

    def run(self, lines: Iterable[str]) -> Chunked:
        for line in lines:
            self._sort(line)
        self._close()
        self._place()
        for number, each in enumerate(self._parts):
            if isinstance(each, str):
                self._whole(each)
            else:
                self._write(each, number)
        self._labels[self._old] = self._label
        return Chunked(self._out, self._labels, self._constants, len(self._slots) - 1)

    # ---- which line belongs where ----

    def _sort(self, line: str) -> None:
        # Labels, ends of blocks, and calls of helpers, whose names are quoted.
        if not line.startswith("  ") or line.startswith(_ENDS) or ' @"' in line:
            self._alone(line)
        elif "<32 x " in line:
            self._vector(line)
        else:
            self._scalar(line)

    def _alone(self, line: str) -> None:
        self._close()
        self._parts.append(line)

    def _close(self) -> None:
        loop = self._loop
        if loop.lines or loop.before or loop.after:
            self._parts.append(loop)
            self._loop = _Loop()

    def _vector(self, line: str) -> None:
        found = _DEFINED.match(line)
        text = found[2] if found else line
        if found and (_FIRST.match(text) or _TO_LANES.match(text)):
            self._made(found[1], text)
            return
        splat = _SPLAT.match(text) if found else None
        if found and splat and splat[1] in self._sources:
            self._sources[found[1]] = self._sources[splat[1]]
            self._kinds[found[1]] = self._kinds[splat[1]]
            return
        if _ACROSS.search(text) or (found is None and not _STORE.match(line)):
            if found and _VECTOR.match(text.partition(" ")[2]) and "reduce" not in text:
                self._kinds[found[1]] = _kind(text)
            self._alone(line)
            if found and found[1] in self._kinds:
                self._home[found[1]] = len(self._parts) - 1
            return
        if self._needs(text) or self._otherwise(line, text):
            self._close()
            self._otherwise(line, text)
        self._loop.lines.append(line)
        if found:
            self._home[found[1]] = len(self._parts)
            if _TO_WORD.match(text):
                self._loop.defined.add(found[1])
            else:
                self._kinds[found[1]] = _kind(text)

    def _otherwise(self, line: str, text: str) -> bool:
        """Whether a place is used with elements of another size, whose lanes lie elsewhere."""
        found = _LOAD.match(text)
        if found:
            kind, place = found[1], found[2]
        else:
            store = _STORE.match(line)
            if store is None:
                return False
            kind, place = store[1], store[3]
        return self._loop.places.setdefault(place, kind) != kind

    def _made(self, name: str, text: str) -> None:
        """A vector of one scalar: made anew wherever it is needed."""
        self._sources[name] = text
        first = _FIRST.match(text)
        self._kinds[name] = first[1] if first else "i1"

    def _needs(self, text: str) -> bool:
        """Whether a line needs a scalar that the open loop gives, or a vector made of one."""
        defined = self._loop.defined
        if not defined:
            return False
        names = _NAME.findall(text)
        names += [n for each in names for n in _NAME.findall(self._sources.get(each, ""))]
        return any(each in defined for each in names)

    def _scalar(self, line: str) -> None:
        loop = self._loop
        found = _DEFINED.match(line)
        if found is None:
            loop.after.append(line)
        # It must not move before a store that stands before it.
        elif "load " in found[2] and loop.after:
            self._close()
            self._loop.before.append(line)
        elif self._needs(found[2]):
            loop.after.append(line)
            loop.defined.add(found[1])
        else:
            loop.before.append(line)

    # ---- what crosses ----

    def _place(self) -> None:
        """A slot in memory for every vector that another part needs."""
        for number, each in enumerate(self._parts):
            lines = [each] if isinstance(each, str) else each.lines
            for line in lines:
                for name in _NAME.findall(line):
                    home = self._home.get(name)
                    across = home is not None and (home != number or isinstance(each, str))
                    if across and name in self._kinds and name not in self._slots:
                        self._slots[name] = f"{SLOT}{len(self._slots) - 1}"

    # ---- lines that stay ----

    def _whole(self, line: str) -> None:
        """A line between loops, with the whole vectors that it needs."""
        if not line.startswith("  "):
            self._labels[self._old] = self._label
            self._old = self._label = line[:-1]
            self._out.append(line)
            return
        found = _DEFINED.match(line)
        result = found[1] if found else ""
        names = [each for each in dict.fromkeys(_NAME.findall(line)) if each in self._kinds]
        whole = {name: self._loaded(name) for name in names if name != result}
        if whole:
            line = _NAME.sub(lambda each: whole.get(each[0], each[0]), line)
        self._out.append(line)
        if result in self._slots:
            self._out += _stored(result, self._kinds[result], self._slots[result])

    def _loaded(self, name: str) -> str:
        """A whole vector again."""
        self._count += 1
        own = f"%{self._prefix}.w{self._count}"
        kind = self._kinds[name]
        if name in self._sources:
            self._out += _remade(own, self._sources[name], kind, 32)
        elif kind == "i1":
            self._out.append(f"  {own}.i = load <32 x i8>, ptr {self._slots[name]}, align 32")
            self._out.append(f"  {own} = trunc <32 x i8> {own}.i to <32 x i1>")
        else:
            slot = self._slots[name]
            self._out.append(f"  {own} = load <32 x {kind}>, ptr {slot}, align 32")
        return own

    # ---- loops ----

    def _write(self, loop: _Loop, number: int) -> None:
        self._out += loop.before
        if loop.lines:
            self._body(loop, number)
        self._out += loop.after

    def _body(self, loop: _Loop, number: int) -> None:
        self._count += 1
        name = f"{self._prefix}.{self._count}"
        writer = _Writer(self, name, number, self._label, self._part)
        for line in loop.lines:
            writer.line(line)
        self._out += writer.done()
        self._label = writer.end

    def slot(self, name: str) -> str | None:
        return self._slots.get(name)

    def kind(self, name: str) -> str | None:
        return self._kinds.get(name)

    def source(self, name: str) -> str | None:
        return self._sources.get(name)

    def home(self, name: str) -> int | None:
        return self._home.get(name)

    def constant(self, text: str) -> str:
        """The global that holds a vector that is written out."""
        kind = text[1:].split()[0]
        count = text.count(",") + 1
        name = f'@"lanes {text}"'
        self._constants[name] = f"{name} = private constant <{count} x {kind}> {text}, align 32\n"
        return name


class _Writer:
    """One loop."""

    def __init__(self, chunker: _Chunker, name: str, number: int, label: str, part: int) -> None:
        self._chunker = chunker
        self._name = name
        self._number = number
        self._from = label
        self._part = part
        self._lines: list[str] = []
        self._phis: list[str] = []
        self._here: dict[str, str] = {}
        """What stands for a vector of another part, in this loop."""
        self._count = 0
        self.end = f"{name}.end"
        self._index = f"%{name}.k"

    def done(self) -> list[str]:
        k, name = self._index, self._name
        return [
            f"  br label %{name}",
            f"{name}:",
            f"  {k} = phi i64 [0, %{self._from}], [{k}.1, %{name}]",
            *self._phis,
            f"  {k}.i = trunc i64 {k} to i32",
            *self._lines,
            *self._next(),
            f"  {k}.c = icmp eq i64 {k}.1, 32",
            f"  br i1 {k}.c, label %{self.end}, label %{name}",
            f"{self.end}:",
        ]

    def _next(self) -> list[str]:
        """The next index. LLVM does not see that it counts: else it looks at all of a long function
        for each loop, to find cheaper addresses than those that processors have."""
        k = self._index
        if self._part == 1:
            return [f"  {k}.1 = add i64 {k}, 1"]
        hidden = f'  {k}.1 = call i64 asm "", "=r,0"(i64 {k}.n)'
        return [f"  {k}.n = add i64 {k}, {self._part}", hidden]

    def _fresh(self) -> str:
        self._count += 1
        return f"%{self._name}.x{self._count}"

    def _type(self, kind: str) -> str:
        return kind if self._part == 1 else f"<{self._part} x {kind}>"

    def line(self, line: str) -> None:
        # A look that costs little first: few lines have a vector that is written out.
        if ", i32 1, " in line or ", i64 1, " in line or line.count(",") > 30:
            for text in _LISTED.findall(line):
                if text.count(",") == 31:
                    line = line.replace(text, self._listed(text))
        found = _DEFINED.match(line)
        text = found[2] if found else line
        own = {}
        for name in _NAME.findall(text):
            here = self._foreign(name)
            if here is not None:
                own[name] = here
        if own:
            text = _NAME.sub(lambda each: own.get(each[0], each[0]), text)
        if found is None:
            self._store(text)
        else:
            self._define(found[1], text)

    def _listed(self, text: str) -> str:
        if text not in self._here:
            kind = text[1:].split()[0]
            self._here[text] = self._load(kind, self._chunker.constant(text), 32, "")
        return self._here[text]

    def _foreign(self, name: str) -> str | None:
        """The replacement for a vector that this loop does not define."""
        if name in self._here:
            return self._here[name]
        chunker = self._chunker
        kind = chunker.kind(name)
        if kind is None or chunker.home(name) == self._number:
            return None
        source = chunker.source(name)
        if source is None:
            slot = chunker.slot(name)
            assert slot is not None, name
            self._here[name] = self._slotted(kind, slot)
        else:
            self._here[name] = self._remade(source, kind)
        return self._here[name]

    def _remade(self, source: str, kind: str) -> str:
        first = _FIRST.match(source) if self._part == 1 else None
        if first is not None:
            return first[2]
        own = self._fresh()
        lanes = _TO_LANES.match(source)
        if lanes is None:
            self._lines += _remade(own, source, kind, self._part)
            return own
        self._lines.append(f"  {own}.s = lshr i32 {lanes[1]}, {self._index}.i")
        if self._part == 1:
            self._lines.append(f"  {own} = trunc i32 {own}.s to i1")
        else:
            self._lines += [
                f"  {own}.t = trunc i32 {own}.s to i{self._part}",
                f"  {own} = bitcast i{self._part} {own}.t to <{self._part} x i1>",
            ]
        return own

    def _slotted(self, kind: str, slot: str) -> str:
        if kind != "i1":
            return self._load(kind, slot, 32, "")
        own = self._fresh()
        self._lines += [
            f"  {own}.p = getelementptr i8, ptr {slot}, i64 {self._index}",
            f"  {own}.b = load {self._type('i8')}, ptr {own}.p, align {self._part}",
            f"  {own} = trunc {self._type('i8')} {own}.b to {self._type('i1')}",
        ]
        return own

    def _load(self, kind: str, place: str, align: int, more: str, own: str = "") -> str:
        own = own or self._fresh()
        align = min(align, self._part * _bytes(kind))
        self._lines += [
            f"  {own}.p = getelementptr {kind}, ptr {place}, i64 {self._index}",
            f"  {own} = load {self._type(kind)}, ptr {own}.p, align {align}{more}",
        ]
        return own

    def _store(self, line: str) -> None:
        found = _STORE.match(line)
        assert found is not None, line
        kind, value, place, align = found.groups()
        own = self._fresh()
        least = min(int(align or _bytes(kind)), self._part * _bytes(kind))
        self._lines += [
            f"  {own} = getelementptr {kind}, ptr {place}, i64 {self._index}",
            f"  store {self._type(kind)} {self._plain(value)}, ptr {own}, align {least}",
        ]

    def _plain(self, text: str) -> str:
        """Constants as the loop has them."""
        if self._part > 1 or "splat" not in text:
            return text
        return _SPLATTED.sub(lambda found: found[1], text)

    def _define(self, result: str, text: str) -> None:
        load, word = _LOAD.match(text), _TO_WORD.match(text)
        if load:
            kind, place, align, more = load.groups()
            self._load(kind, place, int(align or _bytes(kind)), more or "", result)
        elif word:
            self._word(result, word[1])
        elif self._part == 1:
            self._lines.append(f"  {result} = {_scalars(self._plain(text))}")
        else:
            text = text.replace("<32 x ", f"<{self._part} x ").replace(".v32", f".v{self._part}")
            self._lines.append(f"  {result} = {text}")
        slot = self._chunker.slot(result)
        if slot is not None:
            kind_of = self._chunker.kind(result)
            assert kind_of is not None
            self._keep(result, kind_of, slot)

    def _word(self, result: str, lanes: str) -> None:
        """Bits of lanes, put together over the loop."""
        own = self._fresh()
        self._phis.append(f"  {own}.a = phi i32 [0, %{self._from}], [{result}, %{self._name}]")
        bits = lanes
        if self._part > 1:
            bits = f"{own}.b"
            self._lines.append(f"  {bits} = bitcast <{self._part} x i1> {lanes} to i{self._part}")
        self._lines += [
            f"  {own}.z = zext i{self._part} {self._plain(bits)} to i32",
            f"  {own}.s = shl i32 {own}.z, {self._index}.i",
            f"  {result} = or i32 {own}.a, {own}.s",
        ]

    def _keep(self, name: str, kind: str, slot: str) -> None:
        if kind != "i1":
            self._store(f"  store <32 x {kind}> {name}, ptr {slot}, align 32")
            return
        own = self._fresh()
        self._lines += [
            f"  {own}.p = getelementptr i8, ptr {slot}, i64 {self._index}",
            f"  {own}.b = zext {self._type('i1')} {name} to {self._type('i8')}",
            f"  store {self._type('i8')} {own}.b, ptr {own}.p, align {self._part}",
        ]


def _scalars(text: str) -> str:
    """A line without its vectors."""
    head, *vectors = text.split("<32 x ")
    text = head + "".join([each.replace(">", "", 1) for each in vectors])
    return text.replace(".v32", ".") if "@llvm" in text else text


def _kind(text: str) -> str:
    """The element of a line's result."""
    if text.startswith(("icmp", "fcmp")):
        return "i1"
    cast = _RESULT.search(text)
    if cast:
        return cast[1]
    kinds = _VECTOR.findall(text)
    return str(kinds[-1] if text.startswith("select") else kinds[0])


def _stored(name: str, kind: str, slot: str) -> list[str]:
    """A whole vector into its slot."""
    if kind != "i1":
        return [f"  store <32 x {kind}> {name}, ptr {slot}, align 32"]
    return [
        f"  {name}.k = zext <32 x i1> {name} to <32 x i8>",
        f"  store <32 x i8> {name}.k, ptr {slot}, align 32",
    ]


def _remade(own: str, source: str, kind: str, count: int) -> list[str]:
    """A vector of a scalar."""
    first = _FIRST.match(source)
    if first is None:
        return [f"  {own} = {source}"]
    return [
        f"  {own}.1 = insertelement <{count} x {kind}> poison, {kind} {first[2]}, i32 0",
        f"  {own} = shufflevector <{count} x {kind}> {own}.1, <{count} x {kind}> poison, "
        f"<{count} x i32> zeroinitializer",
    ]

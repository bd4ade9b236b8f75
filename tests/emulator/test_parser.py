"""PTX text: what it says, and that whatever is no PTX is refused with its line."""

from __future__ import annotations

import random
import struct

import pytest
from ptx_programs import HEADER, kernel, machine

from ferrule.emulator.ptx.module import Instruction, PtxError, Variable
from ferrule.emulator.ptx.parser import parse


def variable(text: str) -> Variable:
    (found,) = parse(HEADER + text).variables
    return found


def refused(text: str) -> tuple[str, int]:
    """Words and line of the error, the line after the header's three."""
    with pytest.raises(PtxError) as error:
        parse(HEADER + text)
    return str(error.value), error.value.line - 3


BEGINNINGS = {
    ".global .u32 a[2][3] = {{1, 2}, {4}};": struct.pack("<6I", 1, 2, 0, 4, 0, 0),
    ".global .u16 a[] = {1, -1, 0xffff};": struct.pack("<3H", 1, 65535, 65535),
    ".global .u16 a[][2] = {{1}, {2, 3}};": struct.pack("<4H", 1, 0, 2, 3),
    ".global .b8 a[4] = {010, 0x10, 0b10};": bytes([8, 16, 2, 0]),
    ".global .f32 a[2] = {0f3F800000, -1.5};": struct.pack("<2f", 1.0, -1.5),
    ".global .f64 a = 1e300;": struct.pack("<d", 1e300),
    ".const .align 16 .b64 a[2] = {0};": bytes(16),
    ".global .u64 a = 18446744073709551615U;": b"\xff" * 8,
}


@pytest.mark.parametrize("text", BEGINNINGS)
def test_what_variables_begin_with(text: str) -> None:
    assert variable(text).data == BEGINNINGS[text]


def test_addresses_in_variables() -> None:
    found = parse(HEADER + ".global .u32 x[4];\n.global .u64 a[3] = {x, generic(x)+8, 7};")
    a = found.variables[1]
    assert [(at, size, each.name, each.offset) for at, size, each in a.references] == [
        (0, 8, "x", 0), (8, 8, "x", 8),
    ]  # fmt: skip
    assert a.data == struct.pack("<3Q", 0, 0, 7)


WRONG = {
    ".global .bf16 a = 3;": "an integer does not begin .bf16",
    ".global .f32 a = 3;": "an integer does not begin .f32",
    ".global .u32 a = 08;": "'08' is no number of base 8",
    ".global .f32 a = 1e300;": "1e+300 does not fit .f32",
    ".global .u8 a = 256;": "256 does not fit .u8",
    ".global .u64 a = 18446744073709551616;": "has more than 64 bits",
    ".global .u32 a[2] = {1, 2, 3};": "begins with more than it holds",
    ".global .u32 a[2] = {1 2};": "wanted ',', got '2'",
    ".global .u32 a[2][2] = {1, 2};": "wanted '{' of the next dimension",
    ".global .u32 a[2][] = {{1}};": "only the first size may be left out",
    ".global .u32 a[-1];": "a has the size -1",
    ".global .align 3 .u32 a;": "the alignment 3 is no power of two",
    ".global .u32 a;\n.global .u32 a;": "a is defined twice",
    "/* abc": "the text ends inside of a /* comment",
    '.file 1 "abc\n.pragma "x': "a string without its end",
    "§": "'§' begins nothing that PTX has",
    ".global .u32": "wanted a variable's name",
    ".visible .entry k() {": "the text ends inside of a function",
    ".visible .entry k(.param .u32 a .param .u32 b) { ret; }": "wanted ','",
    ".visible .entry k(.param .u32 a, .param .u32 a) { ret; }": "a is defined twice",
    ".visible .entry k() { ret; }\n.visible .entry k() { ret; }": "k is defined twice",
    ".shared .u32 s = 3;": ".shared variables begin with nothing: s",
    ".alias f, g;": ".alias is not emulated",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_text_has_a_line(text: str) -> None:
    words, line = refused(text)
    assert WRONG[text] in words
    assert line == 1 + text.count("\n")


BODIES = {
    ".reg .b32 %a;\n.reg .b64 %a;": ("%a is defined twice", 2),
    ".reg .b32 %a<4>;\n.reg .b32 %a2;": ("%a2 is defined twice", 2),
    "L:\nL: ret;": ("the label L is defined twice", 2),
    "add.s32 %r1, %r2 %r3;": ("wanted ',', got '%r3'", 1),
    "mov.b64 {%r1 %r2}, %rd1;": ("wanted ',', got '%r2'", 1),
    "@%q bra L;": ("there is no predicate %q", 1),
    "@%r1 bra L;": ("there is no predicate %r1", 1),
    ".reg .v4 .f32 %a;": ("registers of .v4 are not emulated", 1),
    ".reg .b32 %a<-1>;": ("-1 registers %a", 1),
}


@pytest.mark.parametrize("body", BODIES)
def test_wrong_bodies(body: str) -> None:
    whole = kernel(body)
    start = whole[: whole.index(body)].count("\n")
    words, line = BODIES[body]
    with pytest.raises(PtxError, match="line") as error:
        parse(whole)
    assert words in str(error.value)
    assert error.value.line == start + line


def test_names_of_inner_scopes() -> None:
    """Labels, tables and registers of an inner scope are others than those around it."""
    text = kernel(
        "L: { .reg .b32 %r1; mov.u32 %r1, 1; L: bra L; t: .branchtargets L; brx.idx %r1, t; }\n"
        "bra L; t: .branchtargets L; brx.idx %r1, t;"
    )
    (function,) = parse(text).functions
    assert function.tables == {"t@1": ("L@1",), "t": ("L",)}
    branches = [
        each.operands[-1].name  # type: ignore[union-attr]
        for each in function.body or ()
        if isinstance(each, Instruction) and each.opcode in ("bra", "brx")
    ]
    assert branches == ["L@1", "t@1", "L", "t"]
    assert function.registers["%r1@1"] == "b32"


def test_damaged_text_is_refused_or_read() -> None:
    """Whatever happens to a text, it is read or refused with a PtxError."""
    text = kernel(
        '.loc 1 4 2\n@%p1 add.s32 %r1, %r2, -08;\nmov.b64 {%r1,%r2}, %rd1;\nld.global.v2.f32 '
        "{%f1,%f2}, [%rd1+-8];\nL: bra L; call (x), f, (y); t: .branchtargets L, L;",
        ".param .u64 .ptr .global .align 4 a[2]",
        before='.file 1 "x.py"\n.global .align 8 .f32 v[2][2] = {{1.0, 0f3F800000}, {1e3}};',
    )  # fmt: skip
    rng = random.Random(3)
    for _ in range(400):
        characters = list(text)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(characters))
            how = rng.randrange(3)
            if how == 0:
                del characters[at : at + rng.randint(1, 8)]
            elif how == 1:
                characters.insert(at, rng.choice('{}[]();:,.@!-+"%$09afxX/*\\ \n'))
            else:
                characters[at] = rng.choice("0189eEfFdDxbUu.{}()")
        try:
            parse("".join(characters))
        except PtxError:
            continue


@pytest.mark.parametrize("checks", ["memory", "memory,sync,race,init"])
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("bra;", "bra to anything but a label"),
        ("brx.idx;", "brx.idx of this form"),
        (
            "wgmma.wait_group.sync.aligned;",
            "wgmma.wait_group.sync.aligned is not emulated: it has 0",
        ),
        ("ld.global.u32 %r1;", "ld.global.u32 is not emulated: it has 1 operands"),
        ("atom.global.cas.b32 %r1;", "atom.global.cas.b32 is not emulated: it has 1 operands"),
        ("wmma.load.a.sync.aligned.row.m16n16k16.f16;", "wmma.load.a.* is not emulated"),
        ("{" * 5000, "more than 200 blocks inside of each other"),
    ],
)
def test_operands_that_are_not_there(body: str, said: str, checks: str) -> None:
    """Random changes of texts came upon most of these: they were errors of Python."""
    with pytest.raises(PtxError, match=said):
        machine(checks).load(kernel(body + " ret;"))

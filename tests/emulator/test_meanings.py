"""Every form of the table does what the PTX manual says, with edges and random operands.

`ptx_meanings` says what, in plain Python; a name without a meaning fails, except for the opcodes of
`HELD_ELSEWHERE`. Many instructions share a kernel. `--hypothesis-profile=nightly` runs every name;
else of a form with many only some do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import ptx_float_meanings
import ptx_forms
import ptx_integer_meanings
import pytest
from hypothesis import settings
from ptx_float_meanings import Both
from ptx_meanings import REFUSED, Meaning, Near, meaning, width
from ptx_numbers import decoded
from ptx_programs import Array, floats, integers, kernel, launch, machine
from ptxas import Refused, assemble

from ferrule.emulator.machine import PtxError
from ferrule.emulator.ptx.targets import needed_target

MEANINGS = (ptx_float_meanings, ptx_integer_meanings)

HELD_ELSEWHERE = {
    "atom": "test_atomics", "red": "test_atomics", "ld": "test_moves", "st": "test_moves",
    "ldu": "test_moves",
    "mov.b128": "test_wide",
    "cvta": "test_moves", "isspacep": "test_moves", "addc": "test_carries", "subc": "test_carries",
    "madc": "test_carries", "activemask": "test_lanes", "bar": "test_lanes",
    "barrier": "test_lanes", "elect": "test_lanes", "match": "test_lanes", "redux": "test_lanes",
    "shfl": "test_lanes", "vote": "test_lanes", "fence": "no effect", "membar": "no effect",
    "nanosleep": "no effect", "prefetch": "no effect", "prefetchu": "no effect",
    "discard": "no effect", "createpolicy": "test_moves", "applypriority": "no effect",
    "pmevent": "no effect",
}  # fmt: skip
"""Opcodes that are more than a function of their operands, with the test that holds them."""
PARTS = (
    "carries",
    "conversions",
    "floats",
    "integers",
    "logic",
    "moves",
    "packed",
    "rounding",
    "sets",
    "small_floats",
)
"""The parts of the table that this file is about."""

LANES = 64
TOGETHER = 80
"""Instructions of one kernel."""
MOST = 9
"""Names of one form that run every time."""


def every_name() -> bool:
    return settings.get_current_profile_name() == "nightly"


def some_names() -> list[str]:
    """The names to execute: all, or of a form with many some that are spread over it."""
    found: dict[str, None] = {}
    for form in ptx_forms.forms():
        part = form.write.__module__.rpartition(".")[2]
        if part not in PARTS or form.opcode in HELD_ELSEWHERE:
            continue
        names = [
            each
            for each in ptx_forms.names(form)
            if ".cc." not in each and each not in HELD_ELSEWHERE
        ]
        step = 1 if every_name() else max(1, len(names) // MOST) | 1
        found.update(dict.fromkeys(names[::step]))
    return list(found)


NAMES = some_names()


def test_every_form_has_a_meaning() -> None:
    missing = [name for name in NAMES if meaning(name) is None]
    assert not missing, missing[:20]


def register(kind: str) -> str:
    bits = width(kind)
    return (
        ".pred"
        if bits == 1
        else f".b{max(bits, 32) if kind[0] in 'bsu' and kind != 'bf16' and bits == 8 else bits}"
    )


def operands(kind: str, slot: int) -> Array:
    """The bits of a kind, the same for a place in the list of operands."""
    seed = 7 * slot + sum(map(ord, kind))
    rng = np.random.default_rng(seed)
    if kind == "pred":
        return rng.integers(0, 2, LANES).astype(np.uint8)
    if kind == "count":
        small = rng.integers(0, 70, LANES)
        large = rng.choice([255, 256, 1 << 31, (1 << 32) - 1, 31, 32, 33, 64], LANES)
        return np.where(rng.random(LANES) < 0.8, small, large).astype(np.uint32)
    if kind.endswith("x2"):
        whole = np.dtype(f"uint{width(kind)}")
        low, high = (operands(kind[:-2], slot + 10 * i).astype(whole) for i in (1, 2))
        return low | high << whole.type(width(kind) // 2)
    if kind in ("f16", "f32", "f64"):
        found = floats({"f16": np.float16, "f32": np.float32, "f64": np.float64}[kind], LANES, seed)
        return found.view(f"uint{width(kind)}")
    if kind == "bf16":
        return (floats(np.float32, LANES, seed).view(np.uint32) >> 16).astype(np.uint16)
    return integers(f"uint{width(kind)}", LANES, seed)


@dataclass
class Kernel:
    """Instructions on operands that they share, and what they should give."""

    names: list[str]

    def text(self) -> tuple[str, list[Array], list[tuple[str, int, str]]]:
        """PTX, its arrays, and for each result the instruction, the number and the kind."""
        lines = ["mov.u32 %r0, %tid.x;"]
        declared: list[str] = []
        arrays: list[Array] = []
        loaded: dict[tuple[str, int], str] = {}
        results: list[tuple[str, int, str]] = []
        after: list[str] = []
        for name in self.names:
            known = meaning(name)
            assert known is not None
            given = []
            for slot, kind in enumerate(known.operands):
                if (kind, slot) not in loaded:
                    loaded[kind, slot] = f"%i{len(loaded)}"
                    arrays.append(operands(kind, slot))
                    declared.append(f".reg {register(kind)} {loaded[kind, slot]};")
                    lines += load(loaded[kind, slot], kind, len(arrays) - 1)
                given.append(loaded[kind, slot])
            made = []
            for number, kind in enumerate(known.results):
                made.append(f"%o{len(results)}")
                declared.append(f".reg {register(kind)} {made[-1]};")
                after += stored(made[-1], kind, len(results))
                results.append((name, number, kind))
            lines.append(f"{name} {'|'.join(made)}, {', '.join(placed(given, known))};")
        lines += [*after, "ret;"]
        arrays.append(np.zeros(8 * LANES * len(results), np.uint8))
        parameters = ", ".join(f".param .u64 a{i}" for i in range(len(arrays)))
        last = f"ld.param.u64 %rd9, [a{len(arrays) - 1}];\n"
        return kernel(last + "\n".join(lines), parameters, "\n".join(declared)), arrays, results


def placed(given: list[str], known: Meaning) -> list[str]:
    """The operands, with the further ones at their place: at the end, or `text@place`."""
    text, _, place = known.more.partition("@")
    if not text:
        return given
    at = int(place) if place else len(given)
    return [*given[:at], text, *given[at:]]


def load(name: str, kind: str, number: int) -> list[str]:
    size = max(8, width(kind)) // 8
    lines = [f"ld.param.u64 %rd1, [a{number}];", f"mul.wide.u32 %rd2, %r0, {size};"]
    lines.append("add.u64 %rd1, %rd1, %rd2;")
    if kind == "pred":
        return [*lines, "ld.global.u8 %r1, [%rd1];", f"setp.ne.u32 {name}, %r1, 0;"]
    return [*lines, f"ld.global.b{8 * size} {name}, [%rd1];"]


def stored(name: str, kind: str, number: int) -> list[str]:
    lines = ["mul.wide.u32 %rd2, %r0, 8;", "add.u64 %rd3, %rd9, %rd2;"]
    place = f"[%rd3+{number * 8 * LANES}]"
    if kind == "pred":
        return [*lines, f"selp.u32 %r1, 1, 0, {name};", f"st.global.u32 {place}, %r1;"]
    bits = int(register(kind)[2:])
    return [*lines, f"st.global.b{bits} {place}, {name};"]


def computed(names: list[str]) -> Iterator[tuple[str, int, str, Array]]:
    text, arrays, results = Kernel(names).text()
    text = text.replace(".target sm_90a", ".target sm_100a")  # has all of them
    found = launch(text, arrays, block=(LANES, 1, 1))[-1].view(np.uint64)
    for place, (name, number, kind) in enumerate(results):
        yield name, number, kind, found[place * LANES : (place + 1) * LANES]


GROUPS = [
    [each for each in NAMES[at : at + TOGETHER] if meaning(each) not in (None, REFUSED)]
    for at in range(0, len(NAMES), TOGETHER)
]


@pytest.mark.parametrize("group", range(len(GROUPS)))
def test_meanings(group: int) -> None:
    for name, number, kind, found in computed(GROUPS[group]):
        known = meaning(name)
        assert known is not None
        given = [operands(each, slot) for slot, each in enumerate(known.operands)]
        for lane in range(LANES):
            bits = [int(each[lane]) for each in given]
            wanted = known.compute(*bits)
            one = wanted[number] if isinstance(wanted, tuple) else wanted
            assert right(int(found[lane]), one, kind), (
                name, number, [hex(each) for each in bits], hex(int(found[lane])),
                hex(one) if isinstance(one, int) else vars(one) if one else one,
            )  # fmt: skip


def right(found: int, wanted: object, kind: str) -> bool:
    """Whether bits are what an instruction may give."""
    if wanted is None:
        return True
    if isinstance(wanted, Both):
        half = kind.removesuffix("x2")
        return right(found & 0xFFFF, wanted.low, half) and right(found >> 16, wanted.high, half)
    if isinstance(wanted, Near):
        return is_near(found, wanted)
    assert isinstance(wanted, int)
    halves = kind.removesuffix("x2")
    if halves != kind and halves in ("f16", "bf16", "f32"):
        size = width(halves)
        most = (1 << size) - 1
        return all(right(found >> i & most, wanted >> i & most, halves) for i in (0, size))
    if kind in ("f16", "bf16", "f32", "f64") and decoded(wanted, kind).nan:
        return decoded(found, kind).nan
    return found == wanted


def is_near(found: int, wanted: Near) -> bool:
    given = decoded(found, wanted.kind)
    if given.nan:
        return math.isnan(wanted.value)
    if given.size is None or math.isinf(wanted.value):
        largest = {"f16": 65504.0, "bf16": 3.38e38, "f32": 3.4e38, "f64": 1.79e308}[wanted.kind]
        return abs(wanted.value) >= largest * (1 - 2**-7) and given.sign == (wanted.value < 0)
    # A result without normal numbers may be 0, and is rounded to what there is.
    least = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}[wanted.kind]
    allowed = max(wanted.relative * abs(wanted.value), wanted.absolute)
    if abs(wanted.value) < 2 * least:
        allowed = max(allowed, least)
    return abs(float(given.value) - wanted.value) <= allowed


REFUSED_NAMES = [each for each in NAMES if meaning(each) is REFUSED]


def test_names_that_no_gpu_has() -> None:
    """What a pattern lets through and the manual does not know is refused."""
    for name in REFUSED_NAMES[:: max(1, len(REFUSED_NAMES) // 40)]:
        opcode, *words = name.split(".")
        kinds = [
            f"%{'rd' if w.endswith('64') else 'h' if w.endswith('16') else 'r'}1" for w in words
        ]
        value = kinds[-1]
        count = 2 + bool({"and", "or", "xor"} & set(words)) if opcode.startswith("set") else 3
        to = "%p1" if opcode == "setp" else {"f16": "%h2", "bf16": "%h2"}.get(words[-2], "%r2")
        more = ", ".join([value, value, "%p2" if opcode.startswith("set") else value][:count])
        with pytest.raises(PtxError, match="is not emulated"):
            machine().load(kernel(f"{name} {to}, {more};\nret;"))


def refused_by_ptxas(names: list[str], arch: str, folder: Path) -> tuple[set[str], set[str]]:
    """The instructions that NVIDIA's assembler does not take for this target, and those that it
    takes for none as they are spelled here."""
    text = Kernel(names).text()[0].replace(".target sm_90a", f".target {arch}")
    lines = text.splitlines()
    newer, wrong = set(), set()
    try:
        assemble(text, arch, folder)
    except Refused as error:
        for line, said in error.lines:
            (newer if "sm_" in said else wrong).add(lines[line - 1].split()[0])
    return newer, wrong - newer


@pytest.mark.needs_ptxas
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90"])
def test_targets(arch: str, tmp_path: Path) -> None:
    known = [name for group in GROUPS for name in group]
    for at in range(0, len(known), 400):
        names = known[at : at + 400]
        expected = {name for name in names if (needed_target(name) or (0, ""))[0] > int(arch[3:])}
        newer, wrong = refused_by_ptxas(names, arch, tmp_path)
        assert expected - wrong == newer
        assert len(wrong) < len(names) / 2

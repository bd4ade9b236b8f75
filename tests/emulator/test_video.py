"""Video instructions, each with selectors by chance, held to the pseudo-code of the PTX manual."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import ptx_forms
import pytest
from ptx_programs import Array, integers, kernel, launch, machine
from ptx_video_meanings import Case, cases, result
from ptxas import assemble

from ferrule.emulator.machine import PtxError

ALL = list(cases(random.Random(57)))
TOGETHER = 300
LANES = 64


def program(chosen: list[Case]) -> str:
    lines = ["mov.u32 %r0, %tid.x;", "mul.wide.u32 %rd9, %r0, 4;"]
    for number in range(4):
        lines += [f"ld.param.u64 %rd{number}, [a{number}];"]
        lines += [f"add.u64 %rd{number}, %rd{number}, %rd9;"]
    lines += [f"ld.global.u32 %{each}, [%rd{i}];" for i, each in enumerate("abc")]
    for number, (name, operands) in enumerate(chosen):
        given = [each.replace("-", "-%") if "-" in each else f"%{each}" for each in operands]
        lines.append(f"{name} {', '.join(given)};")
        lines.append(f"st.global.u32 [%rd3+{4 * LANES * number}], %r;")
    parameters = ", ".join(f".param .u64 a{i}" for i in range(4))
    return kernel("\n".join([*lines, "ret;"]), parameters, ".reg .b32 %a, %b, %c, %r;")


def given() -> list[Array]:
    return [integers(np.uint32, LANES, seed) for seed in (1, 2, 3)]


GROUPS = [ALL[at : at + TOGETHER] for at in range(0, len(ALL), TOGETHER)]


@pytest.mark.parametrize("group", range(len(GROUPS)))
def test_meanings(group: int) -> None:
    chosen, arrays = GROUPS[group], given()
    out = np.zeros(LANES * len(chosen), np.uint32)
    found = launch(program(chosen), [*arrays, out], block=(LANES, 1, 1))[-1]
    for number, (name, operands) in enumerate(chosen):
        for lane in range(LANES):
            values = {each: int(array[lane]) for each, array in zip("abc", arrays, strict=True)}
            bits = int(found[number * LANES + lane])
            assert bits == result(name, operands, values), (name, operands, values, bits)


def test_every_form_has_a_case() -> None:
    names = {
        each
        for form in ptx_forms.forms()
        if form.write.__module__.rpartition(".")[2].startswith("video")
        for each in ptx_forms.names(form)
    }
    assert names == {name for name, _ in ALL}


@pytest.mark.needs_ptxas
def test_the_assembler_takes_them(tmp_path: Path) -> None:
    for chosen in GROUPS:
        assemble(program(chosen), "sm_90a", tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        "vadd.u32.u32.u32 %r1, %r2, %r3, %r4;",
        "vadd.u32.u32.u32 %r1.h0, %r2, %r3;",
        "vadd.u32.u32.u32.add %r1.h0, %r2, %r3, %r4;",
        "vadd.u32.u32.u32 %r1, %r2.b4, %r3;",
        "vadd.u32.u32.u32 %r1, -%r2, %r3;",
        "vshl.u32.u32.s32.clamp %r1, %r2, %r3;",
        "vmad.u32.u32.u32 %r1, -%r2, %r3, -%r4;",
        "vmad.u32.u32.u32.po %r1, %r2, %r3, -%r4;",
        "vadd2.u32.u32.u32 %r1.h01, %r2, %r3, %r4;",
        "vadd2.u32.u32.u32 %r1, %r2.h4, %r3, %r4;",
        "vadd2.u32.u32.u32 %r1, %r2.b10, %r3, %r4;",
        "vadd2.u32.u32.u32 %r1, %r2, %r3;",
        "vadd4.u32.u32.u32 %r1, %r2.b321, %r3, %r4;",
        "vset4.u32.u32.hi %r1, %r2, %r3, %r4;",
        "add.u32 %r1, %r2.h1, %r3;",
        "add.u32 %r1, -%r2, %r3;",
        "ld.global.u32 %r1, [%rd1.h0];",
    ],
)
def test_refusals(line: str) -> None:
    with pytest.raises(PtxError, match="is not emulated|a part of"):
        machine().load(kernel(line + "\nret;"))

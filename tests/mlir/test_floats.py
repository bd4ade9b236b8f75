"""Floats of a newer LLVM's text, as every LLVM reads them."""

from __future__ import annotations

import math
import struct
from typing import Any

import llvmlite.binding as llvm
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.compiler.mlir.floats import readable

FORMS = {"half": ("<e", "<H"), "float": ("<f", "<I"), "double": ("<d", "<Q")}


def stored(kind: str, literal: str) -> str:
    """What LLVM says of a constant."""
    text = readable(f"@x = constant {kind} {literal}")
    with llvm.parse_assembly(text, llvm.create_context()) as module:
        return str(module).partition(f"constant {kind} ")[2].strip()


@given(kind=st.sampled_from(sorted(FORMS)), data=st.data())
def test_a_decimal_number_is_the_nearest_of_its_type(kind: str, data: st.DataObject) -> None:
    form, bits = FORMS[kind]
    width = {"half": 16, "float": 32, "double": 64}[kind]
    number = data.draw(st.integers(0, 2**width - 1))
    (value,) = struct.unpack(form, struct.pack(bits, number))
    if math.isfinite(value):
        assert stored(kind, f"{value:.17e}") == stored(kind, f"f0x{number:0{width // 4}X}")


@pytest.mark.parametrize(
    ("literal", "wanted"),
    [
        ("float -inf", "float 0xFFF0000000000000"),
        ("float +qnan", "float 0x7FF8000000000000"),
        ("float +snan(0x200000)", "float 0x7FF4000000000000"),
        ("double -nan(0x1)", "double 0xFFF8000000000001"),
        ("half +inf", "half 0xH7C00"),
        ("bfloat 7.873530e-03", "bfloat 0xR3C01"),
        ("float f0x00000001", "float 0x36A0000000000000"),
        ("float -0.000000e+00", "float 0x8000000000000000"),
    ],
)
def test_what_older_versions_do_not_know_is_in_digits(literal: str, wanted: str) -> None:
    assert readable(f"store {literal}, ptr %p") == f"store {wanted}, ptr %p"


@pytest.mark.parametrize(
    "line",
    [
        '@s = constant [5 x i8] c"float 1.0e0"',
        "%r = fadd float %x.1.0, %y ; float 1.5e+0",
        "call void @f1.5(i32 7)",
    ],
)
def test_names_texts_and_comments_stay(line: str) -> None:
    assert readable(line) == line


def test_the_type_is_that_of_the_line() -> None:
    line: Any = "%r = phi float [ 1.000000e-01, %a ], [ -inf, %b ]"
    digits = ("0x3FB99999A0000000", "0xFFF0000000000000")
    assert readable(line) == f"%r = phi float [ {digits[0]}, %a ], [ {digits[1]}, %b ]"

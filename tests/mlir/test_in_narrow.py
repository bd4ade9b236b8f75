"""Brain floats of MLIR functions: no library is called for them, and conversions round once."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mlir_functions import needs_mlir

from ferrule.frontends import mlir
from ferrule.frontends.mlir.bfloat16 import without_bfloat


@needs_mlir
@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (
            "%r = scf.if %c -> bf16 { %q = arith.addf %x, %x : bf16\n scf.yield %q : bf16 } "
            "else { scf.yield %x : bf16 }",
            3.0,
        ),
        ("%r = math.fma %x, %x, %x : bf16", 3.75),
        (
            "%k = arith.constant 1.5 : bf16\n%c0 = arith.constant 0 : index\n"
            "%c1 = arith.constant 1 : index\n%c3 = arith.constant 3 : index\n"
            "%r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %k) -> bf16 {\n"
            "%b = arith.mulf %a, %x : bf16\n scf.yield %b : bf16 }",
            5.0625,
        ),
        (
            "%v = vector.broadcast %x : bf16 to vector<4xbf16>\n"
            "%f = math.fma %v, %v, %v : vector<4xbf16>\n"
            "%w = arith.select %c, %f, %v : vector<4xbf16>\n"
            "%r = vector.extract %w[2] : bf16 from vector<4xbf16>",
            3.75,
        ),
    ],
)
def test_brain_floats_cross_branches(body: str, wanted: float) -> None:
    fn = mlir.compile(f"func.func @f(%x: bf16, %c: i1) -> bf16 {{\n{body}\nreturn %r : bf16\n}}")
    assert fn(1.5, True) == wanted


def rounded(exact: Fraction) -> float:
    """The brain float nearest to a number, the even one of two that are as near."""
    if exact == 0:
        return 0.0
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** (max(exponent, -126) - 7)
    near = round(size / unit) * unit
    value = math.inf if near >= Fraction(2) ** 128 else float(near)
    return value if exact > 0 else -value


CONVERT = """
func.func @convert(%x: memref<?xSOURCE>, %y: memref<?xi16>) {
  linalg.map ins(%x : memref<?xSOURCE>) outs(%y : memref<?xi16>) (%v: SOURCE, %old: i16) {
    %n = OP %v : SOURCE to bf16
    %r = arith.bitcast %n : bf16 to i16
    linalg.yield %r : i16
  }
  return
}
"""


def near_halves(kind: str) -> Any:
    """Numbers at, and next to, the middle between two brain floats."""
    rng = np.random.default_rng(3)
    leading = rng.integers(256, 512, 512)
    off = rng.integers(-2, 3, 512)
    if kind == "float64":
        scaled = np.ldexp(leading.astype(np.float64), rng.integers(-150, 122, 512))
        return scaled * (1 + off * 2.0 ** rng.integers(-52, -20, 512)) * rng.choice([-1, 1], 512)
    bits = np.dtype(kind).itemsize * 8
    shifts = rng.integers(0, bits - 8, 512)
    exact = [(int(n) << int(s)) + int(o) for n, s, o in zip(leading, shifts, off, strict=True)]
    signed = [each % 2**bits for each in exact]
    return np.array(signed, np.dtype(f"uint{bits}")).view(kind)


@needs_mlir
@pytest.mark.parametrize(
    ("op", "source", "kind"),
    [
        ("arith.truncf", "f64", "float64"),
        ("arith.sitofp", "i64", "int64"),
        ("arith.uitofp", "i64", "uint64"),
        ("arith.sitofp", "i32", "int32"),
        ("arith.uitofp", "i32", "uint32"),
    ],
)
def test_a_conversion_rounds_once(op: str, source: str, kind: str) -> None:
    fn = mlir.compile(CONVERT.replace("SOURCE", source).replace("OP", op))
    x = near_halves(kind)
    y = np.zeros(len(x), np.int16)
    fn(x.view(np.int64 if kind == "uint64" else np.int32 if kind == "uint32" else kind), y)
    found = (y.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    wanted = [rounded(Fraction(each.item())) for each in x]
    assert found.tolist() == wanted


@needs_mlir
def test_what_is_no_number_stays_so() -> None:
    fn = mlir.compile(CONVERT.replace("SOURCE", "f64").replace("OP", "arith.truncf"))
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-300, -1e300])
    y = np.zeros(len(x), np.int16)
    fn(x, y)
    found = (y.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(found, np.array([np.nan, np.inf, -np.inf, 0, 0, -np.inf]))
    assert np.signbit(found).tolist()[3:] == [True, False, True]


def test_bits_stand_for_brain_floats_that_are_only_moved() -> None:
    text = "\n".join(
        [
            '@text = private constant [7 x i8] c"bfloat\\00"',
            "define bfloat @f(bfloat %bfloat, i1 %c) {",
            "  %r = phi bfloat [ %bfloat, %a ], [ 0xR3FC0, %b ]",
            "  ret bfloat %r",
        ]
    )
    assert without_bfloat(text).splitlines() == [
        '@text = private constant [7 x i8] c"bfloat\\00"',
        "define i16 @f(i16 %bfloat, i1 %c) {",
        "  %r = phi i16 [ %bfloat, %a ], [ 16320, %b ]",
        "  ret i16 %r",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "  %r = fadd bfloat %a, %b",
        "  %r = fptrunc float %a to bfloat",
        "declare bfloat @elsewhere(bfloat)",
        "  %r = call bfloat @llvm.fma.bf16(bfloat %a, bfloat %b, bfloat %c)",
    ],
)
def test_brain_floats_stay_where_something_is_computed_with_them(line: str) -> None:
    text = f"{line}\n  ret bfloat %r"
    assert without_bfloat(text) == text

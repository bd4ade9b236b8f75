"""Conversions between float32 and the narrow floats, as functions of the module.

They round to nearest, ties to even; subnormals are exact, and a NaN stays a NaN.  CPUs get integer
code, which calls no library; a GPU has instructions for float16.  A float64 is narrowed through a
float32 that is rounded to odd, so that the second rounding sees no false tie.
"""

from __future__ import annotations

from typing import Final

from ferrule import specs
from ferrule.language.mlir.text import Text
from ferrule.language.mlir.types import scalar_type
from ferrule.specs import DType

_WIDEN_FLOAT16: Final = """\
  func.func private @float16_to_float32(%x: f16) -> f32 attributes {INTERNAL} {
    %bits = arith.bitcast %x : f16 to i16
    %wide = arith.extui %bits : i16 to i32
    %c7fff = arith.constant 32767 : i32
    %c8000 = arith.constant 32768 : i32
    %c13 = arith.constant 13 : i32
    %c16 = arith.constant 16 : i32
    %c112 = arith.constant 939524096 : i32
    %c224 = arith.constant 1879048192 : i32
    %least = arith.constant 0x33800000 : f32
    %c400 = arith.constant 1024 : i32
    %c7c00 = arith.constant 31744 : i32
    %magnitude = arith.andi %wide, %c7fff : i32
    %high = arith.andi %wide, %c8000 : i32
    %sign = arith.shli %high, %c16 : i32
    %shifted = arith.shli %magnitude, %c13 : i32
    %normal = arith.addi %shifted, %c112 : i32
    %special = arith.addi %shifted, %c224 : i32
    %count = arith.sitofp %magnitude : i32 to f32
    %tiny = arith.mulf %count, %least : f32
    %tiny_bits = arith.bitcast %tiny : f32 to i32
    %is_tiny = arith.cmpi ult, %magnitude, %c400 : i32
    %finite = arith.select %is_tiny, %tiny_bits, %normal : i32
    %is_special = arith.cmpi uge, %magnitude, %c7c00 : i32
    %result = arith.select %is_special, %special, %finite : i32
    %signed = arith.ori %result, %sign : i32
    %float = arith.bitcast %signed : i32 to f32
    return %float : f32
  }"""
_NARROW_FLOAT16: Final = """\
  func.func private @float32_to_float16(%x: f32) -> f16 attributes {INTERNAL} {
    %bits = arith.bitcast %x : f32 to i32
    %c16 = arith.constant 16 : i32
    %c13 = arith.constant 13 : i32
    %c1 = arith.constant 1 : i32
    %c8000 = arith.constant 32768 : i32
    %c7fffffff = arith.constant 2147483647 : i32
    %bias = arith.constant -939520001 : i32
    %c7c00 = arith.constant 31744 : i32
    %c3ff = arith.constant 1023 : i32
    %c7e00 = arith.constant 32256 : i32
    %half = arith.constant 0x3F000000 : f32
    %half_bits = arith.constant 1056964608 : i32
    %smallest = arith.constant 947912704 : i32
    %infinite = arith.constant 2139095040 : i32
    %high = arith.shrui %bits, %c16 : i32
    %sign = arith.andi %high, %c8000 : i32
    %magnitude = arith.andi %bits, %c7fffffff : i32
    %cut = arith.shrui %magnitude, %c13 : i32
    %even = arith.andi %cut, %c1 : i32
    %to_even = arith.addi %magnitude, %even : i32
    %rounded = arith.addi %to_even, %bias : i32
    %shifted = arith.shrui %rounded, %c13 : i32
    %fits = arith.cmpi ult, %shifted, %c7c00 : i32
    %normal = arith.select %fits, %shifted, %c7c00 : i32
    %float = arith.bitcast %magnitude : i32 to f32
    %aligned = arith.addf %float, %half : f32
    %aligned_bits = arith.bitcast %aligned : f32 to i32
    %tiny = arith.subi %aligned_bits, %half_bits : i32
    %is_tiny = arith.cmpi ult, %magnitude, %smallest : i32
    %finite = arith.select %is_tiny, %tiny, %normal : i32
    %payload = arith.andi %cut, %c3ff : i32
    %nan = arith.ori %payload, %c7e00 : i32
    %is_nan = arith.cmpi ugt, %magnitude, %infinite : i32
    %result = arith.select %is_nan, %nan, %finite : i32
    %signed = arith.ori %result, %sign : i32
    %word = arith.trunci %signed : i32 to i16
    %narrow = arith.bitcast %word : i16 to f16
    return %narrow : f16
  }"""
_WIDEN_BFLOAT16: Final = """\
  func.func private @bfloat16_to_float32(%x: bf16) -> f32 attributes {INTERNAL} {
    %c16 = arith.constant 16 : i32
    %bits = arith.bitcast %x : bf16 to i16
    %wide = arith.extui %bits : i16 to i32
    %shifted = arith.shli %wide, %c16 : i32
    %float = arith.bitcast %shifted : i32 to f32
    return %float : f32
  }"""
_NARROW_BFLOAT16: Final = """\
  func.func private @float32_to_bfloat16(%x: f32) -> bf16 attributes {INTERNAL} {
    %c16 = arith.constant 16 : i32
    %c1 = arith.constant 1 : i32
    %c7fff = arith.constant 32767 : i32
    %quiet = arith.constant 64 : i32
    %bits = arith.bitcast %x : f32 to i32
    %upper = arith.shrui %bits, %c16 : i32
    %last = arith.andi %upper, %c1 : i32
    %to_even = arith.addi %bits, %last : i32
    %rounded = arith.addi %to_even, %c7fff : i32
    %number = arith.shrui %rounded, %c16 : i32
    %nan = arith.ori %upper, %quiet : i32
    %is_nan = arith.cmpf uno, %x, %x : f32
    %result = arith.select %is_nan, %nan, %number : i32
    %word = arith.trunci %result : i32 to i16
    %narrow = arith.bitcast %word : i16 to bf16
    return %narrow : bf16
  }"""
_NARROW_TFLOAT32: Final = """\
  func.func private @float32_to_tfloat32(%x: f32) -> f32 attributes {INTERNAL} {
    %c13 = arith.constant 13 : i32
    %c1 = arith.constant 1 : i32
    %cfff = arith.constant 4095 : i32
    %quiet = arith.constant 4194304 : i32
    %mask = arith.constant -8192 : i32
    %bits = arith.bitcast %x : f32 to i32
    %cut = arith.shrui %bits, %c13 : i32
    %even = arith.andi %cut, %c1 : i32
    %to_even = arith.addi %bits, %even : i32
    %rounded = arith.addi %to_even, %cfff : i32
    %nan = arith.ori %bits, %quiet : i32
    %is_nan = arith.cmpf uno, %x, %x : f32
    %chosen = arith.select %is_nan, %nan, %rounded : i32
    %kept = arith.andi %chosen, %mask : i32
    %float = arith.bitcast %kept : i32 to f32
    return %float : f32
  }"""
_TO_ODD: Final = """\
  func.func private @float64_to_odd_float32(%x: f64) -> f32 attributes {INTERNAL} {
    %zero = arith.constant 0.0 : f64
    %nearest = arith.truncf %x : f64 to f32
    %back = arith.extf %nearest : f32 to f64
    %inexact = arith.cmpf one, %back, %x : f64
    %positive = arith.cmpf oge, %x, %zero : f64
    %more = arith.cmpf ogt, %back, %x : f64
    %less = arith.cmpf olt, %back, %x : f64
    %above = arith.select %positive, %more, %less : i1
    %bits = arith.bitcast %nearest : f32 to i32
    %step = arith.extui %above : i1 to i32
    %towards_zero = arith.subi %bits, %step : i32
    %sticky = arith.extui %inexact : i1 to i32
    %odd = arith.ori %towards_zero, %sticky : i32
    %float = arith.bitcast %odd : i32 to f32
    return %float : f32
  }"""
_FUNCTIONS: Final = {
    "float16_to_float32": _WIDEN_FLOAT16,
    "float32_to_float16": _NARROW_FLOAT16,
    "bfloat16_to_float32": _WIDEN_BFLOAT16,
    "float32_to_bfloat16": _NARROW_BFLOAT16,
    "float32_to_tfloat32": _NARROW_TFLOAT32,
    "float64_to_odd_float32": _TO_ODD,
}
INTERNAL: Final = "llvm.linkage = #llvm.linkage<internal>"
"""The attribute of a function with internal linkage."""


def widen(t: Text, dtype: DType, value: str, *, native: bool) -> str:
    """The float32 with the value of a narrow float; `native`: the target has float16 instructions,
    and one that narrows to bfloat16."""
    if dtype is specs.TFloat32:
        return value
    if t.folding is not None or (dtype is specs.Float16 and native):
        return t.cast("extf", value, "f32")
    return _call(t, f"{dtype.name}_to_float32", value, "f32")


def narrow(t: Text, dtype: DType, value: str, *, native: bool) -> str:
    """The narrow float that is nearest to a float32 or float64."""
    if t.folding is not None and dtype is not specs.TFloat32:
        return t.cast("truncf", value, scalar_type(dtype))
    if dtype is specs.Float16 and native:
        return t.cast("truncf", value, "f16")
    if t.types[value] == "f64":
        value = _call(t, "float64_to_odd_float32", value, "f32")
    if dtype is specs.BFloat16 and native:
        return t.cast("truncf", value, "bf16")
    return _call(t, f"float32_to_{dtype.name}", value, scalar_type(dtype))


def _call(t: Text, name: str, value: str, result: str) -> str:
    t.declare(f"@{name}", _FUNCTIONS[name].replace("INTERNAL", INTERNAL))
    return t.op(f"func.call @{name}({value}) : ({t.types[value]}) -> {result}", result)

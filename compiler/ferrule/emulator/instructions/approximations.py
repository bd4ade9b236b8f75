"""Instructions with `.approx`, whose results PTX promises up to an error.

They are computed in float64 and rounded: no GPU is nearer.  Where the check `approx` is asked for,
a result is moved inside of its documented error (PTX ISA, "Floating-Point Instructions"), the same
for the same operands: code that is right on one GPU by luck is found so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ferrule.emulator.instructions.floats import F32, F64, each_float, root
from ferrule.emulator.instructions.forms import Named, form
from ferrule.emulator.instructions.helpers import by_lane, helper, lane_value, put
from ferrule.emulator.ptx.module import Instruction
from ferrule.emulator.warps.emitter import Emitter, splat

_LARGE: Final = splat("i32", str(0x7E800000))
"""2**126."""
_ERRORS: Final[Mapping[str, float]] = MappingProxyType(
    {
        "rcp": 2.0**-25,
        "sqrt": 2.0**-24,
        "rsqrt": 2.0**-23.7,
        "div": 2.0**-24,
        "ex2": 2.0**-23.1,
        "lg2": 2.0**-23,
        "sin": 2.0**-21,
        "cos": 2.0**-21,
        "tanh": 2.0**-11.2,
    }
)
"""How far a result is moved, relative to it; what is documented, less half an ulp for rounding."""
_ABSOLUTE: Final = frozenset({"sin", "cos"})
"""Their errors are absolute."""


@form("div", r"\.approx(?P<ftz>\.ftz)?\.(?P<t>f32)", 3)
def _div(e: Emitter, item: Instruction, named: Named) -> None:
    """a times the reciprocal of b, which is 0 where b is beyond 2**126."""

    def compute(e: Emitter, llvm: str, given: Sequence[str]) -> str:
        a, b = given
        wide = [e.op(f"fpext {F32} {each} to {F64}") for each in given]
        value = _rounded(e, item.opcode, e.op(f"fdiv {F64} {wide[0]}, {wide[1]}"), given)
        size = e.op(f"call {F32} @llvm.fabs.v32f32({F32} {b})")
        big = e.op(f"fcmp ogt {F32} {size}, {e.op(f'bitcast <32 x i32> {_LARGE} to {F32}')}")
        zero = e.op(f"call {F32} @llvm.copysign.v32f32({F32} zeroinitializer, {F32} {b})")
        product = e.op(f"fmul {F32} {a}, {zero}")
        return e.op(f"select <32 x i1> {big}, {F32} {product}, {F32} {value}")

    each_float(e, item, named, compute)


@form("rcp", r"\.approx(?P<ftz>\.ftz)?\.(?P<t>f32)", 2)
@form("rsqrt", r"\.approx(?P<ftz>\.ftz)?\.(?P<t>f32)", 2)
@form("sqrt", r"\.approx(?P<ftz>\.ftz)?\.(?P<t>f32)", 2)
def _of_root(e: Emitter, item: Instruction, named: Named) -> None:
    def compute(e: Emitter, llvm: str, given: Sequence[str]) -> str:
        value = e.op(f"fpext {F32} {given[0]} to {F64}")
        if item.opcode != "rcp":
            value = root(e, F64, [value])
        if item.opcode != "sqrt":
            value = e.op(f"fdiv {F64} {splat('double', '1.0')}, {value}")
        return _rounded(e, item.opcode, value, given)

    each_float(e, item, named, compute)


@form("rcp", r"\.approx\.ftz\.(?P<t>f64)", 2)
@form("rsqrt", r"\.approx(?P<half>\.ftz)?\.(?P<t>f64)", 2)
def _wide(e: Emitter, item: Instruction, named: Named) -> None:
    """float64 of which rcp, and rsqrt with .ftz, give the upper 32 bits, subnormal numbers as 0."""
    value = e.read(item.operands[1], "f64")
    upper = item.opcode == "rcp" or named["half"]
    if upper:
        value = _flushed_wide(e, value)
    if item.opcode == "rsqrt":
        value = e.op(f"call {F64} @llvm.sqrt.v32f64({F64} {value})")
    value = e.op(f"fdiv {F64} {splat('double', '1.0')}, {value}")
    nan = e.op(f"fcmp uno {F64} {value}, {value}")
    if upper:
        bits = e.op(f"bitcast {F64} {_flushed_wide(e, value)} to <32 x i64>")
        # Half of the lower word, which is cut off next: to nearest.
        bits = e.op(f"add <32 x i64> {bits}, splat (i64 2147483648)")
        bits = e.op(f"and <32 x i64> {bits}, splat (i64 -4294967296)")
        value = e.op(f"bitcast <32 x i64> {bits} to {F64}")
    # 0x7FF8000000000000, a quiet NaN.
    clean = e.op(f"bitcast <32 x i64> splat (i64 9221120237041090560) to {F64}")
    e.write(item.operands[0], "f64", e.op(f"select <32 x i1> {nan}, {F64} {clean}, {F64} {value}"))


def _flushed_wide(e: Emitter, value: str) -> str:
    bits = e.op(f"bitcast {F64} {value} to <32 x i64>")
    exponent = e.op(f"and <32 x i64> {bits}, splat (i64 9218868437227405312)")
    small = e.op(f"icmp eq <32 x i64> {exponent}, zeroinitializer")
    sign = e.op(f"and <32 x i64> {bits}, splat (i64 -9223372036854775808)")
    bits = e.op(f"select <32 x i1> {small}, <32 x i64> {sign}, <32 x i64> {bits}")
    return e.op(f"bitcast <32 x i64> {bits} to {F64}")


_MATHS = {"sin": "sin", "cos": "cos", "ex2": "exp2", "lg2": "log2", "tanh": "tanh"}


@form("sin", r"\.approx(?P<ftz>\.ftz)?\.(?P<t>f32)", 2)
@form("cos", r"\.approx(?P<ftz>\.ftz)?\.(?P<t>f32)", 2)
@form("ex2", r"\.approx(?P<ftz>\.ftz)?\.(?P<t>f32)", 2)
@form("ex2", r"\.approx\.(?P<t>f16|f16x2)", 2)
@form("ex2", r"\.approx\.ftz\.(?P<t>bf16|bf16x2)", 2)
@form("lg2", r"\.approx(?P<ftz>\.ftz)?\.(?P<t>f32)", 2)
@form("tanh", r"\.approx\.(?P<t>f32|f16|f16x2|bf16|bf16x2)", 2)
def _maths(e: Emitter, item: Instruction, named: Named) -> None:
    def compute(e: Emitter, llvm: str, given: Sequence[str]) -> str:
        (value,) = e.call(f"maths:{_MATHS[item.opcode]}", [(F32, given[0])], [F64])
        return _rounded(e, item.opcode, value, given)

    each_float(e, item, named, compute)


@helper("maths")
def _maths_by_lane(name: str, function: str) -> str:
    body = lane_value("%p0", "float", "a")
    body += f"  %d = fpext float %a to double\n  %r = call double @{function}(double %d)\n"
    body += put("%p1", "double", "%r")
    return f"declare double @{function}(double)\n" + by_lane(
        name, 2, "", body + "  br label %next\n"
    )


def _rounded(e: Emitter, opcode: str, value: str, given: Sequence[str]) -> str:
    """A float64 as float32; with the check `approx` moved before, but for 0."""
    if e.names.moves_approximations:
        part = splat("double", repr(_ERRORS[opcode]))
        way = e.op(f"fmul {F64} {_way(e, given)}, {part}")
        if opcode in _ABSOLUTE:
            moved = e.op(f"fadd {F64} {value}, {way}")
        else:
            more = e.op(f"fmul {F64} {value}, {way}")
            moved = e.op(f"fadd {F64} {value}, {more}")
        # The manual's tables have 0, infinity and NaN, as operands and as results.
        operand = e.op(f"fpext {F32} {given[0]} to {F64}")
        usual = e.op(f"and <32 x i1> {_usual(e, value)}, {_usual(e, operand)}")
        value = e.op(f"select <32 x i1> {usual}, {F64} {moved}, {F64} {value}")
    return e.op(f"fptrunc {F64} {value} to {F32}")


def _usual(e: Emitter, value: str) -> str:
    """Whether a float64 is a number, and neither 0 nor infinite."""
    size = e.op(f"call {F64} @llvm.fabs.v32f64({F64} {value})")
    some = e.op(f"fcmp ogt {F64} {size}, zeroinitializer")
    finite = e.op(f"fcmp olt {F64} {size}, {splat('double', '0x7FF0000000000000')}")
    return e.op(f"and <32 x i1> {some}, {finite}")


def _way(e: Emitter, given: Sequence[str]) -> str:
    """A number in [-1, 1) for each lane, which the bits of the operands decide."""
    mixed = splat("i32", "0")
    for each in given:
        bits = e.op(f"bitcast {F32} {each} to <32 x i32>")
        mixed = e.op(f"xor <32 x i32> {mixed}, {bits}")
        # Knuth's multiplier, 2**32 over the golden ratio, brings the low bits to the top.
        mixed = e.op(f"mul <32 x i32> {mixed}, {splat('i32', '-1640531535')}")
    high = e.op(f"ashr <32 x i32> {mixed}, {splat('i32', '8')}")
    number = e.op(f"sitofp <32 x i32> {high} to {F64}")
    return e.op(f"fmul {F64} {number}, {splat('double', repr(2.0**-23))}")

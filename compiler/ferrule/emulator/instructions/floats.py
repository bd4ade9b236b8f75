"""Arithmetic on floats. Each operation rounds once; NaNs of 32 and 16 bits are the canonical ones.

float16 and bfloat16 are computed as float32 or float64 and rounded once: sums and products of
theirs are exact enough there, and where they are not, rounding to odd comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.ptx.module import Instruction, Operand
from ferrule.emulator.warps.emitter import Emitter, bits_of, splat

F32, F64 = "<32 x float>", "<32 x double>"
_LEAST_HALF = 0x38800000
"""The bits of 2**-14 as float32, the least normal float16."""
# 0x7FFFFFFF: the NaN that PTX's instructions on float32 give; 0x7FFF is that of 16 bits.
_NAN = splat("i32", "2147483647")
Compute = Callable[[Emitter, str, Sequence[str]], str]
"""From LLVM's type and operands to the result."""

PAIRS = {"f16x2": "f16", "bf16x2": "bf16"}
_HALF = r"f16|bf16"


def read_float(e: Emitter, operand: Operand, t: str) -> tuple[str, str]:
    """An operand as float32, or float64 where it is that."""
    return (F64 if t == "f64" else F32), widened(e, e.read(operand, t), t)


def widened(e: Emitter, value: str, t: str) -> str:
    """float16 and bfloat16 as float32."""
    if t == "f16":
        return e.op(f"fpext <32 x half> {value} to {F32}")
    if t == "bf16":
        bits = e.op(f"zext <32 x i16> {value} to <32 x i32>")
        bits = e.op(f"shl <32 x i32> {bits}, splat (i32 16)")
        return e.op(f"bitcast <32 x i32> {bits} to {F32}")
    return value


def narrowed(e: Emitter, value: str, t: str) -> str:
    """A float32 as what a register of `t` holds, rounded to nearest even; NaN is canonical."""
    if t == "f64":
        return value
    nan = e.op(f"fcmp uno {F32} {value}, {value}")
    if t == "f32":
        clean = e.op(f"bitcast <32 x i32> {_NAN} to {F32}")
        return e.op(f"select <32 x i1> {nan}, {F32} {clean}, {F32} {value}")
    if t == "f16":
        half = e.op(f"fptrunc {F32} {value} to <32 x half>")
        bits = e.op(f"bitcast <32 x half> {half} to <32 x i16>")
    else:
        bits = _to_bf16(e, value)
    bits = e.op(f"select <32 x i1> {nan}, <32 x i16> splat (i16 32767), <32 x i16> {bits}")
    return e.cast(bits, "b16", t)


def _to_bf16(e: Emitter, value: str) -> str:
    word = e.op(f"bitcast {F32} {value} to <32 x i32>")
    top = e.op(f"lshr <32 x i32> {word}, splat (i32 16)")
    odd = e.op(f"and <32 x i32> {top}, splat (i32 1)")
    # Half of what is cut off, less 1, and the bit that is kept: to nearest, ties to even.
    more = e.op(f"add <32 x i32> {odd}, splat (i32 32767)")
    word = e.op(f"add <32 x i32> {word}, {more}")
    top = e.op(f"lshr <32 x i32> {word}, splat (i32 16)")
    return e.op(f"trunc <32 x i32> {top} to <32 x i16>")


def flushed(e: Emitter, value: str) -> str:
    """float32 without subnormal numbers: these become 0 of the same sign."""
    word = e.op(f"bitcast {F32} {value} to <32 x i32>")
    # 0x7F800000, the bits of the exponent.
    exponent = e.op(f"and <32 x i32> {word}, splat (i32 2139095040)")
    small = e.op(f"icmp eq <32 x i32> {exponent}, zeroinitializer")
    return _zero_where(e, small, word)


def flushed_half(e: Emitter, value: str) -> str:
    """A float16, as float32, without subnormal numbers."""
    word = e.op(f"bitcast {F32} {value} to <32 x i32>")
    size = e.op(f"and <32 x i32> {word}, splat (i32 2147483647)")
    small = e.op(f"icmp ult <32 x i32> {size}, splat (i32 {_LEAST_HALF})")
    return _zero_where(e, small, word)


def _zero_where(e: Emitter, small: str, word: str) -> str:
    """The float32 of these bits; 0 of the same sign where it is small."""
    sign = e.op(f"and <32 x i32> {word}, splat (i32 -2147483648)")
    word = e.op(f"select <32 x i1> {small}, <32 x i32> {sign}, <32 x i32> {word}")
    return e.op(f"bitcast <32 x i32> {word} to {F32}")


def saturated(e: Emitter, value: str, llvm: str) -> str:
    """Into [0, 1]; NaN is 0."""
    scalar = "double" if llvm == F64 else "float"
    above = e.op(f"fcmp ogt {llvm} {value}, zeroinitializer")
    value = e.op(f"select <32 x i1> {above}, {llvm} {value}, {llvm} zeroinitializer")
    one = splat(scalar, "1.0")
    over = e.op(f"fcmp ogt {llvm} {value}, {one}")
    return e.op(f"select <32 x i1> {over}, {llvm} {one}, {llvm} {value}")


def each_float(e: Emitter, item: Instruction, named: Named, compute: Compute) -> None:
    """Compute with all operands, half by half where they are pairs."""
    t = kind(named)
    if t in PAIRS:
        _each_half(e, item, named, compute)
        return
    if t == "f32x2":
        _each_word(e, item, named, compute)
        return
    llvm = F64 if t == "f64" else F32
    given = [widened(e, e.read(each, t), t) for each in item.operands[1:]]
    e.write(item.operands[0], t, _done(e, named, t, llvm, given, compute))


def _done(
    e: Emitter, named: Named, t: str, llvm: str, given: Sequence[str], compute: Compute
) -> str:
    ftz = named.get("ftz")
    flush = flushed if t == "f32" else flushed_half
    if ftz:
        given = [flush(e, each) for each in given]
    value = compute(e, llvm, given)
    if ftz and t == "f32":
        value = flushed(e, value)
    if named.get("sat"):
        value = saturated(e, value, llvm)
    found = narrowed(e, value, t)
    if ftz and t == "f16":
        found = narrowed(e, flushed_half(e, widened(e, found, t)), t)
    return found


def _each_half(e: Emitter, item: Instruction, named: Named, compute: Compute) -> None:
    half = PAIRS[kind(named)]
    whole = "zeroinitializer"
    words = [e.read(each, "b32") for each in item.operands[1:]]
    for shift in (0, 16):
        given = []
        for word in words:
            part = e.op(f"lshr <32 x i32> {word}, {splat('i32', str(shift))}")
            part = e.op(f"trunc <32 x i32> {part} to <32 x i16>")
            given.append(widened(e, e.cast(part, "b16", half), half))
        value = e.cast(_done(e, named, half, F32, given, compute), half, "b16")
        wide = e.op(f"zext <32 x i16> {value} to <32 x i32>")
        wide = e.op(f"shl <32 x i32> {wide}, {splat('i32', str(shift))}")
        whole = e.op(f"or <32 x i32> {whole}, {wide}")
    e.write(item.operands[0], "b32", whole)


def _each_word(e: Emitter, item: Instruction, named: Named, compute: Compute) -> None:
    """Two float32 in a register of 64 bits, the first in the low half."""
    whole = "zeroinitializer"
    words = [e.read(each, "b64") for each in item.operands[1:]]
    for shift in (0, 32):
        given = []
        for word in words:
            part = e.op(f"lshr <32 x i64> {word}, {splat('i64', str(shift))}")
            part = e.op(f"trunc <32 x i64> {part} to <32 x i32>")
            given.append(e.cast(part, "b32", "f32"))
        value = e.cast(_done(e, named, "f32", F32, given, compute), "f32", "b32")
        wide = e.op(f"zext <32 x i32> {value} to <32 x i64>")
        wide = e.op(f"shl <32 x i64> {wide}, {splat('i64', str(shift))}")
        whole = e.op(f"or <32 x i64> {whole}, {wide}")
    e.write(item.operands[0], "b64", whole)


# ---- forms ----


@form("add", r"(\.rn)?(?P<ftz>\.ftz)?(?P<sat>\.sat)?\.(?P<t>f32)", 3)
@form("sub", r"(\.rn)?(?P<ftz>\.ftz)?(?P<sat>\.sat)?\.(?P<t>f32)", 3)
@form("mul", r"(\.rn)?(?P<ftz>\.ftz)?(?P<sat>\.sat)?\.(?P<t>f32)", 3)
@form("add", r"(\.rn)?\.(?P<t>f64)", 3)
@form("sub", r"(\.rn)?\.(?P<t>f64)", 3)
@form("mul", r"(\.rn)?\.(?P<t>f64)", 3)
@form("add", r"(\.rn)?(?P<ftz>\.ftz)?(?P<sat>\.sat)?\.(?P<t>f16|f16x2)", 3)
@form("sub", r"(\.rn)?(?P<ftz>\.ftz)?(?P<sat>\.sat)?\.(?P<t>f16|f16x2)", 3)
@form("mul", r"(\.rn)?(?P<ftz>\.ftz)?(?P<sat>\.sat)?\.(?P<t>f16|f16x2)", 3)
@form("add", r"(\.rn)?\.(?P<t>bf16|bf16x2)", 3)
@form("sub", r"(\.rn)?\.(?P<t>bf16|bf16x2)", 3)
@form("mul", r"(\.rn)?\.(?P<t>bf16|bf16x2)", 3)
@form("add", r"(\.rn)?(?P<ftz>\.ftz)?\.(?P<t>f32x2)", 3)
@form("sub", r"(\.rn)?(?P<ftz>\.ftz)?\.(?P<t>f32x2)", 3)
@form("mul", r"(\.rn)?(?P<ftz>\.ftz)?\.(?P<t>f32x2)", 3)
@form("div", r"\.rn(?P<ftz>\.ftz)?\.(?P<t>f32)", 3)
@form("div", r"\.full(?P<ftz>\.ftz)?\.(?P<t>f32)", 3)
@form("div", r"\.rn\.(?P<t>f64)", 3)
def _binary(e: Emitter, item: Instruction, named: Named) -> None:
    def compute(e: Emitter, llvm: str, given: Sequence[str]) -> str:
        return e.op(f"f{item.opcode} {llvm} {given[0]}, {given[1]}")

    each_float(e, item, named, compute)


@form("fma", r"\.rn(?P<ftz>\.ftz)?(?P<sat>\.sat)?\.(?P<t>f32)", 4)
@form("mad", r"\.rn(?P<ftz>\.ftz)?(?P<sat>\.sat)?\.(?P<t>f32)", 4)
@form("fma", r"\.rn(?P<ftz>\.ftz)?\.(?P<t>f32x2)", 4)
@form("fma", r"\.rn\.(?P<t>f64)", 4)
@form("mad", r"\.rn\.(?P<t>f64)", 4)
def _fma(e: Emitter, item: Instruction, named: Named) -> None:
    def compute(e: Emitter, llvm: str, given: Sequence[str]) -> str:
        suffix = "v32f64" if llvm == F64 else "v32f32"
        arguments = ", ".join(f"{llvm} {each}" for each in given)
        return e.op(f"call {llvm} @llvm.fma.{suffix}({arguments})")

    each_float(e, item, named, compute)


@form("fma", r"\.rn(?P<ftz>\.ftz)?(?P<sat>\.sat)?\.(?P<t>f16|f16x2)", 4)
@form("fma", r"\.rn(?P<ftz>\.ftz)?(?P<relu>\.relu)\.(?P<t>f16|f16x2)", 4)
@form("fma", r"\.rn(?P<relu>\.relu)?\.(?P<t>bf16|bf16x2)", 4)
def _fma_half(e: Emitter, item: Instruction, named: Named) -> None:
    def compute(e: Emitter, llvm: str, given: Sequence[str]) -> str:
        # The product of two such numbers has 22 bits at most, so in float64 the sum alone is
        # inexact.
        a, b, c = (e.op(f"fpext {F32} {each} to {F64}") for each in given)
        value = to_odd(e, *exact_sum(e, e.op(f"fmul {F64} {a}, {b}"), c))
        return relu(e, value) if named.get("relu") else value

    each_float(e, item, named, compute)


def relu(e: Emitter, value: str) -> str:
    """0 for what is negative, -0 included; NaN stays."""
    # Unordered, so that it is true of NaN as well.
    kept = e.op(f"fcmp ugt {F32} {value}, zeroinitializer")
    return e.op(f"select <32 x i1> {kept}, {F32} {value}, {F32} zeroinitializer")


def exact_sum(e: Emitter, a: str, b: str) -> tuple[str, str]:
    """A sum of float64 and its error, which is exact (Knuth)."""
    total = e.op(f"fadd {F64} {a}, {b}")
    x = e.op(f"fsub {F64} {total}, {a}")
    y = e.op(f"fsub {F64} {total}, {x}")
    first = e.op(f"fsub {F64} {a}, {y}")
    return total, e.op(f"fadd {F64} {first}, {e.op(f'fsub {F64} {b}, {x}')}")


def to_odd(e: Emitter, value: str, error: str) -> str:
    """value + error as float32: where that is inexact, the neighbour whose last bit is 1.

    Rounded once more to fewer bits this is what rounding the exact number would be.
    """
    bits = e.op(f"bitcast {F64} {value} to <32 x i64>")
    some = e.op(f"fcmp one {F64} {error}, zeroinitializer")
    even = e.op(f"trunc <32 x i64> {bits} to <32 x i1>")
    even = e.op(f"xor <32 x i1> {even}, splat (i1 true)")
    up = e.op(f"fcmp ogt {F64} {error}, zeroinitializer")
    positive = e.op(f"fcmp ogt {F64} {value}, zeroinitializer")
    away = e.op(f"xor <32 x i1> {e.op(f'xor <32 x i1> {up}, {positive}')}, splat (i1 true)")
    value = _stepped(e, bits, e.op(f"and <32 x i1> {some}, {even}"), away, 64)
    rounded = e.op(f"fptrunc {F64} {value} to {F32}")
    back = e.op(f"fpext {F32} {rounded} to {F64}")
    inexact = e.op(f"fcmp one {F64} {back}, {value}")
    word = e.op(f"bitcast {F32} {rounded} to <32 x i32>")
    even = e.op(f"trunc <32 x i32> {word} to <32 x i1>")
    even = e.op(f"xor <32 x i1> {even}, splat (i1 true)")
    size, given = (e.op(f"call {F64} @llvm.fabs.v32f64({F64} {each})") for each in (back, value))
    away = e.op(f"fcmp olt {F64} {size}, {given}")
    return _stepped(e, word, e.op(f"and <32 x i1> {inexact}, {even}"), away, 32)


def _stepped(e: Emitter, bits: str, where: str, away: str, width: int) -> str:
    """The next float away from 0 or towards it, where it is wanted."""
    llvm, word = f"<32 x i{width}>", f"i{width}"
    step = e.op(f"select <32 x i1> {away}, {llvm} {splat(word, '1')}, {llvm} {splat(word, '-1')}")
    step = e.op(f"select <32 x i1> {where}, {llvm} {step}, {llvm} zeroinitializer")
    bits = e.op(f"add {llvm} {bits}, {step}")
    return e.op(f"bitcast {llvm} {bits} to {F64 if width == 64 else F32}")


@form("rcp", r"\.rn(?P<ftz>\.ftz)?\.(?P<t>f32)", 2)
@form("rcp", r"\.rn\.(?P<t>f64)", 2)
def _rcp(e: Emitter, item: Instruction, named: Named) -> None:
    def compute(e: Emitter, llvm: str, given: Sequence[str]) -> str:
        one = splat("double" if llvm == F64 else "float", "1.0")
        return e.op(f"fdiv {llvm} {one}, {given[0]}")

    each_float(e, item, named, compute)


@form("sqrt", r"\.rn(?P<ftz>\.ftz)?\.(?P<t>f32)", 2)
@form("sqrt", r"\.rn\.(?P<t>f64)", 2)
def _sqrt(e: Emitter, item: Instruction, named: Named) -> None:
    each_float(e, item, named, root)


def root(e: Emitter, llvm: str, given: Sequence[str]) -> str:
    """The square root, rounded once."""
    suffix = "v32f64" if llvm == F64 else "v32f32"
    return e.op(f"call {llvm} @llvm.sqrt.{suffix}({llvm} {given[0]})")


_XOR = r"(?P<xor>\.xorsign\.abs)?"


@form("min", r"(?P<ftz>\.ftz)?(?P<nan>\.NaN)?\.(?P<t>f32)", 3, 4)
@form("max", r"(?P<ftz>\.ftz)?(?P<nan>\.NaN)?\.(?P<t>f32)", 3, 4)
@form("min", r"(?P<ftz>\.ftz)?(?P<nan>\.NaN)?(?P<xor>\.xorsign\.abs)\.(?P<t>f32)", 3)
@form("min", r"(?P<ftz>\.ftz)?(?P<nan>\.NaN)?" + _XOR + r"\.(?P<t>f16|f16x2)", 3)
@form("max", r"(?P<ftz>\.ftz)?(?P<nan>\.NaN)?(?P<xor>\.xorsign\.abs)\.(?P<t>f32)", 3)
@form("max", r"(?P<ftz>\.ftz)?(?P<nan>\.NaN)?" + _XOR + r"\.(?P<t>f16|f16x2)", 3)
@form("min", r"(?P<nan>\.NaN)?" + _XOR + r"\.(?P<t>bf16|bf16x2)", 3)
@form("max", r"(?P<nan>\.NaN)?" + _XOR + r"\.(?P<t>bf16|bf16x2)", 3)
@form("min", r"\.(?P<t>f64)", 3)
@form("max", r"\.(?P<t>f64)", 3)
def _min(e: Emitter, item: Instruction, named: Named) -> None:
    """-0 is below 0. Of a number and a NaN it is the number, with .NaN the NaN.

    Of three operands it is that of the first two, and then of that and the third. With
    .xorsign.abs it is that of the absolute values, negative where one operand was.
    """

    def compute(e: Emitter, llvm: str, given: Sequence[str]) -> str:
        if not named.get("xor"):
            found = given[0]
            for each in given[1:]:
                found = _lesser(e, item.opcode, llvm, (found, each), bool(named.get("nan")))
            return found
        x, y = (e.op(f"bitcast {F32} {each} to <32 x i32>") for each in given)
        sign = e.op(f"and <32 x i32> {e.op(f'xor <32 x i32> {x}, {y}')}, splat (i32 -2147483648)")
        sizes = [e.op(f"call {F32} @llvm.fabs.v32f32({F32} {each})") for each in given]
        found = _lesser(e, item.opcode, llvm, sizes, bool(named.get("nan")))
        bits = e.op(f"bitcast {F32} {found} to <32 x i32>")
        return e.op(f"bitcast <32 x i32> {e.op(f'or <32 x i32> {bits}, {sign}')} to {F32}")

    each_float(e, item, named, compute)


def _lesser(e: Emitter, opcode: str, llvm: str, given: Sequence[str], nan: bool) -> str:
    """Without LLVM's own functions, which other versions of it write differently."""
    a, b = given
    word, kind = ("i64", "double") if llvm == F64 else ("i32", "float")
    x, y = (e.op(f"bitcast {llvm} {each} to <32 x {word}>") for each in given)
    join = "or" if opcode == "min" else "and"
    zeros = e.op(f"bitcast <32 x {word}> {e.op(f'{join} <32 x {word}> {x}, {y}')} to {llvm}")
    equal = e.op(f"fcmp oeq {llvm} {a}, {b}")
    first = e.op(f"fcmp o{'lt' if opcode == 'min' else 'gt'} {llvm} {a}, {b}")
    value = e.op(f"select <32 x i1> {first}, {llvm} {a}, {llvm} {b}")
    value = e.op(f"select <32 x i1> {equal}, {llvm} {zeros}, {llvm} {value}")
    none_a, none_b = (e.op(f"fcmp uno {llvm} {each}, {each}") for each in given)
    if nan:
        value = e.op(f"select <32 x i1> {none_b}, {llvm} {b}, {llvm} {value}")
        return e.op(f"select <32 x i1> {none_a}, {llvm} {a}, {llvm} {value}")
    both = e.op(f"and <32 x i1> {none_a}, {none_b}")
    value = e.op(f"select <32 x i1> {none_b}, {llvm} {a}, {llvm} {value}")
    value = e.op(f"select <32 x i1> {none_a}, {llvm} {b}, {llvm} {value}")
    return e.op(f"select <32 x i1> {both}, {llvm} {a}, {llvm} {value}")


# ---- bits ----


@form("neg", r"(?P<ftz>\.ftz)?\.(?P<t>f32)", 2)
@form("abs", r"(?P<ftz>\.ftz)?\.(?P<t>f32)", 2)
@form("neg", r"\.(?P<t>f64|bf16|bf16x2)", 2)
@form("abs", r"\.(?P<t>f64|bf16|bf16x2)", 2)
@form("neg", r"(?P<ftz>\.ftz)?\.(?P<t>f16|f16x2)", 2)
@form("abs", r"(?P<ftz>\.ftz)?\.(?P<t>f16|f16x2)", 2)
def _sign(e: Emitter, item: Instruction, named: Named) -> None:
    t = kind(named)
    bits = bits_of(t)
    value = e.read(item.operands[1], t)
    if named.get("ftz") and t == "f32":
        value = flushed(e, value)
    signs = 0x80008000 if t in PAIRS else 1 << bits - 1
    word = e.cast(value, t, f"b{bits}")
    if named.get("ftz") and t != "f32":
        word = _flushed_halves(e, word, bits)
    if item.opcode == "neg":
        word = e.op(f"xor <32 x i{bits}> {word}, {splat(f'i{bits}', str(signs))}")
    else:
        mask = (1 << bits) - 1 - signs
        word = e.op(f"and <32 x i{bits}> {word}, {splat(f'i{bits}', str(mask))}")
    e.write(item.operands[0], t, e.cast(word, f"b{bits}", t))


def _flushed_halves(e: Emitter, word: str, bits: int) -> str:
    """The bits of one or two float16 without subnormal numbers."""
    llvm, scalar = f"<32 x i{bits}>", f"i{bits}"
    for shift in range(0, bits, 16):
        exponent = e.op(f"and {llvm} {word}, {splat(scalar, str(0x7C00 << shift))}")
        small = e.op(f"icmp eq {llvm} {exponent}, zeroinitializer")
        kept = e.op(
            f"and {llvm} {word}, {splat(scalar, str(~(0x7FFF << shift) & (1 << bits) - 1))}"
        )
        word = e.op(f"select <32 x i1> {small}, {llvm} {kept}, {llvm} {word}")
    return word


@form("copysign", r"\.(?P<t>f32|f64)", 3)
def _copysign(e: Emitter, item: Instruction, named: Named) -> None:
    """The sign of the first operand, the rest of the second."""
    t = kind(named)
    bits = bits_of(t)
    llvm, word = f"<32 x i{bits}>", f"i{bits}"
    sign, rest = (e.cast(e.read(each, t), t, f"b{bits}") for each in item.operands[1:3])
    sign = e.op(f"and {llvm} {sign}, {splat(word, str(1 << bits - 1))}")
    rest = e.op(f"and {llvm} {rest}, {splat(word, str((1 << bits - 1) - 1))}")
    e.write(item.operands[0], t, e.cast(e.op(f"or {llvm} {sign}, {rest}"), f"b{bits}", t))


# The masks of LLVM's `llvm.is.fpclass`.
_CLASSES = {"finite": 0x1F8, "infinite": 0x204, "number": 0x3FC, "notanumber": 0x003,
            "normal": 0x108, "subnormal": 0x090}  # fmt: skip


@form("testp", r"\.(?P<what>finite|infinite|number|notanumber|normal|subnormal)\.(?P<t>f32|f64)", 2)
def _testp(e: Emitter, item: Instruction, named: Named) -> None:
    t = kind(named)
    llvm, suffix = (F64, "v32f64") if t == "f64" else (F32, "v32f32")
    value = e.read(item.operands[1], t)
    mask = _CLASSES[kind(named, "what")]
    found = e.op(f"call <32 x i1> @llvm.is.fpclass.{suffix}({llvm} {value}, i32 {mask})")
    e.write(item.operands[0], "pred", found)

"""Mathematical functions in the kernel IR itself, for every target alike.

`expand_maths` replaces each op that is no plain instruction (`EXPANSIONS`) by ops that are, so all
targets give the same result and none needs a library.  The expansions have no branches: loops over
them vectorise.  float16 and bfloat16 are computed in float32 and rounded once more.

* `exp`: with z the integer nearest to x / ln 2, e**x is 2**z * e**(x - z ln 2).  The reduction is
  Cody and Waite's, with ln 2 in two parts; e**r on |r| <= ln 2 / 2 is, with the coefficients of
  S. Moshier's Cephes library (`expf`, `exp`), a polynomial for float32 and a rational function for
  float64.  At most 2 ulp from the true value, subnormal results included; too large gives inf, too
  small gives 0, NaN gives NaN.
* `rsqrt`: 1 / sqrt(x), two correctly rounded operations; at most 1 ulp in float32 and float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.walk import Work, drive
from ferrule.specs import DType, Float32, Float64, Int32, Int64


def expand_maths(program: ops.Program) -> ops.Program:
    """The program without the ops in `EXPANSIONS`.  All values keep their identity."""
    return replace(
        program,
        kernels=tuple(_expand(kernel) for kernel in program.kernels),
        host=_expand(program.host),
    )


def _expand(function: ops.Function) -> ops.Function:
    done: list[ops.Region] = []
    drive(_region(Builder(), function.body, done))
    return replace(function, body=done.pop())


def _region(b: Builder, region: ops.Region, done: list[ops.Region]) -> Work:
    """Puts the expanded region at the end of `done`."""
    with b.region() as opened:
        for op in region.ops:
            match op:
                case ops.If() | ops.For() | ops.While() | ops.Parallel():
                    yield _structured(b, op, done)
                case ops.Unary(result, name, operand) if name in EXPANSIONS:
                    _named(opened.ops, result, EXPANSIONS[name], b, operand)
                case _:
                    b.append(op)
    done.append(opened.freeze(*region.yields))


def _structured(b: Builder, op: ops.RegionOp, done: list[ops.Region]) -> Work:
    match op:
        case ops.If():
            yield _region(b, op.then, done)
            yield _region(b, op.otherwise, done)
            otherwise, then = done.pop(), done.pop()
            b.append(replace(op, then=then, otherwise=otherwise))
        case ops.While():
            yield _region(b, op.test, done)
            yield _region(b, op.body, done)
            body, test = done.pop(), done.pop()
            b.append(replace(op, test=test, body=body))
        case ops.For() | ops.Parallel():
            yield _region(b, op.body, done)
            b.append(replace(op, body=done.pop()))


_Expansion = Callable[[Builder, ops.Value], ops.Value]


def _named(
    made: list[ops.Op], result: ops.Value, expand: _Expansion, b: Builder, operand: ops.Value
) -> None:
    """Expands an op so that the last of the new ops defines its result."""
    dtype = result.type
    assert isinstance(dtype, DType)
    if dtype.bits < 32:
        b.cast(dtype, expand(b, b.cast(Float32, operand)))
    else:
        expand(b, operand)
    last = made.pop()
    assert isinstance(last, (ops.Binary, ops.Cast)), "an expansion ends in an operator or a cast"
    made.append(replace(last, result=result))


# ---- rsqrt ----


def _rsqrt(b: Builder, x: ops.Value) -> ops.Value:
    root = b.unary("sqrt", x)
    return b.binary("div", b.constant(_dtype(x), 1.0), root)


def _dtype(value: ops.Value) -> DType:
    assert isinstance(value.type, DType)
    return value.type


# ---- exp ----


@dataclass(frozen=True, slots=True)
class _ExpForm:
    """The numbers of one float format."""

    bits: DType
    mantissa: int
    bias: int
    low: float
    """e**low is less than half of the smallest number."""
    high: float
    """e**high is more than the largest number."""
    ln2: tuple[float, float]
    """ln 2 in two parts; the first has so few bits that its products with z are exact."""
    reduced: Callable[[_Maths, ops.Value], ops.Value]


@dataclass(frozen=True, slots=True)
class _Maths:
    """Writes formulas of one float dtype."""

    b: Builder
    dtype: DType

    def number(self, value: float) -> ops.Value:
        return self.b.constant(self.dtype, value)

    def add(self, x: ops.Value, y: ops.Value | float) -> ops.Value:
        return self.b.binary("add", x, y if isinstance(y, ops.Value) else self.number(y))

    def sub(self, x: ops.Value, y: ops.Value | float) -> ops.Value:
        return self.b.binary("sub", x, y if isinstance(y, ops.Value) else self.number(y))

    def mul(self, x: ops.Value, y: ops.Value | float) -> ops.Value:
        return self.b.binary("mul", x, y if isinstance(y, ops.Value) else self.number(y))

    def clamp(self, x: ops.Value, low: float, high: float) -> ops.Value:
        """The value between two bounds; NaN stays NaN, for it compares false."""
        least, most = self.number(low), self.number(high)
        x = self.b.select(self.b.compare("lt", x, least), least, x)
        return self.b.select(self.b.compare("gt", x, most), most, x)

    def polynomial(self, x: ops.Value, coefficients: Sequence[float]) -> ops.Value:
        """The polynomial with these coefficients, the highest power first."""
        first, *rest = coefficients
        result = self.number(first)
        for coefficient in rest:
            result = self.add(self.mul(result, x), coefficient)
        return result


def _exp(b: Builder, x: ops.Value) -> ops.Value:
    form, m = _EXP_FORMS[_dtype(x)], _Maths(b, _dtype(x))
    # Adding this rounds to an integer, which then stands in the last bits of the sum.
    magic = 1.5 * 2.0**form.mantissa
    x = m.clamp(x, form.low, form.high)
    z = m.sub(m.add(m.mul(x, _LOG2_E), magic), magic)
    r = m.sub(m.sub(x, m.mul(z, form.ln2[0])), m.mul(z, form.ln2[1]))
    return _scaled(m, form, form.reduced(m, r), z)


def _scaled(m: _Maths, form: _ExpForm, power: ops.Value, z: ops.Value) -> ops.Value:
    """power * 2**z, in two steps: the first is exact, so that only the last one rounds."""
    apart = form.bias // 4
    negative = m.b.compare("lt", z, m.number(0.0))
    # The exponent z + bias in the last bits of the sum, nearer to 0 by `apart`.
    offset = 1.5 * 2.0**form.mantissa + form.bias
    exponent = m.add(z, m.b.select(negative, m.number(offset + apart), m.number(offset - apart)))
    bits = m.b.bitcast(form.bits, exponent)
    shifted = m.b.binary("shl", bits, m.b.constant(form.bits, form.mantissa))
    rest = m.b.select(negative, m.number(2.0**-apart), m.number(2.0**apart))
    return m.mul(m.mul(power, m.b.bitcast(m.dtype, shifted)), rest)


def _exp_reduced32(m: _Maths, r: ops.Value) -> ops.Value:
    """e**r = 1 + r + r**2 P(r)."""
    square = m.mul(r, r)
    return m.add(m.add(m.mul(m.polynomial(r, _EXPF_P), square), r), 1.0)


def _exp_reduced64(m: _Maths, r: ops.Value) -> ops.Value:
    """e**r = 1 + 2 r P(r**2) / (Q(r**2) - r P(r**2))."""
    square = m.mul(r, r)
    p = m.mul(r, m.polynomial(square, _EXP_P))
    q = m.polynomial(square, _EXP_Q)
    return m.add(m.mul(m.b.binary("div", p, m.sub(q, p)), 2.0), 1.0)


_LOG2_E: Final = 1.4426950408889634073599
_EXPF_P: Final = (
    1.9875691500e-4,
    1.3981999507e-3,
    8.3334519073e-3,
    4.1665795894e-2,
    1.6666665459e-1,
    5.0000001201e-1,
)
_EXP_P: Final = (1.26177193074810590878e-4, 3.02994407707441961300e-2, 9.99999999999999999910e-1)
_EXP_Q: Final = (
    3.00198505138664455042e-6,
    2.52448340349684104192e-3,
    2.27265548208155028766e-1,
    2.00000000000000000009e0,
)
_EXP_FORMS: Final[dict[DType, _ExpForm]] = {
    Float32: _ExpForm(Int32, 23, 127, -104.0, 89.0, (0.693359375, -2.12194440e-4), _exp_reduced32),
    Float64: _ExpForm(
        Int64,
        52,
        1023,
        -746.0,
        710.0,
        (6.93145751953125e-1, 1.42860682030941723212e-6),
        _exp_reduced64,
    ),
}

EXPANSIONS: Final[dict[ops.UnaryOp, _Expansion]] = {"exp": _exp, "rsqrt": _rsqrt}
"""The ops that every target gets expanded."""

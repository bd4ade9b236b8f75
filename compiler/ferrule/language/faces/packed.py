"""Arithmetic on pairs of floats, under CuTe DSL's names, written in the kernel language itself.

A pair is a tuple of two numbers; each function computes both, rounded once, to nearest.  Other
roundings are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ferrule import specs
from ferrule.language.faces import maths
from ferrule.language.faces.base import static_assert

# Numbers of the call have operators, which Python's numbers of these dtypes lack.
BFloat16: Any = specs.BFloat16
Float16: Any = specs.Float16
Float32: Any = specs.Float32


def _pair(dtype: Any, op: Callable[..., Any], pairs: Any, rnd: Any) -> Any:
    static_assert(rnd is None or rnd == "rn", "only the rounding to nearest, rnd='rn'")
    rows = [tuple([dtype(pair[i]) for pair in pairs]) for i in (0, 1)]
    return tuple([dtype(op(*row)) for row in rows])


def _sum(a: Any, b: Any) -> Any:
    return a + b


def _difference(a: Any, b: Any) -> Any:
    return a - b


def _product(a: Any, b: Any) -> Any:
    return a * b


def add_packed_f32x2(src_a: Any, src_b: Any, *, rnd: Any = None) -> Any:
    """The sums of two pairs of Float32."""
    return _pair(Float32, _sum, (src_a, src_b), rnd)


def sub_packed_f32x2(src_a: Any, src_b: Any, *, rnd: Any = None) -> Any:
    """The differences of two pairs of Float32."""
    return _pair(Float32, _difference, (src_a, src_b), rnd)


def mul_packed_f32x2(src_a: Any, src_b: Any, *, rnd: Any = None) -> Any:
    """The products of two pairs of Float32."""
    return _pair(Float32, _product, (src_a, src_b), rnd)


def fma_packed_f32x2(src_a: Any, src_b: Any, src_c: Any, *, rnd: Any = None) -> Any:
    """`a * b + c` of pairs of Float32, each rounded once."""
    return _pair(Float32, maths.fma, (src_a, src_b, src_c), rnd)


def add_packed_f16x2(a: Any, b: Any, *, rnd: Any = None) -> Any:
    """The sums of two pairs of Float16."""
    return _pair(Float16, _sum, (a, b), rnd)


def sub_packed_f16x2(a: Any, b: Any, *, rnd: Any = None) -> Any:
    """The differences of two pairs of Float16."""
    return _pair(Float16, _difference, (a, b), rnd)


def fma_packed_f16x2(a: Any, b: Any, c: Any, *, rnd: Any = "rn") -> Any:
    """`a * b + c` of pairs of Float16, each rounded once."""
    return _pair(Float16, maths.fma, (a, b, c), rnd)


def exp2_packed_f16x2(a: Any) -> Any:
    """2 to the power of a pair of Float16."""
    return _pair(Float16, maths.exp2, (a,), None)


def add_packed_bf16x2(a: Any, b: Any, *, rnd: Any = None) -> Any:
    """The sums of two pairs of BFloat16."""
    return _pair(BFloat16, _sum, (a, b), rnd)


def sub_packed_bf16x2(a: Any, b: Any, *, rnd: Any = None) -> Any:
    """The differences of two pairs of BFloat16."""
    return _pair(BFloat16, _difference, (a, b), rnd)


def fma_packed_bf16x2(a: Any, b: Any, c: Any, *, rnd: Any = "rn") -> Any:
    """`a * b + c` of pairs of BFloat16, each rounded once."""
    return _pair(BFloat16, maths.fma, (a, b, c), rnd)


def exp2_packed_bf16x2(a: Any) -> Any:
    """2 to the power of a pair of BFloat16."""
    return _pair(BFloat16, maths.exp2, (a,), None)


def _mixed(narrow: Any, op: Callable[..., Any], first: Any, rest: Any, rnd: Any) -> Any:
    """`op` in Float32 of a pair of narrow floats and pairs of Float32."""
    static_assert(rnd is None or rnd == "rn", "only the rounding to nearest, rnd='rn'")
    return tuple([op(Float32(narrow(first[i])), *[Float32(x[i]) for x in rest]) for i in (0, 1)])


def add_packed_f32x2_f16x2_f32x2(src_a: Any, src_b: Any, *, rnd: Any = "rn") -> Any:
    """The sums in Float32 of a pair of Float16 and a pair of Float32."""
    return _mixed(Float16, _sum, src_a, (src_b,), rnd)


def add_packed_f32x2_bf16x2_f32x2(src_a: Any, src_b: Any, *, rnd: Any = "rn") -> Any:
    """The sums in Float32 of a pair of BFloat16 and a pair of Float32."""
    return _mixed(BFloat16, _sum, src_a, (src_b,), rnd)


def sub_packed_f32x2_f16x2_f32x2(src_a: Any, src_b: Any, *, rnd: Any = "rn") -> Any:
    """The differences in Float32 of a pair of Float16 and a pair of Float32."""
    return _mixed(Float16, _difference, src_a, (src_b,), rnd)


def sub_packed_f32x2_bf16x2_f32x2(src_a: Any, src_b: Any, *, rnd: Any = "rn") -> Any:
    """The differences in Float32 of a pair of BFloat16 and a pair of Float32."""
    return _mixed(BFloat16, _difference, src_a, (src_b,), rnd)


def fma_packed_f32x2_f16x2_f32x2_f32x2(
    src_a: Any, src_b: Any, src_c: Any, *, rnd: Any = "rn"
) -> Any:
    """`a * b + c` in Float32 of a pair of Float16 and two pairs of Float32, each rounded once."""
    return _mixed(Float16, maths.fma, src_a, (src_b, src_c), rnd)


def fma_packed_f32x2_bf16x2_f32x2_f32x2(
    src_a: Any, src_b: Any, src_c: Any, *, rnd: Any = "rn"
) -> Any:
    """`a * b + c` in Float32 of a pair of BFloat16 and two pairs of Float32, each rounded once."""
    return _mixed(BFloat16, maths.fma, src_a, (src_b, src_c), rnd)


def _narrowed(narrow: Any, op: Callable[..., Any], first: Any, second: Any) -> Any:
    """`op` of two pairs of Float32, rounded to Float32 and then to a pair of narrow floats."""
    return tuple([narrow(each) for each in _pair(Float32, op, (first, second), None)])


def add_packed_f16x2_f32x2_f32x2(src_a: Any, src_b: Any) -> Any:
    """The sums of two pairs of Float32, rounded to Float32 and then to Float16."""
    return _narrowed(Float16, _sum, src_a, src_b)


def add_packed_bf16x2_f32x2_f32x2(src_a: Any, src_b: Any) -> Any:
    """The sums of two pairs of Float32, rounded to Float32 and then to BFloat16."""
    return _narrowed(BFloat16, _sum, src_a, src_b)


def sub_packed_f16x2_f32x2_f32x2(src_a: Any, src_b: Any) -> Any:
    """The differences of two pairs of Float32, rounded to Float32 and then to Float16."""
    return _narrowed(Float16, _difference, src_a, src_b)


def sub_packed_bf16x2_f32x2_f32x2(src_a: Any, src_b: Any) -> Any:
    """The differences of two pairs of Float32, rounded to Float32 and then to BFloat16."""
    return _narrowed(BFloat16, _difference, src_a, src_b)


def fma_f16(a: Any, b: Any, c: Any) -> Any:
    """`a * b + c` of Float16, rounded once."""
    return maths.fma(Float16(a), Float16(b), Float16(c))


def fma_bf16(a: Any, b: Any, c: Any) -> Any:
    """`a * b + c` of BFloat16, rounded once."""
    return maths.fma(BFloat16(a), BFloat16(b), BFloat16(c))

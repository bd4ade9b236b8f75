"""What `fast` means on an NVIDIA GPU: the approximations that PTX has, for float32.

They are the same as in `codegen.cuda.approximate`, which names their source.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Final

from ferrule.language.mlir import halves
from ferrule.language.mlir.text import Text
from ferrule.specs import BFloat16, DType, Float16

_Emit = Callable[..., str]


def emit(t: Text, op: str, dtype: DType, operands: Sequence[str]) -> str:
    """Emits an op that `codegen.cuda.approximate.keeps`; a float of 2 bytes is computed in
    float32."""
    if dtype not in (Float16, BFloat16):
        return _FAST[op](t, *operands)
    wide = [halves.widen(t, dtype, operand, native=True) for operand in operands]
    return halves.narrow(t, dtype, _FAST[op](t, *wide), native=True)


def _ptx(name: str) -> _Emit:
    """One instruction with one operand."""
    asm = f'llvm.inline_asm "{name} $0, $1;", "=f,f"'
    return lambda t, x: t.op(f"{asm} {x} : (f32) -> f32", "f32")


_EX2, _LG2, _RCP = (_ptx(f"{name}.approx.f32") for name in ("ex2", "lg2", "rcp"))
_SIN, _COS = (_ptx(f"{name}.approx.f32") for name in ("sin", "cos"))


def _times(t: Text, x: str, factor: float) -> str:
    return t.arith("mulf", x, t.float32(factor))


def _exp(t: Text, x: str) -> str:
    return _EX2(t, _times(t, x, math.log2(math.e)))


def _tanh(t: Text, x: str) -> str:
    """1 - 2 / (exp(2x) + 1)."""
    one = t.float32(1.0)
    grown = t.arith("addf", _EX2(t, _times(t, x, 2 * math.log2(math.e))), one)
    return t.arith("subf", one, _times(t, _RCP(t, grown), 2.0))


def _sigmoid(t: Text, x: str) -> str:
    return _RCP(t, t.arith("addf", t.float32(1.0), _exp(t, t.arith("negf", x))))


def _flagged(name: str, flags: str) -> _Emit:
    """An operator with fast-math flags: it may be less precise, or be fused with others."""

    def emitted(t: Text, x: str, y: str) -> str:
        kind = t.types[x]
        return t.op(f"arith.{name} {x}, {y} fastmath<{flags}> : {kind}", kind)

    return emitted


_FAST: Final[MappingProxyType[str, _Emit]] = MappingProxyType(
    {
        "exp": _exp,
        "exp2": _EX2,
        "log": lambda t, x: _times(t, _LG2(t, x), math.log(2)),
        "log2": _LG2,
        "log10": lambda t, x: _times(t, _LG2(t, x), math.log10(2)),
        "sin": _SIN,
        "cos": _COS,
        "tan": lambda t, x: t.arith("mulf", _SIN(t, x), _RCP(t, _COS(t, x))),
        "sqrt": _ptx("sqrt.approx.f32"),
        "rsqrt": _ptx("rsqrt.approx.f32"),
        "tanh": _tanh,
        "sigmoid": _sigmoid,
        "pow": lambda t, x, y: _EX2(t, t.arith("mulf", y, _LG2(t, x))),
        "div": _flagged("divf", "afn"),
    }
)
"""The function that emits each op, by name; its operands are float32."""

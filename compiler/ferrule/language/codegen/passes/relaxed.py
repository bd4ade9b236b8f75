"""The meaning of `fast_math`: floats of kernels may be computed less precisely everywhere.

The functions are those of `fast=True`; a float32 division is PTX's `div.approx`, with an error of
at most 2 ulp, and 0 for a divisor above 2**126 ("Floating-Point Instructions").  Products and sums
are contracted by `contract` before, as the option `fmad` says.  ferrule's own maths functions are
computed as before.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.rewrite import rewrite
from ferrule.specs import BFloat16, Float16, Float32, Float64

_FLOATS = (Float16, BFloat16, Float32, Float64)


def relaxed(program: ops.Program) -> ops.Program:
    """The program with all ops in its kernels marked that may be fast."""
    kernels = tuple(replace(k, body=rewrite(k.body, _marked)) for k in program.kernels)
    return replace(program, kernels=kernels)


def _marked(b: Builder, op: ops.Op) -> None:
    match op:
        case ops.Unary(result) | ops.Binary(result) if result.type in _FLOATS:
            b.append(replace(op, fast=True))
        case _:
            b.append(op)

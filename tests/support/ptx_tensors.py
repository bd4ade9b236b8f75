"""Instructions of a whole warp on registers given as arrays, and the floats of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from ptx_programs import HEADER, launch, machine

Array = npt.NDArray[Any]

DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "tf32": np.float32,
    "f64": np.float64, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
    "s8": np.int8, "u8": np.uint8, "s32": np.int32,
}  # fmt: skip


def warp(text: str, operands: Sequence[Array], results: Array, arch: str = "sm_90a") -> Array:
    """Execute an instruction of one warp; `{0}`, `{1}`, ... stand for operands, `{d}` for results.

    An operand is an array [registers, 32] of u32 or u64, and so are the results.
    """
    lines = ["mov.u32 %r0, %tid.x;"]
    declared = [".reg .b32 %r<2>;", ".reg .b64 %rd<4>;"]
    names = []
    for number, each in enumerate((*operands, results)):
        bits = 8 * each.dtype.itemsize
        declared.append(f".reg .b{bits} %o{number}_<{len(each)}>;")
        names.append([f"%o{number}_{i}" for i in range(len(each))])
        lines += [f"ld.param.u64 %rd0, [a{number}];", f"mul.wide.u32 %rd1, %r0, {bits // 8};"]
        lines.append("add.u64 %rd0, %rd0, %rd1;")
        if number < len(operands):
            lines += [
                f"ld.global.b{bits} {name}, [%rd0+{i * 4 * bits}];"
                for i, name in enumerate(names[-1])
            ]
    groups = ["{" + ", ".join(each) + "}" if len(each) > 1 else each[0] for each in names]
    lines.append(text.format(*groups[:-1], d=groups[-1]))
    bits = 8 * results.dtype.itemsize
    lines += [f"st.global.b{bits} [%rd0+{i * 4 * bits}], {n};" for i, n in enumerate(names[-1])]
    parameters = ", ".join(f".param .u64 a{i}" for i in range(len(names)))
    body = "\n".join([*declared, *lines, "ret;"])
    ptx = f"{HEADER}.visible .entry k({parameters})\n{{\n{body}\n}}\n"
    return launch(ptx, [*operands, results], on=machine(arch=arch))[-1]


def exact(values: Array) -> Array:
    """Numbers as fractions."""
    return np.array([Fraction(float(each)) for each in values.ravel()], object).reshape(
        values.shape
    )


def rounded(value: Fraction, bits: int, least: int) -> Fraction:
    """The nearest number with so many bits of significand, to even, of any size; exact."""
    if not value:
        return value
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, least) - bits + 1)
    return round(value / unit) * unit


def summed(a: Array, b: Array, c: Array, bits: int = 24, least: int = -126) -> Array:
    """c + a b, each term added exactly and rounded, in the order of the terms."""
    left, right, total = exact(a), exact(b), exact(c)
    for i in range(total.shape[0]):
        for j in range(total.shape[1]):
            value = total[i, j]
            for k in range(left.shape[1]):
                value = rounded(value + left[i, k] * right[k, j], bits, least)
            total[i, j] = value
    return total

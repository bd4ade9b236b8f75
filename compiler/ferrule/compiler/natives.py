"""Functions of a body for which some CPUs have an instruction.

The text of a body is the same for every CPU. It calls each of `NATIVES` by name and defines it in
portable code; `with_instructions` replaces the calls by instructions if the target has them, with
the same results.
"""

from __future__ import annotations

from typing import Final

from ferrule.compiler.targets import HostTarget

NATIVES: Final = {"ferrule_fma_f32": "llvm.fma.f32", "ferrule_fma_f64": "llvm.fma.f64"}
"""The functions by name, and the equivalent LLVM intrinsic of each."""

_TYPES: Final = {"f32": "float", "f64": "double"}
_WITH_FMA: Final = ("x86-64-v3", "x86-64-v4")


def with_instructions(text: str, target: HostTarget) -> str:
    """The text of a body for this target."""
    if not has_fma(target):
        return text
    for name, intrinsic in NATIVES.items():
        kind = _TYPES[name[-3:]]
        call = f'call {kind} @"{name}"('
        if call in text:
            text = text.replace(call, f'call {kind} @"{intrinsic}"(')
            declaration = f'declare {kind} @"{intrinsic}"({kind}, {kind}, {kind})'
            text += "" if declaration in text else f"\n{declaration}\n"
    return text


def has_fma(target: HostTarget) -> bool:
    """Whether every CPU of this target has a fused multiply-add."""
    if target.triple.startswith(("aarch64", "arm64")):
        return True
    return target.cpu in _WITH_FMA or "+fma" in target.features.split(",")

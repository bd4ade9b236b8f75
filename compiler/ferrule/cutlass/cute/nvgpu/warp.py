"""`cutlass.cute.nvgpu.warp` of CuTe DSL's programs: what a warp multiplies and copies."""

from __future__ import annotations

from ferrule.cutlass import names

__getattr__ = names.resolver("cutlass.cute.nvgpu.warp")


def __dir__() -> list[str]:
    return names.names_of("cutlass.cute.nvgpu.warp")

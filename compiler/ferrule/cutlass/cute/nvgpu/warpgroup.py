"""`cutlass.cute.nvgpu.warpgroup` of CuTe DSL's programs: what a warpgroup multiplies."""

from __future__ import annotations

from ferrule.cutlass import names

__getattr__ = names.resolver("cutlass.cute.nvgpu.warpgroup")


def __dir__() -> list[str]:
    return names.names_of("cutlass.cute.nvgpu.warpgroup")

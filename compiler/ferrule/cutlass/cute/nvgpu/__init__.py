"""`cutlass.cute.nvgpu` of CuTe DSL's programs: atoms of copies and matrix multiplications."""

from __future__ import annotations

from ferrule.cutlass import names

__getattr__ = names.resolver("cutlass.cute.nvgpu")


def __dir__() -> list[str]:
    return names.names_of("cutlass.cute.nvgpu")

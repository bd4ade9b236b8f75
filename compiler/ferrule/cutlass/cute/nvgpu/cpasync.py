"""`cutlass.cute.nvgpu.cpasync` of CuTe DSL's programs: asynchronous copies."""

from __future__ import annotations

from ferrule.cutlass import names

__getattr__ = names.resolver("cutlass.cute.nvgpu.cpasync")


def __dir__() -> list[str]:
    return names.names_of("cutlass.cute.nvgpu.cpasync")

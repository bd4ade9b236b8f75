"""`cutlass.cute` of CuTe DSL's programs: layouts, tensors, `jit`, `kernel` and `compile`."""

from __future__ import annotations

from ferrule.cutlass import names

__getattr__ = names.resolver("cutlass.cute")


def __dir__() -> list[str]:
    return names.names_of("cutlass.cute")

"""`cutlass.cute.runtime` of CuTe DSL's programs: fake tensors, tensors, modules."""

from __future__ import annotations

from ferrule.cutlass import names

__getattr__ = names.resolver("cutlass.cute.runtime")


def __dir__() -> list[str]:
    return names.names_of("cutlass.cute.runtime")

"""`cutlass.cute.typing` of CuTe DSL's programs: names for annotations."""

from __future__ import annotations

from ferrule.cutlass import names

__getattr__ = names.resolver("cutlass.cute.typing")


def __dir__() -> list[str]:
    return names.names_of("cutlass.cute.typing")

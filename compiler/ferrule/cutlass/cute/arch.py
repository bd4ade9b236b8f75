"""`cutlass.cute.arch` of CuTe DSL's programs: threads, barriers and instructions: `fe.arch`."""

from __future__ import annotations

from ferrule.cutlass import names

__getattr__ = names.resolver("cutlass.cute.arch")


def __dir__() -> list[str]:
    return names.names_of("cutlass.cute.arch")

"""`cutlass.cute.math` of CuTe DSL's programs: functions of numbers: `fe.math`."""

from __future__ import annotations

from ferrule.cutlass import names

__getattr__ = names.resolver("cutlass.cute.math")


def __dir__() -> list[str]:
    return names.names_of("cutlass.cute.math")

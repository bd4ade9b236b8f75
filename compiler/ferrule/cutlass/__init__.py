"""`cutlass` of CuTe DSL's programs: dtypes, ranges, and what programs write everywhere."""

from __future__ import annotations

from ferrule.cutlass import names

__getattr__ = names.resolver("cutlass")


def __dir__() -> list[str]:
    return names.names_of("cutlass")

"""`cutlass` of CuTe DSL's programs: dtypes, ranges, and what programs write everywhere."""

from __future__ import annotations

import builtins

from ferrule.cutlass import names

__getattr__ = names.resolver("cutlass")


def __dir__() -> list[str]:
    return names.names_of("cutlass")


# Of numbers, which `fe.max` and `fe.min` of whole tensors are not for.
max, min = builtins.max, builtins.min

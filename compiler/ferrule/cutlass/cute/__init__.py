"""`cutlass.cute` of CuTe DSL's programs: layouts, tensors, `jit`, `kernel` and `compile`."""

from __future__ import annotations

from functools import partial

from ferrule.cutlass import names
from ferrule.language.decorators import jit as _jit

jit = partial(_jit, dynamic_layout=True, promotion="cute")
"""`ferrule.jit`, where tensors that are arguments or examples stand for those of other sizes, and
results of arithmetic have CuTe DSL's dtypes."""

__getattr__ = names.resolver("cutlass.cute")


def __dir__() -> list[str]:
    return names.names_of("cutlass.cute")

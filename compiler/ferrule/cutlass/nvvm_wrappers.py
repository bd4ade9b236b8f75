"""`cutlass.cute.arch.nvvm_wrappers` of CuTe DSL's programs: names of `cutlass.cute.arch`."""

from __future__ import annotations

from typing import Final

from ferrule.cutlass import names
from ferrule.specs import Uint32

FULL_MASK: Final = Uint32(0xFFFFFFFF)
"""All lanes, of a dtype: `Int32(FULL_MASK)` is the same bits."""

__getattr__ = names.resolver("cutlass.cute.arch.nvvm_wrappers")

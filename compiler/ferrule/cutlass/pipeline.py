"""`cutlass.pipeline` of CuTe DSL's programs: barriers between groups of threads."""

from __future__ import annotations

from ferrule.cutlass import names

__getattr__ = names.resolver("cutlass.pipeline")

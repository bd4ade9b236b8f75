"""Lowerings of the kernel IR.  Each takes a program that was verified and has no maths left.

`cpu` makes loops of launches; `cuda` makes PTX of kernels, in `device`, and calls of the driver of
launches.  `functions` lowers the ops, for both; `host` the function around the launches.
"""

from __future__ import annotations

from ferrule.language.codegen.cpu import lower_cpu
from ferrule.language.codegen.errors import CodegenError

__all__ = ["CodegenError", "lower_cpu"]

"""Lowerings of the kernel IR.  Each takes a verified program whose maths is expanded.

* `passes`: programs made simpler for a target; `facts`: analyses before a program runs.  Neither
  emits anything.
* `values`: scalars in LLVM, and operators on them; `functions`: every op of a function's body.
* `host`: the function around the launches, with its calls and the objects that it owns, for every
  target.
* `cpu` makes loops of launches, in `cpu.cooperate` for kernels whose threads wait for each other;
  `cuda` makes PTX of kernels, and driver calls of launches.  `target` is the entry point of each.
"""

from __future__ import annotations

from ferrule.language.codegen.cpu.target import lower_cpu
from ferrule.language.codegen.errors import CodegenError

__all__ = ["CodegenError", "lower_cpu"]

"""Lowerings of the kernel IR.  Each takes a program that was verified and has no maths left.

* `passes`: programs made simpler for a target; `facts`: what is known of them before they run.
  Neither emits anything.
* `values`: scalars in LLVM, and operators on them; `functions`: every op of a function's body.
* `host`: the function around the launches, with what it calls and owns, for every target.
* `cpu` makes loops of launches, in `cpu.cooperate` of kernels whose threads wait for each other;
  `cuda` makes PTX of kernels, and calls of the driver of launches.  `target` is the way into each.
"""

from __future__ import annotations

from ferrule.language.codegen.cpu.target import lower_cpu
from ferrule.language.codegen.errors import CodegenError

__all__ = ["CodegenError", "lower_cpu"]

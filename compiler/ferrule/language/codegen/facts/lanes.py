"""Whether a thread of a kernel reads or writes so much at once that it is vectors of its own.

LLVM makes one lane of a vector of each thread.  Where every thread has a part of up to eight
neighbours, it reads whole vectors all the same and sorts them; of larger parts it gathers single
elements, which is several times slower than a thread that works with vectors alone.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from ferrule.language.ir import ops
from ferrule.language.ir.walk import all_ops

MOST: Final = 8
"""Neighbours that LLVM sorts (its `max-interleave-group-factor`)."""


def has_wide_parts(kernel: ops.Function) -> bool:
    """Whether a part of a tensor has more elements than LLVM sorts, all of which a thread uses."""
    constants: set[ops.Value] = set()
    parts: set[ops.Value] = set()
    uses: Counter[ops.Value] = Counter()
    for op in all_ops(kernel.body):
        match op:
            case ops.Constant():
                constants.add(op.result)
            case ops.View(result, tensor, indices) if not tensor.tensor.is_own:
                pairs = zip(indices, tensor.tensor.strides, strict=True) if indices else ()
                steps = [stride for index, stride in pairs if index not in constants]
                if all(not isinstance(step, int) or abs(step) >= MOST for step in steps):
                    parts.add(result)
            case ops.Load(_, tensor, indices) | ops.Store(tensor, indices):
                if tensor in parts and constants.issuperset(indices):
                    uses[tensor] += 1
    return any(count > MOST for count in uses.values())

"""Whether a thread of a kernel accesses so many neighbours that it has vectors of its own.

LLVM makes each thread one lane of a vector.  If every thread accesses up to eight neighbours, LLVM
loads whole vectors and permutes them; for more neighbours it gathers single elements, which is
several times slower than a thread with vectors of its own.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from ferrule.language.ir import ops

MOST: Final = 8
"""The neighbours that LLVM permutes, or the elements of a step of which it reads all (its
`max-interleave-group-factor`)."""


def has_wide_parts(kernel: ops.Function) -> bool:
    """Whether a thread uses all elements of a part of a tensor with more elements than LLVM
    permutes."""
    constants: set[ops.Value] = set()
    parts: set[ops.Value] = set()
    uses: Counter[ops.Value] = Counter()
    for op in kernel.facts.ops:
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

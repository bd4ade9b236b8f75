"""Whether two tensors of a call share memory, for kernels that were compiled as if none did."""

from __future__ import annotations

from llvmlite import ir

from ferrule.compiler.artefacts import Fault, literal
from ferrule.compiler.conventions.base import Call
from ferrule.runtime.llvm.layouts import I64
from ferrule.specs import Dim, Tensor, equal, maximum, minimum
from ferrule.specs.expr import make


def require_apart(call: Call, left: Tensor, right: Tensor, hint: str) -> None:
    """End a call whose tensors have a byte in common, as far as their ranges of memory say.

    It is a ValueError with this hint.
    """
    e = call.emitter
    (low, high), (other_low, other_high) = (_range(call, each) for each in (left, right))
    meet = e.binary("and", e.icmp("ult", low, other_high), e.icmp("ult", other_low, high))
    filled = [e.not_(call.condition(equal(each.numel, 0))) for each in (left, right)]
    message = (
        f"{literal(left.name)} and {literal(right.name)} overlap in memory, expected arrays apart: "
        f"{literal(hint)}"
    )
    both = e.binary("and", *filled)
    call.refuse(e.binary("and", meet, both), Fault("ValueError", message))


def _range(call: Call, tensor: Tensor) -> tuple[ir.Value, ir.Value]:
    """The addresses of the first byte of a tensor, and of that behind its last."""
    e, item = call.emitter, tensor.dtype.itemsize
    first = e.builder.ptrtoint(call.address(tensor.data), I64)
    ends: list[Dim] = [0, item]
    for size, stride in zip(tensor.shape, tensor.strides, strict=True):
        last = make("mul", make("mul", make("sub", size, 1), stride), item)
        ends = [make("add", ends[0], minimum(0, last)), make("add", ends[1], maximum(0, last))]
    low, high = (call.size(end, f"the bytes of {tensor.name}") for end in ends)
    return e.binary("add", first, low), e.binary("add", first, high)

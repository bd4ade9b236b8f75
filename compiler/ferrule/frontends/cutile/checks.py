"""What cuTile assumes of arrays beyond their specs, checked on every call.

Its documentation calls it undefined behaviour where an array breaks its constraint: a stride below
its bound, an element that two indices reach, two arrays without a common alias group in the same
memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import combinations

from llvmlite import ir

from ferrule.compiler.artefacts import DeviceCode, Fault, literal
from ferrule.compiler.conventions.base import Call
from ferrule.frontends.cutile.constraints import Array
from ferrule.runtime.llvm.layouts import I64
from ferrule.specs import Condition, Dim, Param, Tensor, equal, maximum, minimum
from ferrule.specs.expr import make


@dataclass(frozen=True, slots=True)
class Checks:
    """Ends a call, with a ValueError, whose arrays break their constraints; calls nothing."""

    arrays: tuple[Array, ...]
    when: Condition | None = None

    def codes(self) -> tuple[DeviceCode, ...]:
        """See `CallingConvention`."""
        return ()

    def results(self) -> tuple[Param, ...]:
        """See `CallingConvention`."""
        return ()

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        for array in self.arrays:
            _check_bounds(call, array)
            if not array.constraint.may_alias_internally:
                _check_elements(call, array.tensor)
        for left, right in combinations(self.arrays, 2):
            if not set(left.constraint.alias_groups) & set(right.constraint.alias_groups):
                _check_apart(call, left.tensor, right.tensor)


def _check_bounds(call: Call, array: Array) -> None:
    name = array.tensor.name
    pairs = zip(array.tensor.strides, array.constraint.stride_lower_bound_incl, strict=True)
    for axis, (stride, bound) in enumerate(pairs):
        if bound is None or (isinstance(stride, int) and stride >= bound):
            continue
        value = call.size(stride, f"{name}.strides[{axis}]")
        message = f"Mismatched {name}.strides[{axis}], expected at least {bound}, got {{}}"
        below = call.emitter.icmp("slt", value, call.emitter.const_i64(bound))
        call.refuse(below, Fault("ValueError", message), [value])


def _check_elements(call: Call, tensor: Tensor) -> None:
    """Every element has a place of its own if the step along each axis is longer than all that the
    shorter steps reach together."""
    if not tensor.shape:
        return
    e, name = call.emitter, tensor.name
    sizes = [call.size(size, f"{name}.shape[{i}]") for i, size in enumerate(tensor.shape)]
    steps = [call.size(_absolute(step), f"{name}.strides") for step in tensor.strides]
    empty = call.condition(equal(tensor.numel, 0))
    twice: ir.Value = e.const_i1(False)
    for axis, (size, step) in enumerate(zip(sizes, steps, strict=True)):
        others = [i for i in range(len(sizes)) if i != axis]
        reach = reduce(
            lambda total, i, step=step: e.binary(
                "add", total, _reach(call, sizes[i], steps[i], step)
            ),
            others,
            e.const_i64(0),
        )
        many = e.icmp("sgt", size, e.const_i64(1))
        short = e.icmp("sle", step, reach)
        twice = e.binary("or", twice, e.binary("and", many, short))
    message = (
        f"Mismatched strides of {literal(name)}, expected a place of its own for each element: "
        f"declare may_alias_internally=True for arrays with overlapping ones"
    )
    call.refuse(e.binary("and", twice, e.not_(empty)), Fault("ValueError", message))


def _reach(call: Call, size: ir.Value, step: ir.Value, longest: ir.Value) -> ir.Value:
    """How far an axis reaches, if its step is not longer than `longest`."""
    e = call.emitter
    reach = e.binary("mul", e.binary("sub", size, e.const_i64(1)), step)
    return e.select(e.icmp("sle", step, longest), reach, e.const_i64(0))


def _check_apart(call: Call, left: Tensor, right: Tensor) -> None:
    """Two arrays have no byte in common, as far as their ranges of memory say."""
    e = call.emitter
    (low, high), (other_low, other_high) = (_range(call, each) for each in (left, right))
    meet = e.binary("and", e.icmp("ult", low, other_high), e.icmp("ult", other_low, high))
    filled = [e.not_(call.condition(equal(each.numel, 0))) for each in (left, right)]
    message = (
        f"{literal(left.name)} and {literal(right.name)} overlap in memory, expected arrays apart: "
        f"give their constraints an alias group in common for arrays that may overlap"
    )
    both = e.binary("and", *filled)
    call.refuse(e.binary("and", meet, both), Fault("ValueError", message))


def _range(call: Call, tensor: Tensor) -> tuple[ir.Value, ir.Value]:
    """The addresses of the first byte of an array, and of that behind its last."""
    e, item = call.emitter, tensor.dtype.itemsize
    first = e.builder.ptrtoint(call.address(tensor.data), I64)
    ends: list[Dim] = [0, item]
    for size, stride in zip(tensor.shape, tensor.strides, strict=True):
        last = make("mul", make("mul", make("sub", size, 1), stride), item)
        ends = [make("add", ends[0], minimum(0, last)), make("add", ends[1], maximum(0, last))]
    low, high = (call.size(end, f"the bytes of {tensor.name}") for end in ends)
    return e.binary("add", first, low), e.binary("add", first, high)


def _absolute(dim: Dim) -> Dim:
    return abs(dim) if isinstance(dim, int) else maximum(dim, make("sub", 0, dim))

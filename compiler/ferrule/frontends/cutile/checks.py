"""Checks, on every call, of properties of arrays that cuTile assumes and that specs cannot express.

According to its documentation the behaviour is undefined if an array violates its constraint: a
stride below its bound, an element that two indices reach, or two arrays without a common alias
group that share memory.
"""

from __future__ import annotations

from itertools import combinations
from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import Fault, literal
from ferrule.compiler.conventions.apart import require_apart
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.protocol import PlainStep
from ferrule.frontends.cutile.constraints import Array
from ferrule.specs import Condition, Dim, Tensor, equal, maximum
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import make

_HINT: Final = "give their constraints an alias group in common for arrays that may overlap"


@dataclass(frozen=True, slots=True)
class Checks(PlainStep):
    """Ends a call with a ValueError if an array violates its constraint; it calls no code."""

    arrays: tuple[Array, ...]
    when: Condition | None = None

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        call.say("check what the kernel requires of its arrays")
        for array in self.arrays:
            _check_bounds(call, array)
            if not array.constraint.may_alias_internally:
                _check_elements(call, array.tensor)
        pairs = [
            (left.tensor, right.tensor)
            for left, right in combinations(self.arrays, 2)
            if not set(left.constraint.alias_groups) & set(right.constraint.alias_groups)
        ]
        require_apart(call, pairs, _HINT)


def _check_bounds(call: Call, array: Array) -> None:
    name = array.tensor.name
    pairs = zip(array.tensor.strides, array.constraint.stride_lower_bound_incl, strict=True)
    for axis, (stride, bound) in enumerate(pairs):
        if bound is None or (isinstance(stride, int) and stride >= bound):
            continue
        with call.describing(hands_on=False):
            value = call.size(stride, f"{name}.strides[{axis}]")
        message = f"Mismatched {name}.strides[{axis}], expected at least {bound}, got {{}}"
        below = call.emitter.icmp("slt", value, call.emitter.const_i64(bound))
        call.refuse(below, Fault("ValueError", message), [value])


def _check_elements(call: Call, tensor: Tensor) -> None:
    """Each element has its own address if the stride of each axis is greater than the distance that
    all axes of smaller strides cover together."""
    if not tensor.shape:
        return
    e, name = call.emitter, tensor.name
    with call.describing(hands_on=False):
        sizes = [call.size(size, f"{name}.shape[{i}]") for i, size in enumerate(tensor.shape)]
        steps = [call.size(_absolute(step), f"{name}.strides") for step in tensor.strides]
    empty = call.condition(equal(tensor.numel, 0))
    twice: ir.Value = e.const_i1(False)
    for axis, (size, step) in enumerate(zip(sizes, steps, strict=True)):
        reach: ir.Value = e.const_i64(0)
        for other in set(range(len(sizes))) - {axis}:
            reach = e.binary("add", reach, _reach(call, sizes[other], steps[other], step))
        many = e.icmp("sgt", size, e.const_i64(1))
        short = e.icmp("sle", step, reach)
        twice = e.binary("or", twice, e.binary("and", many, short))
    message = (
        f"Mismatched strides of {literal(name)}, expected a place of its own for each element: "
        f"declare may_alias_internally=True for arrays with overlapping ones"
    )
    call.refuse(e.binary("and", twice, e.not_(empty)), Fault("ValueError", message))


def _reach(call: Call, size: ir.Value, step: ir.Value, longest: ir.Value) -> ir.Value:
    """The distance that an axis covers, if its stride is not greater than `longest`."""
    e = call.emitter
    reach = e.binary("mul", e.binary("sub", size, e.const_i64(1)), step)
    return e.select(e.icmp("sle", step, longest), reach, e.const_i64(0))


def _absolute(dim: Dim) -> Dim:
    return abs(dim) if isinstance(dim, int) else maximum(dim, make("sub", 0, dim))

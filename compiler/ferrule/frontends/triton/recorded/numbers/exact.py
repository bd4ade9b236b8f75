"""Strides of a caller's tensors that a recorded host function reads as numbers.

In a dim of size 1 a call's stride may be any, and what is tied to other sizes in the recordings is
not so there.  The host function would hand on the stride of the call; so calls have the stride that
is compiled, or are refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from ferrule.frontends.triton.recorded.log import Log
from ferrule.frontends.triton.recorded.nodes import Leaf
from ferrule.frontends.triton.recorded.tensors import Recorded
from ferrule.specs import Tensor
from ferrule.specs.copies import with_exact_dims

Axes = Mapping[str, tuple[int, ...]]
"""Dims of tensors, by name."""


def exact_axes(
    leaves: Iterable[Leaf],
    logs: Sequence[Log],
    tensors: Mapping[str, Sequence[Recorded]],
    named: Collection[str] = (),
) -> Axes:
    """The dims whose strides these numbers are: of the tensor that is `named` so, else of each that
    had these strides in the recordings."""
    found: dict[str, set[int]] = {}
    for leaf in leaves:
        if leaf.kind != "stride":
            continue
        own = name_of(leaf)
        if own in named:
            found.setdefault(own, set()).add(leaf.axis)
            continue
        values = [log.values.get(leaf) for log in logs]
        for name, each in tensors.items():
            strides = zip(*(one.strides for one in each), strict=True)
            axes = (axis for axis, steps in enumerate(strides) if [*steps] == values)
            found.setdefault(name, set()).update(axes)
    return {name: tuple(sorted(axes)) for name, axes in found.items() if axes}


def name_of(leaf: Leaf) -> str:
    """The name of the tensor of a size, as `Reading` gives it."""
    return leaf.of.rpartition(" of ")[0]


def with_axes(tensor: Tensor, axes: Axes) -> Tensor:
    """The tensor with these of its strides as numbers of the call."""
    return with_exact_dims(tensor, axes.get(tensor.name, ()))

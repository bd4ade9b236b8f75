"""Where each symbol of a signature gets its value.

A symbol binds at its first bare occurrence: in the sizes of all parameters first, from left to
right, then in the strides.  A size always has a value.  A stride means nothing in a dim of size 0
or 1 or in a tensor without elements, so a symbol that stands only in strides binds at the first
occurrence that means something at the call, and reads as 1 where none does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ferrule.specs import Dim, Signature, Sym, Tensor


@dataclass(frozen=True, slots=True)
class Place:
    """A size or a stride of a tensor parameter."""

    parameter: str
    argument: int
    kind: Literal["shape", "strides"]
    axis: int

    def __str__(self) -> str:
        return f"{self.parameter}.{self.kind}[{self.axis}]"


def places(signature: Signature) -> Iterator[tuple[Place, Dim]]:
    """Every size, then every stride, from left to right."""
    tensors = [(i, p) for i, p in enumerate(signature.params) if isinstance(p, Tensor)]
    for position, spec in tensors:
        for axis, dim in enumerate(spec.shape):
            yield Place(spec.name, position, "shape", axis), dim
    for position, spec in tensors:
        for axis, dim in enumerate(spec.strides):
            yield Place(spec.name, position, "strides", axis), dim


def owners(signature: Signature) -> dict[Sym, tuple[Place, ...]]:
    """The places that a symbol can bind at: one size, or each stride, in order."""
    found: dict[Sym, list[Place]] = {}
    for place, dim in places(signature):
        if isinstance(dim, Sym):
            known = found.setdefault(dim, [])
            if not known or known[0].kind == place.kind == "strides":
                known.append(place)
    return {symbol: tuple(known) for symbol, known in found.items()}

"""A host function in one recording: what it was given, made, filled and returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from ferrule.frontends.triton.recorded.hosts.parameters import Given
from ferrule.frontends.triton.recorded.hosts.returned import Plain, Shown
from ferrule.frontends.triton.recorded.nodes import Tree
from ferrule.frontends.triton.recorded.reading import Made
from ferrule.frontends.triton.recorded.tensors import Recorded
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Host:
    """One recording of a host function.

    `inputs` are tensors that callers give, by name, `results` those that it returns.  `made` are
    the storages that it allocated, `computed` those that operations of PyTorch wrote, by the
    operation, and `shapes` are the sizes with which it made storages.  `shown` says how each
    result was made that is a tensor.  `given` is what its parameters were, if it `is_called` by
    `call`.
    """

    inputs: Mapping[str, Recorded]
    results: Sequence[Recorded | Plain | None]
    made: frozenset[int]
    computed: Mapping[int, str]
    shapes: Mapping[int, Made] = field(default_factory=dict)
    shown: Sequence[Shown | None] = ()
    given: Sequence[Given] = ()
    is_called: bool = False

    @property
    def floats(self) -> dict[str, float]:
        """The numbers that it was given."""
        return {each.name: each.value for each in self.given if type(each.value) is float}

    @property
    def names(self) -> frozenset[str]:
        """The names of its parameters."""
        return frozenset(each.name for each in self.given if not each.is_rest)


@dataclass(frozen=True, slots=True)
class Filled:
    """Memory that was filled with a number, in the recording, before the launch number `before`.

    `tree` is how the number was made, of floats of the call; None for a constant.  `others` is the
    same fill in the other recordings.
    """

    storage: int
    value: int | float
    before: int
    tree: Tree | None = None
    others: tuple[Filled, ...] = ()

    @property
    def same(self) -> tuple[str, int]:
        """What is the same in all recordings."""
        return repr(self.value) if self.tree is None else "a number of the call", self.before

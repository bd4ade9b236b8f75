"""What a host function has read of PyTorch's tensors: sizes, which are followed, and numbers in
them, which no recording can follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

from ferrule.frontends.triton.recorded.followed import Compared, Followed, Log, Read, place, plain
from ferrule.frontends.triton.recorded.nodes import Leaf, Tree
from ferrule.frontends.triton.recorded.tensors import is_torch
from ferrule.specs.deferred import dataclass

Made = tuple[tuple[int, ...], Sequence[Tree]]
"""The sizes with which a tensor was made, and how they were."""


@dataclass(slots=True, eq=False)
class Reading:
    """The tensors that a host function has met.

    `names` are those that it was given, `others` those that it made, in their order, and `derived`
    the memory of those whose numbers follow from something that a caller gives, by its identity;
    `made` is that which it made, `shapes` how the sizes were made with which it did.
    """

    log: Log = field(default_factory=Log)
    names: dict[int, str] = field(default_factory=dict)
    others: dict[int, int] = field(default_factory=dict)
    derived: set[int] = field(default_factory=set)
    made: set[int] = field(default_factory=set)
    kept: list[Any] = field(default_factory=list)
    shapes: dict[int, Made] = field(default_factory=dict)

    def given(self, name: str, value: Any) -> Any:
        """An argument of the host function as it gets it."""
        if is_torch(value):
            self.names[id(value)] = name
            self.kept.append(value)
        elif type(value) is int:
            return self.log.size(Leaf(name, ""), value)
        return value

    def sizes(self, tensor: Any, kind: str, values: Sequence[int]) -> list[Followed]:
        """Sizes or strides of a tensor."""
        name = self.names.get(id(tensor)) or f"tensor {self._number(tensor)}"
        return [
            self.log.size(Leaf(f"{name} of {len(values)}", kind, axis), int(value))
            for axis, value in enumerate(values)
        ]

    def _number(self, tensor: Any) -> int:
        if id(tensor) not in self.others:
            self.others[id(tensor)] = len(self.others)
            self.kept.append(tensor)
        return self.others[id(tensor)]

    def read(self, what: str, tensor: Any) -> None:
        """Something of a tensor was read that sizes do not tell."""
        name = self.names.get(id(tensor), "a tensor")
        self.log.reads.append(Read(f"{what} of {name}", place()))

    def hold(self, number: Followed) -> None:
        """A number that is made of sizes is what it is in the recording."""
        held = Compared("eq", number.tree, int.__int__(number), True, place())
        self.log.compared.append(held)

    def derive(self, tensors: Iterator[Any]) -> None:
        """The numbers in these tensors follow from something that a caller gives."""
        for each in tensors:
            self.derived.add(_storage(each))
            self.kept.append(each.untyped_storage())

    def shape(self, tensor: Any, sizes: Sequence[Any]) -> None:
        """A tensor was made with these sizes."""
        trees = [each.tree if isinstance(each, Followed) else int(each) for each in sizes]
        self.shapes[_storage(tensor)] = tuple(plain(list(sizes))), trees

    def is_made(self, tensor: Any) -> bool:
        """Whether the host function made the memory of a tensor."""
        return _storage(tensor) in self.made

    def is_derived(self, *tensors: Any) -> bool:
        """Whether the numbers in one of these tensors do."""
        return any(each in self.derived or each not in self.made for each in map(_storage, tensors))


def _storage(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)


def tensors_in(value: Any) -> Iterator[Any]:
    """The tensors in arguments or results of a function of PyTorch."""
    if isinstance(value, tuple | list):
        for each in value:
            yield from tensors_in(each)
    elif is_torch(value):
        yield value

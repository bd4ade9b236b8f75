"""The parameters of a signature as a tree: the place of each value in a call, and its leaves.

Invariant: elements of containers have no leaves; everything else has its leaves in the order that
`artefacts.Body` documents.
"""

from __future__ import annotations

from collections.abc import Iterator

from typing_extensions import assert_never

from ferrule.compiler.checker.code import At, Mask, mask_of
from ferrule.compiler.wrapper.leaves import leaves_of
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import (
    DYNAMIC,
    Constant,
    Elements,
    EnvStream,
    Object,
    Optional,
    Pairs,
    Param,
    Plain,
    Pointer,
    Scalar,
    Shape,
    Tensor,
    Tuple,
    Union,
    type_indices,
)
from ferrule.specs.signature import Signature

Guard = tuple[At, Mask]
"""A value is present if the type index at this place is in the mask."""

# Types in tvm-ffi's c_api.h have indices below 80; one bit, `DYNAMIC`, stands for all types that
# a program registers.
NOT_NONE = mask_of([*range(1, 80), DYNAMIC])
JUST_NONE = mask_of([0])


@dataclass(frozen=True, slots=True)
class Node:
    """A parameter at its place in a call.

    `path` is the position in the signature, then of items; `leaf` the first of its leaves, -1 if it
    has none; `loops` the number of loops around it; `guards` hold if it is present.
    """

    param: Param
    at: At
    path: tuple[int, ...]
    leaf: int
    loops: int
    guards: tuple[Guard, ...]
    children: tuple[Node, ...] = ()

    def walk(self) -> Iterator[Node]:
        """This node and all its descendants."""
        yield self
        for child in self.children:
            yield from child.walk()


def leaf_count(param: Param) -> int:
    """The number of leaves of a parameter."""
    return len(leaves_of(param))


def nodes_of(signature: Signature) -> tuple[Node, ...]:
    """The parameters that a caller passes, each with its leaves."""
    nodes, leaf, argument = [], 0, 0
    for position, param in enumerate(signature.params):
        if not isinstance(param, EnvStream):
            at = At(argument, param.name)
            nodes.append(_node(Node(param, at, (position,), leaf, 0, ())))
            argument += 1
        leaf += leaf_count(param)
    return tuple(nodes)


def _node(node: Node) -> Node:
    """The same with its children."""
    return Node(node.param, node.at, node.path, node.leaf, node.loops, node.guards, _children(node))


def _children(node: Node) -> tuple[Node, ...]:
    match node.param:
        case Tuple(items=items):
            return _items(node, items)
        case Optional(item=item):
            guards = (*node.guards, (node.at, NOT_NONE))
            return (_same_place(node, item, node.leaf + 1, guards),)
        case Union(members=members):
            return _members(node, members)
        case Elements(item=item):
            return () if item is None else (_inside(node, item, node.at.running(node.loops)),)
        case Pairs(key=key, value=value):
            places = ((key, node.at.key), (value, node.at.value))
            return tuple(
                _inside(node, inner, at(node.loops)) for inner, at in places if inner is not None
            )
        case Plain() | Tensor() | Scalar() | Shape() | Pointer() | EnvStream():
            return ()
        case Constant() | Object():
            return ()
        case _:
            assert_never(node.param)


def _items(node: Node, items: tuple[Param, ...]) -> tuple[Node, ...]:
    children, leaf = [], node.leaf
    for i, item in enumerate(items):
        at, path = node.at.item(i), (*node.path, i)
        children.append(_node(Node(item, at, path, leaf, node.loops, node.guards)))
        leaf = leaf if leaf < 0 else leaf + leaf_count(item)
    return tuple(children)


def _members(node: Node, members: tuple[Param, ...]) -> tuple[Node, ...]:
    children, leaf, taken = [], node.leaf + 1, frozenset[int]()
    for member in members:
        mask = mask_of(type_indices(member) - taken)
        taken |= type_indices(member)
        children.append(_same_place(node, member, leaf, (*node.guards, (node.at, mask))))
        leaf += leaf_count(member)
    return tuple(children)


def _same_place(node: Node, param: Param, leaf: int, guards: tuple[Guard, ...]) -> Node:
    leaf = -1 if node.leaf < 0 else leaf
    return _node(Node(param, node.at, node.path, leaf, node.loops, guards))


def _inside(node: Node, param: Param, at: At) -> Node:
    return _node(Node(param, at, node.path, -1, node.loops + 1, node.guards))

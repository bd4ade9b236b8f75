"""Graphs: what was captured or added node by node, and the order in which it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from ferrule.emulator.driver.places import get_words
from ferrule.emulator.driver.results import DriverError, Result
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.emulator.driver.state import Driver


class NodeKind(IntEnum):
    """`CUgraphNodeType`."""

    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2
    HOST = 3
    GRAPH = 4
    EMPTY = 5
    WAIT_EVENT = 6
    EVENT_RECORD = 7
    MEM_ALLOC = 10
    MEM_FREE = 11


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a program is told of a node again: bytes of the struct that it gave, or words."""

    host: tuple[int, int] | None = None
    launch: Any = None
    struct: bytes = b""


@dataclass(eq=False, slots=True)
class Node:
    """One step of a graph; `needs` are the nodes that come before it."""

    kind: NodeKind
    run: Callable[[], None]
    needs: tuple[Node, ...]
    parameters: Parameters | None
    handle: int = 0
    graph: Graph | None = None


@dataclass(eq=False, slots=True)
class Graph:
    """Nodes in the order in which they were added."""

    nodes: list[Node] = field(default_factory=list)
    handle: int = 0
    told: Any = None
    """What a program was last given a pointer to."""

    def add(
        self,
        driver: Driver,
        kind: NodeKind,
        run: Callable[[], None],
        needs: Iterable[Node],
        parameters: Parameters | None = None,
    ) -> Node:
        """A new node behind others."""
        node = Node(kind, run, tuple(dict.fromkeys(needs)), parameters, graph=self)
        node.handle = driver.new(node)
        self.nodes.append(node)
        return node

    def remove(self, driver: Driver, node: Node) -> None:
        """Take a node out, with the edges from and to it."""
        self.nodes.remove(node)
        for each in self.nodes:
            each.needs = tuple(other for other in each.needs if other is not node)
        driver.forget(node.handle)

    def ordered(self) -> list[Node]:
        """Each node behind all that it needs, else in the order of adding; INVALID_VALUE for a
        graph that has a cycle."""
        done: dict[Node, None] = {}
        left = list(self.nodes)
        while left:
            ready = [node for node in left if all(each in done for each in node.needs)]
            if not ready:
                raise DriverError(Result.INVALID_VALUE, "the graph has a cycle")
            done.update(dict.fromkeys(ready))
            left = [node for node in left if node not in done]
        return list(done)

    def close(self, driver: Driver) -> None:
        """Its nodes are gone."""
        for node in self.nodes:
            driver.forget(node.handle)
        self.nodes.clear()


def node_of(driver: Driver, handle: int) -> Node:
    """The node with this handle."""
    return driver.find(handle, Node, "node")


def nodes_at(driver: Driver, address: int, count: int) -> tuple[Node, ...]:
    """The nodes whose handles stand at an address."""
    if count and not address:
        raise DriverError(Result.INVALID_VALUE, f"{count} nodes, and no place of them")
    return tuple(node_of(driver, each) for each in get_words(address, count))

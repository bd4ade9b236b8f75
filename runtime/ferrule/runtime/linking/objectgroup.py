"""Loads several objects together; each may use symbols of the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ferrule.runtime.artefacts import ObjectCode
from ferrule.runtime.binaries.elf import ObjectFileError
from ferrule.runtime.binaries.objectfile import ObjectFile
from ferrule.runtime.errors import LinkError
from ferrule.runtime.linking.engine import Engine, check_imports
from ferrule.runtime.linking.links import Link, Resolved, resolve
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Member:
    """An object, its parsed headers, and its undefined symbols."""

    code: ObjectCode
    header: ObjectFile
    links: tuple[Link, ...] = ()


def load_group(members: Sequence[Member]) -> list[Engine]:
    """The engines of the objects, in the same order.

    ObjectFileError for a symbol that is neither in another object of the group nor in the library
    of its link, and for objects that need each other in a cycle: only a linker can join these.
    """
    homes = _homes(members)
    engines: dict[int, Engine] = {}
    for i in _in_order(members, homes):
        engines[i] = _load(members[i], homes, engines)
    return [engines[i] for i in range(len(members))]


def check_group(members: Sequence[Member]) -> None:
    """ObjectFileError for what `load_group` would refuse; no code is linked or run."""
    homes = _homes(members)
    for i in _in_order(members, homes):
        inside, outside = _links(members[i], homes)
        found = _resolved(outside)
        check_imports(members[i].header, {*found.addresses, *(link.symbol for link in inside)})


def _homes(members: Sequence[Member]) -> dict[str, int]:
    return {symbol: i for i, member in enumerate(members) for symbol in member.header.defined}


def _in_order(members: Sequence[Member], homes: dict[str, int]) -> Iterator[int]:
    """The positions of the members, each after those that it needs."""
    done: set[int] = set()
    waiting = list(range(len(members)))
    while waiting:
        ready = [i for i in waiting if done >= _needed(members[i], homes) - {i}]
        if not ready:
            names = ", ".join(sorted(members[i].code.name for i in waiting))
            raise ObjectFileError(
                f"the objects of {names} call each other in a circle: link them to a library"
            )
        yield from ready
        done.update(ready)
        waiting = [i for i in waiting if i not in done]


def _needed(member: Member, homes: dict[str, int]) -> set[int]:
    """The positions of the objects that define symbols which this member needs."""
    return {homes[link.symbol] for link in member.links if link.symbol in homes}


def _links(member: Member, homes: dict[str, int]) -> tuple[list[Link], list[Link]]:
    """The links of a member to others of the group, and those to libraries and the process."""
    needed = [link for link in member.links if link.symbol not in member.header.defined]
    inside = [link for link in needed if link.symbol in homes]
    return inside, [link for link in needed if link.symbol not in homes]


def _resolved(links: Sequence[Link]) -> Resolved:
    try:
        return resolve(links)
    except LinkError as error:
        raise ObjectFileError(str(error)) from None


def _load(member: Member, homes: dict[str, int], engines: dict[int, Engine]) -> Engine:
    inside, outside = _links(member, homes)
    found = _resolved(outside)
    givers = {link.symbol: engines[homes[link.symbol]] for link in inside}
    addresses = {symbol: engine.address(symbol) for symbol, engine in givers.items()}
    return Engine.load(
        member.code,
        {**found.addresses, **addresses},
        header=member.header,
        owners=(*found.owners, *givers.values()),
    )

"""Loads several objects together; each may use symbols of the others."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.runtime.artefacts import ObjectCode
from ferrule.runtime.binaries.elf import ObjectFileError
from ferrule.runtime.binaries.objectfile import ObjectFile
from ferrule.runtime.errors import LinkError
from ferrule.runtime.linking.engine import Engine
from ferrule.runtime.linking.links import Link, resolve
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
    homes = {symbol: i for i, member in enumerate(members) for symbol in member.header.defined}
    engines: dict[int, Engine] = {}
    waiting = list(range(len(members)))
    while waiting:
        ready = [i for i in waiting if engines.keys() >= _needed(members[i], homes) - {i}]
        if not ready:
            names = ", ".join(sorted(members[i].code.name for i in waiting))
            raise ObjectFileError(
                f"the objects of {names} call each other in a circle: link them to a library"
            )
        for i in ready:
            engines[i] = _load(members[i], homes, engines)
        waiting = [i for i in waiting if i not in engines]
    return [engines[i] for i in range(len(members))]


def _needed(member: Member, homes: dict[str, int]) -> set[int]:
    """The positions of the objects that define symbols which this member needs."""
    return {homes[link.symbol] for link in member.links if link.symbol in homes}


def _load(member: Member, homes: dict[str, int], engines: dict[int, Engine]) -> Engine:
    needed = [link for link in member.links if link.symbol not in member.header.defined]
    inside = {link.symbol: engines[homes[link.symbol]] for link in needed if link.symbol in homes}
    try:
        found = resolve(link for link in needed if link.symbol not in inside)
    except LinkError as error:
        raise ObjectFileError(str(error)) from None
    addresses = {symbol: engine.address(symbol) for symbol, engine in inside.items()}
    return Engine.load(
        member.code,
        {**found.addresses, **addresses},
        header=member.header,
        owners=(*found.owners, *inside.values()),
    )

"""Symbols that an object needs of others: where they are in this process."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from ferrule.runtime.errors import LinkError

if TYPE_CHECKING:
    from ferrule.runtime.function import Function

_NONE: Final[Mapping[str, Any]] = MappingProxyType({})

OF_C: Final = ("libc.so.6", "libm.so.6", "libgcc_s.so.1")
"""Libraries that are named for what needs them, though the process has most of them anyway."""


@dataclass(frozen=True, slots=True)
class Link:
    """A symbol that an object needs of others: its name, and the path of the library that has it,
    if one was named.

    One with an `address` is what there is in this process, which `owner` keeps: what has such a
    link cannot leave it.
    """

    symbol: str
    library: str | None = None
    address: int | None = None
    owner: object = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        # A path holds wherever the code is loaded.
        if self.library is not None and "/" in self.library:
            object.__setattr__(self, "library", os.path.abspath(self.library))


@dataclass(frozen=True, slots=True)
class Resolved:
    """The addresses of symbols; `owners` keep what is there."""

    addresses: Mapping[str, int]
    owners: tuple[object, ...]


def resolve(links: Iterable[Link], sources: Mapping[str, Function] = _NONE) -> Resolved:
    """Where the symbols are: in `sources` by symbol, in the libraries of the links, or in what the
    process has loaded for everybody.  Raises LinkError, which names the symbol, for one that is
    nowhere."""
    addresses: dict[str, int] = {}
    owners: list[object] = []
    for link in links:
        source = sources.get(link.symbol)
        if source is not None:
            addresses[link.symbol] = source.call_plan.code
            owners.append(source)
        elif link.address is not None:
            addresses[link.symbol] = link.address
            owners.append(link.owner)
        else:
            library = _open(link)
            addresses[link.symbol] = _address(library, link)
            owners.append(library)
    return Resolved(addresses, tuple(owners))


def _open(link: Link) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(link.library)
    except OSError as error:
        raise LinkError(
            f"the library {link.library} of the symbol {link.symbol} cannot be loaded: {error}"
        ) from None


def _address(library: ctypes.CDLL, link: Link) -> int:
    found = None
    if link.library in OF_C:
        # As a loader finds it: of variables such as `environ` the program may have a copy, which
        # is what the library uses too.
        found = _found(ctypes.CDLL(None), link.symbol)
    found = found or _found(library, link.symbol)
    if found is None:
        where = "this process" if link.library is None else f"the library {link.library}"
        raise LinkError(
            f"{where} has no symbol {link.symbol}: name the library or the compiled function that "
            f"has it, extern_func(name, library=...) or extern_func(name, function=...)"
        )
    return found


def _found(library: ctypes.CDLL, symbol: str) -> int | None:
    try:
        return ctypes.cast(library[symbol], ctypes.c_void_p).value
    except AttributeError:
        return None

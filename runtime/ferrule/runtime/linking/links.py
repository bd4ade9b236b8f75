"""Undefined symbols of an object, and their addresses in this process."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from ferrule.runtime.errors import LinkError
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.runtime.calls.function import Function

_NONE: Final[Mapping[str, Any]] = MappingProxyType({})

OF_C: Final = ("libc.so.6", "libm.so.6", "libgcc_s.so.1")
"""Libraries whose symbols are linked by the library's name, although most processes have them."""


@dataclass(frozen=True, slots=True)
class Link:
    """An undefined symbol of an object: its name, and the path of the library that defines it, if
    the user named one.

    A link with an `address` means memory of this process, which `owner` keeps alive. Code with such
    a link cannot be used in another process.
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
    """The addresses of symbols; `owners` keep the memory at these addresses alive."""

    addresses: Mapping[str, int]
    owners: tuple[object, ...]


def resolve(links: Iterable[Link], sources: Mapping[str, Function] = _NONE) -> Resolved:
    """The addresses of the symbols: from `sources` by symbol, from the libraries of the links, or
    from the global symbols of the process.  Raises LinkError that names a symbol which is in none
    of them."""
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
        # In the order of the system's loader: the program may have its own copy of a variable such
        # as `environ`, and the library uses this copy too.
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

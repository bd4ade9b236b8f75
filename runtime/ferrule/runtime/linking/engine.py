"""The engine: machine code of one object, linked into this process.

`Engine.load` checks the object's headers, gives a linker the addresses of the C functions that
generated code may use, and keeps the memory alive while the engine lives. Code that uses an address
of an engine must keep the engine alive. The linker is ferrule's own (`direct`), without LLVM; what
it does not know goes to LLVM's (`lljit`). Each object is linked by itself, so that names never
collide and the memory is freed together with the engine.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Collection, Mapping
from functools import cache
from types import MappingProxyType
from typing import Final, Protocol
from weakref import finalize

from ferrule.runtime.artefacts import ObjectCode
from ferrule.runtime.binaries.objectfile import ObjectFile, ObjectFileError, read_object
from ferrule.runtime.cfunctions import C_FUNCTIONS, Library, c_function
from ferrule.runtime.host import (
    host_baseline_cpu,
    host_machine,
    host_triple,
    initialize_llvm,
    libtvm_ffi,
)
from ferrule.runtime.linking import direct
from ferrule.runtime.linking.codememory import GDB, VARIABLE

__all__ = [
    "Engine",
    "Linked",
    "c_address",
    "host_baseline_cpu",
    "host_machine",
    "host_triple",
    "initialize_llvm",
    "libtvm_ffi",
]

# The linker defines this one itself.
_LINKER_SYMBOLS: Final = frozenset({"_GLOBAL_OFFSET_TABLE_"})

KEPT: Final = "ferrule.kept_callbacks"
"""The name of a symbol of objects whose functions C libraries may keep, and call at any time."""

_NO_SYMBOLS: Final[Mapping[str, int]] = MappingProxyType({})


class Linked(Protocol):
    """An object that a linker has put into this process."""

    @property
    def addresses(self) -> Mapping[str, int]:
        """The addresses of the symbols that it defines, by name."""
        ...

    def free(self) -> None:
        """Take it out of the process; nothing may run or use it any more."""
        ...


_STAYS: Final[list[object]] = []
"""Engines that are never freed, see `KEPT`."""


class Engine:
    """The loaded code of one object, made by `load`.

    When the engine is freed, the object's finalisers run, then the memory is freed. Finalisers do
    not run at the end of the process.  An engine with callbacks that C keeps, `KEPT`, is not freed.
    """

    __slots__ = ("__weakref__", "_addresses", "_owners", "code")

    def __init__(self, code: ObjectCode, linked: Linked, owners: tuple[object, ...] = ()) -> None:
        self.code = code
        self._owners = owners
        self._addresses = linked.addresses
        if KEPT.encode() in code.data:
            _STAYS.append(self)
            return
        ending = _finalizers(code.data, linked.addresses)
        # Not at the end of the process, when other code may still use this one's.
        finalize(self, _end, ending, linked).atexit = False

    @classmethod
    def load(
        cls,
        code: ObjectCode,
        symbols: Mapping[str, int] = _NO_SYMBOLS,
        *,
        header: ObjectFile | None = None,
        owners: tuple[object, ...] = (),
    ) -> Engine:
        """Link an object into this process.

        `symbols` are addresses of symbols that the object may use beyond the fixed table. Raises
        `ObjectFileError` for bytes that are not an object for this machine, and for unknown
        symbols. `header` is the result of `read_object` for these bytes, if the caller has it.
        `owners` are objects that keep the memory at these addresses alive.
        """
        header = read_object(code.data) if header is None else header
        _check_machine(header)
        imports = {name: _address_of(name, symbols) for name in _imported(header)}
        # Code that shares loops among threads looks up an OpenMP runtime. By then that of the
        # package must be in the process.
        if "dlsym" in imports:
            from ferrule.runtime.linking import openmp

            openmp.offer()
        return cls(code, _link(code.data, header, imports), owners)

    def address(self, symbol: str) -> int:
        """The address of a symbol that the object defines, valid while the engine lives."""
        try:
            return self._addresses[symbol]
        except KeyError:
            known = ", ".join(self._addresses) or "nothing"
            raise KeyError(f"the object defines no {symbol}, it defines {known}") from None

    def __repr__(self) -> str:
        return f"<ferrule.Engine {self.code.name} for {self.code.triple} ({self.code.cpu})>"


@cache
def c_address(name: str) -> int:
    """The address in this process of a function of the C table."""
    match c_function(name).library:
        case Library.TVM_FFI:
            library = libtvm_ffi()
        case Library.LIBC:
            library = ctypes.CDLL(None)
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    if address is None:
        raise RuntimeError(f"this process has no address of {name}")
    return address


def _check_machine(header: ObjectFile) -> None:
    wanted = host_machine()
    if header.machine is not wanted:
        raise ObjectFileError(
            f"wanted an object for {wanted.name.lower()}, the machine of this process, "
            f"got one for {header.machine.name.lower()}"
        )


def check_imports(header: ObjectFile, symbols: Collection[str]) -> None:
    """Raise the ObjectFileError that `Engine.load` would raise for these headers; `symbols` are the
    names of the symbols that it would be given."""
    _check_machine(header)
    for name in _imported(header):
        _check_known(name, symbols)


def _imported(header: ObjectFile) -> list[str]:
    return [name for name in header.undefined if name not in _LINKER_SYMBOLS]


def _address_of(name: str, symbols: Mapping[str, int]) -> int:
    _check_known(name, symbols)
    return symbols[name] if name in symbols else c_address(name)


def _check_known(name: str, symbols: Collection[str]) -> None:
    if name not in symbols and name not in C_FUNCTIONS:
        raise ObjectFileError(
            f"the object needs the symbol {name}, which is neither a C function that generated "
            f"code may use nor one that was given"
        )


def _link(data: bytes, header: ObjectFile, imports: Mapping[str, int]) -> Linked:
    if os.environ.get(VARIABLE):
        from ferrule.runtime.linking import jitinfo

        if GDB in jitinfo.wanted():
            from ferrule.runtime.linking import mcjit

            return mcjit.link(data, header.machine, imports, header.defined)
    try:
        return direct.link(data, header.machine, imports, header.defined)
    except direct.Unlinkable:
        from ferrule.runtime.linking import lljit

        return lljit.link(data, header.machine, imports, header.defined)


def _finalizers(data: bytes, addresses: Mapping[str, int]) -> tuple[int, ...]:
    if not any(name in data for name in (b".fini_array", b".dtors")):
        return ()
    from ferrule.runtime.linking.finalizers import finalizers

    return finalizers(data, addresses)


def _end(finalizers: tuple[int, ...], linked: Linked) -> None:
    """Run the finalisers of an object, then free it."""
    if finalizers:
        from ferrule.runtime.linking.finalizers import run

        run(finalizers)
    linked.free()

"""`HostCode`: foreign code for the processor, and how a body calls it.

It is an address, an object file, LLVM IR or bitcode, or a shared library.  Objects and IR become a
part of the function and of everything that is exported from it.  Their undefined symbols are
resolved when they are read: in the table of functions that every object may use, in the named
libraries, or in the libraries that this process has loaded; the metadata lists them.
"""

from __future__ import annotations

import base64
import ctypes
import os
from _ctypes import CFuncPtr
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from typing_extensions import assert_never

from ferrule.compiler.artefacts import Embedded, Foreign, Part
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.hostcode import advice, irtext
from ferrule.compiler.hostcode.embedding import PREFIX, SYMBOL, embed
from ferrule.compiler.hostcode.objects import Objects, is_archive, joined
from ferrule.compiler.hostcode.promises import Promised, needed_features, promised
from ferrule.compiler.hostcode.trial import tried_in_child
from ferrule.runtime.binaries.elf import ObjectFileError
from ferrule.runtime.binaries.libraryfile import read_library
from ferrule.runtime.binaries.objectfile import read_object
from ferrule.runtime.cfunctions import C_FUNCTIONS
from ferrule.runtime.linking.links import OF_C, Link
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from llvmlite import ir

    from ferrule.compiler.conventions.base import Call

Code: TypeAlias = "bytes | bytearray | memoryview | str | os.PathLike[str]"

_LINKER_MAKES: Final = frozenset({"_GLOBAL_OFFSET_TABLE_"})
_MOST_KEPT: Final = 128
"""Codes of LLVM that are kept, so that the same code again costs nothing; one takes a few kB."""
_OURS: Final = ("ferrule_", "__tvm_ffi_")


@dataclass(frozen=True, slots=True)
class Address:
    """A function of this process; the reference `owner` keeps it alive."""

    value: int
    owner: object = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Library:
    """A shared library, by its path or the name for the system's loader; None for everything that
    this process has loaded globally."""

    path: str | None


@dataclass(frozen=True, slots=True)
class Undefined:
    """A function of the module that a wrapper is inserted into, see `emitting.emit_wrapper`."""


@dataclass(frozen=True, slots=True)
class LlvmModule:
    """A module of LLVM IR: its text, the types of its functions, and its name.

    `refused` are functions that it had and that cannot be embedded, with the reason.
    """

    digest: str
    functions: Mapping[str, str] = field(compare=False)
    text: str = field(repr=False, compare=False)
    foreign: Foreign = field(compare=False)
    promises: Mapping[str, tuple[Promised, ...]] = field(repr=False, compare=False)
    refused: Mapping[str, str] = field(repr=False, compare=False, default_factory=dict)


@dataclass(frozen=True, slots=True)
class HostCode:
    """Code for the processor, made by one of the `from_` functions.

    `links` are its undefined symbols.
    """

    source: Address | Library | Undefined | LlvmModule | Embedded | Objects
    links: tuple[Link, ...] = ()

    @classmethod
    def from_address(cls, address: object, owner: object = None) -> HostCode:
        """A function of this process: its address, a ctypes function, or an object with an
        `address`, such as Numba's `cfunc`.

        Code that calls it cannot be exported.  `owner`, or the object itself, stays alive as long
        as the code.  Raises TypeError for other objects, ValueError for the null pointer.
        """
        return cls(_address(address, owner))

    @classmethod
    def from_object(
        cls,
        code: Code | Sequence[Code],
        *,
        libraries: Sequence[str] = (),
        functions: Sequence[str] = (),
    ) -> HostCode:
        """An object file, its bytes or its path, compiled with -fPIC for this processor; or a list
        of objects and archives of objects (`libx.a`), whose symbols see each other.

        Of an archive a function takes the members that it needs.  `libraries` have the symbols that
        none of them has.  `functions` are the functions of a single object that are called: what
        else is in sections of its own (`-ffunction-sections`) and not needed by them is left out.
        Raises CompileError for other files, for an object that needs a linker or loader, for a
        symbol that is not found, of a member when a function needs it, and for one that two objects
        define; ValueError for `functions` of several objects.
        """
        codes = _read_all(code, "an object file")
        libraries = advice.checked_libraries(libraries)
        chosen = advice.checked_names("functions", functions)
        (data, what), *more = codes
        if chosen and (more or is_archive(data)):
            raise ValueError(
                f"functions={list(chosen)} is for a single object: of several, and of archives, a "
                f"function takes the objects that it needs"
            )
        if not more and not is_archive(data):
            embedded = embed(data, what, chosen)
            for name in chosen:
                _require_known(name, embedded.functions, what)
            return cls(embedded, _links(embedded.undefined, libraries, what))
        objects = joined(codes, libraries)
        pieces = objects.embedded()
        return cls(objects, _links_of(pieces, libraries, _all_names(codes)))

    @classmethod
    def from_llvm(cls, code: Code | Sequence[Code], *, libraries: Sequence[str] = ()) -> HostCode:
        """LLVM IR, as text or bitcode, or the path of a file with it, for this platform; or a list
        of these, which are linked to one module.

        It is read, verified and compiled once in a separate process, which stays for the next
        code; the same code again costs nothing.  In a list internal names are kept apart, and the
        same code twice counts once.  Raises CompileError with LLVM's message if that fails, for
        another platform, if two of a list define a symbol or disagree on its type, and as
        `from_object` does.
        """
        codes = _read_all(code, "LLVM IR")
        named = advice.checked_libraries(libraries)
        for data, what in codes:
            advice.check_llvm(data, what)
        return _of_llvm(tuple(codes), named)

    @classmethod
    def from_library(cls, path: str | os.PathLike[str] | None) -> HostCode:
        """A shared library, by its path or the name for the system's loader, `libz.so.1`; None for
        everything that the process has loaded, and the libraries of every C program.

        The library is not copied: exported code needs it when it is loaded.  Raises CompileError
        for one that cannot be loaded, TypeError if it is not a path, ValueError for an empty path.
        """
        if not isinstance(path, str | os.PathLike | None):
            raise TypeError(f"expected the name or path of a shared library, but got {path!r}")
        if path == "":
            raise ValueError("expected the name or path of a shared library, but got ''")
        name = None if path is None else advice.located(path)
        _open(name)
        return cls(Library(name))

    @classmethod
    def undefined(cls) -> HostCode:
        """Functions that are not defined yet: undefined symbols of the wrapper from `emit_wrapper`,
        for the module that it is inserted into.  A function with such code cannot be loaded."""
        return cls(Undefined())

    def require(self, symbol: str, kind: ir.FunctionType | None, what: str) -> None:
        """Raise CompileError if there is no such function, or it has another type than `kind`;
        None for a function of any type."""
        match self.source:
            case Address():
                return
            case Undefined():
                _check_name(symbol)
            case Library(path):
                _check_name(symbol)
                if not _has(_open(path), symbol):
                    raise _no_symbol(symbol, path, what)
            case LlvmModule(functions=functions, text=text, refused=refused):
                if symbol in refused:
                    raise irtext.cannot(f"{what}: the function {symbol}", refused[symbol])
                _require_known(symbol, functions, what)
                if kind is not None:
                    irtext.require_type(symbol, functions[symbol], kind, what)
                irtext.require_c(self.symbol(symbol), text, f"{what}: the function {symbol}")
            case Embedded(functions=names) | Objects(functions=names):
                _require_known(symbol, names, what)
            case _:
                assert_never(self.source)

    def has(self, symbol: str) -> bool:
        """Whether the code has such a function; True for every name if nothing is known of the
        code."""
        match self.source:
            case Address() | Undefined():
                return True
            case Library(path):
                return _has(_open(path), symbol)
            case LlvmModule(functions=functions):
                return symbol in functions
            case Embedded(functions=names) | Objects(functions=names):
                return symbol in names
            case _:
                assert_never(self.source)

    def promises(self, symbol: str) -> tuple[Promised, ...]:
        """The known promises of the code about each parameter of a function."""
        source = self.source
        return source.promises.get(symbol, ()) if isinstance(source, LlvmModule) else ()

    def symbol(self, symbol: str) -> str:
        """The name under which the body calls a function of the code."""
        match self.source:
            case Address(value):
                return f"ferrule_address_{value:x}"
            case Library() | Undefined():
                return symbol
            case LlvmModule(digest=digest) | Embedded(digest=digest):
                return f"{PREFIX}{digest}.{symbol}"
            case Objects() as objects:
                return objects.symbol(symbol)

    def bring(self, call: Call, symbol: str) -> None:
        """Add the dependencies of this function to the body that calls it."""
        for link in self._links(symbol):
            call.link(link)
        match self.source:
            case Address(value, owner):
                call.link(Link(self.symbol(symbol), None, value, owner))
            case Library(path):
                if symbol not in C_FUNCTIONS:
                    call.link(_link(symbol, [] if path is None else [path]))
            case LlvmModule(digest=digest, text=text, foreign=foreign):
                call.part(Part(f"{PREFIX}{digest}", "", text, foreign=foreign))
            case Embedded(digest=digest) as embedded:
                call.part(Part(f"{PREFIX}{digest}", "", "", embedded=(embedded,)))
            case Objects(digest=digest) as objects:
                pieces = objects.embedded(symbol)
                call.part(Part(f"{PREFIX}{digest}.{symbol}", "", "", embedded=pieces))

    def _links(self, symbol: str) -> tuple[Link, ...]:
        """The undefined symbols that a function needs."""
        if not isinstance(self.source, Objects):
            return self.links
        pieces = self.source.embedded(symbol)
        return _links_of(pieces, self.source.libraries, f"the function {symbol}")


@lru_cache(maxsize=_MOST_KEPT)
def _of_llvm(codes: tuple[tuple[bytes, str], ...], libraries: tuple[str, ...]) -> HostCode:
    """See `HostCode.from_llvm`; what was made last is kept."""
    digests = [sha256(data).hexdigest() for data, _ in codes]
    (digest,) = digests if len(digests) == 1 else [sha256("".join(digests).encode()).hexdigest()]
    digest, names, what = digest[:16], [name for _, name in codes], _all_names(codes)
    prefix = f"{PREFIX}{digest}."
    tried = tried_in_child(codes, prefix)
    irtext.check_platforms(tried, names)
    said = tried["said"]
    text, refused = irtext.usable(tried, names)
    if refused:
        rest = text.replace(prefix, "").encode()
        tried = tried_in_child([(rest, f"{what} without what cannot be embedded")], prefix)
    text = irtext.embeddable(tried["text"])
    try:
        undefined = read_object(base64.b64decode(tried["object"])).undefined
    except ObjectFileError as error:
        raise CompileError(f"{what} cannot be embedded: {error}") from None
    features = needed_features(tried["cpus"], tried["target"], what)
    is_portable = not any(triple for triple, _ in said)
    foreign = Foreign(tried["target"], is_portable, features)
    found = {name: tuple(map(promised, each)) for name, each in tried["promises"].items()}
    gone = {name.removeprefix(prefix): why for name, why in refused.items()}
    module = LlvmModule(digest, tried["functions"], text, foreign, found, gone)
    # Include calls that the optimiser removes: without it they are made.
    more = _known_links(set(tried["needed"]).difference(undefined), libraries)
    return HostCode(module, (*_links(undefined, libraries, what), *more))


def _address(given: object, owner: object) -> Address:
    if isinstance(given, int) and not isinstance(given, bool):
        value, keep = given, owner
    elif isinstance(given, CFuncPtr):
        value, keep = ctypes.cast(given, ctypes.c_void_p).value or 0, (given, owner)
    elif isinstance(found := getattr(given, "address", None), int):
        value, keep = found, (given, owner)
    else:
        raise TypeError(
            f"expected the address of a C function, a ctypes function or an object with an "
            f"address, but got {given!r}"
        )
    if not 0 < value < 1 << 64:
        raise ValueError(f"expected the address of a C function, but got {value:#x}")
    return Address(value, keep)


def _read(code: Code, kind: str) -> tuple[bytes, str]:
    """The bytes, and their name in errors."""
    if isinstance(code, bytes | bytearray | memoryview):
        return bytes(code), kind
    if isinstance(code, str) and (not code or "\n" in code or "define " in code):
        return code.encode(), kind
    if not isinstance(code, str | os.PathLike):
        raise TypeError(f"expected the bytes or the path of {kind}, but got {type(code).__name__}")
    return Path(code).read_bytes(), os.fspath(code)


def _read_all(code: Code | Sequence[Code], kind: str) -> list[tuple[bytes, str]]:
    """The bytes of one code or of a list, and their names in errors."""
    if not isinstance(code, list | tuple):
        return [_read(cast("Code", code), kind)]
    if not code:
        raise ValueError(f"expected at least one code in the list, each {kind}")
    read = (_read(each, f"{kind} #{at} of the list") for at, each in enumerate(code))
    # The same code twice counts once.
    named: dict[bytes, str] = {}
    for data, what in read:
        named.setdefault(data, what)
    return list(named.items())


def _all_names(codes: Iterable[tuple[bytes, str]]) -> str:
    return ", ".join(what for _, what in codes)


def _links_of(pieces: Iterable[Embedded], libraries: Sequence[str], what: str) -> tuple[Link, ...]:
    """The libraries that several objects need."""
    needed = dict.fromkeys(name for piece in pieces for name in piece.undefined)
    return _links(needed, libraries, what)


def _require_known(symbol: str, names: Iterable[str], what: str) -> None:
    known = sorted(names)
    if symbol not in known:
        there = ", ".join(known[:20]) + (", …" if len(known) > 20 else "") or "none"
        message = f"{what}: the code has no function {symbol}; there are: {there}"
        raise CompileError(Diagnostic(message, hint=advice.for_name(symbol, known)))


def _no_symbol(symbol: str, path: str | None, what: str) -> CompileError:
    if path is None:
        known = [name for library in OF_C for name in exported_symbols(library)]
        where = (
            f"say where the function is, code={advice.HOSTCODE}.from_library('libz.so.1'), "
            "from_object(…)"
        )
        near = known and advice.for_name(symbol, known)
        hint = f"{near} Else {where}" if near else where
        return CompileError(Diagnostic(f"{what}: this process has no symbol {symbol}", hint=hint))
    hint = 'functions of C++ have other names, unless they are extern "C"'
    names = exported_symbols(path)
    hint = (advice.for_name(symbol, names) if names else None) or hint
    return CompileError(Diagnostic(f"{what}: the library {path} has no symbol {symbol}", hint=hint))


def _check_name(symbol: str) -> None:
    if not SYMBOL.fullmatch(symbol) or symbol.startswith(_OURS):
        raise ValueError(f"{symbol!r} is no name of a C function that code can call")


def _links(undefined: Iterable[str], libraries: Sequence[str], what: str) -> tuple[Link, ...]:
    """The libraries of undefined symbols.  Raises CompileError for a symbol that is not found."""
    found, missing = [], []
    for symbol in undefined:
        if symbol in C_FUNCTIONS or symbol in _LINKER_MAKES:
            continue
        if symbol.startswith((*_OURS, "llvm.")) or not SYMBOL.fullmatch(symbol):
            missing.append(symbol)
            continue
        try:
            found.append(_link(symbol, libraries))
        except CompileError:
            missing.append(symbol)
    if missing:
        raise CompileError(
            Diagnostic(
                f"{what} needs {', '.join(missing)}, which "
                f"{'is' if len(missing) == 1 else 'are'} neither in the libraries that were named "
                f"nor in this process",
                hint="name the library that has it, libraries=['libname.so.1']",
            )
        )
    return tuple(found)


def _known_links(symbols: Iterable[str], libraries: Sequence[str]) -> Iterator[Link]:
    """The libraries of those symbols that are found."""
    for symbol in sorted(symbols):
        if symbol not in C_FUNCTIONS and not symbol.startswith("llvm."):
            with suppress(CompileError):
                yield from _links([symbol], libraries, "the code")


def _link(symbol: str, libraries: Sequence[str]) -> Link:
    """The place of a symbol: one of the libraries, a library of C, or this process."""
    for path in libraries:
        if _has(_open(path), symbol):
            return Link(symbol, path)
    for path in OF_C:
        if _is_there(path) and _has(ctypes.CDLL(path), symbol):
            return Link(symbol, path)
    if _has(_open(None), symbol):
        return Link(symbol)
    raise CompileError(f"no library has the symbol {symbol}")


def _open(path: str | None) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        message = f"the library {path} cannot be loaded: {error}"
        raise CompileError(Diagnostic(message, hint=advice.for_library(path or ""))) from None


def _is_there(path: str) -> bool:
    try:
        ctypes.CDLL(path)
    except OSError:
        return False
    return True


def _has(library: ctypes.CDLL, symbol: str) -> bool:
    try:
        return ctypes.cast(library[symbol], ctypes.c_void_p).value is not None
    except AttributeError:
        return False


# ---- the functions of a loaded shared library, for messages ----


# RTLD_DI_LINKMAP of glibc's dlinfo.
_LINK_MAP: Final = 2


class _LinkMap(ctypes.Structure):
    """The first fields of glibc's and musl's `struct link_map`."""

    _fields_ = (("address", ctypes.c_void_p), ("name", ctypes.c_char_p))


def exported_symbols(path: str) -> list[str]:
    """The names that a library exports; none if they cannot be found out."""
    try:
        return list(read_library(_file(path).read_bytes()).defined)
    except (OSError, AttributeError, ObjectFileError):
        return []


def _file(path: str) -> Path:
    """The file of a library that the loader found by a path or name (dlinfo, RTLD_DI_LINKMAP)."""
    library, found = ctypes.CDLL(path), ctypes.POINTER(_LinkMap)()
    dlinfo = ctypes.CDLL(None).dlinfo
    dlinfo.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    if dlinfo(library._handle, _LINK_MAP, ctypes.byref(found)) != 0 or not found:
        raise OSError(f"the loader does not say where {path} is")
    return Path((found.contents.name or b"").decode())

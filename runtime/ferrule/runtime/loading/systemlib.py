"""Registers code with tvm-ffi's system library, which makes a module of tvm-ffi from its symbols.

A module of tvm-ffi is a C++ object; tvm-ffi makes it only from a file or from registered symbols. A
registration lasts as long as the process, so the code is never freed. The same code is registered
only once.

tvm-ffi makes the module of a prefix under a lock, and holds the lock while it makes the imported
modules. A loader that itself asks for a system library would deadlock. Therefore modules that are
registered here are made before the module that imports them.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import tvm_ffi

from ferrule.runtime.abi import LIBRARY_CONTEXT, SYMBOL_PREFIX, system_lib_symbol
from ferrule.runtime.artefacts import ObjectCode
from ferrule.runtime.binaries import importtree
from ferrule.runtime.binaries.archive import read_archive
from ferrule.runtime.binaries.digest import check_digest
from ferrule.runtime.binaries.elf import ARCHIVE, ObjectFileError
from ferrule.runtime.binaries.importtree import LIBRARY, Node
from ferrule.runtime.binaries.libraryfile import read_import_bytes
from ferrule.runtime.binaries.metadata import NOTE_OWNER, NOTE_TYPE, read_metadata
from ferrule.runtime.binaries.objectfile import read_object
from ferrule.runtime.forks import ForkLock
from ferrule.runtime.host import libtvm_ffi
from ferrule.runtime.linking.engine import Engine
from ferrule.runtime.linking.objectgroup import Member, load_group
from ferrule.runtime.loading.finder import Finder
from ferrule.runtime.paths import read_file
from ferrule.specs.deferred import dataclass


@dataclass(slots=True)
class _Registered:
    """The permanent data of a prefix: the digest of its source, its code and, later, its module."""

    digest: str
    code: object
    module: tvm_ffi.Module | None = None


# A registration cannot be undone: tvm-ffi may call the code until the process ends.
_REGISTERED: Final[dict[str, _Registered]] = {}
_LOCK: Final = ForkLock()


def register(
    prefix: str, objects: Sequence[bytes], imports: Sequence[tvm_ffi.Module] = ()
) -> tvm_ffi.Module:
    """The module of these objects' functions, which imports these modules, too.

    ValueError if the prefix has other objects or imports.
    """
    # What is imported is never freed, so that no other module comes to have its address.
    handles = "".join(f"{each.__chandle__()} " for each in imports)
    digest = hashlib.sha256(b"".join(map(_hash, objects)) + handles.encode()).hexdigest()
    return _module(prefix, digest, lambda: _load_objects(prefix, objects), imports)


def register_code(
    prefix: str, digest: str, make: Callable[[], tuple[object, Iterable[tuple[str, int]]]]
) -> tvm_ffi.Module:
    """The module of the code that `make` returns, with its symbols and their addresses."""

    def loaded() -> object:
        code, symbols = make()
        _register(symbols)
        return code

    return _module(prefix, digest, loaded)


def _module(
    prefix: str,
    digest: str,
    load: Callable[[], object],
    imports: Sequence[tvm_ffi.Module] = (),
) -> tvm_ffi.Module:
    with _LOCK:
        known = _REGISTERED.get(prefix)
        if known is None:
            known = _REGISTERED[prefix] = _Registered(digest, load())
    if known.digest != digest:
        raise ValueError(f"the prefix {prefix!r} has other functions: choose another one")
    if known.module is None:
        # Not under our lock: tvm-ffi calls loaders under its own lock, and they may need ours.
        module = tvm_ffi.system_lib(prefix)
        _share_context(known.code)
        with _LOCK:
            for each in imports if known.module is None else ():
                module.import_module(each)
            known.module = module
    return known.module


def load_file(path: str) -> tvm_ffi.Module:
    """The module of an object or an archive; `tvm_ffi.load_module` calls this for these files."""
    data = read_file(Path(path))
    try:
        objects = list(read_archive(data)) if data.startswith(ARCHIVE) else [data]
        for each in objects:
            read_object(each)
            check_digest(each)
        return register(f"ferrule_{_hash(data).hex()[:24]}_", objects)
    except ObjectFileError as error:
        raise ObjectFileError(f"{path}: {error}") from None


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _load_objects(prefix: str, objects: Sequence[bytes]) -> list[Engine]:
    engines = load_group([member(prefix, data) for data in objects])
    for data in objects:
        _make_imports(data)
    symbols: dict[str, int] = {}
    for engine in engines:
        for symbol in read_object(engine.code.data).defined:
            if symbol.startswith(SYMBOL_PREFIX):
                # Each object may define the same symbol of a library, such as its context; the
                # first one counts.
                symbols.setdefault(system_lib_symbol(prefix, symbol), engine.address(symbol))
    _register(symbols.items())
    return engines


def give_imports(engines: Iterable[Engine], nodes: Sequence[Node]) -> None:
    """Let the code of objects look up functions in the modules of their import tree.

    tvm-ffi has no module for these objects, so a module without functions, which is never freed,
    represents them.
    """
    wanting = [engine for engine in engines if _has_context(engine)]
    if not wanting:
        return
    digest = hashlib.sha256(importtree.write_import_tree(nodes)).hexdigest()
    prefix = f"ferrule_imports_{digest[:24]}_"
    slot = ctypes.c_void_p()
    module = register_code(
        prefix, digest, lambda: (slot, [(prefix + LIBRARY_CONTEXT, ctypes.addressof(slot))])
    )
    # A module that has imports is from an earlier call for the same tree.
    libraries = (node for node in nodes if node.kind == LIBRARY and not module.imports)
    made = [_made(nodes, child) for node in libraries for child in node.children]
    with _LOCK:
        for child in made if not module.imports else ():
            module.import_module(child)
    context = _REGISTERED[prefix].code
    assert isinstance(context, ctypes.c_void_p)
    for engine in wanting:
        ctypes.memmove(engine.address(LIBRARY_CONTEXT), ctypes.byref(context), ctypes.sizeof(slot))


def _made(nodes: Sequence[Node], at: int) -> tvm_ffi.Module:
    """The module that the loader of its kind makes from a node, with its imports."""
    node = nodes[at]
    if isinstance(node.live, tvm_ffi.Module):
        return node.live
    module = Finder(node.kind, node.data).module
    for child in node.children:
        # There is no module of the code itself.
        if nodes[child].kind != LIBRARY:
            module.import_module(_made(nodes, child))
    return module


def member(name: str, data: bytes) -> Member:
    """An object with the links that its metadata says."""
    header = read_object(data)
    notes = (n for n in header.notes if (n.owner, n.kind) == (NOTE_OWNER, NOTE_TYPE))
    links = [link for note in notes for link in read_metadata(note.text).links]
    return Member(ObjectCode(name, data, "", ""), header, tuple(links))


def _make_imports(data: bytes) -> None:
    """Make the modules that an object imports, before tvm-ffi asks for them under its lock."""
    from ferrule.runtime.loading.loaders import FROM_BYTES

    tree = read_import_bytes(data)
    for node in importtree.read_import_tree(tree) if tree is not None else ():
        if node.kind in FROM_BYTES:
            FROM_BYTES[node.kind](node.data)


def _share_context(code: object) -> None:
    """Copy the library's module into all objects: tvm-ffi stores it only in the first of them."""
    engines = [engine for engine in code if _has_context(engine)] if isinstance(code, list) else []
    for engine in engines[1:]:
        ctypes.memmove(engine.address(LIBRARY_CONTEXT), engines[0].address(LIBRARY_CONTEXT), 8)


def _has_context(engine: Engine) -> bool:
    return LIBRARY_CONTEXT in read_object(engine.code.data).defined


def _register(symbols: Iterable[tuple[str, int]]) -> None:
    add: Any = libtvm_ffi().TVMFFIEnvModRegisterSystemLibSymbol
    for name, address in symbols:
        if add(name.encode(), ctypes.c_void_p(address)) != 0:
            raise RuntimeError(f"tvm-ffi does not take the symbol {name!r}")

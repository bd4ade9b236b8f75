"""The way of a compilation through the cache: memory, folder, second level, compiler.

A key is computed before a compilation and again behind it: where the two differ, because the
compilation or another thread changed what it depends on, nothing is kept.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ferrule.compiler.cache import settings
from ferrule.compiler.cache.entries import Entry, EntryError, State, packed, unpacked
from ferrule.compiler.cache.keys import Key, Uncacheable, differing, noting
from ferrule.compiler.cache.memory import Loaded, Memory
from ferrule.compiler.cache.restored import RestoredOrigin
from ferrule.compiler.cache.store import Store, warn_once
from ferrule.runtime.artefacts import ObjectCode
from ferrule.runtime.binaries.elf import ObjectFileError
from ferrule.runtime.binaries.metadata import Metadata, MetadataError, read_metadata
from ferrule.runtime.errors import LinkError
from ferrule.runtime.linking.engine import Engine
from ferrule.runtime.linking.links import resolve
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.compiler.artefacts import HostModule
    from ferrule.compiler.cache.remote import Remote
    from ferrule.compiler.origin import CompiledOrigin
    from ferrule.runtime.calls.function import Function

MEMORY: Final = Memory()
_VARIABLE: Final = re.compile(r'^@"?([^\s"]+)"? = (?!.*\bconstant\b)', re.M)
_FOREIGN: Final = "@foreign = global"
"""Stands for machine code of others, which may have variables."""


@dataclass(slots=True)
class Counts:
    """What this process had of the cache; `uncacheable` are compilations without a key."""

    hits: int = 0
    misses: int = 0
    uncacheable: int = 0


COUNTS: Final = Counts()
_STORES: Final[dict[tuple[Path, int], Store]] = {}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A compilation: `key_of` tells its key now, and `make` does it.

    `name` is for the log.  `key_of` raises Uncacheable where there is none.  `on` is False for a
    compilation that must not use the cache.  `watched` tells the key with a witness of all that is
    in it.
    """

    name: str
    key_of: Callable[[], Key]
    make: Callable[[], CompiledOrigin]
    on: bool = True
    watched: Callable[[], tuple[Key, Any]] | None = None


def through(wanted: Wanted) -> Function:
    """The function of a compilation: from the cache, or compiled and kept."""
    if not is_kept(wanted):
        return _compiled(wanted, None)
    try:
        key = wanted.key_of()
    except Uncacheable as why:
        COUNTS.uncacheable += 1
        log(f"not kept: {wanted.name}: {why}")
        return _compiled(wanted, None)
    found = known(wanted, key)
    if found is None:
        return _compiled(wanted, key)
    COUNTS.hits += 1
    return found.function()


def is_kept(wanted: Wanted) -> bool:
    """Whether a compilation uses the cache."""
    return wanted.on and settings.is_on()


def known(wanted: Wanted, key: Key) -> Loaded | None:
    """The code of a key, from memory, the folder or the second level."""
    found = MEMORY.get(key.digest)
    if found is not None:
        log(f"hit in memory: {wanted.name}")
        return found.afresh()
    folder, far = store(), remote()
    entry = None if folder is None else folder.read(key)
    place = "the folder"
    if entry is None and far is not None and (data := far.read(key)) is not None:
        place, entry = far.address, unpacked(data)
        if folder is not None:  # so that the next process needs no network
            folder.write_bytes(data, key)
    loaded = None if entry is None else _restored(wanted, key, entry, place)
    if loaded is not None:
        MEMORY.add(key.digest, loaded)
    return loaded


def _restored(wanted: Wanted, key: Key, entry: Entry, place: str) -> Loaded | None:
    """The code of an entry, loaded; None if this process cannot use it."""
    try:
        loaded = _loaded(wanted, key, entry)
    except (MetadataError, ObjectFileError, LinkError, EntryError) as error:
        log(f"miss: {wanted.name}: the entry of {place} cannot be used: {error}")
        return None
    log(f"taken from {place}: {wanted.name}")
    return loaded


def _loaded(wanted: Wanted, key: Key, entry: Entry) -> Loaded:
    metadata = read_metadata(entry.metadata)
    _check_cpu(entry)
    code = ObjectCode(metadata.name, entry.code, entry.triple, entry.cpu)
    found = resolve(metadata.links)
    engine = Engine.load(code, found.addresses, owners=found.owners)
    restored = RestoredOrigin(key, code, wanted.key_of, wanted.make)
    doc, traits, notes = entry.doc, metadata.traits, metadata.notes
    more = restored, metadata.links, entry.state
    return Loaded(engine, metadata.signature, doc, traits, notes, *more)


def made_here(wanted: Wanted) -> tuple[Key, Entry]:
    """The key and entry of a compilation that is done for another process.

    Raises Uncacheable if no other process may have it.
    """
    from ferrule.compiler import targets

    key = wanted.key_of()
    with noting() as noted:
        origin = wanted.make()
    why = noted[0] if noted else _why_not(wanted, key, origin)
    if why is not None:
        raise Uncacheable(why)
    host = targets.host()
    code = origin.emit(origin.module.signature.name, host.cpu, host.triple)
    return key, _entry(key, origin, code)


def adopted(wanted: Wanted, key: Key, entry: Entry) -> Function | None:
    """The function of an entry that another process made, which is kept here; None if this process
    cannot use it."""
    entry = replace(entry, key=key.digest, parts=key.parts, about=key.about)
    loaded = _restored(wanted, key, entry, "another process")
    if loaded is None:
        return None
    loaded.restored.where = "compiled"
    if is_kept(wanted):
        COUNTS.misses += 1
        MEMORY.add(key.digest, loaded)
        _write(wanted, key, entry)
    return loaded.function()


def _check_cpu(entry: Entry) -> None:
    """Compare the CPU as LLVM sees it, if this process has LLVM anyway.

    The key has the CPU as the system describes it; of an unusual machine that may not be all.
    """
    if "llvmlite.binding" not in sys.modules:
        return
    from ferrule.compiler.targets import host

    here = host()
    if (entry.triple, entry.cpu, entry.features) != (here.triple, here.cpu, here.features):
        raise EntryError(f"it is for the CPU {entry.cpu}, with other features")


def _compiled(wanted: Wanted, key: Key | None) -> Function:
    """Compile, and keep what has a key."""
    from ferrule.compiler.binding import function_of, linked, load

    if key is None:
        return load(wanted.make())
    COUNTS.misses += 1
    _explain(wanted, key)
    with noting() as noted:
        origin = wanted.make()
    code, engine = linked(origin)
    why = noted[0] if noted else _why_not(wanted, key, origin)
    if why is not None:
        log(f"not kept: {wanted.name}: {why}")
        return function_of(origin, engine)
    loaded = _kept(wanted, key, origin, code, engine)
    return loaded.function(origin)


def _kept(
    wanted: Wanted, key: Key, origin: CompiledOrigin, code: ObjectCode, engine: Engine
) -> Loaded:
    """Keep a compiled function, in memory and in the levels behind it."""
    origin.key = key
    entry = _entry(key, origin, code)
    restored = RestoredOrigin(key, code, wanted.key_of, wanted.make, origin)
    module = origin.module
    more = restored, module.body.links, entry.state
    loaded = Loaded(engine, module.signature, origin.doc, origin.traits, origin.notes, *more)
    MEMORY.add(key.digest, loaded)
    _write(wanted, key, entry)
    return loaded


def _write(wanted: Wanted, key: Key, entry: Entry) -> None:
    """Keep an entry behind the memory."""
    data = packed(entry)
    folder, far = store(), remote()
    if folder is not None and not folder.write_bytes(data, key):
        log(f"not written: {wanted.name}: {folder.folder} does not take it")
    if far is not None:
        far.write(key, data)


def _why_not(wanted: Wanted, key: Key, origin: CompiledOrigin) -> str | None:
    """Why the result of a compilation must not be kept; None if it may."""
    if origin.warned:
        return "it was built with warnings, which each build gives"
    if origin.sources:
        return "its code calls functions of this process"
    if any(link.address is not None for link in origin.module.body.links):
        return "its code has addresses of this process"
    try:
        now = wanted.key_of()
    except Uncacheable as error:
        return str(error)
    if now.digest != key.digest:
        return f"these changed while it was compiled: {', '.join(differing(now, key.parts))}"
    return None


def _entry(key: Key, origin: CompiledOrigin, code: ObjectCode) -> Entry:
    from ferrule.compiler.targets import host

    module = origin.module
    metadata = Metadata(
        module.signature,
        code.triple,
        code.cpu,
        traits=origin.traits,
        links=module.body.links,
        notes=origin.notes,
    )
    return Entry(
        key.digest,
        key.about,
        key.parts,
        metadata.text(),
        origin.doc,
        code.triple,
        code.cpu,
        host().features,
        _state_of(module),
        code.data,
    )


def _state_of(module: HostModule) -> State:
    """Which variables the code of a module has."""
    names = {name for text in _texts(module) for name in _VARIABLE.findall(text)}
    if not names:
        return "none"
    return "threads" if names == {"ferrule.threads"} else "own"


def _texts(module: HostModule) -> Iterator[str]:
    yield module.wrapper
    todo = [module.body.part]
    while todo:
        part = todo.pop()
        yield part.text
        todo += part.parts
        if part.embedded:
            yield _FOREIGN


def store() -> Store | None:
    """The folder of the cache; None without a home.  NotADirectoryError if what a user named is
    a file."""
    folder = settings.chosen_folder()
    if folder is not None:
        check_folder(folder)
    else:
        folder = settings.default_folder()
        if folder is None:
            warn_once("there is no home folder for the cache: name one with FERRULE_CACHE_DIR")
            return None
    name = folder, settings.limit()
    found = _STORES.get(name)
    if found is None:
        found = _STORES[name] = Store(*name)
    return found


def remote() -> Remote | None:
    """The second level, where one is chosen."""
    if settings.remote() is None:
        return None
    from ferrule.compiler.cache.remote import remote as chosen

    return chosen()


def check_folder(folder: Path) -> None:
    """NotADirectoryError for a folder that is something else."""
    if os.path.lexists(folder) and not folder.is_dir():
        raise NotADirectoryError(
            f"the folder of the cache is to be {folder}, which is a file: name a folder with "
            f"{settings.FOLDER} or fe.cache.folder(path), or remove the file"
        )


def _explain(wanted: Wanted, key: Key) -> None:
    """Say in the log why there is no entry: what differs from the nearest one."""
    if not settings.is_logged():
        return
    folder = store()
    near = [] if folder is None else folder.near(key)
    if not near:
        log(f"miss: {wanted.name}: nothing of this name is in the cache")
        return
    least = min((differing(key, entry.parts) for entry in near), key=len)
    log(f"miss: {wanted.name}: other than in the nearest entry: {', '.join(least)}")


def log(text: str) -> None:
    """A line of the log, if it is wanted."""
    if settings.is_logged():
        print(f"ferrule cache: {text}", file=sys.stderr, flush=True)

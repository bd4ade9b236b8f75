"""Loads functions from files: objects, archives of objects, shared libraries, or their bytes.

All checks that only read the file come before its code runs: whether the file is complete, and
whether it is for this machine, this CPU and this tvm-ffi. Functions that ferrule exported have
their names, defaults, signatures and docstrings again; functions of other libraries are plain
functions of tvm-ffi. To load a library needs no LLVM.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import tvm_ffi

from ferrule.runtime import cpus
from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.artefacts import ObjectCode
from ferrule.runtime.binaries.digest import check_digest, is_marked
from ferrule.runtime.binaries.elf import ARCHIVE, FileType, Note, ObjectFileError
from ferrule.runtime.binaries.importtree import LIBRARY, Node, order, read_import_tree
from ferrule.runtime.binaries.libraryfile import LibraryFile, read_import_bytes, read_library
from ferrule.runtime.binaries.metadata import (
    NOTE_OWNER,
    NOTE_TYPE,
    Metadata,
    MetadataError,
    read_metadata,
)
from ferrule.runtime.binaries.objectfile import ObjectFile, read_object
from ferrule.runtime.calls.function import Function, make_function
from ferrule.runtime.garbage import with_fewer_collections
from ferrule.runtime.host import host_machine
from ferrule.runtime.linking.sharedlibrary import (
    keep_libraries,
    open_library,
    tvm_ffi_version,
)
from ferrule.runtime.loading.modules import Module
from ferrule.runtime.loading.origin import LoadedOrigin
from ferrule.runtime.paths import checked_path, read_file

if TYPE_CHECKING:
    from ferrule.runtime.binaries.elf import Machine
    from ferrule.runtime.linking.objectgroup import Member

_DOC_PREFIX: Final = f"{SYMBOL_PREFIX}_doc_"


def load_module(
    file: str | os.PathLike[str] | os.PathLike[bytes] | bytes | bytearray | memoryview,
    *,
    enable_tvm_ffi: bool = True,
) -> Module:
    """The functions of a file: a shared library, an object, an archive of objects, or its bytes.

    FileNotFoundError if there is no file. ObjectFileError, which names the file, for a file of
    another kind, a truncated file, a file for another machine or CPU, and a file that needs a newer
    tvm-ffi or a missing symbol. `enable_tvm_ffi` has no effect; some programs pass it.
    """
    if isinstance(file, bytes | bytearray | memoryview):
        path, data = None, bytes(file)
    else:
        path = checked_path(file, "load_module")
        data = read_file(path)
    try:
        return with_fewer_collections(lambda: _load(data, path))
    except (ObjectFileError, MetadataError) as error:
        where = "" if path is None else f"{path}: "
        raise ObjectFileError(f"{where}{error}") from None


def load_pickled(data: bytes, name: str) -> Function:
    """The function of this name in an object, which is the content of a pickle."""
    function: Function = _load(data, None)[name]
    return function


def _load(data: bytes, path: Path | None) -> Module:
    if data.startswith(ARCHIVE):
        from ferrule.runtime.binaries.archive import read_archive

        objects = list(read_archive(data))
        return _load_objects("archive", objects, path).keep_file(".a", data)
    if _is_library(data):
        return _load_library(data, path).keep_file(".so", data)
    return _load_objects("object", [data], path).keep_file(".o", data)


def check_file(data: bytes) -> None:
    """Every check of `load_module` for the bytes of a file, except those of the system's loader.

    Nothing of the file is linked or run. ObjectFileError or MetadataError, as `load_module` would
    explain them.
    """
    from ferrule.runtime.linking.objectgroup import check_group

    if data.startswith(ARCHIVE):
        from ferrule.runtime.binaries.archive import read_archive

        objects = list(read_archive(data))
    elif _is_library(data):
        _read_library(data)
        return
    else:
        objects = [data]
    check_group([member for member, _ in map(_read_member, objects)])
    # The first tree alone counts, as in `_load_objects`.
    for tree in filter(None, map(read_import_bytes, objects)):
        read_import_tree(tree)
        break


def _is_library(data: bytes) -> bool:
    # `e_type` of the header, which stands behind the 16 bytes of `e_ident`.
    return data[:4] == b"\x7fELF" and data[16:18] == bytes((FileType.LIBRARY, 0))


def _read_member(data: bytes) -> tuple[Member, dict[str, Metadata]]:
    """An object, checked, and the metadata of its functions."""
    header = read_object(data)
    check_digest(data)
    described = _described(header.machine, header.defined, header.notes)
    return _member(data, header, described), described


def _load_objects(kind: str, objects: Sequence[bytes], path: Path | None) -> Module:
    from ferrule.runtime.linking.objectgroup import load_group

    origin_of_file = "an object" if path is None else str(path)
    read = [_read_member(data) for data in objects]
    members, notes = [member for member, _ in read], [described for _, described in read]
    engines = load_group(members)
    makers: dict[str, Callable[[], Any]] = {}
    for member, described, engine in zip(members, notes, engines, strict=True):
        origin = LoadedOrigin(origin_of_file, member.code.data, member.code.data)
        defined = member.header.defined
        makers.update(_makers(described, defined, engine.address, engine, origin))
    trees = list(filter(None, map(read_import_bytes, objects)))
    if not trees:
        return Module.loaded(kind, path, makers)
    from ferrule.runtime.loading.systemlib import give_imports

    nodes = read_import_tree(trees[0])
    give_imports(engines, nodes)
    return _tree(nodes, kind, path, makers, {})


def _read_library(
    data: bytes,
) -> tuple[LibraryFile, dict[str, Metadata], Sequence[Node] | None]:
    """A library, checked: its headers, the metadata of its functions, and its import tree."""
    header = read_library(data)
    if not check_digest(data) and is_marked(data):
        from ferrule.runtime.binaries.soundness import check_library

        check_library(data)
    described = _described(header.machine, header.defined, header.notes)
    tree = read_import_bytes(data)
    # Read and check the tree before tvm-ffi does: a damaged tree would keep tvm-ffi busy for ever.
    return header, described, None if tree is None else read_import_tree(tree)


def _load_library(data: bytes, path: Path | None) -> Module:
    header, described, nodes = _read_library(data)
    library = open_library(data, path, header)
    links = (link for metadata in described.values() for link in metadata.links)
    keep_libraries(link.library for link in links if link.library)
    origin = LoadedOrigin("a library" if path is None else str(path), data, None)
    makers = _makers(described, header.defined, library.address, library, origin)
    if nodes is None:
        return Module.loaded("library", path, makers)
    return _tree(nodes, "library", path, makers, library.modules(nodes))


def _tree(
    nodes: Sequence[Node],
    kind: str,
    path: Path | None,
    makers: Mapping[str, Callable[[], Any]],
    known: Mapping[int, tvm_ffi.Module],
) -> Module:
    """The root module of an import tree; its library has this kind. `known` are the modules that
    tvm-ffi has already made from the nodes."""
    from ferrule.runtime.loading.finder import Finder

    modules: dict[int, Module] = {}
    for at in order(nodes):
        node = nodes[at]
        imports = tuple(modules[child] for child in node.children)
        if node.kind == LIBRARY:
            modules[at] = Module.loaded(kind, path, makers, imports=imports)
        else:
            finder = Finder(node.kind, node.data, known.get(at))
            modules[at] = Module.loaded(
                node.kind, path, {}, imports=imports, data=node.data, finder=finder
            )
    return modules[0]


def _member(data: bytes, header: ObjectFile, described: Mapping[str, Metadata]) -> Member:
    from ferrule.runtime.linking.objectgroup import Member

    first = next(iter(described.values()), None)
    name, triple, cpu = (first.name, first.triple, first.cpu) if first else ("", "", "")
    links = [link for metadata in described.values() for link in metadata.links]
    return Member(ObjectCode(name, data, triple, cpu), header, tuple(links))


def _described(
    machine: Machine, defined: Sequence[str], notes: Iterable[Note]
) -> dict[str, Metadata]:
    """The metadata of the functions in these notes, each checked against this process."""
    if machine is not host_machine():
        raise ObjectFileError(
            f"wanted code for {host_machine().name.lower()}, the machine of this process, "
            f"got code for {machine.name.lower()}"
        )
    texts = (note.text for note in notes if (note.owner, note.kind) == (NOTE_OWNER, NOTE_TYPE))
    found = {metadata.name: metadata for metadata in map(read_metadata, texts)}
    for metadata in found.values():
        _check(metadata)
        if SYMBOL_PREFIX + metadata.name not in defined:
            raise ObjectFileError(
                f"the metadata tells of {metadata.name}, but the symbol "
                f"{SYMBOL_PREFIX}{metadata.name} is missing"
            )
    return found


def _check(metadata: Metadata) -> None:
    lacking = cpus.lacking(metadata.features, cpus.host_architecture())
    if lacking:
        raise ObjectFileError(
            f"{metadata.name} was exported for the CPU {metadata.cpu} and needs "
            f"{', '.join(lacking)}, which this machine's CPU does not have; "
            f"export it without --host-cpu, and with code of others that needs none of it, to run "
            f"it on every {cpus.host_architecture()} CPU"
        )
    here = tvm_ffi_version()
    if metadata.abi > here:
        raise ObjectFileError(
            f"{metadata.name} needs the C API of tvm-ffi {_dotted(metadata.abi)} or newer, "
            f"this process has {_dotted(here)}; install a newer apache-tvm-ffi"
        )


def _dotted(version: Iterable[int]) -> str:
    return ".".join(map(str, version))


def _makers(
    described: Mapping[str, Metadata],
    defined: Sequence[str],
    address: Callable[[str], int],
    owner: object,
    origin: LoadedOrigin,
) -> dict[str, Callable[[], Any]]:
    """A maker for each function of a file, by name; `owner` keeps the code alive."""
    # `__tvm_ffi__…` are symbols of tvm-ffi itself, such as metadata and docstrings. No function has
    # one, see `check_export_name`.
    special = f"{SYMBOL_PREFIX}_"
    names = [*described]
    for symbol in defined:
        name = symbol.removeprefix(SYMBOL_PREFIX)
        if name != symbol and not symbol.startswith(special) and name not in described:
            names.append(name)

    def make(name: str) -> Any:
        metadata, at = described.get(name), address(SYMBOL_PREFIX + name)
        if metadata is None:
            return tvm_ffi.Function.__from_extern_c__(at, keep_alive_object=owner)
        said = _DOC_PREFIX + name
        doc = _text(address(said), owner) if said in defined else None
        return make_function(
            at,
            metadata.signature,
            replace(origin, images=metadata.images, symbol=SYMBOL_PREFIX + name),
            owner=owner,
            doc=doc,
            traits=metadata.traits,
            notes=metadata.notes,
        )

    return {name: partial(make, name) for name in names}


def _text(address: int, owner: object) -> str:
    """Call the function at an address, without arguments; its result as text."""
    function = tvm_ffi.Function.__from_extern_c__(address, keep_alive_object=owner)
    return str(function())

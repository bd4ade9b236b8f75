"""Writes functions to files: code, objects, libraries, headers for C and C++, stubs for Python.

An export compiles the code again, for the export target of the function: by default the baseline
CPU of this machine's architecture. A file is written completely or not at all, and the same
functions give the same bytes.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_args

from ferrule import specs
from ferrule.runtime.artefacts import (
    DeviceOrigin,
    ExportForm,
    OperatorCode,
    OperatorOrigin,
    Origin,
)
from ferrule.runtime.binaries.archive import write_archive
from ferrule.runtime.binaries.dataobject import data_object, flags_of
from ferrule.runtime.binaries.digest import sealed_library
from ferrule.runtime.binaries.importtree import SYMBOL as IMPORT_TREE
from ferrule.runtime.binaries.metadata import NOTE_OWNER, NOTE_TYPE, read_metadata
from ferrule.runtime.binaries.objectfile import read_object
from ferrule.runtime.calls.plan import is_compiled, origin_of
from ferrule.runtime.cpus import host_architecture
from ferrule.runtime.errors import StageError
from ferrule.runtime.exporting.headers import Described, c_header, cpp_header
from ferrule.runtime.exporting.stubs import stub
from ferrule.runtime.host import host_machine
from ferrule.runtime.linking.linker import find_linker, machine_of
from ferrule.runtime.paths import checked_path

if TYPE_CHECKING:
    from ferrule.runtime.calls.function import Function

StrPath: TypeAlias = "str | bytes | os.PathLike[str] | os.PathLike[bytes]"

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})

_IDENTIFIER: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*|_[A-Za-z0-9_]*", re.ASCII)

# File names have at most 255 bytes on Linux's file systems.
_LONG: Final = 200

_FORMS: Final[Mapping[str, ExportForm]] = {form: form for form in get_args(ExportForm)}


def export_code(origin: Origin, name: str, path: StrPath, system_lib: str | None = None) -> None:
    """Write the code that defines `__tvm_ffi_<name>` in the form that the suffix names.

    `.o` is an object, `.s` its assembly, `.ll` and `.bc` are its LLVM IR as text and as bitcode.
    `.ptx` is the PTX of the kernels alone; a function for several GPU architectures gives a file
    for each, with the architecture before the suffix, because a PTX text has one architecture.
    `.mlir` is the kernel IR as MLIR, under the function's own name. With the prefix `system_lib`
    the code registers itself.
    """
    check_export_name(name)
    if system_lib is not None and not re.fullmatch(r"\w*", system_lib, re.ASCII):
        raise ValueError(f"system_lib must be letters, digits and _, but got {system_lib!r}")
    target = _target(path, (*_FORMS, ".ptx", ".mlir"), "export_to_c")
    if target.suffix == ".mlir":
        write_file(target, origin.text("mlir").encode())
        return
    if target.suffix != ".ptx":
        write_file(target, origin.export(name, _FORMS[target.suffix], system_lib))
        return
    texts = origin.ptx() if isinstance(origin, DeviceOrigin) else {}
    if len(texts) < 2:
        write_file(target, origin.text("ptx").encode())
    for arch, text in texts.items() if len(texts) > 1 else ():
        write_file(target.with_suffix(f".{arch}.ptx"), text.encode())


def export_library(
    path: StrPath,
    functions: Iterable[Function] | Mapping[str, Function],
    *,
    torch_ops: Mapping[str, str] = _NOTHING,
    xla_handlers: Mapping[str, str] = _NOTHING,
    out: Mapping[str, Sequence[str]] = _NOTHING,
) -> None:
    """Write a library of functions: `.so` is linked, `.a` is an archive of objects.

    `functions` are exported under their own names, or under the keys of a mapping. The C compiler
    in the variable `CC` links a shared library, otherwise the first of cc, gcc, clang, ld.lld and
    ld that is found. The library is not linked to libtvm_ffi: the process that loads it has one.
    LinkError if there is no linker or it fails, ValueError for two functions with the same name.

    `torch_ops`, `xla_handlers` and `out` are what `torch_op`, `xla_handler` and `out` are for
    `Function.export_library`, by the names of the exported functions. ValueError for a name that
    is none of these, and for two operators with the same name.
    """
    origins = {name: origin_of(f) for name, f in named_functions(functions).items()}
    _check_named(origins, torch_ops, xla_handlers, out)
    found: dict[str, OperatorCode] = {}
    for name, origin in origins.items():
        found |= operator_objects(
            name, origin, torch_ops.get(name), xla_handlers.get(name), out.get(name)
        )
    write_library(path, origins, operators=found)


def _check_named(
    origins: Mapping[str, Origin],
    torch_ops: Mapping[str, str],
    xla_handlers: Mapping[str, str],
    out: Mapping[str, Sequence[str]],
) -> None:
    known = ", ".join(origins)
    for what, given in (("torch_ops", torch_ops), ("xla_handlers", xla_handlers), ("out", out)):
        if unknown := given.keys() - origins.keys():
            raise ValueError(
                f"export_library: {what} has {min(unknown)!r}, which is no function of the "
                f"library; these are {known}"
            )
    for name in out:
        if name not in torch_ops and name not in xla_handlers:
            raise ValueError(
                f"export_library: out has {name!r}, which neither torch_ops nor xla_handlers has"
            )
    for what, given in (("torch_ops", torch_ops), ("xla_handlers", xla_handlers)):
        values = list(given.values())
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            raise ValueError(f"export_library: {what} has {twice!r} for two functions")


def operator_objects(
    name: str,
    origin: Origin,
    torch_op: str | None,
    xla_handler: str | None,
    out: Sequence[str] | None,
) -> dict[str, OperatorCode]:
    """The objects, by name, that register the function `name` with PyTorch as `torch_op`, and that
    have `xla_handler` for JAX; None for one that is not wanted."""
    if torch_op is None and xla_handler is None:
        if out:
            raise ValueError(
                "out= is for the operator of torch_op= or xla_handler=, which are missing"
            )
        return {}
    check_export_name(name)
    wanted = "xla_handler" if torch_op is None else "torch_op"
    if not isinstance(origin, OperatorOrigin):
        instead = {"torch_op": "fe.torch_op", "xla_handler": "fe.jax_call"}[wanted]
        raise StageError(
            wanted,
            (".o",),
            f"it was loaded: export it as an operator where it is compiled, or register it in "
            f"Python, {instead}",
        )
    found: dict[str, OperatorCode] = {}
    # With a dot, which no function has in its name.
    if torch_op is not None:
        found[f"{name}.torch_op.o"] = origin.operator(name, torch_op, out or ())
    if xla_handler is not None:
        found[f"{name}.xla_handler.o"] = origin.handler(name, xla_handler, out)
    return found


def library_target(path: StrPath) -> Path:
    """The path of a library.  ValueError for another suffix."""
    return _target(path, (".so", ".a"), "export_library")


def write_library(
    path: StrPath,
    origins: Mapping[str, Origin],
    imports: bytes = b"",
    operators: Mapping[str, OperatorCode] = _NOTHING,
) -> None:
    """Write a library that exports these origins under the names of the mapping.

    `imports` is the import tree of the library, if it imports other modules; `operators` make a
    function an operation of frameworks, by the names of their objects.
    """
    for name in origins:
        check_export_name(name)
    target = library_target(path)
    if not (origins or imports):
        raise ValueError(f"{target.name} would have no function: give export_library at least one")
    objects = {f"{name}.o": origin.export(name, ".o") for name, origin in origins.items()}
    objects = with_import_tree(objects, imports)
    objects |= {each: operator.data for each, operator in operators.items()}
    if target.suffix == ".a":
        write_file(target, write_archive(objects))
        return
    machine = machine_of(next(iter(objects.values())), target)
    linker = find_linker(machine, target)
    # The libraries of this machine cannot be linked into code for another one.
    needed = _libraries(objects.values()) if machine == host_architecture() else []
    loaded = list(dict.fromkeys(x for each in operators.values() for x in each.libraries))
    with tempfile.TemporaryDirectory() as folder:
        sources = [Path(folder) / _short(name, i) for i, name in enumerate(objects)]
        for source, data in zip(sources, objects.values(), strict=True):
            source.write_bytes(data)

        def make(temporary: Path) -> None:
            linker.link(sources, temporary, needed, loaded, target)
            # After the linker, because the digest is of the bytes that it wrote.
            temporary.write_bytes(sealed_library(temporary.read_bytes()))

        _replace(target, make)


def _short(name: str, number: int) -> str:
    """The file name for an object: a number if the object's name is too long for a file system."""
    return name if len(name) < _LONG else f"{number}.o"


def _libraries(objects: Iterable[bytes]) -> list[str]:
    """The libraries that define the symbols which these objects import, as their metadata says."""
    found: dict[str, None] = {}
    for data in objects:
        for note in read_object(data).notes:
            if (note.owner, note.kind) == (NOTE_OWNER, NOTE_TYPE):
                links = read_metadata(note.text).links
                found.update({link.library: None for link in links if link.library})
    return list(found)


def with_import_tree(objects: Mapping[str, bytes], imports: bytes) -> dict[str, bytes]:
    """The objects of a library, and an object with its import tree if there is one."""
    if not imports:
        return dict(objects)
    first = next(iter(objects.values()), None)
    machine = host_machine() if first is None else read_object(first).machine
    tree = data_object(IMPORT_TREE, imports, machine, flags_of(first) if first else 0)
    return {**objects, f"{IMPORT_TREE}.o": tree}


def export_header(path: StrPath, functions: Iterable[Described]) -> None:
    """Write the header of functions: `.h` for C, `.hpp` for C++."""
    target = _target(path, (".h", ".hpp"), "export_header")
    make = c_header if target.suffix == ".h" else cpp_header
    write_file(target, make(target.stem, tuple(functions)).encode())


def export_stub(path: StrPath, functions: Iterable[Described]) -> None:
    """Write the stub (`.pyi`) of a module that has these functions."""
    write_file(_target(path, (".pyi",), "export_stub"), stub(tuple(functions)).encode())


def check_export_name(name: str) -> None:
    """ValueError if a name cannot follow `__tvm_ffi_` in a C symbol, TypeError if it is no str."""
    if not isinstance(name, str):
        raise TypeError(f"function_name must be a str, but got {name!r}")
    if not _IDENTIFIER.fullmatch(name):
        raise ValueError(f"function_name must be a C identifier, but got {name!r}")
    if name.startswith("_"):
        raise ValueError(
            f"function_name must not begin with an underscore, but got {name!r}: "
            f"tvm-ffi keeps the symbols `__tvm_ffi__...` for itself"
        )


def write_again(path: StrPath, data: bytes) -> None:
    """Write the unchanged bytes of a loaded file."""
    write_file(_target(path, (checked_path(path, "write_to_file").suffix,), "write_to_file"), data)


def write_file(target: Path, data: bytes) -> None:
    """Replace the target by a file with these bytes, atomically."""

    def write(path: Path) -> None:
        # "x": a file with the name of the temporary one belongs to somebody else.
        with path.open("xb") as file:
            file.write(data)

    _replace(target, write)


def named_functions(functions: Iterable[Function] | Mapping[str, Function]) -> dict[str, Function]:
    """The functions by their export names; raises the errors of `export_library`."""
    if isinstance(functions, Mapping):
        for function in functions.values():
            _signature(function)
        return dict(functions)
    is_text = isinstance(functions, str | bytes)
    if is_text or not isinstance(functions, Iterable):
        raise TypeError(f"functions must be a list, or a dict by name, but got {functions!r}")
    named: dict[str, Function] = {}
    for function in functions:
        name = _signature(function).name
        if name in named:
            raise ValueError(
                f"two functions are named {name!r}: give a dict, whose keys are the names to "
                f"export them under"
            )
        named[name] = function
    return named


def _signature(function: Any) -> specs.Signature:
    if not is_compiled(function):
        raise TypeError(
            f"what is exported is a compiled function, from ferrule.compile, but got {function!r}"
        )
    signature: specs.Signature = function.signature
    return signature


def _target(path: StrPath, suffixes: tuple[str, ...], caller: str) -> Path:
    target = checked_path(path, caller)
    if target.suffix not in suffixes:
        raise ValueError(
            f"{caller} writes {' '.join(suffixes)} files, but got the suffix {target.suffix!r} in "
            f"{str(path)!r}; {_WRITERS}"
        )
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(target.parent)!r} to write {target.name}")
    return target


_WRITERS: Final = (
    "export_to_c writes .o .ll .bc .s .ptx .mlir, export_library .so .a, "
    "export_header .h .hpp, export_stub .pyi"
)


def _replace(target: Path, make: Callable[[Path], None]) -> None:
    """Make a file next to the target, then rename it to the target, atomically.

    If the target is a symbolic link, the file behind it is replaced. The new file gets the
    permissions of the old one. A hard link is broken: its other names keep the old file. OSError
    for a target that is not a regular file (a device, a pipe).
    """
    place = _place_of(target)
    old = place.stat() if place.exists() else None
    # The name is unique and short: the target's name may already have the maximal length.
    temporary = place.with_name(f".ferrule-{secrets.token_hex(8)}{target.suffix[:8]}")
    try:
        make(temporary)
        if old is not None:
            temporary.chmod(stat.S_IMODE(old.st_mode))
        os.replace(temporary, place)
    finally:
        temporary.unlink(missing_ok=True)


def _place_of(target: Path) -> Path:
    """The path of the file to replace, after links. OSError if it is not a regular file."""
    place = Path(os.path.realpath(target)) if target.is_symlink() else target
    if place.is_dir():
        raise IsADirectoryError(errno.EISDIR, "a folder cannot be replaced by a file", str(target))
    if place.is_symlink():
        raise OSError(errno.ELOOP, "the link leads to itself", str(target))
    if place.exists() and not place.is_file():
        what = "a device, a pipe or a socket cannot be replaced by a file"
        raise OSError(errno.EINVAL, what, str(target))
    if not place.parent.is_dir():
        what = f"the link leads into a folder that there is not, {str(place.parent)!r}"
        raise FileNotFoundError(errno.ENOENT, what, str(target))
    return place


def object_and_header(
    given: tuple[object, ...], folder: StrPath | None, name: str | None
) -> tuple[Path, Path]:
    """The files of an export that names a folder and a file without a suffix."""
    if folder is None or name is None or any(each is not None for each in given):
        raise TypeError(
            "export_to_c() takes a path and a name, or file_path=, file_name= and "
            "function_prefix=, not some of both"
        )
    place = Path(os.fsdecode(folder))
    return place / f"{name}.o", place / f"{name}.h"

"""Builds a library: compiles its jobs, and writes it as objects, a shared library or a wheel.

All files are made before the first one is written, so a library that cannot be built leaves the
folder as it was.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from ferrule import specs
from ferrule.compiler.errors import CompileError
from ferrule.compiler.progress import Tell, progress
from ferrule.libraries.jobs import Job
from ferrule.libraries.library import Library, name_of
from ferrule.libraries.many import CompileAllError, compiled_at_once
from ferrule.libraries.package import package_text, version_stub
from ferrule.libraries.recipes import Recipe, made_at_once
from ferrule.libraries.wheel import platform_tag, wheel_bytes, wheel_name
from ferrule.runtime import Function, LinkError
from ferrule.runtime.artefacts import OperatorCode, Origin
from ferrule.runtime.binaries.elf import ObjectFileError
from ferrule.runtime.binaries.metadata import NOTE_OWNER, NOTE_TYPE, Metadata, read_metadata
from ferrule.runtime.binaries.objectfile import read_object
from ferrule.runtime.calls.plan import described, origin_of
from ferrule.runtime.exporting.export import operator_objects, write_file, write_library
from ferrule.runtime.exporting.headers import Described, c_header, cpp_header
from ferrule.runtime.exporting.stubs import stub
from ferrule.specs._version import __version__
from ferrule.specs.literals import literal_text

Format = Literal["object", "library", "wheel"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)

_NOTHING: Final[Mapping[str, OperatorCode]] = MappingProxyType({})

Functions = Mapping[str, Function]
"""Compiled functions by the names that they are exported under."""


def compile_library(library: Library, workers: int = 1) -> Functions:
    """The functions of a library, compiled in so many processes.

    CompileAllError, with the error of each job and recipe that does not compile.
    """
    every: list[tuple[Job | Recipe, Function | Exception | None]] = []
    every += _jobs_compiled(list(library.jobs()), workers)
    every += _recipes_made(list(library.recipes()), workers)
    errors = [(each, found) for each, found in every if isinstance(found, Exception)]
    if errors:
        functions = [found if isinstance(found, Function) else None for _, found in every]
        raise CompileAllError(errors, functions) from errors[0][1]
    compiled = {each.name: found for each, found in every if isinstance(found, Function)}
    return {
        name_of(each): each if isinstance(each, Function) else compiled[each.name]
        for each in library.functions
    }


def _jobs_compiled(
    jobs: Sequence[Job], workers: int
) -> Iterable[tuple[Job, Function | Exception | None]]:
    """Each job with its function, or with why there is none."""
    if workers == 1:
        with progress("compiling", len(jobs)) as tell:
            return [(job, _compiled_here(job, tell)) for job in jobs]
    try:
        return zip(jobs, compiled_at_once(jobs, count=workers), strict=True)
    except CompileAllError as error:
        told: dict[int, Exception] = {id(job): each for job, each in error.errors}
        found = zip(jobs, error.functions, strict=True)
        return [(job, told.get(id(job), function)) for job, function in found]


def _compiled_here(job: Job, tell: Tell) -> Function | CompileError:
    try:
        return job.compile()
    except CompileError as error:
        return error
    finally:
        tell(job.name)


def _recipes_made(
    recipes: Sequence[Recipe], workers: int
) -> Iterable[tuple[Recipe, Function | Exception]]:
    """Each recipe with its function, or with why there is none."""
    return zip(recipes, made_at_once(recipes, workers), strict=True)


def write(library: Library, functions: Functions, folder: Path, form: Format) -> list[Path]:
    """Write a compiled library into a folder, which is made if there is none; returns the files.

    "object": an object for each function. "library": the shared library `lib<name>.so`. Beside
    both are headers for C (`<name>.h`) and C++ (`<name>.hpp`), a stub (`<name>.pyi`), and a table
    of the functions (`<name>.json`); where the library has operators of PyTorch, the shared library
    `lib<name>_torch.so` registers them. "wheel": all of this in a wheel for pip.

    LinkError without a C compiler or linker for a library or wheel, OSError for the folder.
    """
    files = _MAKERS[form](library, functions)
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / name for name in files]
    for path, data in zip(written, files.values(), strict=True):
        write_file(path, data)
    return written


def file_names(library: Library, functions: Functions, form: Format) -> list[str]:
    """The names of the files that `write` writes."""
    return list(_MAKERS[form](library, functions))


def _objects(library: Library, functions: Functions) -> dict[str, bytes]:
    objects = {f"{name}.o": _object(name, function) for name, function in functions.items()}
    return {**objects, **_beside(library, functions)}


def _library(library: Library, functions: Functions) -> dict[str, bytes]:
    return {**_linked_files(library, functions), **_beside(library, functions)}


def _wheel(library: Library, functions: Functions) -> dict[str, bytes]:
    name, file, linked = library.name, _library_name(library), _linked_files(library, functions)
    beside = _beside(library, functions)
    files = {
        f"{name}/__init__.py": _package(library, file, functions).encode(),
        f"{name}/__init__.pyi": beside[f"{name}.pyi"] + version_stub(library.version).encode(),
        f"{name}/py.typed": b"",
        **{f"{name}/{each}": data for each, data in linked.items()},
        f"{name}/{name}.json": beside[f"{name}.json"],
        f"{name}/include/{name}.h": beside[f"{name}.h"],
        f"{name}/include/{name}.hpp": beside[f"{name}.hpp"],
    }
    platform = platform_tag(linked[file])
    wheel = wheel_bytes(
        name,
        library.version,
        platform,
        files,
        summary=library.summary,
        requires=library.requires,
        license=library.license,
        readme=library.readme,
    )
    return {wheel_name(name, library.version, platform): wheel}


_MAKERS: Final[Mapping[Format, Callable[[Library, Functions], dict[str, bytes]]]] = {
    "object": _objects,
    "library": _library,
    "wheel": _wheel,
}


def _beside(library: Library, functions: Functions) -> dict[str, bytes]:
    """The files that describe the functions, for each language and for programs."""
    name, every = library.name, _described(functions)
    metadata = [metadata_of(each, function) for each, function in functions.items()]
    table = table_text(name, library.version, zip(every, metadata, strict=True))
    texts = {
        f"{name}.h": c_header(name, every),
        f"{name}.hpp": cpp_header(name, every),
        f"{name}.pyi": stub(every),
        f"{name}.json": table,
    }
    return {file: text.encode() for file, text in texts.items()}


def _package(library: Library, file: str, functions: Functions) -> str:
    return package_text(
        library.name, file, library.summary, _described(functions), version=library.version
    )


def _described(functions: Functions) -> list[Described]:
    pairs = ((name, described(function)) for name, function in functions.items())
    return [(signature.renamed(name), doc) for name, (signature, doc) in pairs]


def _object(name: str, function: Function) -> bytes:
    return origin_of(function).export(name, ".o")


def metadata_of(name: str, function: Function) -> Metadata:
    """What the exported object of a function says of it."""
    try:
        notes = read_object(_object(name, function)).notes
    except ObjectFileError as error:
        raise ObjectFileError(
            f"{name} is for a system whose objects ferrule does not read ({error}): libraries are "
            f"built for Linux; write its object with export_to_c, and link it where it is for"
        ) from None
    texts = (note.text for note in notes if (note.owner, note.kind) == (NOTE_OWNER, NOTE_TYPE))
    return next(found for found in map(read_metadata, texts) if found.name == name)


def _library_name(library: Library) -> str:
    return f"lib{library.name}.so"


def _linked_files(library: Library, functions: Functions) -> dict[str, bytes]:
    """The shared library, and the one with the operators of PyTorch."""
    origins = {name: origin_of(each) for name, each in functions.items()}
    files = {_library_name(library): _linked(_library_name(library), origins)}
    operators: dict[str, OperatorCode] = {}
    for name, out in library.torch_ops.items():
        called = f"{library.name}::{name}"
        operators |= operator_objects(name, origins[name], called, None, out)
    if operators:
        # It has the kernels, too: a program of PyTorch loads it and nothing else.
        file = f"lib{library.name}_torch.so"
        files[file] = _linked(file, {name: origins[name] for name in library.torch_ops}, operators)
    return files


def _linked(
    file: str, origins: Mapping[str, Origin], operators: Mapping[str, OperatorCode] = _NOTHING
) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / file
        try:
            write_library(path, origins, operators=operators)
        except LinkError as error:
            # The folder is gone when somebody reads this.
            raise LinkError(str(error).replace(f"{folder}{os.sep}", "")) from None
        return path.read_bytes()


# ---- the table of a library's functions, as JSON ----


Row = Mapping[str, Any]


def table_text(library: str, version: str, functions: Iterable[tuple[Described, Metadata]]) -> str:
    """The table: the library, and of each function symbol, signature, parameters and target."""
    rows = [row(described, metadata) for described, metadata in functions]
    table = {"library": library, "version": version, "ferrule": __version__, "functions": rows}
    return json.dumps(table, indent=2, ensure_ascii=False) + "\n"


def row(described: Described, metadata: Metadata) -> Row:
    """One function."""
    signature, doc = described
    return {
        "name": signature.name,
        "symbol": f"__tvm_ffi_{signature.name}",
        "signature": signature.text(),
        "doc": doc,
        "parameters": [_parameter(signature, param) for param in signature.arguments],
        "result": None if signature.result is None else signature.kind_of_result(full=True),
        "target": {
            "triple": metadata.triple,
            "cpu": metadata.cpu,
            "features": list(metadata.features),
            "gpus": [{"arch": image.arch, "kind": image.kind} for image in metadata.images],
        },
        "tvm_ffi": ".".join(map(str, metadata.abi)),
    }


def _parameter(signature: specs.Signature, param: specs.Param) -> Row:
    default = param.default
    given = {} if default is specs.REQUIRED else {"default": literal_text(default)}
    return {"name": param.name, "kind": signature.kind(param, full=True), **given}

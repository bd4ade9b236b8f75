"""`ferrule inspect`: what functions are, from sources and from built files.

A source is compiled, a built file is only read: neither loaded nor run.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from ferrule.commands.arguments import VIEWS
from ferrule.commands.disassembly import sass_of
from ferrule.commands.files import Part, is_source, read_built
from ferrule.commands.output import Failure, Output
from ferrule.commands.sources import functions_of, libraries_of, load_source
from ferrule.compiler.errors import CompileError
from ferrule.libraries.library import Library
from ferrule.libraries.table import row
from ferrule.runtime import Function, StageError
from ferrule.runtime.artefacts import Stage
from ferrule.runtime.binaries.images import find_images
from ferrule.runtime.binaries.metadata import Metadata
from ferrule.runtime.calls.function import described, origin_of
from ferrule.runtime.loading.origin import LoadedOrigin
from ferrule.specs.deferred import dataclass

_STAGES: Final[Mapping[str, Stage]] = {"ir": "ir", "llvm": "llvm", "asm": "asm", "ptx": "ptx"}
"""The views that are texts of an origin."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A function to show: where each of its views comes from."""

    name: str
    views: Mapping[str, Callable[[], Any]]


def run(given: argparse.Namespace, output: Output) -> int:
    """Run the command; returns the exit code."""
    path, name = _place(given.file)
    shown = list(_of_source(path) if is_source(path) else _of_built(path))
    if name is not None:
        shown = [each for each in shown if each.name == name] or _no_such(path, name, shown)
    try:
        found = {each.name: each.views[given.view]() for each in shown}
    except (StageError, CompileError) as error:
        raise Failure.of(error, f"{path}: ") from error
    # The functions of one file may have their code in common.
    for text in dict.fromkeys(map(_text, found.values())):
        output.line(text)
    output.put(file=str(path), view=given.view, functions=found)
    return 0


def _place(text: str) -> tuple[Path, str | None]:
    """The path, and the name behind its last colon if the text is no path itself."""
    path, colon, name = text.rpartition(":")
    if not colon or Path(text).exists():
        return Path(text), None
    return Path(path), name


def _no_such(path: Path, name: str, shown: Iterable[Shown]) -> list[Shown]:
    names = ", ".join(each.name for each in shown) or "none"
    raise Failure(f"{path} has no function {name!r}; its functions: {names}", "KeyError")


def _text(found: Any) -> str:
    if isinstance(found, str):
        return found
    if isinstance(found, dict) and all(isinstance(each, str) for each in found.values()):
        return "\n".join(found.values())
    return json.dumps(found, indent=2, ensure_ascii=False)


def _of_source(path: Path) -> Iterator[Shown]:
    module = load_source(path)
    compiled = functions_of(module)
    for name, function in compiled.items():
        yield _of_function(name, function)
    for library in libraries_of(module, path) if not compiled or _has_library(module) else ():
        for each in library.functions:
            try:
                function = each if isinstance(each, Function) else each.compile()
            except CompileError as error:
                raise Failure(f"{path}: {library.name}.{each.name}: {error}") from error
            if each.name not in compiled:
                yield _of_function(each.name, function)


def _has_library(module: Any) -> bool:
    return any(isinstance(value, Library) for value in vars(module).values())


def _of_function(name: str, function: Function) -> Shown:
    from ferrule.libraries.building import metadata_of

    origin = origin_of(function)
    views: dict[str, Callable[[], Any]] = {
        view: partial(origin.text, stage) for view, stage in _STAGES.items()
    }
    views["signature"] = lambda: _signature(*described(function))
    views["sass"] = lambda: sass_of(_ptx_by_arch(function), [])
    views["metadata"] = lambda: row(described(function), metadata_of(name, function))
    return Shown(name, views)


def _ptx_by_arch(function: Function) -> dict[str, str]:
    found = function.inspect_ptx()
    if isinstance(found, dict):
        return found
    return {_arch_of(found): found}


def _arch_of(ptx: str) -> str:
    line = next((each for each in ptx.splitlines() if each.startswith(".target")), "")
    return line.removeprefix(".target").split(",")[0].strip()


def _signature(signature: Any, doc: str | None) -> str:
    return f"{signature}\n\n{_indented(doc)}\n" if doc else f"{signature}"


def _indented(doc: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in doc.splitlines())


def _of_built(path: Path) -> Iterator[Shown]:
    file = read_built(path)
    found = [_of_metadata(path, part, metadata) for part, metadata in file.functions]
    unknown = [name for part in file.parts for name in part.unknown()]
    if not found and not unknown:
        raise Failure(f"{path}: it exports no function of tvm-ffi")
    yield from found
    for name in unknown:
        yield _of_unknown(path, name)


def _of_metadata(path: Path, part: Part, metadata: Metadata) -> Shown:
    origin = LoadedOrigin(str(path), part.data, None, metadata.images)

    def sass() -> str:
        cubins = [found for found in find_images(part.data, metadata.images) if found.kind != "ptx"]
        return sass_of({} if cubins else dict(origin.ptx()), cubins)

    views: dict[str, Callable[[], Any]] = {
        view: partial(origin.text, stage) for view, stage in _STAGES.items()
    }
    views["signature"] = lambda: str(metadata.signature)
    views["sass"] = sass
    views["metadata"] = lambda: json.loads(metadata.text())["ferrule"]
    return Shown(metadata.name, views)


def _of_unknown(path: Path, name: str) -> Shown:
    """A function that ferrule did not make."""
    text = f"{name}(...): a function without ferrule's metadata"
    origin = LoadedOrigin(str(path), path.read_bytes(), None)

    def missing() -> Any:
        raise Failure(f"{path}: {name} has no metadata of ferrule", "StageError")

    views: dict[str, Callable[[], Any]] = dict.fromkeys(VIEWS, missing)
    return Shown(name, {**views, "signature": lambda: text, "asm": lambda: origin.text("asm")})

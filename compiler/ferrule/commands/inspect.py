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
from ferrule.commands.files import Part, is_source, read_built
from ferrule.commands.output import Failure, Output
from ferrule.commands.sources import (
    compiled_functions,
    path_and_name,
    require_name,
)
from ferrule.compiler.cuda.disassembly import sass_of
from ferrule.compiler.errors import CompileError
from ferrule.runtime import Function, StageError
from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.artefacts import Origin, Stage
from ferrule.runtime.binaries.digest import check_digest
from ferrule.runtime.binaries.elf import ObjectFileError
from ferrule.runtime.binaries.images import find_images
from ferrule.runtime.binaries.metadata import Metadata
from ferrule.runtime.calls.plan import described, origin_of
from ferrule.runtime.errors import NoKernelsError
from ferrule.runtime.loading.origin import LoadedOrigin
from ferrule.specs import Signature
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
    path, name = path_and_name(given.file)
    shown = list(_of_source(path) if is_source(path) else _of_built(path, output))
    if name is not None:
        require_name(path, name, [each.name for each in shown])
        shown = [each for each in shown if each.name == name]
    found, left_out = _views(path, shown, given.view)
    # The functions of one file may have their code in common.
    for text in dict.fromkeys(map(_text, found.values())):
        output.line(text)
    for each, why in left_out.items():
        output.note(f"{path}: {each} is left out: {why}")
    output.put(file=str(path), view=given.view, functions=found)
    if left_out:
        output.put(left_out=left_out)
    return 0


def _views(path: Path, shown: Iterable[Shown], view: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The text of each function that has one, and the reasons why others have none.

    Failure if none has it.
    """
    found, left_out = {}, {}
    failure: Exception | None = None
    for each in shown:
        try:
            found[each.name] = each.views[view]()
        except NoKernelsError as error:
            failure, left_out[each.name] = error, str(error)
        except (StageError, CompileError) as error:
            raise Failure.of(error, f"{path}: {each.name}: ") from error
    # One function without kernels is no reason to hide the kernels of the others.
    if failure is not None and not found:
        raise Failure.of(failure, f"{path}: ") from failure
    return found, left_out


def _text(found: Any) -> str:
    if isinstance(found, str):
        return found
    if isinstance(found, dict) and all(isinstance(each, str) for each in found.values()):
        return "\n".join(found.values())
    return json.dumps(found, indent=2, ensure_ascii=False)


def _of_source(path: Path) -> Iterator[Shown]:
    for name, function in compiled_functions(path):
        yield _of_function(name, function)


def _of_function(name: str, function: Function) -> Shown:
    from ferrule.libraries.building import metadata_of

    origin = origin_of(function)
    views: dict[str, Callable[[], Any]] = {
        view: partial(origin.text, stage) for view, stage in _STAGES.items()
    }
    signature, doc = described(function)
    views["signature"] = lambda: _signature(signature.renamed(name), doc)
    views["asm"] = lambda: _assembly(name, origin)
    views["remarks"] = lambda: str(function.remarks)
    views["sass"] = lambda: sass_of(_ptx_by_arch(function), [])
    views["metadata"] = lambda: _metadata(metadata_of(name, function))
    return Shown(name, views)


def _assembly(name: str, origin: Origin) -> str:
    """The assembly that is exported; for a function that cannot be, that of this process."""
    try:
        return origin.export(name, ".s").decode()
    except StageError:
        return origin.text("asm")


def _metadata(metadata: Metadata) -> Any:
    return json.loads(metadata.text())["ferrule"]


def _ptx_by_arch(function: Function) -> dict[str, str]:
    found = function.inspect_ptx()
    if isinstance(found, dict):
        return found
    return {_arch_of(found): found}


def _arch_of(ptx: str) -> str:
    line = next((each for each in ptx.splitlines() if each.startswith(".target")), "")
    return line.removeprefix(".target").split(",")[0].strip()


def _signature(signature: Signature, doc: str | None) -> str:
    text = signature.text()
    return f"{text}\n\n{_indented(doc)}\n" if doc else text


def _indented(doc: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in doc.splitlines())


def _of_built(path: Path, output: Output) -> Iterator[Shown]:
    file = read_built(path)
    for part in file.parts:
        _warn_of_damage(path, part, output)
    found = [_of_metadata(path, part, metadata) for part, metadata in file.functions]
    unknown = [name for part in file.parts for name in part.unknown()]
    if not found and not unknown:
        raise Failure(f"{path}: it exports no function of tvm-ffi")
    yield from found
    for name in unknown:
        yield _of_unknown(path, name)


def _warn_of_damage(path: Path, part: Part, output: Output) -> None:
    """Tell of a file that is not as ferrule wrote it; it is shown, for people look for the why."""
    try:
        check_digest(part.data, {})
    except ObjectFileError as error:
        output.note(f"{path}: {error}")
        output.put(damage=str(error))


def _of_metadata(path: Path, part: Part, metadata: Metadata) -> Shown:
    origin = LoadedOrigin(
        str(path), part.data, None, metadata.images, SYMBOL_PREFIX + metadata.name
    )

    def sass() -> str:
        cubins = [found for found in find_images(part.data, metadata.images) if found.kind != "ptx"]
        return sass_of({} if cubins else dict(origin.ptx()), cubins)

    views: dict[str, Callable[[], Any]] = {
        view: partial(origin.text, stage) for view, stage in _STAGES.items()
    }
    views["signature"] = lambda: metadata.signature.text()
    views["remarks"] = _no_remarks
    views["sass"] = sass
    views["metadata"] = lambda: _metadata(metadata)
    return Shown(metadata.name, views)


def _no_remarks() -> Any:
    raise StageError(
        "remarks", (), "it is machine code: what LLVM made of loops is known of sources"
    )


def _of_unknown(path: Path, name: str) -> Shown:
    """A function that ferrule did not make."""
    text = f"{name}(...): a function without ferrule's metadata"
    origin = LoadedOrigin(str(path), path.read_bytes(), None, symbol=SYMBOL_PREFIX + name)

    def missing() -> Any:
        raise Failure(f"{path}: {name} has no metadata of ferrule", "StageError")

    views: dict[str, Callable[[], Any]] = dict.fromkeys(VIEWS, missing)
    return Shown(name, {**views, "signature": lambda: text, "asm": lambda: origin.text("asm")})

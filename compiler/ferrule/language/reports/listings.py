"""Listings of code: lines of text, each with the line of the source that it is of.

LLVM IR says so by debug locations (`!dbg`, its manual, "Source Level Debugging"), assembly and PTX
by the directives `.file` and `.loc` (manuals of GNU as and of PTX).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from ferrule.compiler.artefacts import Location
from ferrule.language.codegen.functions.lines import written_path
from ferrule.specs.deferred import dataclass

LONGEST: Final = 400
"""Characters of a line that are shown; the data of a wrapper may have thousands."""


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a listing, and the line of the source that it comes from."""

    text: str
    place: Place | None = None
    number: int | None = None
    """Of the line in its own file, where the listing is of one."""


def place_of(location: Location | None) -> Place | None:
    """The line of a location."""
    return None if location is None else Place(whole_path(location.file), location.line)


def whole_path(file: str) -> str:
    """The path of a file as debug metadata have it."""
    return str(written_path(file))


def plain(text: str) -> Iterator[Line]:
    """The lines of a text that names no lines of the source."""
    yield from (Line(_short(line)) for line in text.splitlines())


def _short(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]} … {len(text) - LONGEST} more characters"


# ---- LLVM IR ----

_NODE: Final = re.compile(r"^!(?P<id>\d+) = (?:distinct )?!(?P<kind>DI\w+)\((?P<fields>.*)\)$")
_FIELD: Final = re.compile(r'(\w+): (?:!(\d+)|"([^"]*)"|(\d+))')
_DBG: Final = re.compile(r",? !dbg !(\d+)")


def llvm_lines(text: str) -> Iterator[Line]:
    """The functions of a module, with the places that its debug locations name."""
    nodes = _nodes(text)
    for line in text.splitlines():
        if line.startswith(("!", "source_filename", "; ModuleID")):
            continue
        found = _DBG.search(line)
        place = None if found is None else _llvm_place(nodes, found[1])
        head = line.startswith("define ")
        yield Line(_short(_DBG.sub("", line)), None if head else place)


def _nodes(text: str) -> dict[str, tuple[str, dict[str, str]]]:
    """The nodes of debug metadata: their kinds and fields, by number."""
    found = {}
    for line in text.splitlines():
        if node := _NODE.match(line):
            fields = {name: ref or word or number for name, ref, word, number in _each(node)}
            found[node["id"]] = node["kind"], fields
    return found


def _each(node: re.Match[str]) -> Iterable[tuple[str, str, str, str]]:
    return _FIELD.findall(node["fields"])


def _llvm_place(nodes: dict[str, tuple[str, dict[str, str]]], number: str) -> Place | None:
    """The place of a location, of which the scope, or one around it, names the file."""
    kind, location = nodes.get(number, ("", {}))
    if kind != "DILocation":
        return None
    scope = location
    while "file" not in scope:
        if scope.get("scope") not in nodes:
            return None
        _, scope = nodes[scope["scope"]]
    _, file = nodes[scope["file"]]
    line = int(location.get("line", "0"))
    path = _path(file.get("directory", ""), file["filename"])
    return Place(_decoded(_HEX, 16, path), line) if line else None


_HEX: Final = re.compile(r"\\([0-9A-Fa-f]{2})")
_OCTAL: Final = re.compile(r"\\([0-7]{3})")


def _decoded(code: re.Pattern[str], base: int, text: str) -> str:
    """A text whose bytes outside of ASCII are written as numbers."""
    if "\\" not in text:
        return text
    found = code.sub(lambda each: chr(int(each[1], base)), text)
    try:
        # Latin-1 has each character below 256 as the byte of this number.
        return found.encode("latin-1").decode()
    except ValueError:
        return text


def _path(folder: str, name: str) -> str:
    return name if not folder or name.startswith("/") else f"{folder}/{name}"


# ---- SASS ----

_KERNEL: Final = re.compile(r"^\s*\.section\s+\.text\.")
_SASS_PLACE: Final = re.compile(r'^\s*//## File "([^"]*)", line (\d+)')
_SASS: Final = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;?\s*(?:/\*.*)?$")


def sass_lines(text: str) -> Iterator[Line]:
    """The kernels in nvdisasm's output with lines: labels and instructions.

    The line behind a call's is where that was inlined from; the first one of a group counts.
    """
    place: Place | None = None
    is_code = has_place = False
    for line in text.splitlines():
        if line.lstrip().startswith(".section"):
            is_code, place = _KERNEL.match(line) is not None, None
        elif not is_code:
            continue
        elif found := _SASS_PLACE.match(line):
            place = place if has_place else Place(found[1], int(found[2]))
            has_place = True
        elif found := _SASS.match(line):
            has_place = False
            yield Line(f"  {found[1]}  {found[2]}", place)
        elif line.endswith(":") and not line.startswith(".text."):
            yield Line(line.strip())


# ---- assembly and PTX ----

_FILE: Final = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_LOC: Final = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\b")
_NOISE: Final = re.compile(
    r"^\s*\.(cfi_|p2align|file|ident|addrsig|type|size|section\s+\"?\.note)"
    r"|^\.L(tmp|func_begin|func_end|cst_end)\d+:|^\$L__(tmp|func_begin|func_end)\d+:|^//"
    r"|^\s*//\s*(begin|end) (inline asm|function)"
)
_TABLES: Final = re.compile(r"^\s*\.section\s+\"?\.debug_")
_SECTION: Final = re.compile(r"^\s*\.(section|text|data|bss)\b")
_DATA: Final = re.compile(r"^\s*\.(section\s+\"?\.rodata|data|bss)\b")


def assembly_lines(text: str) -> Iterator[Line]:
    """Assembly or PTX without directives for debuggers, with the places that these name."""
    files = {
        found[1]: _decoded(_OCTAL, 8, _path(found[2], found[3]) if found[3] else found[2])
        for each in text.splitlines()
        if (found := _FILE.match(each))
    }
    place: Place | None = None
    for line in _code(text):
        if found := _LOC.match(line):
            at = int(found[2])
            place = Place(files.get(found[1], ""), at) if at else None
        elif _NOISE.search(line) is None and line.strip():
            is_code = line[:1].isspace() and not line.lstrip().startswith(".")
            yield Line(_short(line.rstrip()), place if is_code else None)
        if line.startswith((".Lfunc_end", "$L__func_end")):
            place = None


def _code(text: str) -> Iterator[str]:
    """The lines without tables for debuggers, and without the constants of a CPU's code."""
    is_data = False
    for line in text.splitlines():
        if _TABLES.match(line):
            return
        if _SECTION.match(line):
            is_data = _DATA.match(line) is not None
        if not is_data:
            yield line

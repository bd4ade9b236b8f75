"""Files by which perf knows the code in this process.

* the map, `perf-<pid>.map` in the folder `/tmp`, where perf looks for it: a line with address, size
  and name of each function;
* the dump, `jit-<pid>.dump` in the folder JITDUMPDIR, by default that of temporary files: records
  with the code and its source lines, of which `perf inject --jit` makes objects.  Its format is in
  tools/perf/Documentation/jitdump-specification.txt of Linux.

A forked child writes files of its own, with what it has of its parent.
"""

from __future__ import annotations

import io
import mmap
import os
import struct
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Any, Final

from ferrule.runtime.errors import LinkError
from ferrule.runtime.forks import ForkLock
from ferrule.runtime.host import host_machine
from ferrule.runtime.linking.codememory import JIT_DUMP, PERF_MAP, CodeFunction
from ferrule.specs.deferred import dataclass

_FOLDER: Final = Path("/", "tmp")
"""Where perf looks for maps, whatever the folder of temporary files is."""

_HEADER: Final = struct.Struct("<IIIIIIQQ")
# "JiTD": perf takes the byte order of the file from it.
_MAGIC: Final = 0x4A695444
_PREFIX: Final = struct.Struct("<IIQ")
_LOAD: Final = struct.Struct("<IIQQQQ")
_LINES: Final = struct.Struct("<QQ")
_LINE: Final = struct.Struct("<QII")
_CODE, _DEBUG_INFO = 0, 2


@dataclass(frozen=True, slots=True)
class _Line:
    """The line of the code from this offset on."""

    offset: int
    line: int
    file: str


@dataclass(frozen=True, slots=True)
class _Told:
    """A function, and its lines if they are known."""

    function: CodeFunction
    lines: tuple[_Line, ...]


_TOLD: Final[list[_Told]] = []
_FILES: Final[dict[str, _Map | _Dump]] = {}
_LOCK: Final = ForkLock()


def add(data: bytes, functions: Sequence[CodeFunction], kinds: Set[str]) -> None:
    """Add the functions of an object to the files of these kinds.

    LinkError if a file cannot be written, ImportError if the package for lines is missing.
    """
    lines = _lines(data) if JIT_DUMP in kinds and b".debug_line" in data else []
    with _LOCK:
        for each in functions:
            end = each.offset + len(each.code)
            own = [line for line in lines if each.offset <= line.offset < end]
            _TOLD.append(_Told(each, tuple(own)))
        try:
            for kind in kinds:
                _file(kind).add(_TOLD)
        except OSError as error:
            raise LinkError(f"perf cannot be told of code in this process: {error}") from error


def _file(kind: str) -> _Map | _Dump:
    """The file of this process."""
    known = _FILES.get(kind)
    if known is None or known.pid != os.getpid():
        known = _FILES[kind] = _Map() if kind == PERF_MAP else _Dump()
    return known


class _Map:
    """The map of this process; it is written anew if another process of this number left one."""

    def __init__(self) -> None:
        self.pid: Final = os.getpid()
        self._path: Final = _FOLDER / f"perf-{self.pid}.map"
        self._path.write_text("")
        self._done = 0

    def add(self, told: Sequence[_Told]) -> None:
        """Add the functions that are not in it yet."""
        new = [each.function for each in told[self._done :]]
        with self._path.open("a") as file:
            file.writelines(f"{f.address:x} {len(f.code):x} {f.name}\n" for f in new)
        self._done = len(told)


class _Dump:
    """The dump of this process: perf finds it by a page of it that is mapped for execution."""

    def __init__(self) -> None:
        folder = Path(os.environ.get("JITDUMPDIR") or tempfile.gettempdir())
        self.pid: Final = os.getpid()
        self._path: Final = folder / f"jit-{self.pid}.dump"
        header = (_MAGIC, 1, _HEADER.size, host_machine(), 0, self.pid, time.monotonic_ns(), 0)
        self._path.write_bytes(_HEADER.pack(*header))
        with self._path.open("rb") as file:
            protection = mmap.PROT_READ | mmap.PROT_EXEC
            self._page: Final = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, protection)
        self._done = 0

    def add(self, told: Sequence[_Told]) -> None:
        """Add the functions that are not in it yet."""
        with self._path.open("ab") as file:
            for index, each in enumerate(told[self._done :], self._done):
                # The format has the lines of code before the code itself.
                if each.lines:
                    file.write(_record(_DEBUG_INFO, _lines_of(each)))
                file.write(_record(_CODE, self._code_of(each.function, index)))
        self._done = len(told)

    def _code_of(self, function: CodeFunction, index: int) -> bytes:
        at, size = function.address, len(function.code)
        fixed = _LOAD.pack(self.pid, threading.get_native_id(), at, at, size, index)
        return fixed + _text(function.name) + function.code


def _lines_of(each: _Told) -> bytes:
    start = each.function.address - each.function.offset
    found = (_LINE.pack(start + x.offset, x.line, 0) + _text(x.file) for x in each.lines)
    return _LINES.pack(each.function.address, len(each.lines)) + b"".join(found)


def _record(kind: int, body: bytes) -> bytes:
    # perf joins these records with its own by CLOCK_MONOTONIC (`perf record -k mono`).
    return _PREFIX.pack(kind, _PREFIX.size + len(body), time.monotonic_ns()) + body


def _text(text: str) -> bytes:
    return text.encode(errors="replace") + b"\0"


def _lines(data: bytes) -> list[_Line]:
    """The lines in an object's debug information, which is of the section `.text` alone."""
    try:
        from elftools.elf.elffile import ELFFile
    except ImportError:
        raise ImportError(
            "the lines of code in a dump for perf are read by pyelftools: "
            "pip install ferrule[profile]"
        ) from None
    debug = ELFFile(io.BytesIO(data)).get_dwarf_info(relocate_dwarf_sections=True)
    return [line for unit in debug.iter_CUs() for line in _unit(debug, unit)]


def _unit(debug: Any, unit: Any) -> Iterator[_Line]:
    """The lines of a compile unit; its folder is that of files without one."""
    program = debug.line_program_for_CU(unit)
    folder = unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
    folders = [folder.value if folder else b"", *program["include_directory"]]
    files = [os.path.join(folders[f.dir_index], f.name).decode() for f in program["file_entry"]]
    for entry in program.get_entries():
        state = entry.state
        if state is not None and state.line and not state.end_sequence:
            yield _Line(state.address, state.line, files[state.file - 1])

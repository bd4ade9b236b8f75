"""Tells profilers and debuggers of the code in this process, where FERRULE_JIT_INFO asks for it.

A tool that looks at the process sees anonymous memory.  There are conventions by which it learns
what is there:

* `perfmap` and `jitdump`: files that perf reads, see `perffiles`;
* `gdb`: the object is linked by LLVM's MCJIT, which tells debuggers of it, see `mcjit`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from ferrule.runtime.binaries import elf
from ferrule.runtime.linking.codememory import GDB, JIT_DUMP, PERF_MAP, VARIABLE, CodeFunction

_KNOWN: Final = (PERF_MAP, JIT_DUMP, GDB)
_FUNCTION: Final = 2
_OBJECT: Final = elf.FileType.OBJECT


def wanted() -> frozenset[str]:
    """The conventions that the environment asks for.  ValueError for an unknown one."""
    return _wanted(os.environ.get(VARIABLE, ""))


@cache
def _wanted(text: str) -> frozenset[str]:
    words = frozenset(word.strip() for word in text.split(",") if word.strip())
    unknown = sorted(words.difference(_KNOWN))
    if unknown:
        raise ValueError(
            f"{VARIABLE} is {text!r}, but {unknown[0]!r} is unknown\n"
            f"  expected: {', '.join(_KNOWN[:-1])} or {_KNOWN[-1]}, with commas between several"
        )
    if GDB in words and len(words) > 1:
        raise ValueError(
            f"{VARIABLE} is {text!r}, but {GDB} takes another linker, of which perf is not told\n"
            f"  expected: {GDB} alone, or {PERF_MAP} and {JIT_DUMP}"
        )
    return words


def tell(data: bytes, sections: Mapping[int, int]) -> None:
    """Write the files for perf of an object whose sections with code are at these addresses."""
    if asked := wanted().difference((GDB,)):
        from ferrule.runtime.linking import perffiles

        perffiles.add(data, list(_functions(data, sections)), asked)


def _functions(data: bytes, sections: Mapping[int, int]) -> Iterator[CodeFunction]:
    """The functions of an object; one without a size ends where the next begins."""
    every = [elf.read_section(data, at) for at in elf.read_header(data, _OBJECT).sections]
    starts: dict[int, dict[int, tuple[str, int]]] = {}
    for table in every:
        if table.kind != elf.SHT_SYMTAB:
            continue
        names = every[table.link]
        text = data[names.offset : names.offset + names.size]
        for name, info, _, home, value, size in elf.entries(elf.SYMBOL, data, table):
            if info & 15 == _FUNCTION and home in sections:
                starts.setdefault(home, {})[value] = elf.read_name(text, name), size
    for home, found in starts.items():
        ends = [*sorted(found), every[home].size]
        for start, end in zip(ends, ends[1:], strict=False):
            known, length = found[start]
            first = every[home].offset + start
            code = data[first : first + (length or end - start)]
            yield CodeFunction(known, sections[home] + start, home, start, code)

"""Registers the tables by which exceptions and tracebacks of C++ find their way through code.

libgcc trusts the tables that it is given, so `check` reads all of one first: whatever the bytes
are, it returns or raises `Unlinkable`.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Final

from ferrule.runtime.linking.relocation import Unlinkable

_PARTS: Final = frozenset(b"RPLSB")
_WIDTHS: Final = {0x00: 8, 0x1B: 4, 0x1C: 8, 0x9B: 4, 0x9C: 8, 0xFF: 0}
"""Encodings of addresses and their bytes: as they are, relative, by way of one, none."""

# DW_EH_PE_pcrel with sdata4 and sdata8.
_RELATIVE: Final = (0x1B, 0x1C)


def check(table: bytes | bytearray, address: int, code: range) -> None:
    """Unlinkable unless the bytes are a table, `.eh_frame`, as LLVM writes it.

    `address` is that of the table, and `code` the addresses that it may tell of.
    """
    common: dict[int, int] = {}
    at = 0
    while at < len(table):
        size = _number(table, at, 4)
        end = at + 4 + size
        # From 0xFFFFFFF0 on a length announces DWARF's form with 64 bits, which LLVM does not
        # write.
        if not 4 < size < 0xFFFFFFF0 or size % 4 or end > len(table):
            raise Unlinkable("a table for unwinding is damaged or in two parts")
        before = _number(table, at + 4, 4)
        if before == 0:
            common[at] = _encoding(table[at + 8 : end])
        elif at + 4 - before not in common:
            raise Unlinkable("a table for unwinding is damaged")
        else:
            _check_entry(table[at + 8 : end], address + at + 8, common[at + 4 - before], code)
        at = end


def _check_entry(entry: bytes | bytearray, address: int, encoding: int, code: range) -> None:
    """Check the addresses that an entry is for; `address` is that of the first one."""
    width = _WIDTHS[encoding]
    if len(entry) < 2 * width:
        raise Unlinkable("a table for unwinding is cut off")
    start = _number(entry, 0, width, signed=True)
    size = _number(entry, width, width)
    start += address if encoding in _RELATIVE else 0
    if not (code.start <= start and start + size <= code.stop):
        raise Unlinkable("a table for unwinding tells of other code")


def _encoding(entry: bytes | bytearray) -> int:
    """How entries of a common one encode addresses; the bytes begin with its version."""
    words = bytes(entry[1:]).partition(b"\0")[0]
    rest = bytes(entry[len(words) + 2 :])
    if entry[:1] != b"\x01" or words[:1] != b"z" or not _PARTS.issuperset(words[1:]):
        raise Unlinkable("a table for unwinding is of an unknown kind")
    rest = _behind_numbers(rest, 4)  # alignments, the return address's register, the size
    found = 0
    for word in words[1:]:
        if word in b"SB":
            continue
        if not rest or rest[0] not in _WIDTHS:
            raise Unlinkable("a table for unwinding has addresses of an unknown kind")
        if word in b"R":
            found = rest[0]
        rest = rest[1 + (_WIDTHS[rest[0]] if word in b"P" else 0) :]
    if found and found not in _RELATIVE:
        raise Unlinkable("a table for unwinding has addresses of an unknown kind")
    return found


def _behind_numbers(data: bytes, count: int) -> bytes:
    """What is behind this many LEB128 numbers."""
    for at, byte in enumerate(data):
        if byte < 0x80:
            count -= 1
            if not count:
                return data[at + 1 :]
    raise Unlinkable("a table for unwinding is cut off")


def _number(table: bytes | bytearray, at: int, size: int, *, signed: bool = False) -> int:
    return int.from_bytes(table[at : at + size], "little", signed=signed)


@cache
def unwinder() -> ctypes.CDLL | None:
    """libgcc, which this process unwinds with; None where there is another one."""
    try:
        library = ctypes.CDLL("libgcc_s.so.1")
        for name in ("__register_frame", "__deregister_frame"):
            getattr(library, name).argtypes = (ctypes.c_void_p,)
    except (OSError, AttributeError):
        return None
    return library


def register(address: int) -> None:
    """Make a table known, which ends with four zeros and stays where it is until `forget`."""
    library = unwinder()
    if library is None:
        raise Unlinkable("this process has no libgcc")
    library.__register_frame(address)


def forget(address: int) -> None:
    """Undo `register`; no thread may be in the code of the table."""
    library = unwinder()
    if library is not None:
        library.__deregister_frame(address)

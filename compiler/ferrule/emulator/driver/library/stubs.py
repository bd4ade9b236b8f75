"""The machine code of an exported function: a jump through its place of a table.

A place that is empty, before the table is filled and after the emulated GPU went, answers
CUDA_ERROR_DEINITIALIZED, as a driver does that is shutting down.
"""

from __future__ import annotations

import struct
from typing import Final

from ferrule.runtime.binaries.elf import Machine

DEINITIALIZED: Final = 4
STUB_SIZE: Final = 32
"""Bytes of one function's code, on every processor."""

_PAGE: Final = 12


def stub(machine: Machine, at: int, place: int) -> bytes:
    """The code at address `at`, which goes where the table says at address `place`."""
    code = _x86_64(at, place) if machine is Machine.X86_64 else _aarch64(at, place)
    return code.ljust(STUB_SIZE, b"\xcc" if machine is Machine.X86_64 else b"\0")


def _x86_64(at: int, place: int) -> bytes:
    load = b"\xf3\x0f\x1e\xfa\x48\x8b\x05"  # endbr64; mov rax, [rip + distance]
    behind = at + len(load) + 4
    test = b"\x48\x85\xc0\x74\x02\xff\xe0"  # test rax, rax; jz over the jump; jmp rax
    gone = b"\xb8" + struct.pack("<I", DEINITIALIZED) + b"\xc3"  # mov eax, DEINITIALIZED; ret
    return load + struct.pack("<i", place - behind) + test + gone


def _aarch64(at: int, place: int) -> bytes:
    pages = (place >> _PAGE) - ((at + 4) >> _PAGE)
    low, high = pages & 3, (pages >> 2) & 0x7FFFF
    words = (
        0xD503245F,  # bti c
        0x90000010 | low << 29 | high << 5,  # adrp x16, the table's page
        0xF9400210 | (place & 0xFFF) >> 3 << 10,  # ldr x16, [x16, the place in it]
        0xB4000050,  # cbz x16, over the jump
        0xD61F0200,  # br x16
        0x52800000 | DEINITIALIZED << 5,  # mov w0, DEINITIALIZED
        0xD65F03C0,  # ret
    )
    return struct.pack("<7I", *words)

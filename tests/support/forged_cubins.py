"""Cubins made by hand, with as much in them as a launch's checks read: see `compiler.cuda.cubins`.

A test of the reader needs no toolkit with them, and can put anything wrong in.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

OLD, NEW = 51, 65
"""The ABI of CUDA 12's cubins, and of 13's."""

_HEADER = struct.Struct("<4s5B7xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_INFO = 0x70000000


@dataclass(frozen=True, slots=True)
class ForgedKernel:
    """A kernel with the bytes of its parameters, each at a multiple of its size up to 8.

    `points_to` is what each says of the target of a pointer: logarithm of its alignment, and the
    state space.  `long` is the form of parameters of more than 4 KB.
    """

    name: str
    sizes: Sequence[int] = ()
    block: tuple[int, int, int] | None = None
    most: tuple[int, int, int] | None = None
    cluster: tuple[int, int, int] | None = None
    shared: int = 0
    points_to: tuple[int, int] = (0, 0)
    long: bool = False


@dataclass(slots=True)
class _Section:
    kind: int
    data: bytes
    link: int = 0
    info: int = 0
    size: int | None = None
    entry: int = 0
    name: str = ""


def forge_cubin(
    arch: str, kernels: Sequence[ForgedKernel], abi: int = NEW, kind: int = 2, note: bool = True
) -> bytes:
    """The bytes; without `note` only e_flags say what is behind the number."""
    number, special = int(arch.removeprefix("sm_").rstrip("af")), arch[-1] == "a"
    flags = number | 0x800 * special if abi == OLD else number << 8 | 0x8 * special
    names = b"\0" + b"".join(kernel.name.encode() + b"\0" for kernel in kernels)
    sections = [_Section(0, b""), _Section(3, names)]
    symbols, at = bytes(_SYMBOL.size), 1
    for index, kernel in enumerate(kernels, start=1):
        code = len(sections)
        sections.append(_Section(1, b"\x90" * 16, name=f".text.{kernel.name}"))
        info = f".nv.info.{kernel.name}"
        sections.append(_Section(_INFO, _facts(kernel), info=code, name=info))
        if kernel.shared:
            name = f".nv.shared.{kernel.name}"
            sections.append(_Section(8, b"", info=code, size=kernel.shared, name=name))
        sections.append(_Section(_INFO, _entry(0x2F, struct.pack("<II", index, 24))))
        symbols += _SYMBOL.pack(at, 0x12, 0x10, code, 0, 16)
        at += len(kernel.name) + 1
    sections.append(_Section(2, symbols, link=1, entry=_SYMBOL.size))
    if note:
        words = b"\0ptxas\0-arch " + arch.encode() + b" -m 64 \0"
        said = struct.pack("<III", 12, len(words), 2000) + b"NVIDIA Corp\0" + words
        sections.append(_Section(7, said))
    sections.append(_Section(3, b""))
    return _written(sections, abi, kind, flags)


def _written(sections: Sequence[_Section], abi: int, kind: int, flags: int) -> bytes:
    """The file; the last section gets the names of sections."""
    body, headers = b"", b""
    sections[-1].data = b"\0" + b"".join(each.name.encode() + b"\0" for each in sections)
    at = 1
    for section in sections:
        body += bytes(-len(body) % 8)
        size = len(section.data) if section.size is None else section.size
        place = _HEADER.size + len(body)
        rest = section.link, section.info, 4, section.entry
        headers += _SECTION.pack(at, section.kind, 0, 0, place, size, *rest)
        at += len(section.name) + 1
        body += section.data
    body += bytes(-len(body) % 8)
    table = _HEADER.size + len(body)
    count = len(sections)
    head = _HEADER.pack(
        *(b"\x7fELF", 2, 1, 1, abi, 8, kind, 190, 1, 0, 0, table, flags),
        *(_HEADER.size, 56, 0, _SECTION.size, count, count - 1),
    )
    return head + body + headers


def _facts(kernel: ForgedKernel) -> bytes:
    found, end = b"", 0
    for ordinal, size in enumerate(kernel.sizes):
        align = min(8, size & -size)
        end = -(-end // align) * align
        log, space = kernel.points_to
        short = size << 18 | 0x1F000 | space << 8 | log
        word = space << 24 | log << 16 | size if kernel.long else short
        code = 0x45 if kernel.long else 0x17
        found += _entry(code, struct.pack("<IHHI", 0, ordinal, end, word))
        end += size
    for code, dims in ((0x10, kernel.block), (0x05, kernel.most), (0x3D, kernel.cluster)):
        if dims is not None:
            found += _entry(code, struct.pack("<III", *dims))
    return found + struct.pack("<BBH", 3, 0x19, end)


def _entry(code: int, value: bytes) -> bytes:
    return struct.pack("<BBH", 4, code, len(value)) + value

"""Archives of objects (`.a`), written and read: the format of ar with the names of System V.

The first member is the symbol index, which linkers need. An archive has no times and no user ids,
so the same objects give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ferrule.runtime.binaries.elf import ARCHIVE
from ferrule.runtime.binaries.objectfile import ObjectFileError, read_object

_HEADER_SIZE: Final = 60  # `struct ar_hdr` of ar.h.
_END: Final = b"`\n"


def write_archive(objects: Mapping[str, bytes]) -> bytes:
    """The archive of these objects, by the names of its members: ASCII, without a slash."""
    names = b"".join(name.encode("ascii") + b"/\n" for name in objects)
    symbols = {name: read_object(data).defined for name, data in objects.items()}
    listed = b"".join(symbol.encode() + b"\0" for defined in symbols.values() for symbol in defined)
    count = sum(map(len, symbols.values()))
    long_names = _member(b"//", names)
    position = len(ARCHIVE) + len(_member(b"/", bytes(4 + 4 * count) + listed)) + len(long_names)
    offsets, members, name_at = [count.to_bytes(4, "big")], [], 0
    for name, data in objects.items():
        offsets += [position.to_bytes(4, "big")] * len(symbols[name])
        members.append(_member(b"/%d" % name_at, data))
        position += len(members[-1])
        name_at += len(name) + 2
    index = _member(b"/", b"".join(offsets) + listed)
    return b"".join([ARCHIVE, index, long_names, *members])


def _member(name: bytes, data: bytes) -> bytes:
    header = b"%-16s%-12d%-6d%-6d%-8s%-10d%s" % (name, 0, 0, 0, b"100644", len(data), _END)
    return header + data + (b"\n" if len(data) % 2 else b"")


def read_archive(data: bytes) -> Iterator[bytes]:
    """The objects of an archive, in order; ObjectFileError where it is cut off or damaged."""
    return (content for _, content in read_members(data))


def read_members(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The name and the bytes of each object of an archive; errors are those of `read_archive`."""
    position, is_first, names = len(ARCHIVE), True, b""
    while position < len(data):
        header = data[position : position + _HEADER_SIZE]
        size = header[48:58].strip()
        if len(header) < _HEADER_SIZE or header[58:] != _END or not size.isdigit():
            raise ObjectFileError(f"the archive is damaged: no member begins at {position}")
        start = position + _HEADER_SIZE
        end = start + int(size)
        if end > len(data):
            raise ObjectFileError(
                f"the archive is cut off: a member at {position} ends at {end}, "
                f"but there are {len(data)} bytes"
            )
        # Tables stand before the objects: a name of one behind them is a damaged name.
        name = header[:16].rstrip()
        if not (is_first and _is_table(name)):
            is_first = False
            yield _named(name, data[start:end], names)
        elif name == b"//":
            names = data[start:end]
        position = end + end % 2


def _is_table(name: bytes) -> bool:
    """Whether a member is a table of the format (a symbol index, or long names), not an object."""
    return name in (b"/", b"//", b"/SYM64/") or name.startswith(b"__.SYMDEF")


def _named(name: bytes, content: bytes, names: bytes) -> tuple[str, bytes]:
    """The whole name of a member and its content: a long name is in the table of names (`/12`), or
    with BSD's programs before the content (`#1/20`)."""
    if name.startswith(b"#1/") and name[3:].isdigit():
        length = int(name[3:])
        name, content = content[:length].rstrip(b"\0"), content[length:]
    elif name[:1] == b"/" and name[1:].isdigit():
        name = names[int(name[1:]) :].partition(b"\n")[0]
    return name.removesuffix(b"/").decode(errors="backslashreplace"), content

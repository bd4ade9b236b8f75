"""Damaged files: what becomes of objects, libraries and archives whose bits were changed.

`damaged(data, seed)` is a pure function: the same file and seed give the same damaged file. A batch
of them is loaded and called in a child process, which is forked for the batch and again where it
died, so that a crash is seen and told by its seed. `python damaged_files.py COUNT` runs them.
"""

from __future__ import annotations

import os
import random
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ferrule.runtime import ObjectFileError, load_module

_HEADER: Final = 64
_FIELDS: Final = (0, 1, 2, 3, 7, 8, 255, 0x1000, 0xFFF1, 1 << 20, (1 << 31) - 1, (1 << 32) - 1)
_SIZES: Final = {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}
REFUSED: Final = 0
RIGHT: Final = 1
WRONG: Final = 2
CRASHED: Final = 3
"""What became of a damaged file: an ObjectFileError, the right results, others, a dead process."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the file of a seed; `said` is an error of another class."""

    seed: int
    kind: int
    said: str = ""


def damaged(data: bytes, seed: int) -> bytes:
    """The file with one kind of damage."""
    chance = random.Random(seed)
    return chance.choice(_DAMAGES)(data, chance)


def _flipped(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 8))):
        changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def _field(data: bytes, chance: random.Random) -> bytes:
    """A field of a header or a table that is a number which is often a limit."""
    size = chance.choice((1, 2, 4, 8))
    at = chance.choice(list(_tables(data)) or [range(min(len(data), _HEADER))])
    place = chance.randrange(at.start, max(at.start + 1, at.stop - size)) // size * size
    value = chance.choice((*_FIELDS, chance.getrandbits(64), len(data), len(data) - 1))
    changed = bytearray(data)
    changed[place : place + size] = struct.pack(_SIZES[size], value & ((1 << 8 * size) - 1))
    return bytes(changed[: len(data)])


def _tables(data: bytes) -> Iterator[range]:
    """The ELF header, program headers, section headers, and what sections of tables hold."""
    start = data.find(b"\x7fELF")
    if start < 0:
        return
    yield range(start, start + _HEADER)
    segments_at, at = struct.unpack_from("<QQ", data, start + 32)
    segments, _, count = struct.unpack_from("<HHH", data, start + 56)
    if segments:
        yield range(start + segments_at, start + segments_at + 56 * segments)
    yield range(start + at, start + at + 64 * count)
    for i in range(count):
        kind, _, _, offset, size = struct.unpack_from("<IQQQQ", data, start + at + 64 * i + 4)
        if kind in _OF_TABLES and size:
            yield range(start + offset, start + offset + size)


_OF_TABLES: Final = (2, 3, 4, 5, 6, 7, 11, 14, 15, 0x6FFFFFF6, 0x6FFFFFFE, 0x6FFFFFFF)


def _moved(data: bytes, chance: random.Random) -> bytes:
    """Some bytes written over others."""
    size = chance.randrange(1, 256)
    here, there = (chance.randrange(max(1, len(data) - size)) for _ in range(2))
    return data[:there] + data[here : here + size] + data[there + size :]


def _longer(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + chance.randbytes(chance.randrange(1, 64)) + data[at:]


_DAMAGES: Final[Sequence[Callable[[bytes, random.Random], bytes]]] = (
    _flipped,
    _flipped,
    _field,
    _field,
    _field,
    _cut,
    _moved,
    _longer,
)


def outcomes(
    data: bytes,
    seeds: Sequence[int],
    right: Callable[[bytes], bool],
    *,
    damage: Callable[[bytes, int], bytes] = damaged,
    batch: int = 50,
) -> list[Outcome]:
    """What becomes of the damaged files of these seeds; `right` loads one, calls what is in it, and
    says whether the results are right.  `damage` makes a damaged file of a file and a seed."""
    found: list[Outcome] = []
    while len(found) < len(seeds):
        batched = seeds[len(found) : len(found) + batch]
        found += _in_child(data, batched, lambda given, seed: _outcome(damage(given, seed), right))
    return found


def _in_child(
    data: bytes, seeds: Sequence[int], judged: Callable[[bytes, int], tuple[int, str]]
) -> list[Outcome]:
    """The outcomes up to the first crash, which is the last of them."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _serve(data, seeds, judged, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        lines = pipe.read().decode().splitlines()
    _, status = os.waitpid(child, 0)
    told = [line.split(" ", 1) for line in lines]
    found = [Outcome(seeds[i], int(kind), said) for i, (kind, said) in enumerate(told)]
    if len(found) < len(seeds):
        found.append(Outcome(seeds[len(found)], CRASHED, f"wait status {status}"))
    return found


def _serve(
    data: bytes, seeds: Sequence[int], judged: Callable[[bytes, int], tuple[int, str]], pipe: int
) -> None:
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 2)
    try:
        for seed in seeds:
            kind, said = judged(data, seed)
            os.write(pipe, f"{kind} {said!r}\n".encode())
    finally:
        os._exit(0)


def _outcome(data: bytes, right: Callable[[bytes], bool]) -> tuple[int, str]:
    try:
        return (RIGHT if right(data) else WRONG), ""
    except ObjectFileError:
        return REFUSED, ""
    except BaseException as error:
        return WRONG, repr(error)


def loads(data: bytes) -> bool:
    """Whether a file is loaded; nothing of it is called."""
    load_module(data)
    return True


def main(files: Sequence[str], count: int) -> None:
    """Print what becomes of damaged files made of these."""
    for file in files:
        data = Path(file).read_bytes()
        found = outcomes(data, range(count), loads)
        counts = [sum(each.kind == kind for each in found) for kind in range(4)]
        print(file, dict(zip(("refused", "loaded", "wrong", "crashed"), counts, strict=True)))
        for each in found:
            if each.kind in (WRONG, CRASHED):
                print(" ", each)


if __name__ == "__main__":
    main(sys.argv[2:], int(sys.argv[1]))

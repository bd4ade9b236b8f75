"""Arguments in C's form: the memory that a wrapper reads.

Objects are forged, for a wrapper only looks at them; maps are tvm-ffi's own, whose layout is
nobody else's business.  `Forged.slots` says where the TVMFFIAny of each argument and of each item
of a tuple stands, by its path.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tvm_ffi

from oracle.arguments import (
    PARENTS,
    STATIC,
    Argument,
    Big,
    Blob,
    Dev,
    Dtype,
    Handle,
    Items,
    Moved,
    NullView,
    Numbers,
    Opaque,
    Pairs,
    Text,
    View,
)

FFI = ctypes.CDLL(tvm_ffi.libinfo.find_libtvm_ffi())
Path = tuple[int, ...]


class AnyValue(ctypes.Structure):
    """TVMFFIAny."""

    _fields_ = [
        ("type_index", ctypes.c_int32),
        ("small_len", ctypes.c_uint32),
        ("payload", ctypes.c_int64),
    ]


class ByteArray(ctypes.Structure):
    """TVMFFIByteArray."""

    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_size_t)]


@dataclass
class Forged:
    """Arguments in C's form, and the memory behind them."""

    args: Any
    slots: dict[Path, AnyValue] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)

    def memory(self, data: bytes) -> int:
        """The address of a copy of these bytes, 16-byte aligned, that lives as long as this."""
        held = ctypes.create_string_buffer(len(data) + 32)
        address = (ctypes.addressof(held) + 15) & ~15
        ctypes.memmove(address, data, len(data))
        self.kept.append(held)
        return address

    def object(self, type_index: int, body: bytes) -> AnyValue:
        """An object of this type: tvm-ffi's header with a reference of ours, then the body."""
        header = struct.pack("<QiIQ", 1 << 32 | 1000, type_index, 0, 0)
        return AnyValue(type_index, 0, self.memory(header + body))


def forge(arguments: Sequence[Argument]) -> Forged:
    """The arguments of one call."""
    forged = Forged((AnyValue * max(1, len(arguments)))())
    for i, argument in enumerate(arguments):
        _put(forged, forged.args, i, argument, (i,))
    return forged


def _put(forged: Forged, into: Any, i: int, argument: Argument, path: Path) -> None:
    into[i] = _any(forged, argument, path)
    forged.slots[path] = into[i]


def _any(forged: Forged, argument: Argument, path: Path) -> AnyValue:
    match argument:
        case None:
            return AnyValue(0, 0, 0)
        case bool():
            return AnyValue(2, 0, int(argument))
        case int():
            return AnyValue(1, 0, argument)
        case float():
            return AnyValue(3, 0, struct.unpack("<q", struct.pack("<d", argument))[0])
        case Opaque(address):
            return AnyValue(4, 0, _signed(address))
        case Dtype(code):
            return AnyValue(5, 0, code)
        case Dev(kind, index):
            return AnyValue(6, 0, _signed(kind | index << 32))
        case NullView():
            return AnyValue(7, 0, 0)
        case Text(data, form):
            return _bytes(forged, data, form, (8, 11, 65))
        case Blob(data, form):
            return _bytes(forged, data, form, (9, 12, 66))
        case _:
            return _object(forged, argument, path)


def _object(forged: Forged, argument: Argument, path: Path) -> AnyValue:
    match argument:
        case View(owned=owned):
            value = forged.object(70, _dltensor(forged, argument))
            return value if owned else AnyValue(7, 0, value.payload + 24)
        case Moved(item):
            value = forged.object(70, _dltensor(forged, item))
            return AnyValue(10, 0, forged.memory(struct.pack("<q", value.payload)))
        case Big(value):
            words = _words(value)
            return forged.object(78, struct.pack(f"<Q{len(words)}Q", len(words), *words))
        case Numbers(values):
            data = forged.memory(struct.pack(f"<{len(values)}q", *values))
            return forged.object(69, struct.pack("<QQ", data, len(values)))
        case Items(items, form):
            return _items(forged, items, 71 if form == "array" else 75, path)
        case Pairs():
            held = plain(argument)
            forged.kept.append(held)
            return AnyValue(72 if argument.form == "map" else 76, 0, held.__chandle__())
        case Handle(type_key):
            return forged.object(type_index(type_key), bytes(64))
    raise TypeError(argument)


def _dltensor(forged: Forged, view: View) -> bytes:
    rank = len(view.shape)
    shape = forged.memory(struct.pack(f"<{rank}q", *view.shape)) if rank else 0
    strides = 0
    if view.strides is not None and rank:
        strides = forged.memory(struct.pack(f"<{rank}q", *view.strides))
    head = struct.pack("<QiiiI", view.data, *view.device, rank, view.dtype)
    return head + struct.pack("<QQQ", shape, strides, view.byte_offset)


def _bytes(forged: Forged, data: bytes, form: str, indices: tuple[int, int, int]) -> AnyValue:
    if form == "small":
        payload = struct.unpack("<q", data.ljust(8, b"\0"))[0]
        return AnyValue(indices[1], len(data), payload)
    address = forged.memory(data + b"\0")
    if form == "raw":
        return AnyValue(indices[0], 0, address)
    array = struct.pack("<QQ", address, len(data))
    if form == "array":
        return AnyValue(indices[0], 0, forged.memory(array))
    return forged.object(indices[2], array)


def _items(forged: Forged, items: Sequence[Argument], index: int, path: Path) -> AnyValue:
    cells = (AnyValue * max(1, len(items)))()
    forged.kept.append(cells)
    for i, item in enumerate(items):
        _put(forged, cells, i, item, (*path, i))
    data = ctypes.addressof(cells) if items else 0
    return forged.object(index, struct.pack("<QqqQ", data, len(items), len(items), 0))


def _words(value: int) -> list[int]:
    """Two's complement in as few words as hold it, two at least: one is never a BigInt."""
    count = max(2, value.bit_length() // 64 + 1)
    return [value >> 64 * i & (1 << 64) - 1 for i in range(count)]


def _signed(number: int) -> int:
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def plain(argument: Argument) -> Any:
    """What Python would pass for this: for what a map holds."""
    match argument:
        case None | bool() | int() | float():
            return argument
        case Big(value):
            return value
        case Text(data):
            return data.decode()
        case Blob(data):
            return data
        case Items(items, form):
            values = [plain(item) for item in items]
            return tvm_ffi.Array(values) if form == "array" else tvm_ffi.List(values)
        case Pairs(pairs, form):
            held = {plain(key): plain(value) for key, value in pairs}
            return tvm_ffi.Map(held) if form == "map" else tvm_ffi.Dict(held)
    raise TypeError(argument)


@functools.cache
def type_index(key: str) -> int:
    """The index of an object type; those of the tests are registered here."""
    if key in STATIC:
        return STATIC[key]
    parent, depth, above = PARENTS[key], 1, PARENTS[key]
    while above != "ffi.Object":
        above, depth = PARENTS[above], depth + 1
    name = key.encode()
    return int(
        FFI.TVMFFITypeGetOrAllocIndex(
            ctypes.byref(ByteArray(name, len(name))), -1, depth, 0, 1, type_index(parent)
        )
    )


@dataclass
class Refused(Exception):
    """The error that a wrapper set."""

    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


def raised() -> Refused:
    """The error that a function which returned -1 has set."""
    handle = ctypes.c_void_p()
    FFI.TVMFFIErrorMoveFromRaised(ctypes.byref(handle))
    assert handle.value, "a wrapper returned -1 and set no error"
    texts = (ctypes.c_uint64 * 4).from_address(handle.value + 24)
    pieces = [ctypes.string_at(texts[i], texts[i + 1]).decode() for i in (0, 2)]
    FFI.TVMFFIObjectDecRef(handle)
    return Refused(*pieces)

"""Values of C at addresses: read, written, strings and structs."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

_I32, _U32, _U64, _F32 = ctypes.c_int32, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_float


def put_int(address: int, value: int) -> None:
    """An int, of 32 bits."""
    _I32.from_address(address).value = value


def put_word(address: int, value: int) -> None:
    """An address, handle or size, of 64 bits."""
    _U64.from_address(address).value = value


def put_float(address: int, value: float) -> None:
    """A float."""
    _F32.from_address(address).value = value


def put_bytes(address: int, value: bytes) -> None:
    """Bytes as they are."""
    ctypes.memmove(address, value, len(value))


def get_int(address: int) -> int:
    """An int, of 32 bits."""
    return _I32.from_address(address).value


def get_word(address: int) -> int:
    """An address, handle or size, of 64 bits."""
    return _U64.from_address(address).value


def get_words(address: int, count: int) -> list[int]:
    """So many of them."""
    # An array of ctypes would be a new class each time, which takes longer than a launch may.
    return list(struct.unpack(f"<{count}Q", ctypes.string_at(address, 8 * count)))


def get_text(address: int) -> str:
    """A text that ends with a zero byte; bytes that are no UTF-8 are replaced."""
    return ctypes.string_at(address).decode(errors="replace")


def unpacked(form: struct.Struct, address: int) -> tuple[Any, ...]:
    """The fields of a struct."""
    return form.unpack(ctypes.string_at(address, form.size))


def copy(to: int, source: int, size: int) -> None:
    """Copy bytes, which may overlap."""
    ctypes.memmove(to, source, size)

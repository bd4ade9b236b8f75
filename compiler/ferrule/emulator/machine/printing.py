"""What kernels print: `vprintf` with the format of C, as CUDA knows it."""

from __future__ import annotations

import ctypes
import re
import struct
import sys
from functools import cache
from typing import Any, Final

_CONVERSION: Final = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d*)(?P<precision>\.(?:\*|\d*))?"
    r"(?P<size>hh|h|ll|l|z|t|j)?(?P<kind>[%a-zA-Z])"
)
_WIDE: Final = ("l", "ll", "z", "t", "j")
_CALLBACK: Final = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint64, ctypes.c_uint64)


@cache
def _function() -> Any:
    return _CALLBACK(_print)


@cache
def callback() -> int:
    """The address of the function that kernels call."""
    return ctypes.cast(_function(), ctypes.c_void_p).value or 0


def _print(text: int, values: int) -> int:
    try:
        said, count = formatted(ctypes.string_at(text).decode("latin-1"), values)
        sys.stdout.write(said)
    except Exception as error:  # It must not pass through the kernel.
        sys.stderr.write(f"printf of a kernel: {error}\n")
        return -1
    return count


class _Values:
    """Arguments in memory, each aligned to its size."""

    def __init__(self, address: int) -> None:
        self._start = self._at = address
        self.count = 0

    def take(self, kind: str) -> Any:
        size = struct.calcsize(kind)
        # The first stands at the start, which is aligned for all.
        self._at = self._start + -(-(self._at - self._start) // size) * size
        (value,) = struct.unpack("<" + kind, ctypes.string_at(self._at, size))
        self._at += size
        self.count += 1
        return value


def formatted(text: str, address: int) -> tuple[str, int]:
    """A text with its values put in, and how many there were."""
    values = _Values(address)
    return _CONVERSION.sub(lambda found: _one(found, values), text), values.count


def _one(found: re.Match[str], values: _Values) -> str:
    kind = found["kind"]
    if kind == "%":
        return "%"
    width = str(values.take("i")) if found["width"] == "*" else found["width"]
    precision = found["precision"] or ""
    if precision == ".*":
        precision = f".{values.take('i')}"
    layout = f"%{found['flags']}{width}{precision}"
    wide = found["size"] in _WIDE
    if kind in "di":
        return str((layout + "d") % values.take("q" if wide else "i"))
    if kind in "uoxX":
        own = "d" if kind == "u" else kind
        return str((layout + own) % values.take("Q" if wide else "I"))
    if kind in "eEfFgG":
        return str((layout + kind) % values.take("d"))
    if kind in "aA":
        return float(values.take("d")).hex()
    if kind == "c":
        return str((layout + "s") % chr(values.take("i") & 255))
    if kind == "s":
        return str((layout + "s") % ctypes.string_at(values.take("Q")).decode("latin-1"))
    if kind == "p":
        return f"{values.take('Q'):#x}"
    return found[0]

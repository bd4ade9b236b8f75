"""The types of native functions, as LLVM has them."""

from __future__ import annotations

import ast
import re
import struct
from collections.abc import Mapping
from typing import Any, Final

Value = tuple[str, str]
"""LLVM's name of a value, and its type here; a written number has the type "number"."""

NAME: Final = re.compile(r"(i1|[iu](?:8|16|32|64)|f(?:16|32|64))(?:x(\d+))?")


class NativeError(Exception):
    """A function of this package that means nothing: a mistake of the emulator's own."""


def joined(*parts: Mapping[str, int]) -> dict[str, int]:
    """The constants of several texts that become one. NativeError for a name of two numbers: one of
    the texts would compute with that of another."""
    found: dict[str, int] = {}
    for name, value in (each for part in parts for each in part.items()):
        if found.setdefault(name, value) != value:
            raise NativeError(f"{name} is {found[name]}, and {value}")
    return found


def llvm(kind: str) -> str:
    """LLVM's type."""
    found = NAME.fullmatch(kind)
    if found is None:
        raise NativeError(f"there is no type {kind}")
    base = {"f16": "half", "f32": "float", "f64": "double"}.get(found[1], "i" + found[1][1:])
    return f"<{found[2]} x {base}>" if found[2] else base


def width(kind: str) -> int:
    """Bits of a type's element."""
    found = NAME.fullmatch(kind)
    assert found is not None
    return int(found[1][1:])


def kind_of(node: Any) -> str:
    assert isinstance(node, ast.Name)
    return node.id


def conversion(have: str, kind: str) -> str:
    from_float, to_float = have[0] == "f", kind[0] == "f"
    if from_float and to_float:
        return "fpext" if width(have) < width(kind) else "fptrunc"
    if from_float:
        return "fptosi" if kind[0] == "i" else "fptoui"
    if to_float:
        return "sitofp" if have[0] == "i" and have != "i1" else "uitofp"
    if width(have) > width(kind):
        return "trunc"
    return "sext" if have[0] == "i" and have != "i1" else "zext"


def written(text: str, kind: str) -> str:
    """A number as LLVM writes it."""
    shape = NAME.fullmatch(kind)
    assert shape is not None
    if shape[1][0] == "f":
        number = struct.unpack("<f", struct.pack("<f", float(text)))[0]
        one = f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    else:
        one = {"0": "false", "1": "true"}[text] if kind == "i1" else text
    return f"splat ({llvm(shape[1])} {one})" if shape[2] else one

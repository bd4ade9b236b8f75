"""Variadic C functions, such as `int printf(const char* format, ...)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llvmlite import ir

from ferrule.compiler.hostcode import HostCode, Library

_OF_LIBC: Final = {
    **dict.fromkeys(("printf", "scanf", "wprintf", "warn", "warnx", "syscall", "prctl"), 1),
    **dict.fromkeys(("fprintf", "dprintf", "sprintf", "asprintf", "fscanf", "sscanf"), 2),
    **dict.fromkeys(("fwprintf", "syslog", "open", "fcntl", "ioctl", "err", "errx"), 2),
    **dict.fromkeys(("execl", "execlp", "execle"), 2),
    **dict.fromkeys(("snprintf", "swprintf", "openat", "error"), 3),
}
"""Variadic functions of libc, which has no prototypes at hand, and the position of their `...`."""


def check_named(name: str, code: HostCode, start: object, count: int) -> None:
    """Raise ValueError for a variadic function of libc without the position of its `...`, and for
    an invalid position; TypeError for a value that is not a position."""
    if start is not None:
        if not isinstance(start, int) or isinstance(start, bool):
            raise TypeError(
                f"{name}: variadic_from must be the position of the first argument of its `...`, "
                f"but got {start!r}"
            )
        if not 0 <= start <= count:
            raise ValueError(
                f"{name}: variadic_from={start} is no position among its {count} arguments"
            )
    elif name in _OF_LIBC and isinstance(code.source, Library) and code.source.path is None:
        raise ValueError(
            f"{name} takes any number of arguments, which are passed in another way: say which is "
            f"the first of these, variadic_from={_OF_LIBC[name]}"
        )


def check_promoted(name: str, fixed: int, kinds: Sequence[ir.Type]) -> None:
    """Raise TypeError for a value in the `...` of a type that C would have promoted."""
    for position, kind in enumerate(kinds):
        is_short = isinstance(kind, ir.IntType) and kind.width < 32
        if position >= fixed and (is_short or isinstance(kind, ir.FloatType)):
            wanted = "int32" if is_short else "float64"
            raise TypeError(
                f"{name}: value #{position} is {kind}, which C makes wider where a function takes "
                f"any: write conventions.cast(…, '{wanted}')"
            )

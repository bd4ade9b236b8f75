"""Permissions to compute floats less strictly, by LLVM's names, for a function or a loop.

They are permissions, never requests: a target takes the ones that it can use. LLVM Language
Reference, "Fast-Math Flags", has their exact meanings.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias, TypeVar

from ferrule.compiler.errors import CompileError, Diagnostic

FLAGS: Final = ("reassoc", "contract", "arcp", "afn", "nsz", "nnan", "ninf")
"""In this order: sums and products in any order; a multiplication and an addition as one operation;
a division as a multiplication by the reciprocal; approximate functions; the sign of zero is free;
there are no NaNs; there are no infinities."""

RELAXED: Final = FLAGS[:5]
"""The meaning of `True`: masks of infinities and tests for NaN still work."""

FastMath: TypeAlias = "bool | str | Iterable[str]"
"""What a user gives: True, False, a name, or several."""

_ATTRIBUTE: Final = "__ferrule_fast_math__"

F = TypeVar("F", bound=Callable[..., Any])


def checked(given: object, where: str) -> tuple[str, ...]:
    """The flags that were given, in the order of `FLAGS`.  Raises CompileError for others."""
    if isinstance(given, bool):
        return RELAXED if given else ()
    names = {given} if isinstance(given, str) else _names(given, where)
    unknown = sorted(names - set(FLAGS), key=str)
    if unknown:
        raise CompileError(
            Diagnostic(f"{where} has {unknown[0]!r}", expected=f"names of {', '.join(FLAGS)}")
        )
    return tuple(flag for flag in FLAGS if flag in names)


def _names(given: object, where: str) -> set[str]:
    if isinstance(given, (set, frozenset, list, tuple)) and all(isinstance(x, str) for x in given):
        return set(given)
    raise CompileError(
        Diagnostic(f"{where} is {given!r}", expected=f"True, False, or a set of {', '.join(FLAGS)}")
    )


def marked(function: F, given: object) -> F:
    """A copy of a function with these flags; itself without any.

    A copy, because the same function may also be compiled without them.
    """
    flags = checked(given, f"fast_math of {function.__name__}")
    if not flags:
        return function
    assert isinstance(function, types.FunctionType)
    copy = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    for name in ("__kwdefaults__", "__annotations__", "__doc__", "__module__", "__qualname__"):
        setattr(copy, name, getattr(function, name))
    vars(copy).update(vars(function))
    setattr(copy, _ATTRIBUTE, flags)
    return copy  # type: ignore[return-value]


def flags_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The flags of a marked function."""
    found: tuple[str, ...] = getattr(function, _ATTRIBUTE, ())
    return found


def united(first: tuple[str, ...], second: Iterable[str]) -> tuple[str, ...]:
    """The flags of either, in the order of `FLAGS`."""
    both = {*first, *second}
    return tuple(flag for flag in FLAGS if flag in both)

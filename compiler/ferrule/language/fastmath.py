"""Permissions to compute floats less strictly, by LLVM's names, for a function or a loop.

They are permissions, never requests: a target takes the ones that it can use. LLVM Language
Reference, "Fast-Math Flags", has their exact meanings.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from ferrule.compiler.errors import CompileError, Diagnostic

FLAGS: Final = ("reassoc", "contract", "arcp", "afn", "nsz", "nnan", "ninf")
"""In this order: sums and products in any order; a multiplication and an addition as one operation;
a division as a multiplication by the reciprocal; approximate functions; the sign of zero is free;
there are no NaNs; there are no infinities."""

RELAXED: Final = FLAGS[:5]
"""The meaning of `True`: masks of infinities and tests for NaN still work."""

FastMath: TypeAlias = "bool | str | Iterable[str]"
"""What a user gives: True, False, a name, or several."""


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


FMAD: Final = "fmad"
"""The mark of a product or a sum of the program, between its lowering and `contracted`; and of a
function of `fe.math` that is computed by its formula with fma, until it is expanded."""


def permissions(flags: tuple[str, ...]) -> tuple[str, ...]:
    """LLVM's among the flags of an op."""
    return tuple(flag for flag in flags if flag != FMAD)


def contracting(flags: tuple[str, ...], fmad: bool) -> tuple[str, ...]:
    """The flags of an op which may, or must not, become one operation with another one: if they
    allow LLVM something, this is LLVM's work too."""
    if not fmad:
        return tuple(flag for flag in flags if flag != "contract")
    return united(flags, ("contract",)) if flags else ()


def checked_fmad(given: object, flags: tuple[str, ...], named: bool, where: str) -> bool | None:
    """What a function says of fmad; `named`: whether its flags were named one by one.

    Raises CompileError for what is no answer, and for one that contradicts the flags.
    """
    if not isinstance(given, bool | None):
        raise CompileError(
            Diagnostic(f"fmad of {where} is {given!r}", expected="True, False, None")
        )
    if given is False and named and "contract" in flags:
        raise CompileError(
            Diagnostic(
                f"fmad of {where} is False, but its fast_math has 'contract', the opposite",
                hint="leave one of them out",
            )
        )
    return given


def united(first: tuple[str, ...], second: Iterable[str]) -> tuple[str, ...]:
    """The flags of either, in the order of `FLAGS`."""
    both = {*first, *second}
    return tuple(flag for flag in FLAGS if flag in both)

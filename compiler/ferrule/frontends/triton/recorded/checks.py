"""What is refused of a recording before it is compiled."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.triton.recorded.reading import Reading

General = bool | Sequence[str]
"""Whether sizes may be others than those between the recorded ones, or which."""


def check_kind_of_general(general: Any) -> None:
    """Raises TypeError for what is no `General`."""
    names = isinstance(general, Collection) and not isinstance(general, str | bytes)
    if not isinstance(general, bool) and not (names and all(isinstance(x, str) for x in general)):
        raise TypeError(f"general must be True, False or a list of names, but got {general!r}")


def check_general(general: General, known: Iterable[str]) -> None:
    """Raises CompileError for a name of `general` that no size has, and no number that callers
    give, or if all are the same."""
    names = set(known)
    for name in () if isinstance(general, bool) else general:
        if name not in names:
            raise CompileError(
                Diagnostic(
                    f"general names {name!r}, which is no size or number that differs between "
                    "recordings",
                    expected=", ".join(sorted(names)) or "two recordings with other sizes",
                )
            )
    if general and not names:
        raise CompileError(
            Diagnostic(
                "general, but all sizes are those of the one recording",
                hint="give another recording, of other sizes",
            )
        )


def require_same(
    function: str, does: str, several: Sequence[Sequence[str]], hint: str = ""
) -> None:
    """Raises CompileError unless all recordings give, or return, the same."""
    first = several[0]
    for other in several[1:]:
        if other != first:
            shown = [", ".join(each) or "nothing" for each in (first, other)]
            raise CompileError(
                Diagnostic(
                    f"{function}: one recording {does} {shown[0]}, another {shown[1]}",
                    expected="the same in all recordings of a host function",
                    hint=hint or None,
                )
            )


def check_reads(reading: Reading) -> None:
    """Raises CompileError if the host function read what a recording cannot follow, or keeps a
    number of the recording."""
    late = reading.log.kept()
    if late is not None:
        raise CompileError(
            Diagnostic(
                f"a number of the recording is compared after it, at {late}: the host function "
                "keeps it, and later calls depend on earlier ones",
                hint="record with a new object, without what was kept: a default that is a list or "
                "a dict, a global variable",
            )
        )
    for read in reading.log.reads[:1]:
        raise CompileError(
            Diagnostic(
                f"the host function reads {read.what} at {read.where}: in every call these would "
                "be those of the recording",
                expected="a host function of sizes alone",
                hint="give what it reads as a number of its own, and read it in a function around "
                "it; or where it is the same in every call, recording(fixed_data=True)",
            )
        )


def check_drawn(generators: Sequence[str]) -> None:
    """Raises CompileError if the host function drew random numbers of one of these."""
    if generators:
        raise CompileError(
            Diagnostic(
                f"the host function draws random numbers, or sets a seed: {', '.join(generators)} "
                "is another one after it; each call would have the numbers of the recording",
                expected="a host function of sizes and arguments alone",
                hint="draw the number in a function around it, and give it as an argument; or "
                "where it is the same in every call, recording(fixed_data=True)",
            )
        )

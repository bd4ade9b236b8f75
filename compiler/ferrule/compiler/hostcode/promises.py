"""The promises of LLVM IR about the parameters of its functions, and about its processor.

The optimiser relies on all of them: a call that breaks one silently computes wrong numbers, or
crashes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from ferrule.compiler import targets
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.runtime import cpus
from ferrule.specs.deferred import dataclass

_RANGE: Final = re.compile(r"range\(i(\d+) (-?\d+), (-?\d+)\)")
_NUMBER: Final = re.compile(r"(align|dereferenceable|dereferenceable_or_null)[ (](\d+)\)?")
_CLASSES: Final = re.compile(r"nofpclass\(([\w ]+)\)")
_OF_BASELINE: Final = frozenset(
    {
        *("64bit", "cmov", "cx8", "fxsr", "mmx", "nopl", "sse", "sse2", "x87", "evex512"),
        *("fp-armv8", "neon", "v8a", "outline-atomics", "fmv"),
    }
)
"""Features that every processor of the architecture has; evex512 is a part of avx512f."""


@dataclass(frozen=True, slots=True)
class Promised:
    """The promises about one parameter.

    `is_apart`: memory that is written through it is not accessed through another pointer (noalias).
    `reads_only`: nothing is written through it.  `align` in bytes.  `is_there`: it is not null.
    `bytes`: as many can be read behind it, unless it is null and `may_be_null`.  `limits`: the
    range of its values, from the first to before the second.  `reads_first`: the first access is a
    read.  `assumes`: the alignment in bytes that the code uses, without a promise.  `writes`:
    memory is written through it.  `classes`: the kinds of numbers that it never is (nofpclass).
    `extends`: its extension to a register, signext or zeroext, or "".  `apart_from`: the positions
    of parameters that must not alias it if one of the two is written.
    """

    is_apart: bool = False
    reads_only: bool = False
    align: int = 1
    is_there: bool = False
    bytes: int = 0
    may_be_null: bool = False
    limits: tuple[int, int, int] | None = None
    reads_first: bool = False
    assumes: int = 1
    writes: bool = False
    classes: tuple[str, ...] = ()
    extends: str = ""
    apart_from: frozenset[int] = frozenset()


def promised(words: Iterable[str]) -> Promised:
    """The promises among the attributes of a parameter, as LLVM prints them."""
    said = set(words)
    numbers = {match[1]: int(match[2]) for word in said if (match := _NUMBER.fullmatch(word))}
    limits = next((found for word in said if (found := _RANGE.fullmatch(word))), None)
    classes = next((found[1] for word in said if (found := _CLASSES.fullmatch(word))), "")
    assumed = [int(word.split()[1]) for word in said if word.startswith("assumes ")]
    surely, perhaps = (numbers.get(f"dereferenceable{end}", 0) for end in ("", "_or_null"))
    return Promised(
        is_apart="noalias" in said,
        reads_only=bool(said & {"readonly", "readnone"}),
        align=numbers.get("align", 1),
        # `dereferenceable(n)` with n > 0 means nonnull too (LLVM Language Reference, in the default
        # address space).
        is_there="nonnull" in said or surely > 0,
        bytes=max(surely, perhaps),
        may_be_null=not surely,
        limits=None if limits is None else (int(limits[1]), int(limits[2]), int(limits[3])),
        reads_first="reads_first" in said,
        assumes=max(assumed, default=1),
        writes=bool(said & {"writes", "writeonly"}),
        classes=tuple(sorted(classes.split())),
        apart_from=frozenset(int(each[6:]) for each in said if each.startswith("apart ")),
        extends=next((word for word in ("signext", "zeroext") if word in said), ""),
    )


def needed_features(said: Sequence[Sequence[str]], triple: str, what: str) -> tuple[str, ...]:
    """The CPU features that are needed beyond the architecture's baseline, from each function's
    `target-cpu` and `target-features`.

    Raises CompileError for a CPU without features, because its features are unknown.
    """
    needs: set[str] = set()
    for cpu, features in said:
        words = [word for word in features.split(",") if word]
        needs |= {word[1:] for word in words if word[0] == "+"}
        if cpu in cpus.LEVELS:
            needs |= set(cpus.LEVELS[cpu])
        elif not words and cpu not in ("", "generic", targets.baseline(triple).cpu):
            raise CompileError(
                Diagnostic(
                    f"{what} is for the CPU {cpu}, and does not say what a CPU must have for that",
                    hint='write "target-features"="+avx2,…" beside "target-cpu", or leave both out',
                )
            )
    return tuple(sorted(needs - _OF_BASELINE))


def require_features(needs: Sequence[str], what: str) -> None:
    """Raise CompileError if this machine's CPU lacks some of these features."""
    if not needs:
        return
    here = {word[1:] for word in targets.host().features.split(",") if word.startswith("+")}
    lacking = sorted(set(needs) - here)
    if lacking:
        words = ", ".join(lacking)
        raise CompileError(
            Diagnostic(
                f"{what} has LLVM IR that needs {words}, which this machine's CPU does not have",
                hint="write IR whose target-features this CPU has, or give an object file or "
                "library, which may choose while it runs",
            )
        )

"""Why LLVM has not vectorised a loop, in words about the program: LLVM's own, as of version 22."""

from __future__ import annotations

import re
from typing import Final

from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a loop is not vectorised, and what would help, or ""; `weight` tells which of several
    reasons is the one to name: the largest."""

    text: str
    hint: str = ""
    weight: int = 2


_PREFIX: Final = "loop not vectorized"

_KNOWN: Final = (
    (
        "cannot prove it is safe to reorder floating-point",
        Reason(
            "it adds floats in order",
            "fe.range(..., reassociate=True) or fast_math={'reassoc'} allows another order",
            3,
        ),
    ),
    (
        "cannot prove it is safe to reorder memory",
        Reason("its accesses may overlap", "write to a tensor that is not read in the loop"),
    ),
    (
        "Backward loop carried data dependence that prevents store-to-load",
        Reason("an iteration reads what one shortly before it has written", weight=3),
    ),
    ("Backward loop carried", Reason("an iteration reads what an earlier one has written", "", 3)),
    ("Forward loop carried", Reason("an iteration reads what one shortly before it has written")),
    (
        "unsafe dependent memory operations",
        Reason("an iteration may read what an earlier one has written"),
    ),
    (
        "cannot identify array bounds",
        Reason("where it accesses memory depends on loaded values, so accesses may overlap"),
    ),
    (
        "Too many SCEV assumptions",
        Reason("too many of its strides and sizes are known only at the call"),
    ),
    ("too many memory checks", Reason("too many tensors in it may overlap")),
    ("cannot check memory dependencies", Reason("the tensors in it may overlap")),
    (
        "value that could not be identified as reduction",
        Reason("an iteration needs a value of the one before, in a form that is no sum or maximum"),
    ),
    (
        "could not determine number of loop iterations",
        Reason("how often it runs is not known when it begins", weight=3),
    ),
    ("more than one early exit", Reason("it ends in several ways", weight=3)),
    ("too many uncountable exits", Reason("it ends in several ways", weight=3)),
    ("early exit", Reason("it can end early", weight=3)),
    ("potentially faulting", Reason("it can end early, before an access that might fail", "", 3)),
    ("control flow", Reason("its branches cannot become masks", weight=1)),
    ("unsupported switch", Reason("its branches cannot become masks", weight=1)),
    ("call instruction cannot be vectorized", Reason("it calls a function without a vector form")),
    ("atomic", Reason("it has atomic accesses")),
    ("vectorization is explicitly disabled", Reason("each iteration has vectors of its own")),
    ("trip count", Reason("it runs too few times")),
    (
        "vectorization is not beneficial",
        Reason("vectors would not be faster, by LLVM's estimate of their cost"),
    ),
    ("instruction cannot be vectorized", Reason("an operation in it has no vector form", "", 1)),
    ("return type cannot be vectorized", Reason("an operation in it has no vector form", "", 1)),
)

_WIDTH: Final = re.compile(r"vectorized loop \(vectorization width: (\d+)")
_WHOLE: Final = re.compile(r"completely unrolled loop with (\d+)")


def reason_of(text: str) -> Reason | None:
    """The reason that a remark names; None if it names none."""
    if not text.startswith(_PREFIX):
        not_faster = "vectorization is not beneficial" in text
        return next(r for t, r in _KNOWN if t in text) if not_faster else None
    said = text.removeprefix(_PREFIX).lstrip(": ")
    if not said:
        return None
    known = (reason for words, reason in _KNOWN if words in said)
    return next(known, Reason(f"LLVM says: {said}"))


def lanes_of(text: str) -> int:
    """The elements of a vector, if a remark says that a loop is vectorised; 0 otherwise."""
    found = _WIDTH.match(text)
    return int(found[1]) if found else 0


def change_of(text: str) -> str:
    """What else has become of a loop, "" if the remark is of something else."""
    if found := _WHOLE.match(text):
        return f"its {found[1]} iterations are unrolled"
    if "llvm.memset" in text:
        return "it became a call of memset"
    if "llvm.memcpy" in text or "llvm.memmove" in text:
        return "it became a call of memcpy"
    if text.startswith("Loop deleted"):
        return "it was removed: nothing needs it"
    return ""


def is_straight(text: str) -> bool:
    """Whether a remark says that code without a loop was vectorised."""
    return text.startswith(("Stores SLP vectorized", "SLP vectorized", "Vectorized horizontal"))

"""Random programs with typed constants: the same bits as where the values are arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from typed_constants import agree, disagreement

from fuzz.campaigns import Case, Failure

UNIT: Final = "programs"
OPTIONS: Final = ("--target cpu", "--target cpu --opt-level 0", "--target cpu --opt-level 0")
"""For two of three seeds no optimisation, which is faster: what is compared is our own folding."""
TOGETHER: Final = 8
"""How many programs are compiled as one: most of the time is spent once for each module."""


def run(seed: int) -> Iterator[int | Failure]:
    """Some programs."""
    numbers = range(seed * TOGETHER, (seed + 1) * TOGETHER)
    options = OPTIONS[seed % len(OPTIONS)]
    if agree(numbers, options):
        yield TOGETHER
        return
    for number in numbers:
        case = {"number": number, "options": options}
        problem = replay(case)
        yield Failure(case, problem) if problem else 1


def replay(case: Case) -> str | None:
    """In what the two ways differ; the program is made of its number again."""
    return disagreement(case["number"], case["options"])

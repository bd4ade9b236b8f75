"""Random programs with typed constants: the same bits as where the values are arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from typed_constants import disagreement

from fuzz.campaigns import Case, Failure

UNIT: Final = "programs"
OPTIONS: Final = ("--target cpu", "--target cpu --opt-level 0")


def run(seed: int) -> Iterator[int | Failure]:
    """One program."""
    case = {"number": seed, "options": OPTIONS[seed % len(OPTIONS)]}
    problem = replay(case)
    yield Failure(case, problem) if problem else 1


def replay(case: Case) -> str | None:
    """In what the two ways differ; the program is made of its number again."""
    return disagreement(case["number"], case["options"])

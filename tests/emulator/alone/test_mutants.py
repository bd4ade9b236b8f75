"""Faults that are planted in the PTX of examples are noticed; the examples themselves have none.

In every run a few of them; with `--hypothesis-profile=nightly` all. What nothing notices, and why,
is in docs/emulated_checks.md.
"""

from __future__ import annotations

import pytest
from mutant_programs import PROGRAMS
from mutants import CHECKS, Found, Mutant, judged, recorded, replayed


def test_what_is_planted_is_noticed() -> None:
    """One mutant of each kind that the example has; `setp.gt` asks for loops with no turn."""
    found = Found()
    kinds: set[str] = set()

    def first(mutant: Mutant) -> bool:
        new = mutant.kind not in kinds and "setp.gt" not in mutant.line
        if new:
            kinds.add(mutant.kind)
        return new

    judged("transpose", [recorded(PROGRAMS["transpose"][0]())], found, first)
    assert found.planted == len(kinds) == 6
    assert not found.unseen


def test_an_example_does_not_race() -> None:
    assert not replayed(recorded(PROGRAMS["tma_matmul"][1]()), {}, CHECKS)


@pytest.mark.nightly
@pytest.mark.parametrize("name", PROGRAMS)
def test_examples_do_not_race(name: str) -> None:
    for make in PROGRAMS[name]:
        assert not replayed(recorded(make()), {}, CHECKS)


@pytest.mark.nightly
def test_nearly_all_that_is_planted_is_noticed() -> None:
    found = Found()
    for name, programs in PROGRAMS.items():
        judged(name, [recorded(make()) for make in programs], found)
    for name, mutant in found.unseen:
        print(f"{name}: {mutant.kind}, line {mutant.number}: {mutant.line}")
    print(f"{found.planted} planted, {len(found.unseen)} unseen; by results {found.by_results}, ")
    print(f"by checks {found.by_checks}")
    assert found.noticed >= 0.8

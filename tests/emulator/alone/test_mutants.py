"""Faults that are planted in the PTX of examples are noticed; the examples themselves have none.

In every run a few of them; with `--hypothesis-profile=nightly` all. What nothing notices, and why,
is in docs/emulated_checks.md.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from mutant_programs import PROGRAMS
from mutants import CHECKS, Found, judged, recorded, replayed

NIGHTLY = settings.get_current_profile_name() == "nightly"
EQUIVALENT = {"saxpy": 0, "transpose": 2}
"""How many mutants of an example mean the same as the example: they cannot be noticed."""


@pytest.mark.parametrize("name", ["saxpy", "transpose"])
def test_what_is_planted_is_noticed(name: str) -> None:
    found = Found()
    judged(name, [recorded(make()) for make in PROGRAMS[name]], found)
    assert found.planted > 2
    assert len(found.unseen) == EQUIVALENT[name], found.unseen


@pytest.mark.parametrize("name", ["tma_matmul"])
def test_examples_do_not_race(name: str) -> None:
    for make in PROGRAMS[name]:
        assert not replayed(recorded(make()), {}, CHECKS)


@pytest.mark.skipif(not NIGHTLY, reason="without --hypothesis-profile=nightly")
def test_nearly_all_that_is_planted_is_noticed() -> None:
    found = Found()
    for name, programs in PROGRAMS.items():
        judged(name, [recorded(make()) for make in programs], found)
    for name, mutant in found.unseen:
        print(f"{name}: {mutant.kind}, line {mutant.number}: {mutant.line}")
    print(f"{found.planted} planted, {len(found.unseen)} unseen; by results {found.by_results}, ")
    print(f"by checks {found.by_checks}")
    assert found.noticed >= 0.8

"""The facts of ops are those that a program of each op shows; and each that is wrong is noticed."""

from __future__ import annotations

from pathlib import Path
from typing import Final, get_args

import ptxas
import pytest
from op_facts.complaints import complaints
from op_facts.mutations import PROPERTIES, ROLES, Mutation, mutations
from op_facts.observed import Deeds, observed
from op_facts.since import SINCE, Since, module

from ferrule.language.ir import ops
from ferrule.language.ir.operation import Operation

DERIVED: Final = frozenset(("is_owner", "is_seen"))
"""What follows from other facts, for all ops alike."""
KINDS: Final[tuple[type[Operation], ...]] = get_args(ops.Op)


@pytest.fixture(scope="module")
def deeds() -> dict[type[Operation], list[Deeds]]:
    """What the samples of each class do."""
    found: dict[type[Operation], list[Deeds]] = {kind: [] for kind in KINDS}
    for each in observed():
        found[type(each.op)].append(each)
    return found


def test_every_op_has_a_sample(deeds: dict[type[Operation], list[Deeds]]) -> None:
    assert [kind.__name__ for kind, found in deeds.items() if not found] == []


@pytest.mark.parametrize("kind", KINDS)
def test_facts_are_what_programs_show(
    kind: type[Operation], deeds: dict[type[Operation], list[Deeds]]
) -> None:
    assert list(complaints(kind, deeds[kind])) == []


@pytest.mark.parametrize("kind", KINDS)
def test_each_wrong_fact_is_noticed(
    kind: type[Operation], deeds: dict[type[Operation], list[Deeds]]
) -> None:
    missed = [
        each.name
        for each in mutations(kind, [d.op for d in deeds[kind]])
        if not _is_noticed(each, deeds[kind])
    ]
    assert missed == []


def test_all_that_ops_say_by_their_fields_is_made_wrong() -> None:
    found = {name for name, each in vars(Operation).items() if isinstance(each, property)}
    assert set(PROPERTIES) == found - DERIVED - set(ROLES)


@pytest.mark.needs_ptxas
@pytest.mark.parametrize("row", SINCE.values(), ids=lambda row: row.name)
def test_the_assembler_knows_since_when(row: Since, tmp_path: Path) -> None:
    letter = "a" if row.name.startswith(("wgmma", "setmax", "tensormap")) else ""
    arch = f"sm_{max(row.least, 75)}{letter}"  # CUDA 13 has none before sm_75
    ptxas.assemble(module(row, arch), arch, tmp_path)
    before = {90: "sm_89", 89: "sm_86", 80: "sm_75"}.get(row.least)
    if before is not None:
        with pytest.raises(ptxas.Refused):
            ptxas.assemble(module(row, before), before, tmp_path)


def _is_noticed(mutation: Mutation, deeds: list[Deeds]) -> bool:
    with mutation.applied():
        return next(complaints(mutation.kind, deeds), None) is not None

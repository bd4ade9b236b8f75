"""Functions that many helpers call, compiled once: `GROUPS` of them, each a module of LLVM."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ferrule.emulator.checks import cells, gates, orders
from ferrule.emulator.native import bulk
from ferrule.emulator.native.language import shared_text
from ferrule.emulator.native.products import LINES
from ferrule.emulator.native.types import joined
from ferrule.emulator.native.values import SHARED_PREFIX
from ferrule.specs.deferred import dataclass

SOURCE: Final = (
    cells.SOURCE + cells.ACCESS + orders.STRONG + orders.FENCE + orders.MEET
    + gates.GATES + LINES + gates.COPIES
)  # fmt: skip
CONSTANTS: Final = joined(cells.CONSTANTS, orders.CONSTANTS, gates.CONSTANTS) | {"CHECKED": 0}
TOGETHER: Final = (
    "entered", "merged", "bring", "fetch", "acquire", "message", "granule", "whole", "synchronise",
    "gate_of", "pass_gate", "receive", "receive_all", "box", "reads_matrix", "new_era", "some_meet",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Group:
    """Functions of a text that are compiled together; none of them goes by a helper's settings."""

    source: str
    names: tuple[str, ...]
    constants: Mapping[str, int]


GROUPS: Final = {
    "queues": Group(
        bulk.SOURCE,
        (
            "change", "do_groups", "do_all", "do_oldest", "new_entry", "arrivals_at", "oldest_bulk",
            "latest_bulk", "new_bulk", "one_of_barrier", "bulk_groups", "look", "block_with",
        ),
        bulk.CONSTANTS,
    ),
    "tensors": Group(bulk.SOURCE, ("do_tensor",), bulk.CONSTANTS),
    "checks": Group(bulk.SOURCE, ("check_tensor",), bulk.CONSTANTS | {"CHECKED": 1}),
    "races": Group(SOURCE, TOGETHER, CONSTANTS),
    "reductions": Group(bulk.SOURCE, ("do_reduction", "reduce"), bulk.CONSTANTS),
}  # fmt: skip

SHARED: Final = frozenset(name for group in GROUPS.values() for name in group.names)
_DECLARED: Final = re.compile(rf'^declare .*@"({SHARED_PREFIX}\.\w+)"', re.M)


def text(group: str) -> str:
    """The LLVM text of a group."""
    found = GROUPS[group]
    return shared_text(found.source, found.names, found.constants)


def group_of(name: str) -> str:
    """The group that has `shared.NAME`."""
    plain = name.partition(".")[2]
    return next(group for group, each in GROUPS.items() if plain in each.names)


def declared(text: str) -> list[str]:
    """The shared functions that a text declares."""
    return sorted(set(_DECLARED.findall(text)))

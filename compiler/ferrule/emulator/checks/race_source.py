"""The race check as one native text, and its functions that are compiled once."""

from __future__ import annotations

from typing import Final

from ferrule.emulator.checks import cells, gates, orders
from ferrule.emulator.native.products import LINES

SOURCE: Final = (
    cells.SOURCE + cells.ACCESS + orders.STRONG + orders.FENCE + orders.MEET
    + gates.GATES + LINES + gates.COPIES
)  # fmt: skip
CONSTANTS: Final = cells.CONSTANTS | orders.CONSTANTS | gates.CONSTANTS | {"CHECKED": 0}
TOGETHER: Final = (
    "entered", "merged", "bring", "fetch", "acquire", "message", "granule", "whole", "synchronise",
    "gate_of", "pass_gate", "receive", "receive_all", "box", "reads_matrix", "new_era", "some_meet",
)  # fmt: skip

"""Where kernels call the race check, and what of an instruction it is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ferrule.emulator.checks import cells
from ferrule.emulator.checks.cells import (
    HOW_ACQUIRES,
    HOW_ATOMIC,
    HOW_INDEX_SHIFT,
    HOW_LEVEL_SHIFT,
    HOW_READS,
    HOW_RELEASES,
    HOW_SHARED,
    HOW_VALUES,
    HOW_WRITES,
    OF_BLOCK,
    OF_CLUSTER,
    OF_GPU,
)
from ferrule.emulator.checks.race_source import CONSTANTS, SOURCE
from ferrule.emulator.checks.swaps import Swaps
from ferrule.emulator.checks.watch import call, number
from ferrule.emulator.instructions.helpers import helper
from ferrule.emulator.native.language import functions, helper_text
from ferrule.emulator.native.shared import SHARED
from ferrule.emulator.ptx.cursor import BYTES
from ferrule.emulator.ptx.module import Instruction

if TYPE_CHECKING:
    from ferrule.emulator.warps.emitter import Emitter
    from ferrule.emulator.warps.flow import Flow

_SCOPES: Final = {
    "cta": OF_BLOCK,
    "cluster": OF_CLUSTER,
    "gpu": OF_GPU,
    "sys": OF_GPU,
    "gl": OF_GPU,
}
_MEANS: Final = {
    "acquire": HOW_ACQUIRES, "release": HOW_RELEASES, "acq_rel": HOW_ACQUIRES | HOW_RELEASES,
}  # fmt: skip


@helper("race")
def _race(name: str, entry: str) -> str:
    pointers = len(functions(SOURCE)[entry].args.args) - 2
    return helper_text(name, SOURCE, entry, pointers, CONSTANTS, SHARED)


def level(item: Instruction) -> int:
    """Whether an access is strong, and with which scope."""
    said = set(item.modifiers)
    if said & {"volatile", "mmio"}:
        return OF_GPU
    if item.opcode not in ("atom", "red") and not said & {"relaxed", "acquire", "release"}:
        return cells.WEAK
    return next((_SCOPES[each] for each in item.modifiers if each in _SCOPES), OF_GPU)


def means(item: Instruction) -> int:
    """Whether a strong access or a fence acquires and releases."""
    found = 0
    for each in item.modifiers:
        found |= _MEANS.get(each, 0)
    return found


class RaceWatch:
    """Calls of the race check in one kernel."""

    def __init__(self) -> None:
        self._swaps: Swaps | None = None
        self._clusters = False

    def started(self, flow: Flow) -> None:
        self._swaps = Swaps(flow)
        self._clusters = any(
            item.opcode == "barrier" and "cluster" in item.modifiers
            for block in flow.blocks
            for item in block.instructions
        )

    def before(self, e: Emitter, name: str, places: Sequence[str], mask: str) -> None:
        what, *rest = name.split(":")
        if what in ("load", "store") and rest[0] in ("global", "shared", "cluster", "generic"):
            self._move(e, what, int(rest[1]), int(rest[2]), rest[0], places, mask)
        elif what == "atomic":
            how = HOW_READS | HOW_WRITES | HOW_ATOMIC
            self._access(e, how, BYTES[rest[2]], BYTES[rest[2]], rest[1], places[:1], mask)
        elif what == "matrix" and rest[0] in ("load", "store"):
            rows = e.op(f"and i32 {mask}, {(1 << 8 * int(rest[2])) - 1}")
            how = HOW_READS if rest[0] == "load" else HOW_WRITES
            self._access(e, how, 16, 4, rest[1], places[:1], rows)
        elif what == "async":
            self._asynchronous(e, rest[0], set(rest), places, mask)
        elif name == "cluster:arrive:shared" and "relaxed" not in e.item.modifiers:
            call(e, "race:cluster_enters", [], mask)
        elif name == "cluster:wait:shared":
            call(e, "race:cluster_waits", [], mask)
        elif what == "barrier":
            waits = number(int(rest[0] != "arrive"))
            call(e, "race:arrives", [places[0], waits], mask)

    def after(self, e: Emitter, name: str, places: Sequence[str], mask: str) -> None:
        if name.startswith(("barrier:", "leave:")):
            call(e, "race:completes", [], mask)
        if name.startswith(("cluster:arrive:", "leave:")) and self._clusters:
            call(e, "race:cluster_completes", [], mask)
        if name.startswith("async:"):
            self._waited(e, name.split(":")[1], set(name.split(":")), places, mask)

    def executed(self, e: Emitter, item: Instruction) -> None:
        if item.opcode == "bar" and item.modifiers[:1] == ("warp",):
            call(e, "race:meet", [], e.mask)
        elif item.opcode == "fence" and _of_proxy(item):
            call(e, "race:proxy_fence", [], e.active())
        elif item.opcode == "membar" or (
            item.opcode == "fence" and not set(item.modifiers) & {"proxy", "mbarrier_init"}
        ):
            how = means(item) or HOW_ACQUIRES | HOW_RELEASES
            scope = next((_SCOPES[each] for each in item.modifiers if each in _SCOPES), OF_GPU)
            call(e, "race:fence", [number(how | scope << HOW_LEVEL_SHIFT)], e.active())

    def _asynchronous(
        self, e: Emitter, entry: str, settings: set[str], places: Sequence[str], mask: str
    ) -> None:
        """mbarriers and copies, before they do anything."""
        index = e.index << HOW_INDEX_SHIFT
        own = number(index | (0 if "GENERIC=1" in settings else HOW_SHARED))
        if entry in ("init", "inval"):
            self._access(e, HOW_WRITES, 8, 8, _space(settings), places[:1], mask)
            call(e, "race:inits", [places[0], own], mask)
        elif entry == "arrive":
            self._access(e, HOW_WRITES, 8, 8, _space(settings), places[:1], mask, OF_GPU)
            if "relaxed" not in e.item.modifiers:
                call(e, "race:enters", [places[0], own], mask)
        elif entry == "later_arrival":
            call(e, "race:arrives_later", [places[0], own], mask)
        elif entry == "issue":
            size = next(int(each[5:]) for each in settings if each.startswith("SIZE="))
            call(e, "race:issues", [*places[:3], number(index | size)], mask)
        elif entry == "commit":
            call(e, "race:commits", [], mask)
        elif entry in ("bulk_load", "tensor_load") and "MULTICAST=1" not in settings:
            self._received(e, entry, places, mask, number(index | HOW_SHARED))
        elif entry == "bulk_store":
            given = [places[1], "null", places[2], number(index | HOW_SHARED)]
            call(e, "race:sends", given, mask)
        elif entry == "tensor_store":
            given = [places[-1], places[0], "null", number(index | HOW_SHARED)]
            call(e, "race:sends", given, mask)

    def _received(self, e: Emitter, entry: str, places: Sequence[str], mask: str, how: str) -> None:
        if entry == "bulk_load":
            given = [places[0], "null", places[2], places[3], how]
        else:
            given = [places[-3], places[0], "null", places[-2], how]
        call(e, "race:receives", given, mask)

    def _waited(
        self, e: Emitter, entry: str, settings: set[str], places: Sequence[str], mask: str
    ) -> None:
        """The same, after it."""
        own = number(0 if "GENERIC=1" in settings else HOW_SHARED)
        if entry == "test":
            self._access(e, HOW_READS, 8, 8, _space(settings), places[:1], mask, OF_GPU)
            if "relaxed" not in e.item.modifiers:
                call(e, "race:leaves", [places[0], places[2], own], mask)
        elif entry == "wait_all":
            call(e, "race:waited", [number(255)], mask)
        elif entry == "wait_groups":
            left = [int(each[8:]) for each in settings if each.startswith("PENDING=")]
            call(e, "race:waited", [number(min([*left, 254]) if left else 0)], mask)

    def _move(
        self,
        e: Emitter,
        what: str,
        width: int,
        count: int,
        space: str,
        places: Sequence[str],
        mask: str,
    ) -> None:
        item = e.item
        if item.opcode not in ("ld", "st") or set(item.modifiers) & {"local", "param", "const"}:
            return
        how = HOW_READS
        if what == "store":
            how = HOW_WRITES | (HOW_VALUES if count <= 4 else 0)
        self._access(e, how, width * count, width, space, places, mask)

    def _access(
        self,
        e: Emitter,
        how: int,
        size: int,
        width: int,
        space: str,
        places: Sequence[str],
        mask: str,
        strong: int | None = None,
    ) -> None:
        item = e.item
        strong = level(item) if strong is None else strong
        if item.opcode == "ld" and self._swaps and self._swaps.begins(item.operands[1]):
            strong = OF_GPU
        how |= size | width << 8 | means(item) | strong << HOW_LEVEL_SHIFT
        how |= HOW_SHARED if space in ("shared", "cluster") else 0
        how |= e.index << HOW_INDEX_SHIFT
        values = [*places[1:5], *["null"] * 4][:4]
        call(e, "race:access", [places[0], *values, number(how)], mask)


def _of_proxy(item: Instruction) -> bool:
    """Whether a fence makes writes known to the asynchronous proxy."""
    return item.modifiers[:1] == ("mbarrier_init",) or (
        item.modifiers[:1] == ("proxy",) and "async" in "".join(item.modifiers[1:2])
    )


def _space(settings: set[str]) -> str:
    return "generic" if "GENERIC=1" in settings else "shared"

"""Where kernels call the race check, and what of an instruction it is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ferrule.emulator.checks import cells
from ferrule.emulator.checks.cells import (
    HOW_ACQUIRES,
    HOW_ATOMIC,
    HOW_FROM_SHARED,
    HOW_INDEX_SHIFT,
    HOW_LEVEL_SHIFT,
    HOW_OFFSET_SHIFT,
    HOW_READS,
    HOW_RELEASES,
    HOW_SHARED,
    HOW_VALUES,
    HOW_WRITES,
    OF_BLOCK,
    OF_CLUSTER,
    OF_GPU,
)
from ferrule.emulator.checks.clocks import BULK_READS, BULK_WRITES, COPIES, PRODUCTS
from ferrule.emulator.checks.watch import call, number
from ferrule.emulator.instructions.helpers import helper
from ferrule.emulator.instructions.products.warpgroups import shape_of
from ferrule.emulator.native.language import functions, helper_text
from ferrule.emulator.native.shared import CONSTANTS, SHARED, SOURCE
from ferrule.emulator.ptx.cursor import BYTES
from ferrule.emulator.ptx.module import Instruction

if TYPE_CHECKING:
    from ferrule.emulator.checks.reads import Reads
    from ferrule.emulator.warps.emitter import Emitter

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


_TOGETHER: Final = frozenset({"shfl", "vote", "match", "redux", "elect"})
"""They order nothing that lanes of a warp do. But what one lane has waited for, all have: so groups
of several warps in cooperative groups wait in one lane, and tell the others by a shuffle."""


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
        self._reads: Reads | None = None
        self._clusters = False

    def started(self, reads: Reads) -> None:
        self._reads = reads
        self._clusters = any(
            item.opcode == "barrier" and "cluster" in item.modifiers
            for block in reads.flow.blocks
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
        elif name == "wgmma.queue:issue:0":
            self._product(e, places, mask)
        elif name == "wgmma.queue:commit:0":
            call(e, "race:commits", [number(PRODUCTS)], mask)
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
        if name.startswith("wgmma.queue:wait:"):
            left = number(min(int(name.rpartition(":")[2]), 254))
            call(e, "race:waited", [number(PRODUCTS), left], mask)
        if name.startswith("async:"):
            self._waited(e, name.split(":")[1], set(name.split(":")), places, mask)

    def executed(self, e: Emitter, item: Instruction) -> None:
        if item.opcode == "bar" and item.modifiers[:1] == ("warp",):
            call(e, "race:meet", [], e.mask)
        elif item.opcode in _TOGETHER and "sync" in item.modifiers:
            call(e, "race:shares", [], e.mask)
        elif item.opcode == "fence" and _of_proxy(item):
            everything = number(int(item.modifiers[0] == "proxy"))
            call(e, "race:proxy_fence", [everything], e.active())
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
            # libcu++'s pipelines choose by a match of the warp who ends their mbarriers: of what
            # other lanes have asked these before there is no order. A wait for one that has ended
            # fails.
            strong = OF_GPU if entry == "inval" else None
            self._access(e, HOW_WRITES, 8, 8, _space(settings), places[:1], mask, strong)
            call(e, "race:inits", [places[0], own], mask)
        elif entry == "arrive":
            self._access(e, HOW_WRITES, 8, 8, _space(settings), places[:1], mask, OF_GPU)
            if "relaxed" not in e.item.modifiers:
                call(e, "race:enters", [places[0], own], mask)
        elif entry == "later_arrival":
            call(e, "race:arrives_later", [places[0], own], mask)
        elif entry == "issue":
            size = _setting(settings, "SIZE")
            call(e, "race:issues", [*places[:3], number(index | size)], mask)
        elif entry == "commit":
            call(e, "race:commits", [number(COPIES)], mask)
        elif entry == "bulk_commit":
            call(e, "race:commits", [number(BULK_READS)], mask)
            call(e, "race:commits", [number(BULK_WRITES)], mask)
        elif entry == "store_async":
            how = index | HOW_SHARED | _setting(settings, "SIZE") * _setting(settings, "VALUES")
            if _setting(settings, "HOW"):
                how |= HOW_ATOMIC | OF_CLUSTER << HOW_LEVEL_SHIFT
            call(e, "race:stores", [*places[:2], number(how)], mask)
        elif entry in ("bulk_load", "bulk_store", "tensor_load", "tensor_store"):
            self._bulk(e, entry, settings, places, mask)

    def _bulk(
        self, e: Emitter, entry: str, settings: set[str], places: Sequence[str], mask: str
    ) -> None:
        """Copies of the asynchronous proxy."""
        how = e.index << HOW_INDEX_SHIFT | HOW_SHARED
        if "FROM_SHARED=1" in settings:
            how |= HOW_FROM_SHARED
        dims, offsets = _setting(settings, "RANK_OF_COPY"), _setting(settings, "OFFSETS")
        form = number(dims | offsets << 8 | _setting(settings, "IM2COL") << 16)
        cast = "MULTICAST=1" in settings
        if entry.endswith("store") and _setting(settings, "HOW"):
            how |= HOW_ATOMIC | OF_GPU << HOW_LEVEL_SHIFT
        if entry == "bulk_load":
            ranks = places[4] if cast else "null"
            call(e, "race:fetches", [*places[:4], ranks, number(how)], mask)
        elif entry == "tensor_load":
            call(e, "race:fetches_box", [places[0], form, number(int(cast)), number(how)], mask)
        elif entry == "bulk_store":
            call(e, "race:sends", [*places[:3], number(how)], mask)
        else:
            call(e, "race:sends_box", [places[0], form, number(how)], mask)

    def _product(self, e: Emitter, places: Sequence[str], mask: str) -> None:
        """A product of matrices in shared memory, before it is put into its queue."""
        shape = shape_of(e.item)
        packed = shape.columns | shape.in_registers << 16
        packed |= shape.transposed[0] << 17 | shape.transposed[1] << 18
        how = number(e.index << HOW_INDEX_SHIFT)
        given = [places[2], places[3], number(packed), number(shape.depth), how]
        call(e, "race:multiplies", given, mask)

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
            call(e, "race:waited", [number(COPIES), number(255)], mask)
        elif entry in ("wait_groups", "bulk_wait"):
            left = number(min(_setting(settings, "PENDING"), 254))
            read = "read" in e.item.modifiers
            sorts = (COPIES,) if entry == "wait_groups" else (BULK_READS, BULK_WRITES)
            for each in sorts[:1] if read else sorts:
                call(e, "race:waited", [number(each), left], mask)

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
        if item.opcode not in ("ld", "ldu", "st") or set(item.modifiers) & {
            "local",
            "param",
            "const",
        }:
            return
        runs: tuple[tuple[int, int], ...] = ((0, width * count),)
        how = HOW_READS
        if what == "store":
            how = HOW_WRITES | (HOW_VALUES if count <= 4 else 0)
        elif level(item) == cells.WEAK:
            assert self._reads is not None
            runs = self._reads.uses.runs(item)
        for offset, size in runs:
            self._access(e, how | offset << HOW_OFFSET_SHIFT, size, width, space, places, mask)

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
        if item.opcode == "ld" and self._reads and self._reads.swaps.begins(item):
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


def _setting(settings: set[str], name: str) -> int:
    """A number in the name of a helper; 0 where it has none."""
    found = (each.partition("=") for each in settings)
    return next((int(value) for key, _, value in found if key == name), 0)


def _space(settings: set[str]) -> str:
    return "generic" if "GENERIC=1" in settings else "shared"

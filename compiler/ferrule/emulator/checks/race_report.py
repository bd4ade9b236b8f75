"""A race in words: both accesses, what they touched, and what is missing between them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ferrule.emulator.checks import cells, clocks
from ferrule.emulator.warps import layout

if TYPE_CHECKING:
    from ferrule.emulator.ptx.module import Instruction


def _words(address: int, count: int) -> tuple[int, ...]:
    return tuple((ctypes.c_uint32 * count).from_address(address))


def _three(number: int, sizes: Sequence[int]) -> tuple[int, int, int]:
    x, y, _ = sizes
    return number % x, number // x % y, number // (x * y)


class Access:
    """One of the two, as a cell has it."""

    def __init__(self, address: int, block: int, instructions: Sequence[Instruction]) -> None:
        era, who, info = _words(address, 3)
        area = ctypes.c_uint64.from_address(block + layout.WATCHED).value
        world = ctypes.c_uint64.from_address(area + clocks.R_WORLD).value
        eras = ctypes.c_uint64.from_address(world + clocks.W_ERAS).value
        self.number = number = ctypes.c_uint32.from_address(eras + 4 * era).value
        # 10 bits for the thread, as a block has at most 1024; its clock is above them.
        self.thread = _three(who & 1023, _words(block + layout.NTID, 3))
        self.block = _three(number, _words(block + layout.NCTAID, 3))
        self.warp = (who & 1023) >> 5
        self.item = instructions[info & cells.INDEX_MASK]
        self.level = info >> cells.LEVEL_SHIFT & 3
        self.pending = bool(info & cells.NOT_DONE)

    def said(self) -> str:
        """Who did what, and where."""
        from ferrule.emulator.machine.faults import where

        return f"{self.item.name} by block {self.block}, thread {self.thread}, {where(self.item)}"


def race_text(block: int, instructions: Sequence[Instruction], named: str) -> str:
    """What raced. `block` is the address of a block whose warp has the fault, `named` says what
    the address is a part of."""
    area = ctypes.c_uint64.from_address(block + layout.WATCHED).value
    old = Access(area + clocks.R_OLD, block, instructions)
    new = Access(area + clocks.R_NEW, block, instructions)
    kind = {1: "reads what", 2: "writes what", 3: "writes what", 4: "reads what"}[
        _words(area + clocks.R_WHY, 1)[0]
    ]
    did = {1: "wrote", 2: "wrote", 3: "read", 4: "wrote"}[_words(area + clocks.R_WHY, 1)[0]]
    if _words(area + clocks.R_WHY, 1)[0] == 4:
        return (
            f"race in {named}: {new.said()} reads by the asynchronous proxy what {old.said()} has "
            "written by the generic one, without a fence.proxy.async behind the write"
        )
    return (
        f"race in {named}: {new.said()} {kind} another thread {did} without an order between "
        f"them: {old.said()}; {missing(old, new)}"
    )


def missing(old: Access, new: Access) -> str:
    """What would order the two accesses."""
    if old.pending and old.item.opcode == "wgmma":
        return "the product may not be done: a warp must wait for it, and then tell the others"
    if old.pending:
        return "the copy may not be done: its thread must wait for it, and then tell the others"
    if old.number != new.number:
        if old.level and new.level:
            return "both are strong, but the scope .cta of one is its own block: .gpu is needed"
        return (
            "blocks are ordered by nothing but a release of the first (st.release, or a fence and "
            "an atomic) that the second acquires; or both must be atomic"
        )
    if old.warp == new.warp:
        return "a bar.warp.sync (__syncwarp) or a barrier of the block is missing between them"
    return "a barrier of the block (bar.sync, __syncthreads) is missing between them"

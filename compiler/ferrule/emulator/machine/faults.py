"""What a thread of a kernel did wrong, in words."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ferrule.emulator.native.barriers import FAULTS as ASYNC_FAULTS
from ferrule.emulator.ptx.module import Instruction
from ferrule.emulator.warps import layout

if TYPE_CHECKING:
    from ferrule.emulator.machine.memory import Memory


_OWN_SPACES: Final = ("local", "param", "const")


class Fault(RuntimeError):
    """A thread failed; `kind` is one of memory, misaligned, space, sync, trap, assert, deadlock.

    The text names kernel, block, thread, the line of the PTX and of the source.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


def word(address: int, offset: int) -> int:
    """An unsigned number of 32 bits in memory."""
    return ctypes.c_uint32.from_address(address + offset).value


def thread_fault(kernel: str, warp: int, instructions: list[Instruction], memory: Memory) -> Fault:
    """The fault that a warp has."""
    block = block_of(warp)
    kind = word(warp, layout.FAULT)
    item = instructions[word(warp, layout.FAULT_INDEX)]
    address = ctypes.c_uint64.from_address(warp + layout.FAULT_ADDRESS).value
    size = word(warp, layout.FAULT_SIZE)
    lane = word(warp, layout.FAULT_LANE)
    what = _what(kind, item, address, size, memory, block, warp)
    return Fault(layout.FAULTS[kind], f"{kernel}: {what}; {_who(block, warp, lane)}; {where(item)}")


def _what(
    kind: int, item: Instruction, address: int, size: int, memory: Memory, block: int, warp: int
) -> str:
    if kind == layout.MEMORY:
        return f"{item.name} of {size} bytes at {address:#x}, {_near(address, size, memory)}"
    if kind == layout.MISALIGNED:
        return f"{item.name} at {address:#x}, which is no multiple of {size}"
    if kind == layout.ASSERT:
        return _assertion(address, size, memory, warp)
    shared = {"shared", "shared::cta", "shared::cluster"}
    of_window = bool(set(item.modifiers) & shared) or item.opcode == "wgmma"
    if kind == layout.SPACE and not of_window:
        space = next((each for each in item.modifiers if each in _OWN_SPACES), "that")
        return (
            f"{item.name} of {size} bytes at {address:#x}, outside of the thread's {space} memory"
        )
    if kind == layout.SPACE:
        window = ctypes.c_uint64.from_address(block + layout.SHARED_SIZE).value
        return (
            f"{item.name} of {size} bytes at {address:#x} of shared memory, of which the block "
            f"has {window} bytes"
        )
    if kind == layout.ENDED:
        return f"{item.name} of {size} bytes at {address:#x}, {_ended(block, address)}"
    if kind == layout.LANE:
        return f"{item.name} reads lane {address} of its warp, which takes no part"
    if kind == layout.SYNC:
        return f"{item.name}: {_wrong_sync(item, address, size)}"
    if item.opcode == "trap" and item.modifiers:
        return item.modifiers[0]
    return f"{item.name} was executed"


def _ended(block: int, address: int) -> str:
    """Which block of the cluster has ended, of an address of its shared memory."""
    cluster = ctypes.c_uint64.from_address(block + layout.CLUSTER).value
    blocks = (ctypes.c_uint64 * word(cluster, layout.C_SIZE)).from_address(
        cluster + layout.C_BLOCKS
    )
    rank = (address >> 24) - 1
    for number, each in enumerate(blocks):
        base, size = (ctypes.c_uint64 * 2).from_address(each + layout.SHARED_BASE)
        if base <= address < base + size:
            rank = number
    return (
        f"in shared memory of the block of rank {rank} of the cluster, which has ended: the blocks "
        "must meet, as at barrier.cluster, before one of them ends"
    )


def _assertion(message: int, line: int, memory: Memory, warp: int) -> str:
    file, function = (
        _text(ctypes.c_uint64.from_address(warp + each).value, memory)
        for each in (layout.FAULT_FILE, layout.FAULT_FUNCTION)
    )
    inside = f" in {function}" if function else ""
    return f"assertion failed: {_text(message, memory)} ({file}:{line}{inside})"


def _text(address: int, memory: Memory) -> str:
    """A string of C in an allocation."""
    found = memory.find(address)
    if found is None:
        return ""
    start, size = found
    return ctypes.string_at(address, start + size - address).split(b"\0")[0].decode("latin-1")


def block_of(warp: int) -> int:
    """The block that a warp belongs to."""
    return ctypes.c_uint64.from_address(warp + layout.BLOCK).value


def _wrong_sync(item: Instruction, number: int, reason: int) -> str:
    if reason in ASYNC_FAULTS:
        return ASYNC_FAULTS[reason].format(number)
    if item.opcode in ("bar", "barrier") and "warp" not in item.modifiers:
        return (
            f"threads of barrier {number} do not agree on barrier or number of threads, more came "
            "than it counts, or the number is no multiple of 32, or there is no such barrier"
        )
    return f"the thread is not in its mask of lanes, {number:#010x}"


def _near(address: int, size: int, memory: Memory) -> str:
    """What allocation an address is next to."""
    inside = memory.find(address)
    if inside is not None:
        start, length = inside
        return (
            f"which ends {address + size - start - length} bytes behind the allocation of {length} "
            f"bytes at {start:#x}"
        )
    freed = memory.freed(address)
    if freed is not None:
        start, length = freed
        return f"which is in the allocation of {length} bytes at {start:#x}, freed before"
    for distance in (1, 16, 256, 4096, 65536):
        before = memory.find(address - distance)
        if before is not None:
            start, length = before
            gap = address - start - length
            far = f"{gap} bytes behind" if gap else "just behind"
            return f"{far} the allocation of {length} bytes at {start:#x}"
        after = memory.find(address + distance)
        if after is not None:
            gap = after[0] - address
            return f"{gap} bytes before the allocation of {after[1]} bytes at {after[0]:#x}"
    if memory.private(address):
        return "which is in shared or local memory that is not the thread's own"
    return "which is in no allocation"


def _who(block: int, warp: int, lane: int) -> str:
    ctaid = tuple(word(block, layout.CTAID + 4 * i) for i in range(3))
    tid = tuple(word(warp, layout.TID[i] + 4 * lane) for i in range(3))
    return f"block {ctaid}, thread {tid}"


def where(item: Instruction) -> str:
    """The lines of an instruction."""
    text, place = f"PTX line {item.line}", item.place
    if place is not None:
        text += f", {place.file}:{place.line}"
        # Of the callers between, libraries have many: the last one is in the kernel itself.
        kernel = place
        while kernel.called_from is not None:
            kernel = kernel.called_from
        text += f", inlined at {kernel.file}:{kernel.line}" if kernel is not place else ""
    return text


def deadlock(
    kernel: str, warps: list[int], waits: dict[int, Instruction], instructions: list[Instruction]
) -> Fault:
    """Who waits where, when no thread of a cluster can go on. `waits` has the instructions that
    wait by the number of their block of code.

    It is of kind sync where threads of one warp stand at barriers that they should reach together,
    or at one instruction with different masks.
    """
    parts = []
    kind = "deadlock"
    for block in dict.fromkeys(block_of(warp) for warp in warps):
        mine = [warp for warp in warps if block_of(warp) == block]
        said, divergent = _waiting(mine, waits, instructions)
        ctaid = tuple(word(block, layout.CTAID + 4 * i) for i in range(3))
        listed = [f"{len(who)} threads wait {place}: {_some(who)}" for place, who in said.items()]
        if divergent:
            kind = "sync"
            listed[:0] = ["threads of a warp reach different barriers, and none can go on"]
        for masks in (_masks(warp, waits) for warp in mine):
            if masks:
                kind = "sync"
                listed[:0] = [masks]
        if said:
            parts.append(f"block {ctaid} cannot go on: {'; '.join(listed)}")
    return Fault(kind, f"{kernel}: {'; '.join(parts)}")


def _waiting(
    warps: list[int], waits: dict[int, Instruction], instructions: list[Instruction]
) -> tuple[dict[str, list[str]], bool]:
    """Threads by where they wait, and whether those of a warp reach other barriers."""
    said: dict[str, list[str]] = {}
    divergent = False
    for warp in warps:
        standing = list(_standing(warp, waits, instructions))
        divergent |= len({place for _, place, _ in standing}) > 1 and any(
            item is not None and _together(item) for _, _, item in standing
        )
        for lane, place, _ in standing:
            said.setdefault(place, []).append(_thread(warp, lane))
    return said, divergent


def _masks(warp: int, waits: dict[int, Instruction]) -> str:
    """Says where a lane of a warp waits for one that waits there too, with another mask."""
    standing: dict[int, dict[int, int]] = {}
    for lane in range(layout.LANES):
        if (word(warp, layout.PARKED) & word(warp, layout.LIVE)) >> lane & 1:
            there = standing.setdefault(word(warp, layout.PC + 4 * lane), {})
            there[lane] = word(warp, layout.MEMBERS + 4 * lane)
    for number, masks in standing.items():
        pairs = ((mask, lane) for mask in masks.values() for lane in masks)
        if any(mask >> lane & 1 and mask != masks[lane] for mask, lane in pairs):
            listed = ", ".join(f"{mask:#010x}" for mask in dict.fromkeys(masks.values()))
            item = waits[number]
            return f"threads of a warp give different masks to {item.name}, {where(item)}: {listed}"
    return ""


def _standing(
    warp: int, waits: dict[int, Instruction], instructions: list[Instruction]
) -> Iterator[tuple[int, str, Instruction | None]]:
    """The lanes of a warp that live: where each waits, and at which instruction for its warp."""
    looking = instructions[word(warp, layout.WAIT_INDEX)]
    live, ready = word(warp, layout.LIVE), word(warp, layout.READY)
    for lane in range(layout.LANES):
        if not live >> lane & 1:
            continue
        if word(warp, layout.WAIT_LANES) >> lane & 1:
            yield lane, f"at {looking.name}, {where(looking)}", None
        elif ready >> lane & 1:
            item = waits.get(word(warp, layout.PC + 4 * lane))
            place = "for nothing, and go on"
            if item is not None:
                place = f"at {item.name} for other lanes of the warp, {where(item)}"
            yield lane, place, item
        else:
            number = word(warp, layout.BARRIER + 4 * lane)
            of_cluster = number == layout.CLUSTER_BARRIER
            yield (
                lane,
                "at the barrier of the cluster" if of_cluster else f"at barrier {number}",
                None,
            )


def _together(item: Instruction) -> bool:
    """Whether all threads of a warp must come to a barrier of the block together."""
    return item.opcode in ("bar", "barrier") and "warp" not in item.modifiers


def _thread(warp: int, lane: int) -> str:
    return str(tuple(word(warp, layout.TID[i] + 4 * lane) for i in range(3)))


def _some(who: list[str]) -> str:
    return ", ".join(who[:3]) + (" …" if len(who) > 3 else "")

"""A kernel's blocks as LLVM text: one function that executes a warp until no lane can go on.

    i32 step(ptr warp)          DONE, YIELD or FAILED of `layout`

Lanes stand at numbers of blocks. The smallest number among the lanes that can go on is executed,
under the mask of the lanes that stand there; where all ready lanes go the same way, the next block
follows directly and the numbers in memory stay behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Final

from ferrule.emulator.checks.reads import Reads
from ferrule.emulator.checks.watch import Watch
from ferrule.emulator.instructions import helpers, table
from ferrule.emulator.ptx.module import Instruction, PtxError
from ferrule.emulator.warps import layout
from ferrule.emulator.warps.chunks import LOCALS, SLOT, chunked
from ferrule.emulator.warps.emitter import LANE_NUMBERS_64, SCRATCH, Emitter, Names, bits_of, splat
from ferrule.emulator.warps.flow import Flow
from ferrule.emulator.warps.frames import FULL
from ferrule.emulator.warps.liveness import outliving
from ferrule.emulator.warps.products import early_uses
from ferrule.runtime.forks import ForkLock
from ferrule.specs.deferred import dataclass

STEP: Final = "step"
_METADATA: Final = """!0 = !{}
!1 = !{!"branch_weights", i32 1, i32 100000}
!2 = !{!"branch_weights", i32 100, i32 1}
"""


@dataclass(slots=True)
class Translation:
    """The text in loops over 1 or 8 lanes, what it calls, the bytes of a warp, and the instruction
    behind each number."""

    text: Callable[[int], str]
    helpers: set[str]
    warp_bytes: int
    asynchronous: int
    """Where in a warp its asynchronous copies and products lie; 0 if there are none."""
    instructions: list[Instruction] = field(default_factory=list)


def translate(
    flow: Flow,
    symbols: Mapping[str, tuple[str, int]],
    *,
    checks: frozenset[str],
    watch: Watch | None = None,
) -> Translation:
    """LLVM for a kernel.  PtxError for an instruction that is not emulated."""
    for block in flow.blocks:
        for item in block.instructions:
            table.check(item)
    return _Translator(flow, symbols, checks, watch).translation()


class _Translator:
    def __init__(
        self,
        flow: Flow,
        symbols: Mapping[str, tuple[str, int]],
        checks: frozenset[str],
        watch: Watch | None,
    ) -> None:
        if watch is not None:
            watch.started(Reads(flow))
        slots, end = _slots(flow)
        self._flow = flow
        self._names = Names(flow.registers, symbols, slots, checks, watch)
        self._instructions: list[Instruction] = []
        self._helpers: set[str] = {"leave:", "choose:"}
        opcodes = {item.opcode for block in flow.blocks for item in block.instructions}
        names = {item.name for block in flow.blocks for item in block.instructions}
        stores = any(name.startswith(("st.async", "red.async")) for name in names)
        self._async = end if stores or opcodes & {"cp", "wgmma"} else 0
        self._end = end + (layout.ASYNC_BYTES + 255) // 256 * 256 if self._async else end
        self._into: list[list[tuple[str, str]]] = [
            [("%here", f"%d{number}")] for number in range(len(flow.blocks))
        ]
        self._early = early_uses(flow.blocks)
        self._faults: list[tuple[str, int]] = []
        self._bodies: list[list[str]] = []
        self._texts: dict[int, str] = {}
        self._lock: Final = ForkLock()

    def translation(self) -> Translation:
        self._bodies = [self._block(number) for number in range(len(self._flow.blocks))]
        return Translation(self._text, self._helpers, self._end, self._async, self._instructions)

    def _text(self, part: int) -> str:
        """The whole, in loops over so many lanes; written once."""
        with self._lock:
            if part not in self._texts:
                self._texts[part] = self._written(part)
            return self._texts[part]

    def _written(self, part: int) -> str:
        self._labels: dict[str, str] = {}
        constants: dict[str, str] = {}
        slots, bodies = 0, []
        for number, lines in enumerate(self._bodies):
            found = chunked(lines, f"h{number}", f"q{number}", part)
            self._labels |= found.labels
            constants |= found.constants
            slots = max(slots, found.slots)
            bodies.append("\n".join(found.lines) + "\n")
        parts = [_entry(slots, self._names.most), self._dispatch()]
        parts += [self._head(number) + body for number, body in enumerate(bodies)]
        parts.append(self._ending())
        declared = "".join(helpers.declaration(name) for name in sorted(self._helpers))
        declared += "".join(constants.values()) + "".join(self._names.tables)
        text = f"{table.DECLARED}{declared}\ndefine i32 @{STEP}(ptr %w) {{\n{''.join(parts)}}}\n"
        return text + _METADATA

    # ---- the frame of all ----

    def _dispatch(self) -> str:
        count = range(len(self._flow.blocks))
        cases = "".join(f"    i32 {number}, label %d{number}\n" for number in count)
        ways = "".join(f"d{n}:\n  br label %h{n}\n" for n in count)
        return f"""dispatch:
  %number = call i32 @"choose:"(ptr %w, i32 0, ptr %scratch0)
  %here = load i32, ptr %scratch0
  switch i32 %number, label %waiting [
{cases}  ]
waiting:
  ret i32 {layout.DONE}
{ways}"""

    def _head(self, number: int) -> str:
        into = ", ".join(f"[{mask}, {self._renamed(label)}]" for mask, label in self._into[number])
        return f"h{number}:\n  %mask{number} = phi i32 {into}\n"

    def _ending(self) -> str:
        faults = ", ".join(f"[{index}, {self._renamed(label)}]" for label, index in self._faults)
        fault = f"""fault:
  %index = phi i32 {faults}
  %index.p = getelementptr i8, ptr %w, i64 {layout.FAULT_INDEX}
  store i32 %index, ptr %index.p
  ret i32 {layout.FAILED}
"""
        return (fault if self._faults else "") + f"tired:\n  ret i32 {layout.YIELD}\n"

    # ---- blocks ----

    def _block(self, number: int) -> list[str]:
        block = self._flow.blocks[number]
        e = Emitter(self._names, number, f"%mask{number}", self._helpers)
        e.label = f"h{number}"
        items = block.instructions
        if block.waits:
            e.start(items[0], self._index(items[0]))
            self._wait(e, number)
        for place, item in enumerate(items):
            e.start(item, self._index(item))
            if (number, place) in self._early:
                e.call("wgmma.queue:wait:-1", [], [])  # also what is in no group
            table.execute(e, item)
        self._leave(e, number)
        self._faults += e.faults
        return e.lines

    def _renamed(self, label: str) -> str:
        """A label of a block as it ends now."""
        return f"%{self._labels.get(label[1:], label[1:])}"

    def _index(self, item: Instruction) -> int:
        item = item.part_of or item
        if not self._instructions or self._instructions[-1] is not item:
            self._instructions.append(item)
        return len(self._instructions) - 1

    def _wait(self, e: Emitter, number: int) -> None:
        """Go on with the lanes that are complete; the others are parked here."""
        self._stand(e, e.mask, number)
        members = table.members(e, e.item)
        gather = f"gather:{'checked' if self._names.synchronised else 'free'}"
        self._helpers.add(gather)
        e.do(f"store <32 x i32> {members}, ptr %scratch0, align 32")
        group = e.op(f'call i32 @"{gather}"(ptr %w, i32 {e.mask}, ptr %scratch0)')
        failed = e.op("load i32, ptr %fault.p")
        wrong = e.op(f"icmp ne i32 {failed}, 0")
        go, look = f"g{number}", f"l{number}"
        e.faults.append((f"%{e.label}", self._index(e.item)))
        e.do(f"br i1 {wrong}, label %fault, label %{look}, !prof !1")
        e.begin(look)
        empty = e.op(f"icmp eq i32 {group}, 0")
        e.do(f"br i1 {empty}, label %dispatch, label %{go}")
        e.begin(go)
        e.mask = group

    def _stand(self, e: Emitter, mask: str, where: int) -> None:
        """Note that the lanes of a mask stand at a block."""
        self._part_ways(e, mask, mask, where, where)

    def _part_ways(self, e: Emitter, mask: str, taken: str, yes: int, no: int) -> None:
        """Note where lanes stand: those that are taken at one block, the others at another."""
        self._helpers.add("stand:")
        e.op(f'call i32 @"stand:"(ptr %w, i32 {mask}, i32 {taken}, i32 {yes}, i32 {no})')

    def _stand_apart(self, e: Emitter, where: str) -> None:
        """The same, each at a block of its own."""
        lanes = e.op(f"bitcast i32 {e.mask} to <32 x i1>")
        old = e.op("load <32 x i32>, ptr %pc.p, align 32")
        new = e.op(f"select <32 x i1> {lanes}, <32 x i32> {where}, <32 x i32> {old}")
        e.do(f"store <32 x i32> {new}, ptr %pc.p, align 32")

    def _leave(self, e: Emitter, number: int) -> None:
        block = self._flow.blocks[number]
        branch = block.branch
        if branch is not None:
            e.start(branch, self._index(branch))
            if self._names.watch is not None:
                self._names.watch.executed(e, branch)
        if branch is not None and branch.opcode == "trap":
            e.call("trap:stack" if FULL in branch.modifiers else "trap:", [], [])
            e.do("unreachable")
            return
        if branch is not None and branch.opcode == "brx":
            self._table(e, number, branch)
            return
        if not block.targets:
            for each in self._farewells(e):
                e.call(each, [], [], e.mask)
            e.call("leave:", [], [], e.mask)
            e.do("br label %dispatch")
        elif len(block.targets) == 1:
            if branch is not None and branch.guard is not None:
                raise PtxError("nothing follows the branch", branch.line)
            e.finish()
            if block.waits and block.instructions[0].opcode in ("bar", "barrier"):
                self._apart(e, e.mask, block.targets[0])
            else:
                self._straight(e, number, block.targets[0])
        else:
            self._fork(e, number, block.targets)

    def _farewells(self, e: Emitter) -> list[str]:
        """Code for threads that end: ends their bulk copies, and arrives where others wait."""
        how = "checked" if self._names.checked else "free"
        found = [f"async:bulk_flush:{how}"] if self._async else []
        names = (item.name for block in self._flow.blocks for item in block.instructions)
        if any(name.startswith("barrier.cluster") for name in names):
            found.append("cluster:leave:shared")
        return found

    def _apart(self, e: Emitter, mask: str, where: int) -> None:
        self._stand(e, mask, where)
        e.do("br label %dispatch")

    def _straight(self, e: Emitter, number: int, target: int) -> None:
        """All lanes go to one block: directly if no other lane is ready."""
        self._tire(e, number, target, e.mask)
        ready = e.op("load i32, ptr %ready.p")
        alone = e.op(f"icmp eq i32 {ready}, {e.mask}")
        apart = f"a{number}"
        e.do(f"br i1 {alone}, label %h{target}, label %{apart}, !prof !2")
        self._into[target].append((e.mask, f"%{e.label}"))
        e.begin(apart)
        self._apart(e, e.mask, target)

    def _tire(self, e: Emitter, number: int, target: int, mask: str) -> None:
        """A jump back costs fuel; without it, other warps have their turn."""
        if target > number:
            return
        fuel = e.op("load i32, ptr %fuel.p")
        less = e.op(f"sub i32 {fuel}, 1")
        e.do(f"store i32 {less}, ptr %fuel.p")
        empty = e.op(f"icmp eq i32 {fuel}, 0")
        tired, on = f"t{number}.{e._count}", f"o{number}.{e._count}"
        e.do(f"br i1 {empty}, label %{tired}, label %{on}, !prof !1")
        e.begin(tired)
        self._stand(e, mask, target)
        e.do("br label %tired")
        e.begin(on)

    def _fork(self, e: Emitter, number: int, targets: tuple[int, ...]) -> None:
        taken = e.active()
        e.finish()
        yes, no = targets
        none = e.op(f"icmp eq i32 {taken}, 0")
        whole = e.op(f"icmp eq i32 {taken}, {e.mask}")
        ready = e.op("load i32, ptr %ready.p")
        alone = e.op(f"icmp eq i32 {ready}, {e.mask}")
        agreed, split = f"u{number}", f"s{number}"
        same = e.op(f"or i1 {none}, {whole}")
        quick = e.op(f"and i1 {same}, {alone}")
        e.do(f"br i1 {quick}, label %{agreed}, label %{split}")
        e.begin(split)
        self._part_ways(e, e.mask, taken, yes, no)
        if min(targets) <= number:
            self._tire_standing(e, number)
        e.do("br label %dispatch")
        e.begin(agreed)
        ways = [f"y{number}", f"n{number}"]
        e.do(f"br i1 {whole}, label %{ways[0]}, label %{ways[1]}")
        for way, target in zip(ways, targets, strict=True):
            e.begin(way)
            self._tire(e, number, target, e.mask)
            self._into[target].append((e.mask, f"%{e.label}"))
            e.do(f"br label %h{target}")

    def _tire_standing(self, e: Emitter, number: int) -> None:
        """The same where lanes already stand at their next blocks."""
        fuel = e.op("load i32, ptr %fuel.p")
        less = e.op(f"sub i32 {fuel}, 1")
        e.do(f"store i32 {less}, ptr %fuel.p")
        empty = e.op(f"icmp eq i32 {fuel}, 0")
        on = f"o{number}.{e._count}"
        e.do(f"br i1 {empty}, label %tired, label %{on}, !prof !1")
        e.begin(on)

    def _table(self, e: Emitter, number: int, branch: Instruction) -> None:
        """`brx.idx`: every lane to the label of its own index."""
        targets = self._flow.blocks[number].targets
        index = e.read(branch.operands[0], "u32")
        e.finish()
        self._check_index(e, index, len(targets))
        where = splat("i32", str(targets[0]))
        for place, target in enumerate(targets[1:], 1):
            here = e.op(f"icmp eq <32 x i32> {index}, {splat('i32', str(place))}")
            where = e.op(
                f"select <32 x i1> {here}, <32 x i32> {splat('i32', str(target))}, "
                f"<32 x i32> {where}"
            )
        self._stand_apart(e, where)
        if min(targets) <= number:
            self._tire_standing(e, number)
        e.do("br label %dispatch")

    def _check_index(self, e: Emitter, index: str, count: int) -> None:
        over = e.op(f"icmp uge <32 x i32> {index}, {splat('i32', str(count))}")
        bits = e.op(f"bitcast <32 x i1> {over} to i32")
        e.call("trap:", [], [], e.op(f"and i32 {bits}, {e.mask}"))


def _slots(flow: Flow) -> tuple[dict[str, int], int]:
    """Where registers that outlive a block lie in the frame, and its end."""
    slots: dict[str, int] = {}
    at = layout.FRAME
    for name in sorted(outliving(flow.blocks)):
        if name not in flow.registers:
            continue
        bits = bits_of(flow.registers[name])
        slots[name] = at
        at += 32 if bits == 1 else -(-bits * layout.LANES // 8 // 32) * 32
    return slots, -(-at // 256) * 256


def _entry(slots: int, most: int) -> str:
    fields = {
        "ready.p": layout.READY, "parked.p": layout.PARKED, "pc.p": layout.PC,
        "key.p": layout.KEY, "fuel.p": layout.FUEL, "fault.p": layout.FAULT,
    }  # fmt: skip
    lines = ["entry:"]
    lines += [f"  %scratch{i} = alloca <32 x i64>, align 32" for i in range(SCRATCH)]
    lines += [f"  {SLOT}{i} = alloca <32 x i64>, align 32" for i in range(slots)]
    lines.append(f"  {LOCALS}.p = alloca <32 x i64>, align 32")
    if most:
        lines.append(f"  %many = alloca [{most} x <32 x i64>], align 64")
    lines += [f"  %{k} = getelementptr i8, ptr %w, i64 {v}" for k, v in fields.items()]
    for name, offset, kind in (
        ("block", layout.BLOCK, "ptr"),
        ("params", layout.PARAMETERS, "ptr"),
        ("local", layout.LOCAL, "i64"),
        ("stride", layout.LOCAL_STRIDE, "i64"),
    ):
        lines.append(f"  %{name}.p = getelementptr i8, ptr %w, i64 {offset}")
        lines.append(f"  %{name} = load {kind}, ptr %{name}.p")
    zero = "<32 x i32> zeroinitializer"
    for name in ("local", "stride"):
        lines.append(f"  %{name}.1 = insertelement <32 x i64> poison, i64 %{name}, i32 0")
        lines.append(f"  %{name}.v = shufflevector <32 x i64> %{name}.1, <32 x i64> poison, {zero}")
    lines.append(f"  %locals.o = mul <32 x i64> %stride.v, {LANE_NUMBERS_64}")
    lines.append("  %locals = add <32 x i64> %local.v, %locals.o")
    lines.append(f"  store <32 x i64> {LOCALS}, ptr {LOCALS}.p, align 32")
    lines.append("  br label %dispatch\n")
    return "\n".join(lines)

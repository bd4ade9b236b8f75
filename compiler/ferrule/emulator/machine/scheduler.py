"""The loop over a launch's blocks and their warps, as LLVM: the same for all kernels.

    i32 run(ptr block, ptr step)     executes blocks NEXT to END, one after the other

Warps have their turn one after the other, or as RANDOM says. It returns when all blocks are done
(`OVER`), when a warp failed or nothing can go on (`FAILED`, `STUCK`; CURSOR says where), when
warps of the block have spun for long (`SPINNING`): other blocks may have to run for it to go on,
or after TURNS turns of warps (`RESTED`), for its caller to have one: called again, it goes on.
"""

from __future__ import annotations

from typing import Final

from ferrule.emulator.warps.layout import (
    A_RESET,
    ALL_ONES,
    ALL_THREADS,
    ALL_WARPS,
    ARRIVED,
    ASYNC,
    BARRIERS,
    BEGUN,
    C_BLOCKS,
    C_COUNTS,
    C_DIM,
    C_END,
    C_FIRST,
    C_ID,
    C_LIVE,
    C_MISSING,
    C_PHASE,
    C_SIZE,
    CLUSTER,
    CLUSTER_CTAID,
    CTAID,
    CURSOR,
    END,
    FIRST_WARP,
    FUEL,
    FUEL_AT_ONCE,
    IDLE,
    INITIAL,
    KEY,
    LIVE,
    MIXED,
    NCTAID,
    NEXT,
    NTID,
    ORDER_COUNT,
    ORDER_START,
    ORDER_STEP,
    PARKED,
    PASSED,
    PATIENCE,
    PC,
    RANDOM,
    READY,
    REDUCED,
    RESERVED_SIZE,
    RESERVED_START,
    SHARED_BASE,
    SHARED_SIZE,
    THREADS,
    TID,
    TURNS,
    WAIT_LANES,
    WAITED,
    WARP_STRIDE,
    WARPS,
    YIELD,
    YIELDS,
)
from ferrule.emulator.warps.layout import (
    FAILED as STEP_FAILED,
)

OVER, STUCK, FAILED, SPINNING, RESTED = range(5)
MOST_IDLE: Final = 1 << 16
"""Looks at incomplete mbarriers, with nothing else between, after which no thread can go on."""


def _at(name: str, offset: int, base: str = "%block") -> str:
    return f"  %{name}.p = getelementptr i8, ptr {base}, i64 {offset}\n"


def _get(name: str, offset: int, kind: str = "i32", base: str = "%block") -> str:
    return _at(name, offset, base) + f"  %{name} = load {kind}, ptr %{name}.p, align 4\n"


TEXT: Final = f"""
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define void @prepare(ptr %block) {{
entry:
{_get("nx", NTID)}{_get("ny", NTID + 4)}{_get("all", ALL_THREADS)}\
{_get("first", FIRST_WARP, "i64")}\
{_get("stride", WARP_STRIDE, "i64")}  br label %head
head:
  %t = phi i32 [0, %entry], [%t1, %head]
  %warp = lshr i32 %t, 5
  %lane = and i32 %t, 31
  %warp.l = zext i32 %warp to i64
  %off = mul i64 %warp.l, %stride
  %at = add i64 %first, %off
  %w = inttoptr i64 %at to ptr
  %lane.l = zext i32 %lane to i64
  %x = urem i32 %t, %nx
  %r = udiv i32 %t, %nx
  %y = urem i32 %r, %ny
  %z = udiv i32 %r, %ny
  %x.b = getelementptr i8, ptr %w, i64 {TID[0]}
  %x.p = getelementptr i32, ptr %x.b, i64 %lane.l
  store i32 %x, ptr %x.p
  %y.b = getelementptr i8, ptr %w, i64 {TID[1]}
  %y.p = getelementptr i32, ptr %y.b, i64 %lane.l
  store i32 %y, ptr %y.p
  %z.b = getelementptr i8, ptr %w, i64 {TID[2]}
  %z.p = getelementptr i32, ptr %z.b, i64 %lane.l
  store i32 %z, ptr %z.p
  %i.p = getelementptr i8, ptr %w, i64 {INITIAL}
  %i = load i32, ptr %i.p
  %bit = shl i32 1, %lane
  %i1 = or i32 %i, %bit
  store i32 %i1, ptr %i.p
  %t1 = add i32 %t, 1
  %more = icmp ult i32 %t1, %all
  br i1 %more, label %head, label %done
done:
  ret void
}}

define internal void @begin(ptr %block, i64 %number) {{
entry:
{_get("gx", NCTAID)}{_get("gy", NCTAID + 4)}{_get("all", ALL_THREADS)}{_get("warps", WARPS)}\
{_get("first", FIRST_WARP, "i64")}{_get("stride", WARP_STRIDE, "i64")}\
{_get("base", SHARED_BASE, "ptr")}{_get("size", SHARED_SIZE, "i64")}  %gx.l = zext i32 %gx to i64
  %gy.l = zext i32 %gy to i64
  %x = urem i64 %number, %gx.l
  %r = udiv i64 %number, %gx.l
  %y = urem i64 %r, %gy.l
  %z = udiv i64 %r, %gy.l
  %x.i = trunc i64 %x to i32
  %y.i = trunc i64 %y to i32
  %z.i = trunc i64 %z to i32
{_at("cx", CTAID)}{_at("cy", CTAID + 4)}{_at("cz", CTAID + 8)}  store i32 %x.i, ptr %cx.p
  store i32 %y.i, ptr %cy.p
  store i32 %z.i, ptr %cz.p
{_at("threads", THREADS)}  store i32 %all, ptr %threads.p
{_at("cursor", CURSOR)}  store i32 0, ptr %cursor.p
{_at("yields", YIELDS)}  store i32 0, ptr %yields.p
{_at("bars", BARRIERS)}  call void @llvm.memset.p0.i64(ptr %bars.p, i8 0, i64 128, i1 false)
  %reds.p = getelementptr i8, ptr %block, i64 {REDUCED}
  call void @llvm.memset.p0.i64(ptr %reds.p, i8 0, i64 64, i1 false)
  call void @llvm.memset.p0.i64(ptr %base, i8 -51, i64 %size, i1 false)
{_get("start", RESERVED_START)}{_get("bytes", RESERVED_SIZE)}\
  %start.l = zext i32 %start to i64
  %bytes.l = zext i32 %bytes to i64
  %system = getelementptr i8, ptr %base, i64 %start.l
  call void @llvm.memset.p0.i64(ptr %system, i8 0, i64 %bytes.l, i1 false)
  br label %head
head:
  %n = phi i32 [0, %entry], [%n1, %more.warps]
  %at = phi i64 [%first, %entry], [%at1, %more.warps]
  %w = inttoptr i64 %at to ptr
{_get("initial", INITIAL, "i32", "%w")}{_at("live", LIVE, "%w")}{_at("ready", READY, "%w")}\
{_at("parked", PARKED, "%w")}{_at("key", KEY, "%w")}{_at("pc", PC, "%w")}\
  store i32 %initial, ptr %live.p
  store i32 %initial, ptr %ready.p
  store i32 0, ptr %parked.p
  store i32 0, ptr %key.p
{_at("arrived", ARRIVED, "%w")}  store i32 0, ptr %arrived.p
{_at("waited", WAITED, "%w")}  store i32 0, ptr %waited.p
{_at("lanes", WAIT_LANES, "%w")}  store i32 0, ptr %lanes.p
{_at("mixed", MIXED, "%w")}  store i32 0, ptr %mixed.p
{_at("passed", PASSED, "%w")}  store i32 0, ptr %passed.p
  call void @llvm.memset.p0.i64(ptr %pc.p, i8 0, i64 128, i1 false)
{_get("area", ASYNC, "ptr", "%w")}  %none = icmp eq ptr %area, null
  br i1 %none, label %more.warps, label %reset
reset:
  call void @llvm.memset.p0.i64(ptr %area, i8 0, i64 {A_RESET}, i1 false)
  br label %more.warps
more.warps:
  %n1 = add i32 %n, 1
  %at1 = add i64 %at, %stride
  %more = icmp ult i32 %n1, %warps
  br i1 %more, label %head, label %done
done:
  ret void
}}

define internal void @begin.cluster(ptr %block, i64 %number) {{
entry:
{_get("cluster", CLUSTER, "ptr")}{_get("size", C_SIZE, "i32", "%cluster")}\
{_get("threads", ALL_THREADS)}{_at("live", C_LIVE, "%cluster")}\
{_at("missing", C_MISSING, "%cluster")}\
{_at("phase", C_PHASE, "%cluster")}{_at("first", C_FIRST, "%cluster")}\
{_at("end", C_END, "%cluster")}\
{_at("idle", IDLE)}  %all = mul i32 %threads, %size
  store i32 %all, ptr %live.p
  store i32 %all, ptr %missing.p
  store i32 0, ptr %phase.p
  store i32 0, ptr %first.p
  store i32 0, ptr %end.p
  store i32 0, ptr %idle.p
{_get("nx", C_COUNTS, "i32", "%cluster")}{_get("ny", C_COUNTS + 4, "i32", "%cluster")}\
{_get("gx", NCTAID)}{_get("gy", NCTAID + 4)}{_get("dx", C_DIM, "i32", "%cluster")}\
{_get("dy", C_DIM + 4, "i32", "%cluster")}{_get("dz", C_DIM + 8, "i32", "%cluster")}\
  %number.i = trunc i64 %number to i32
  %x = urem i32 %number.i, %nx
  %r = udiv i32 %number.i, %nx
  %y = urem i32 %r, %ny
  %z = udiv i32 %r, %ny
{_at("idx", C_ID, "%cluster")}{_at("idy", C_ID + 4, "%cluster")}{_at("idz", C_ID + 8, "%cluster")}\
  store i32 %x, ptr %idx.p
  store i32 %y, ptr %idy.p
  store i32 %z, ptr %idz.p
  %x.0 = mul i32 %x, %dx
  %y.0 = mul i32 %y, %dy
  %z.0 = mul i32 %z, %dz
  br label %head
head:
  %n = phi i32 [0, %entry], [%n.1, %head]
  %n.l = zext i32 %n to i64
  %blocks = getelementptr i8, ptr %cluster, i64 {C_BLOCKS}
  %place = getelementptr ptr, ptr %blocks, i64 %n.l
  %one = load ptr, ptr %place
{_get("rx", CLUSTER_CTAID, "i32", "%one")}{_get("ry", CLUSTER_CTAID + 4, "i32", "%one")}\
{_get("rz", CLUSTER_CTAID + 8, "i32", "%one")}  %bx = add i32 %x.0, %rx
  %by = add i32 %y.0, %ry
  %bz = add i32 %z.0, %rz
  %bx.l = zext i32 %bx to i64
  %by.l = zext i32 %by to i64
  %bz.l = zext i32 %bz to i64
  %gx.l = zext i32 %gx to i64
  %gy.l = zext i32 %gy to i64
  %planes = mul i64 %bz.l, %gy.l
  %rows = add i64 %planes, %by.l
  %before = mul i64 %rows, %gx.l
  %which = add i64 %before, %bx.l
  call void @begin(ptr %one, i64 %which)
  %n.1 = add i32 %n, 1
  %more = icmp ult i32 %n.1, %size
  br i1 %more, label %head, label %done
done:
  ret void
}}

define i32 @run(ptr %block, ptr %step) {{
entry:
{_get("warps", ALL_WARPS)}{_get("first", FIRST_WARP, "i64")}{_get("stride", WARP_STRIDE, "i64")}\
{_get("end", END, "i64")}{_at("next", NEXT)}{_at("cursor", CURSOR)}{_at("random", RANDOM)}\
{_at("yields", YIELDS)}{_get("begun", BEGUN)}{_at("idle", IDLE)}{_get("cluster", CLUSTER, "ptr")}\
{_at("live", C_LIVE, "%cluster")}{_at("turns", TURNS)}\
  %inside = icmp ne i32 %begun, 0
  br i1 %inside, label %turn, label %block.next
block.next:
  store i32 0, ptr %begun.p
  %number = load i64, ptr %next.p
  %over = icmp uge i64 %number, %end
  br i1 %over, label %finished, label %block.begin
finished:
  ret i32 {OVER}
block.begin:
  %number.1 = add i64 %number, 1
  store i64 %number.1, ptr %next.p
  store i32 1, ptr %begun.p
{_get("o.count", ORDER_COUNT, "i64")}{_get("o.step", ORDER_STEP, "i64")}\
{_get("o.start", ORDER_START, "i64")}  %in.order = icmp eq i64 %o.count, 0
  %divisor = select i1 %in.order, i64 1, i64 %o.count
  %steps = mul i64 %number, %o.step
  %place = add i64 %steps, %o.start
  %turned = urem i64 %place, %divisor
  %chosen = select i1 %in.order, i64 %number, i64 %turned
  call void @begin.cluster(ptr %block, i64 %chosen)
  br label %turn
turn:
  %left = load i32, ptr %live.p
  %none = icmp eq i32 %left, 0
  br i1 %none, label %block.next, label %count
count:
  %turns = load i32, ptr %turns.p
  %turns.1 = sub i32 %turns, 1
  store i32 %turns.1, ptr %turns.p
  %enough = icmp eq i32 %turns, 0
  br i1 %enough, label %rested, label %start
rested:
  ret i32 {RESTED}
start:
  %seed = load i64, ptr %random.p
  %fixed = icmp eq i64 %seed, 0
  br i1 %fixed, label %search, label %draw
draw:
  %r0 = shl i64 %seed, 13
  %r1 = xor i64 %seed, %r0
  %r2 = lshr i64 %r1, 7
  %r3 = xor i64 %r1, %r2
  %r4 = shl i64 %r3, 17
  %r5 = xor i64 %r3, %r4
  store i64 %r5, ptr %random.p
  %r6 = lshr i64 %r5, 33
  %r7 = trunc i64 %r6 to i32
  %r8 = urem i32 %r7, %warps
  store i32 %r8, ptr %cursor.p
  br label %search
search:
  %from = load i32, ptr %cursor.p
  br label %look
look:
  %tried = phi i32 [0, %search], [%tried.1, %skip]
  %c = phi i32 [%from, %search], [%c.2, %skip]
  %c.l = zext i32 %c to i64
  %c.o = mul i64 %c.l, %stride
  %c.a = add i64 %first, %c.o
  %w = inttoptr i64 %c.a to ptr
{_get("ready", READY, "i32", "%w")}{_get("parked", PARKED, "i32", "%w")}\
  %unparked = xor i32 %parked, -1
  %can = and i32 %ready, %unparked
  %idle = icmp eq i32 %can, 0
  %c.1 = add i32 %c, 1
  %wrap = icmp uge i32 %c.1, %warps
  %c.2 = select i1 %wrap, i32 0, i32 %c.1
  br i1 %idle, label %skip, label %go
skip:
  %tried.1 = add i32 %tried, 1
  %stuck = icmp uge i32 %tried.1, %warps
  br i1 %stuck, label %dead, label %look
dead:
  ret i32 {STUCK}
go:
  %seed.2 = load i64, ptr %random.p
  %short.0 = lshr i64 %seed.2, 20
  %short.1 = trunc i64 %short.0 to i32
  %short = and i32 %short.1, 15
  %plain = icmp eq i64 %seed.2, 0
  %fuel = select i1 %plain, i32 {FUEL_AT_ONCE}, i32 %short
{_at("fuel.w", FUEL, "%w")}  store i32 %fuel, ptr %fuel.w.p
  %said = call i32 %step(ptr %w)
  switch i32 %said, label %again [
    i32 {STEP_FAILED}, label %failed
    i32 {YIELD}, label %yielded
  ]
failed:
  store i32 %c, ptr %cursor.p
  ret i32 {FAILED}
yielded:
{_get("key", KEY, "i32", "%w")}  %key.1 = xor i32 %key, {ALL_ONES}
  store i32 %key.1, ptr %key.p
  store i32 %c.2, ptr %cursor.p
{_get("waited", WAITED, "i32", "%w")}  %waits = icmp ne i32 %waited, 0
  br i1 %waits, label %waiting, label %tired
waiting:
  store i32 0, ptr %waited.p
  %i = load i32, ptr %idle.p
  %i1 = add i32 %i, 1
  store i32 %i1, ptr %idle.p
  %hopeless = icmp uge i32 %i1, {MOST_IDLE}
  br i1 %hopeless, label %dead, label %turn
tired:
  store i32 0, ptr %idle.p
  %y = load i32, ptr %yields.p
  %y1 = add i32 %y, 1
  store i32 %y1, ptr %yields.p
{_get("patience", PATIENCE)}  %long = icmp uge i32 %y1, %patience
  br i1 %long, label %spinning, label %turn
spinning:
  store i32 0, ptr %yields.p
  ret i32 {SPINNING}
again:
  store i32 %c.2, ptr %cursor.p
  br label %turn
}}
"""

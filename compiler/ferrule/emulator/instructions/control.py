"""Helpers that let lanes wait, leave and fail."""

from __future__ import annotations

from typing import Final

from ferrule.emulator.instructions.helpers import by_lane, failed, helper, loaded
from ferrule.emulator.native.barriers import OTHER_MASKS
from ferrule.emulator.warps.layout import (
    BARRIER,
    BARRIERS,
    BLOCK,
    C_LIVE,
    CLUSTER,
    FAULT,
    FAULT_ADDRESS,
    FAULT_LANE,
    FAULT_SIZE,
    FIRST_WARP,
    KEY,
    LIVE,
    MEMBERS,
    MIXED,
    PARKED,
    PASSED,
    PC,
    READY,
    REDUCED,
    RESULT,
    STACK,
    SYNC,
    THREADS,
    TRAP,
    WARP_STRIDE,
    WARPS,
)


@helper("trap")
def _trap(name: str, why: str) -> str:
    return by_lane(
        name, 0, "", failed(STACK if why else TRAP) + "unused:\n  br label %next\n", "", True
    )


@helper("choose")
def _choose(name: str, _: str) -> str:
    """The block to go on with, and the lanes there; -1 where none can go on.

    It is that with the smallest number among the lanes that are ready, or the greatest by KEY.
    """
    return f"""declare i32 @llvm.vector.reduce.umin.v32i32(<32 x i32>)
define i32 @"{name}"(ptr %w, i32 %mask, ptr %p0) {{
entry:
{loaded("%w", READY, "i32", "ready")}{loaded("%w", PARKED, "i32", "parked")}\
  %unparked = xor i32 %parked, -1
  %can = and i32 %ready, %unparked
  %none = icmp eq i32 %can, 0
  br i1 %none, label %waiting, label %choose
waiting:
  ret i32 -1
choose:
  %pc.p = getelementptr i8, ptr %w, i64 {PC}
  %pcs = load <32 x i32>, ptr %pc.p, align 32
{loaded("%w", KEY, "i32", "key")}\
  %key.1 = insertelement <32 x i32> poison, i32 %key, i32 0
  %keys = shufflevector <32 x i32> %key.1, <32 x i32> poison, <32 x i32> zeroinitializer
  %turned = xor <32 x i32> %pcs, %keys
  %can.v = bitcast i32 %can to <32 x i1>
  %rank = select <32 x i1> %can.v, <32 x i32> %turned, <32 x i32> splat (i32 -1)
  %least = call i32 @llvm.vector.reduce.umin.v32i32(<32 x i32> %rank)
  %number = xor i32 %least, %key
  %number.1 = insertelement <32 x i32> poison, i32 %number, i32 0
  %numbers = shufflevector <32 x i32> %number.1, <32 x i32> poison, <32 x i32> zeroinitializer
  %there = icmp eq <32 x i32> %pcs, %numbers
  %there.i = bitcast <32 x i1> %there to i32
  %here = and i32 %there.i, %ready
  store i32 %here, ptr %p0
  ret i32 %number
}}
"""


@helper("stand")
def _stand(name: str, _: str) -> str:
    """The lanes of a mask stand at one block where they are taken, else at another."""
    return f"""define i32 @"{name}"(ptr %w, i32 %mask, i32 %taken, i32 %yes, i32 %no) {{
entry:
  %pc.p = getelementptr i8, ptr %w, i64 {PC}
  %old = load <32 x i32>, ptr %pc.p, align 32
  %yes.1 = insertelement <32 x i32> poison, i32 %yes, i32 0
  %yeses = shufflevector <32 x i32> %yes.1, <32 x i32> poison, <32 x i32> zeroinitializer
  %no.1 = insertelement <32 x i32> poison, i32 %no, i32 0
  %noes = shufflevector <32 x i32> %no.1, <32 x i32> poison, <32 x i32> zeroinitializer
  %lanes = bitcast i32 %mask to <32 x i1>
  %taken.v = bitcast i32 %taken to <32 x i1>
  %where = select <32 x i1> %taken.v, <32 x i32> %yeses, <32 x i32> %noes
  %new = select <32 x i1> %lanes, <32 x i32> %where, <32 x i32> %old
  store <32 x i32> %new, ptr %pc.p, align 32
  ret i32 0
}}
"""


_STRANGE: Final = f"""\
wrong:
  %kind.p = getelementptr i8, ptr %w, i64 {FAULT}
  store i32 {SYNC}, ptr %kind.p
  %who = call i32 @llvm.cttz.i32(i32 %stranger, i1 true)
  %who.p = getelementptr i8, ptr %w, i64 {FAULT_LANE}
  store i32 %who, ptr %who.p
  %what.p = getelementptr i8, ptr %w, i64 {FAULT_ADDRESS}
  %what = zext i32 %value to i64
  store i64 %what, ptr %what.p
  ret i32 0
"""
"""The block for a lane of the mask that waits for others than the first one does."""


@helper("gather")
def _gather(name: str, how: str) -> str:
    """The lanes of the mask that can go on, each with the mask of lanes that it waits for.

    The first lane that is not parked says which; all with the same mask are its group. A group
    whose live lanes are all here goes on, unparked; else it is parked, and the result is 0.

    Others that stand here may wait for lanes of the group with a mask of theirs: lanes may come
    again with that one. `gather:checked` makes it a fault where they have ended instead.
    """
    mixed, go = (_MIXED, "compare") if how == "checked" else ("", "unpark")
    return f"""define i32 @"{name}"(ptr %w, i32 %mask, ptr %p0) {{
entry:
  %live.p = getelementptr i8, ptr %w, i64 {LIVE}
  %live = load i32, ptr %live.p
  %parked.p = getelementptr i8, ptr %w, i64 {PARKED}
  %parked = load i32, ptr %parked.p
  %not = xor i32 %parked, -1
  %new = and i32 %mask, %not
  %lane = call i32 @llvm.cttz.i32(i32 %new, i1 false)
  %lead = and i32 %lane, 31
  %i = zext i32 %lead to i64
  %value.p = getelementptr i32, ptr %p0, i64 %i
  %value = load i32, ptr %value.p
  %all = load <32 x i32>, ptr %p0, align 32
  %value.1 = insertelement <32 x i32> poison, i32 %value, i32 0
  %values = shufflevector <32 x i32> %value.1, <32 x i32> poison, <32 x i32> zeroinitializer
  %same = icmp eq <32 x i32> %all, %values
  %same.i = bitcast <32 x i1> %same to i32
  %group = and i32 %same.i, %mask
  %stranger.0 = xor i32 %value, -1
  %stranger = and i32 %group, %stranger.0
  %strange = icmp ne i32 %stranger, 0
  br i1 %strange, label %wrong, label %look
{_STRANGE}look:
  %need = and i32 %value, %live
  %have.not = xor i32 %group, -1
  %missing = and i32 %need, %have.not
  %complete = icmp eq i32 %missing, 0
  br i1 %complete, label %{go}, label %park
{mixed}unpark:
  %keep = and i32 %parked, %have.not
  store i32 %keep, ptr %parked.p
  ret i32 %group
park:
  %more = or i32 %parked, %group
  store i32 %more, ptr %parked.p
  %members.p = getelementptr i8, ptr %w, i64 {MEMBERS}
  %members = load <32 x i32>, ptr %members.p, align 32
  %group.v = bitcast i32 %group to <32 x i1>
  %members.1 = select <32 x i1> %group.v, <32 x i32> %values, <32 x i32> %members
  store <32 x i32> %members.1, ptr %members.p, align 32
  ret i32 0
}}
"""


_MIXED: Final = f"""compare:
  %others = and i32 %mask, %have.not
{loaded("%w", MIXED, "i32", "mixed")}{loaded("%w", PASSED, "i32", "passed")}\
  %strangers = or i32 %others, %mixed
  %alike = icmp eq i32 %strangers, 0
  br i1 %alike, label %unpark, label %differ
differ:
  %group.1 = insertelement <32 x i32> poison, i32 %group, i32 0
  %groups = shufflevector <32 x i32> %group.1, <32 x i32> poison, <32 x i32> zeroinitializer
  %shared = and <32 x i32> %all, %groups
  %waits.v = icmp ne <32 x i32> %shared, zeroinitializer
  %waits.i = bitcast <32 x i1> %waits.v to i32
  %waits = and i32 %waits.i, %others
  %left = and i32 %mixed, %have.not
  %mixed.1 = or i32 %left, %waits
  store i32 %mixed.1, ptr %mixed.p
  %some = icmp ne i32 %waits, 0
  %new.passed = select i1 %some, i32 %group, i32 0
  %none.left = icmp eq i32 %left, 0
  %old.passed = select i1 %none.left, i32 0, i32 %passed
  %passed.1 = or i32 %old.passed, %new.passed
  store i32 %passed.1, ptr %passed.p
  %mine = and i32 %mixed, %group
  %gone.0 = xor i32 %live, -1
  %gone.1 = and i32 %gone.0, %passed
  %gone = and i32 %gone.1, %value
  %lost.0 = icmp ne i32 %mine, 0
  %lost.1 = icmp ne i32 %gone, 0
  %lost = and i1 %lost.0, %lost.1
  br i1 %lost, label %other.masks, label %unpark
other.masks:
  %m.kind.p = getelementptr i8, ptr %w, i64 {FAULT}
  store i32 {SYNC}, ptr %m.kind.p
  %m.who = call i32 @llvm.cttz.i32(i32 %mine, i1 true)
  %m.who.p = getelementptr i8, ptr %w, i64 {FAULT_LANE}
  store i32 %m.who, ptr %m.who.p
  %m.what.p = getelementptr i8, ptr %w, i64 {FAULT_ADDRESS}
  %m.what = zext i32 %value to i64
  store i64 %m.what, ptr %m.what.p
  %m.size.p = getelementptr i8, ptr %w, i64 {FAULT_SIZE}
  store i32 {OTHER_MASKS}, ptr %m.size.p
  ret i32 0
"""
"""Whether lanes that others waited for came with another mask and have ended."""


_RELEASE = f"""define internal void @release(ptr %block, i32 %id) {{
entry:
{loaded("%block", FIRST_WARP, "i64", "first")}{loaded("%block", WARP_STRIDE, "i64", "stride")}\
{loaded("%block", WARPS, "i32", "warps")}  %id.1 = insertelement <32 x i32> poison, i32 %id, i32 0
  %ids = shufflevector <32 x i32> %id.1, <32 x i32> poison, <32 x i32> zeroinitializer
  %red.o = mul i32 %id, 4
  %red.l = zext i32 %red.o to i64
  %red.b = getelementptr i8, ptr %block, i64 {REDUCED}
  %red.p = getelementptr i8, ptr %red.b, i64 %red.l
  %red = load i32, ptr %red.p
  store i32 0, ptr %red.p
  %red.1 = insertelement <32 x i32> poison, i32 %red, i32 0
  %reds = shufflevector <32 x i32> %red.1, <32 x i32> poison, <32 x i32> zeroinitializer
  br label %head
head:
  %n = phi i32 [0, %entry], [%n1, %head]
  %at = phi i64 [%first, %entry], [%at1, %head]
  %v = inttoptr i64 %at to ptr
  %live.p = getelementptr i8, ptr %v, i64 {LIVE}
  %live = load i32, ptr %live.p
  %ready.p = getelementptr i8, ptr %v, i64 {READY}
  %ready = load i32, ptr %ready.p
  %where.p = getelementptr i8, ptr %v, i64 {BARRIER}
  %where = load <32 x i32>, ptr %where.p, align 32
  %here = icmp eq <32 x i32> %where, %ids
  %here.i = bitcast <32 x i1> %here to i32
  %free = and i32 %here.i, %live
  %result.p = getelementptr i8, ptr %v, i64 {RESULT}
  %result = load <32 x i32>, ptr %result.p, align 32
  %result.1 = select <32 x i1> %here, <32 x i32> %reds, <32 x i32> %result
  store <32 x i32> %result.1, ptr %result.p, align 32
  %now = or i32 %ready, %free
  store i32 %now, ptr %ready.p
  %n1 = add i32 %n, 1
  %at1 = add i64 %at, %stride
  %more = icmp ult i32 %n1, %warps
  br i1 %more, label %head, label %done
done:
  %bar.o = mul i32 %id, 8
  %bar.l = zext i32 %bar.o to i64
  %bar.b = getelementptr i8, ptr %block, i64 {BARRIERS}
  %bar = getelementptr i8, ptr %bar.b, i64 %bar.l
  store i64 0, ptr %bar
  ret void
}}
"""


@helper("leave")
def _leave(name: str, _: str) -> str:
    """Lanes exit: parked ones look again, and barriers may have all that they wait for."""
    return f"""{_RELEASE}
define i32 @"{name}"(ptr %w, i32 %mask) {{
entry:
{loaded("%w", BLOCK, "ptr", "block")}  %keep = xor i32 %mask, -1
  %live.p = getelementptr i8, ptr %w, i64 {LIVE}
  %live = load i32, ptr %live.p
  %live.1 = and i32 %live, %keep
  store i32 %live.1, ptr %live.p
  %ready.p = getelementptr i8, ptr %w, i64 {READY}
  %ready = load i32, ptr %ready.p
  %ready.1 = and i32 %ready, %keep
  store i32 %ready.1, ptr %ready.p
  %parked.p = getelementptr i8, ptr %w, i64 {PARKED}
  store i32 0, ptr %parked.p
  %gone = call i32 @llvm.ctpop.i32(i32 %mask)
{loaded("%block", THREADS, "i32", "threads")}  %left = sub i32 %threads, %gone
  store i32 %left, ptr %threads.p
{loaded("%block", CLUSTER, "ptr", "cluster")}{loaded("%cluster", C_LIVE, "i32", "c.live")}\
  %c.left = sub i32 %c.live, %gone
  store i32 %c.left, ptr %c.live.p
  %some = icmp ne i32 %left, 0
  br i1 %some, label %head, label %done
head:
  %n = phi i32 [0, %entry], [%n1, %next]
{_state("%n")}\
  %all = icmp eq i32 %wanted, 0
  %enough = icmp uge i32 %arrived, %left
  %c0 = and i1 %begun, %all
  %c1 = and i1 %c0, %enough
  br i1 %c1, label %free, label %next
free:
  call void @release(ptr %block, i32 %n)
  br label %next
next:
  %n1 = add i32 %n, 1
  %more = icmp ult i32 %n1, 16
  br i1 %more, label %head, label %done
done:
  ret i32 0
}}
"""


_REDUCE = f"""  %said.v = load <32 x i32>, ptr %p2, align 32
  %true.v = icmp ne <32 x i32> %said.v, zeroinitializer
  %true.i = bitcast <32 x i1> %true.v to i32
  %true.m = and i32 %true.i, %mask
  %true.n = call i32 @llvm.ctpop.i32(i32 %true.m)
  %false.n = sub i32 %each, %true.n
  %false.s = shl i32 %false.n, 16
  %both.n = or i32 %true.n, %false.s
  %red.o = mul i32 %id, 4
  %red.l = zext i32 %red.o to i64
  %red.b = getelementptr i8, ptr %block, i64 {REDUCED}
  %red.p = getelementptr i8, ptr %red.b, i64 %red.l
  %red = load i32, ptr %red.p
  %red.1 = add i32 %red, %both.n
  store i32 %red.1, ptr %red.p
"""


_PARK: Final = f"""  %ready.1 = and i32 %ready, %keep
  store i32 %ready.1, ptr %ready.p
  %lanes = bitcast i32 %mask to <32 x i1>
  %where.p = getelementptr i8, ptr %w, i64 {BARRIER}
  %where = load <32 x i32>, ptr %where.p, align 32
  %ids.w = select <32 x i1> %lanes, <32 x i32> %ids, <32 x i32> %where
  store <32 x i32> %ids.w, ptr %where.p, align 32
"""
"""The lanes of the mask wait at their barrier."""

_AGREE: Final = """  %lane = call i32 @llvm.cttz.i32(i32 %mask, i1 true)
  %i = zext i32 %lane to i64
  %id.p = getelementptr i32, ptr %p0, i64 %i
  %id = load i32, ptr %id.p
  %count.p = getelementptr i32, ptr %p1, i64 %i
  %count = load i32, ptr %count.p
  %ids = load <32 x i32>, ptr %p0, align 32
  %counts = load <32 x i32>, ptr %p1, align 32
  %id.1 = insertelement <32 x i32> poison, i32 %id, i32 0
  %id.v = shufflevector <32 x i32> %id.1, <32 x i32> poison, <32 x i32> zeroinitializer
  %count.1 = insertelement <32 x i32> poison, i32 %count, i32 0
  %count.v = shufflevector <32 x i32> %count.1, <32 x i32> poison, <32 x i32> zeroinitializer
  %d0 = icmp ne <32 x i32> %ids, %id.v
  %d1 = icmp ne <32 x i32> %counts, %count.v
  %d2 = or <32 x i1> %d0, %d1
  %d3 = bitcast <32 x i1> %d2 to i32
  %d4 = and i32 %d3, %mask
  %differ = icmp ne i32 %d4, 0
  %beyond = icmp ugt i32 %id, 15
  %odd.0 = and i32 %count, 31
  %odd = icmp ne i32 %odd.0, 0
  %w0 = or i1 %differ, %beyond
  %w1 = or i1 %w0, %odd
  br i1 %w1, label %wrong, label %arrive
"""
"""The number of the barrier, and how many it waits for: the same in all lanes of the mask."""

_DISAGREE: Final = f"""wrong:
  %kind.p = getelementptr i8, ptr %w, i64 {FAULT}
  store i32 {SYNC}, ptr %kind.p
  %lane.p = getelementptr i8, ptr %w, i64 {FAULT_LANE}
  store i32 %lane, ptr %lane.p
  %what.p = getelementptr i8, ptr %w, i64 {FAULT_ADDRESS}
  %id.l = zext i32 %id to i64
  store i64 %id.l, ptr %what.p
  ret i32 1
"""
"""What is wrong about a barrier is a fault."""


def _state(number: str) -> str:
    """What a barrier knows: threads that arrived, and that it waits for; 0 for all that live."""
    return f"""  %o = mul i32 {number}, 8
  %o.l = zext i32 %o to i64
  %b = getelementptr i8, ptr %block, i64 {BARRIERS}
  %bar = getelementptr i8, ptr %b, i64 %o.l
  %arrived = load i32, ptr %bar
  %wanted.p = getelementptr i8, ptr %bar, i64 4
  %wanted = load i32, ptr %wanted.p
  %begun = icmp ne i32 %arrived, 0
"""


@helper("barrier")
def _barrier(name: str, what: str, units: str) -> str:
    """`barrier:sync:aligned`: numbers of barriers, and how many threads each waits for (0: all);
    of `red` also a predicate of each lane.

    The lanes of the mask arrive together, and wait where `what` is sync. A whole warp counts as
    32 threads where a number of threads is said, however many it has.
    """
    third = ", ptr %p2" if what == "red" else ""
    count = "%each" if units != "aligned" else "%count.a"
    waits = _PARK if what != "arrive" else ""
    # Its own function: one module may have the helpers of `sync`, `arrive` and `red`.
    release = f'@"release.{name}"'
    return f"""{_RELEASE.replace("@release", release)}
define i32 @"{name}"(ptr %w, i32 %mask, ptr %p0, ptr %p1{third}) {{
entry:
{loaded("%w", BLOCK, "ptr", "block")}{_AGREE}{_DISAGREE}arrive:
{_state("%id")}\
  %other = icmp ne i32 %wanted, %count
  %w2 = and i1 %begun, %other
  br i1 %w2, label %wrong, label %add
add:
  %each = call i32 @llvm.ctpop.i32(i32 %mask)
  %said = icmp ne i32 %count, 0
  %count.a = select i1 %said, i32 32, i32 %each
  %now = add i32 %arrived, {count}
  store i32 %now, ptr %bar
  store i32 %count, ptr %wanted.p
{loaded("%block", THREADS, "i32", "threads")}  %goal = select i1 %said, i32 %count, i32 %threads
  %keep = xor i32 %mask, -1
  %ready.p = getelementptr i8, ptr %w, i64 {READY}
  %ready = load i32, ptr %ready.p
{waits}{_REDUCE if what == "red" else ""}\
  %over = icmp ugt i32 %now, %goal
  br i1 %over, label %wrong, label %look
look:
  %complete = icmp eq i32 %now, %goal
  br i1 %complete, label %free, label %done
free:
  call void {release}(ptr %block, i32 %id)
  br label %done
done:
  ret i32 0
}}
"""

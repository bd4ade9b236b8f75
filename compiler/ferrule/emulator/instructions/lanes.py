"""What lanes of a warp and threads of a block do together. They have waited for each other before:
the mask is that of all lanes that take part."""

from __future__ import annotations

from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.instructions.helpers import by_lane, failed, helper, lane_value, put
from ferrule.emulator.ptx.module import Group, Instruction, Operand, Register
from ferrule.emulator.warps import layout
from ferrule.emulator.warps.emitter import LANE_NUMBERS, Emitter, bits_of, splat, vector
from ferrule.emulator.warps.layout import LANE

_UNKNOWN = -842150451
"""0xCDCDCDCD: the value that a lane reads from an inactive lane; PTX does not define it."""


def _two(e: Emitter, operand: Operand) -> tuple[Operand, Operand]:
    """Result and predicate of `d|p`, or of `d` alone."""
    if isinstance(operand, Group):
        if operand.kind != "|" or len(operand.items) != 2:
            raise e.refuse()
        return operand.items[0], operand.items[1]
    return operand, Register("_")


@form("shfl", r"\.sync\.(?P<mode>up|down|bfly|idx)\.b32", 5)
def _shfl(e: Emitter, item: Instruction, named: Named) -> None:
    result, valid = _two(e, item.operands[0])
    given = [("<32 x i32>", e.read(each, "b32")) for each in item.operands[1:4]]
    wanted = ["<32 x i32>", "<32 x i32>"]
    how = "checked" if e.names.synchronised else "free"
    value, inside = e.call(f"shfl:{named['mode']}:{how}", given, wanted)
    e.write(result, "b32", value)
    e.write(valid, "pred", e.op(f"icmp ne <32 x i32> {inside}, zeroinitializer"))


@helper("shfl")
def _shfl_by_lane(name: str, mode: str, how: str) -> str:
    """`shfl:down:checked`: values, lanes, bounds, then places for the result and its validity."""
    checked = how == "checked"
    place = {
        "up": "  %j = sub i32 %lane, %b5\n  %ok = icmp sge i32 %j, %most\n",
        "down": "  %j = add i32 %lane, %b5\n  %ok = icmp sle i32 %j, %most\n",
        "bfly": "  %j = xor i32 %lane, %b5\n  %ok = icmp sle i32 %j, %most\n",
        "idx": "  %j0 = and i32 %b5, %unseg\n  %j = or i32 %least, %j0\n"
        "  %ok = icmp sle i32 %j, %most\n",
    }[mode]
    body = lane_value("%p1", "i32", "b") + lane_value("%p2", "i32", "c")
    body += f"""  %b5 = and i32 %b, 31
  %c5 = and i32 %c, 31
  %seg0 = lshr i32 %c, 8
  %seg = and i32 %seg0, 31
  %unseg = xor i32 %seg, 31
  %least = and i32 %lane, %seg
  %most0 = and i32 %c5, %unseg
  %most = or i32 %least, %most0
{place}  %from = select i1 %ok, i32 %j, i32 %lane
  %from5 = and i32 %from, 31
  %bit = lshr i32 %mask, %from5
  %here = trunc i32 %bit to i1
{_ABSENT if checked else ""}  %from.l = zext i32 %from5 to i64
  %v.at = getelementptr i32, ptr %p0, i64 %from.l
  %v = load i32, ptr %v.at
  %known = select i1 %here, i32 %v, i32 {_UNKNOWN}
  %ok.i = zext i1 %ok to i32
  %ok.at = getelementptr i32, ptr %p4, i64 %i
  store i32 %ok.i, ptr %ok.at
"""
    body += put("%p3", "i32", "%known") + "  br label %next\n"
    return by_lane(name, 5, "", body, "", checked)


_ABSENT = f"""  br i1 %here, label %present, label %absent
absent:
  %absent.l = zext i32 %from5 to i64
{failed(LANE, "%absent.l")}present:
"""


@form("vote", r"\.sync\.(?P<mode>all|any|uni)\.pred", 3)
@form("vote", r"\.sync\.(?P<mode>ballot)\.b32", 3)
def _vote(e: Emitter, item: Instruction, named: Named) -> None:
    asked = e.read(item.operands[1], "pred")
    bits = e.op(f"and i32 {e.op(f'bitcast <32 x i1> {asked} to i32')}, {e.mask}")
    mode = named["mode"]
    if mode == "ballot":
        e.write(item.operands[0], "b32", e.spread(bits))
        return
    whole, some = e.op(f"icmp eq i32 {bits}, {e.mask}"), e.op(f"icmp ne i32 {bits}, 0")
    if mode == "uni":
        none = e.op(f"xor i1 {some}, true")
        whole = e.op(f"or i1 {whole}, {none}")
    e.write(item.operands[0], "pred", e.spread(some if mode == "any" else whole, "i1"))


@form("match", r"\.(?P<mode>any|all)\.sync\.(?P<t>b32|b64)", 3)
def _match(e: Emitter, item: Instruction, named: Named) -> None:
    result, valid = _two(e, item.operands[0])
    t, mode = kind(named), kind(named, "mode")
    if mode == "any" and valid != Register("_"):
        raise e.refuse()
    value = e.read(item.operands[1], t)
    (found,) = e.call(f"match:{bits_of(t)}", [(vector(t), value)], ["<32 x i32>"])
    if mode == "all":
        all_lanes = e.spread(e.mask)
        same = e.op(f"icmp eq <32 x i32> {found}, {all_lanes}")
        found = e.op(f"select <32 x i1> {same}, <32 x i32> {all_lanes}, <32 x i32> zeroinitializer")
        e.write(valid, "pred", same)
    e.write(result, "b32", found)


@helper("match")
def _match_by_lane(name: str, bits: str) -> str:
    word = f"i{bits}"
    body = lane_value("%p0", word, "a")
    body += f"""  %all = load <32 x {word}>, ptr %p0, align 32
  %a.1 = insertelement <32 x {word}> poison, {word} %a, i32 0
  %a.v = shufflevector <32 x {word}> %a.1, <32 x {word}> poison, <32 x i32> zeroinitializer
  %same = icmp eq <32 x {word}> %all, %a.v
  %same.i = bitcast <32 x i1> %same to i32
  %here = and i32 %same.i, %mask
"""
    return by_lane(name, 2, "", body + put("%p1", "i32", "%here") + "  br label %next\n")


_MAGNITUDE, _INFINITY = 0x7FFFFFFF, 0x7F800000
"""Bits of a float32: all but the sign, which is also the canonical NaN; those of infinity."""

_REDUCTIONS = {
    ("add", "s"): ("add", 0), ("add", "u"): ("add", 0),
    ("min", "s"): ("smin", 0x7FFFFFFF), ("min", "u"): ("umin", 0xFFFFFFFF),
    ("max", "s"): ("smax", 0x80000000), ("max", "u"): ("umax", 0),
    ("and", "b"): ("and", 0xFFFFFFFF), ("or", "b"): ("or", 0), ("xor", "b"): ("xor", 0),
}  # fmt: skip


@form("redux", r"\.sync\.(?P<op>add|min|max)\.(?P<t>[us]32)", 3)
@form("redux", r"\.sync\.(?P<op>and|or|xor)\.(?P<t>b32)", 3)
def _redux(e: Emitter, item: Instruction, named: Named) -> None:
    t = kind(named)
    op, neutral = _REDUCTIONS[kind(named, "op"), t[0]]
    value, lanes = e.read(item.operands[1], t), e.lanes()
    value = e.op(
        f"select <32 x i1> {lanes}, <32 x i32> {value}, <32 x i32> {splat('i32', str(neutral))}"
    )
    found = e.op(f"call i32 @llvm.vector.reduce.{op}.v32i32(<32 x i32> {value})")
    e.write(item.operands[0], t, e.spread(found))


@form("redux", r"\.sync\.(?P<op>min|max)(?P<abs>\.abs)?(?P<nan>\.NaN)?\.(?P<t>f32)", 3)
def _redux_floats(e: Emitter, item: Instruction, named: Named) -> None:
    """Of the lanes that have a number, or with .NaN of all; -0 is below 0, a NaN canonical.

    Floats are compared as integers of the same order; what is neutral there is no number.
    """
    words, lanes = "<32 x i32>", e.lanes()
    bits = e.cast(e.read(item.operands[1], "f32"), "f32", "b32")
    if named["abs"]:
        bits = e.op(f"and {words} {bits}, {splat('i32', str(_MAGNITUDE))}")
    size = e.op(f"and {words} {bits}, {splat('i32', str(_MAGNITUDE))}")
    nan = e.op(f"icmp ugt {words} {size}, {splat('i32', str(_INFINITY))}")
    op, neutral = _REDUCTIONS[kind(named, "op"), "s"]
    skipped = e.op(f"xor <32 x i1> {nan}, {splat('i1', 'true')}")
    some = e.op(f"and <32 x i1> {lanes}, {skipped}")
    key = _in_order(e, words, bits)
    key = e.op(f"select <32 x i1> {some}, {words} {key}, {words} {splat('i32', str(neutral))}")
    found = e.op(f"call i32 @llvm.vector.reduce.{op}.v32i32({words} {key})")
    found = _in_order(e, words, e.spread(found))
    if named["nan"]:
        wrong = e.op(f"bitcast <32 x i1> {e.op(f'and <32 x i1> {lanes}, {nan}')} to i32")
        none = e.spread(e.op(f"icmp eq i32 {wrong}, 0"), "i1")
        found = e.op(f"select <32 x i1> {none}, {words} {found}, {words} {splat('i32', '-1')}")
    size = e.op(f"and {words} {found}, {splat('i32', str(_MAGNITUDE))}")
    nan = e.op(f"icmp ugt {words} {size}, {splat('i32', str(_INFINITY))}")
    clean = splat("i32", str(_MAGNITUDE))
    found = e.op(f"select <32 x i1> {nan}, {words} {clean}, {words} {found}")
    e.write(item.operands[0], "f32", e.cast(found, "b32", "f32"))


def _in_order(e: Emitter, words: str, bits: str) -> str:
    """The bits of floats as integers of the same order, and these as bits again."""
    sign = e.op(f"ashr {words} {bits}, {splat('i32', '31')}")
    sign = e.op(f"and {words} {sign}, {splat('i32', str(_MAGNITUDE))}")
    return e.op(f"xor {words} {bits}, {sign}")


@form("activemask", r"\.b32", 1)
def _activemask(e: Emitter, item: Instruction, named: Named) -> None:
    e.write(item.operands[0], "b32", e.spread(e.active()))


@form("elect", r"\.sync", 2)
def _elect(e: Emitter, item: Instruction, named: Named) -> None:
    """The first lane."""
    result, chosen = _two(e, item.operands[0])
    first = e.spread(e.op(f"call i32 @llvm.cttz.i32(i32 {e.mask}, i1 true)"))
    e.write(result, "b32", first)
    e.write(chosen, "pred", e.op(f"icmp eq <32 x i32> {first}, {LANE_NUMBERS}"))


@form("bar", r"\.warp\.sync", 1)
def _warp_sync(e: Emitter, item: Instruction, named: Named) -> None:
    """The lanes have met."""


@form("bar", r"(\.cta)?\.(?P<what>red)\.(popc\.u32|(and|or)\.pred)", 2, 3)
@form("barrier", r"(\.cta)?\.(?P<what>red)\.popc(?P<aligned>\.aligned)?\.u32", 2, 3)
@form("barrier", r"(\.cta)?\.(?P<what>red)\.(and|or)(?P<aligned>\.aligned)?\.pred", 2, 3)
@form("bar", r"(\.cta)?\.(?P<what>sync)", 1, 2)
@form("bar", r"(\.cta)?\.(?P<what>arrive)", 2)
@form("barrier", r"(\.cta)?\.(?P<what>sync)(?P<aligned>\.aligned)?", 1, 2)
@form("barrier", r"(\.cta)?\.(?P<what>arrive)(?P<aligned>\.aligned)?", 2)
def _barrier(e: Emitter, item: Instruction, named: Named) -> None:
    together = item.opcode == "bar" or named["aligned"]
    number = e.read(item.operands[0], "u32")
    count = "zeroinitializer"
    counted = item.operands[1:-1] if named["what"] == "red" else item.operands[1:]
    if counted:
        count = e.read(counted[0], "u32")
    given = [("<32 x i32>", number), ("<32 x i32>", count)]
    if named["what"] == "red":
        bits = e.op(f"zext <32 x i1> {e.read(item.operands[-1], 'pred')} to <32 x i32>")
        given.append(("<32 x i32>", bits))
    e.call(f"barrier:{named['what']}:{'aligned' if together else 'single'}", given, [])


@form("barrier_result", r"\.(?P<what>popc\.u32|and\.pred|or\.pred)", 1)
def _barrier_result(e: Emitter, item: Instruction, named: Named) -> None:
    """What a reducing barrier has found out, after it."""
    place = e.op(f"getelementptr i8, ptr %w, i64 {layout.RESULT}")
    found = e.op(f"load <32 x i32>, ptr {place}, align 32")
    true = e.op(f"and <32 x i32> {found}, splat (i32 65535)")
    what = kind(named, "what")
    if what == "popc.u32":
        e.write(item.operands[0], "u32", true)
    elif what == "or.pred":
        e.write(item.operands[0], "pred", e.op(f"icmp ne <32 x i32> {true}, zeroinitializer"))
    else:
        e.write(item.operands[0], "pred", e.op(f"icmp eq <32 x i32> {found}, {true}"))

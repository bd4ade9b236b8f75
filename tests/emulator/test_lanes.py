"""What lanes of a warp and threads of a block do together."""

from __future__ import annotations

import numpy as np
import pytest
from llvmlite import binding
from ptx_programs import Array, integers, kernel, launch, machine, pointers

from ferrule.emulator.instructions import helpers

OUT = "ld.param.u64 %rd1, [a0]; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;\n"
START = "mov.u32 %r1, %tid.x;\nld.param.u64 %rd4, [a1];\nmul.wide.u32 %rd5, %r1, 4;\n"
START += "add.u64 %rd4, %rd4, %rd5;\nld.global.u32 %r2, [%rd4];\n"


def lanes(body: str, values: Array, threads: int = 32, **more: object) -> Array:
    """What each thread leaves in %r9; it has its number in %r1 and a value in %r2."""
    text = kernel(START + body + "\n" + OUT + "st.global.u32 [%rd3], %r9;\nret;", pointers(2))
    given = [np.full(threads, 0xEE, np.uint32), values.astype(np.uint32)]
    return launch(text, given, block=(threads, 1, 1), **more)[0]  # type: ignore[arg-type]


VALUES = integers(np.uint32, 32, 3)


def source(mode: str, lane: int, b: int, clamp: int, segment: int) -> tuple[int, bool]:
    """The lane that `shfl` reads from, and whether it is inside."""
    most = lane & segment | clamp & ~segment & 31
    least = lane & segment
    j = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": least | b & ~segment & 31}[mode]
    inside = j >= most if mode == "up" else j <= most
    return (j, True) if inside else (lane, False)


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("width", [32, 8])
def test_shuffles(mode: str, width: int) -> None:
    segment = 32 - width
    clamp = 0 if mode == "up" else 31
    for b in (0, 1, 3, 9):
        body = f"shfl.sync.{mode}.b32 %r3|%p1, %r2, {b}, {segment << 8 | clamp}, -1;\n"
        body += "selp.u32 %r4, 1, 0, %p1;\nand.b32 %r3, %r3, 0x7fffffff; shl.b32 %r4, %r4, 31;\n"
        found = lanes(body + "or.b32 %r9, %r3, %r4;", VALUES)
        for lane in range(32):
            j, inside = source(mode, lane, b, clamp, segment)
            assert found[lane] == (int(VALUES[j]) & 0x7FFFFFFF) | inside << 31, (b, lane)


def test_votes() -> None:
    few = np.arange(32) % 3
    for value, name in ((few, "some"), (np.zeros(32), "none"), (np.ones(32), "all")):
        true = [int(v) == 1 for v in value]
        ballot = lanes("setp.eq.u32 %p1, %r2, 1; vote.sync.ballot.b32 %r9, %p1, -1;", value)
        assert (ballot == sum(t << i for i, t in enumerate(true))).all(), name
        for mode, wanted in (("any", any(true)), ("all", all(true)), ("uni", len({*true}) == 1)):
            body = f"setp.eq.u32 %p1, %r2, 1; vote.sync.{mode}.pred %p2, %p1, -1;"
            body += "selp.u32 %r9, 1, 0, %p2;"
            assert (lanes(body, value) == wanted).all(), (name, mode)


def test_some_lanes_only() -> None:
    """Two groups of lanes, each with a mask of its own, at the same instruction."""
    body = """and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 1;
    selp.b32 %r4, 0xaaaaaaaa, 0x55555555, %p1;
    redux.sync.add.u32 %r9, %r1, %r4;"""
    assert (lanes(body, VALUES) == [256 if i & 1 else 240 for i in range(32)]).all()


REDUCED = {"add.u32": np.add, "min.u32": np.minimum, "max.u32": np.maximum,
           "and.b32": np.bitwise_and,
           "or.b32": np.bitwise_or, "xor.b32": np.bitwise_xor, "add.s32": np.add,
           "min.s32": np.minimum, "max.s32": np.maximum}  # fmt: skip


@pytest.mark.parametrize("name", REDUCED)
def test_reductions(name: str) -> None:
    values = VALUES.view(np.int32) if ".s32" in name else VALUES
    wanted = REDUCED[name].reduce(values).astype(values.dtype).view(np.uint32)
    assert (lanes(f"redux.sync.{name} %r9, %r2, -1;", VALUES) == wanted).all()


REDUCED_FLOATS = (
    ("max", [-1.5, 3.0, -0.0, 2.0], 3.0),
    ("min", [-1.5, 3.0, float("inf"), float("-inf")], float("-inf")),
    ("max", [-0.0, 0.0], 0.0),
    ("min", [-0.0, 0.0], -0.0),
    ("max", [float("nan"), -7.0], -7.0),
    ("min", [float("nan")], float("nan")),
    ("max.NaN", [float("nan"), -7.0], float("nan")),
    ("min.abs", [-5.0, 4.0, -3.0], 3.0),
    ("max.abs.NaN", [-5.0, 4.0], 5.0),
    ("max", [-1e-40, -1e-45], -1e-45),
)


@pytest.mark.parametrize(("name", "values", "wanted"), REDUCED_FLOATS)
def test_reductions_of_floats(name: str, values: list[float], wanted: float) -> None:
    """Of some lanes: the others have what would win."""
    given = np.full(32, 1e38 if "max" in name else -1e38 if "abs" not in name else 0, np.float32)
    given[::2] = np.resize(np.array(values, np.float32), 16)
    mask = "and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 0; mov.u32 %r9, 0;\n"
    body = f"{mask}@%p1 redux.sync.{name}.f32 %r9, %r2, 0x55555555;"
    text = kernel(START + body + "\n" + OUT + "st.global.u32 [%rd3], %r9;\nret;", pointers(2))
    text = text.replace(".target sm_90a", ".target sm_100a")
    found = launch(text, [np.zeros(32, np.uint32), given.view(np.uint32)], block=(32, 1, 1))[0]
    bits = 0x7FFFFFFF if wanted != wanted else np.array([wanted], np.float32).view(np.uint32)[0]
    assert (found[::2] == bits).all() and (found[1::2] == 0).all()


def test_matches() -> None:
    values = np.arange(32) % 5
    found = lanes("match.any.sync.b32 %r9, %r2, -1;", values)
    assert found.tolist() == [sum(1 << j for j in range(32) if values[j] == v) for v in values]
    wide = "cvt.u64.u32 %rd8, %r2; shl.b64 %rd8, %rd8, 33; match.any.sync.b64 %r9, %rd8, -1;"
    assert (lanes(wide, values) == found).all()
    for bits in (32, 64):
        register = "%r2" if bits == 32 else "%rd8"
        body = "cvt.u64.u32 %rd8, %r2;\n"
        body += f"match.all.sync.b{bits} %r3|%p1, {register}, -1; selp.u32 %r9, %r3, 7, %p1;"
        assert (lanes(body, values) == 7).all()
        assert (lanes(body, np.full(32, 9)) == 0xFFFFFFFF).all()


def test_elected_and_active_lanes() -> None:
    body = "mov.u32 %r9, 0; setp.lt.u32 %p1, %r1, 5; @%p1 bra E;\n"
    assert lanes(body + "activemask.b32 %r9;\nE:", VALUES).tolist() == [0] * 5 + [0xFFFFFFE0] * 27
    body += (
        "elect.sync %r3|%p2, 0xffffffe0; selp.u32 %r9, 1, 2, %p2; mad.lo.u32 %r9, %r3, 10, %r9;\n"
    )
    assert lanes(body + "E:", VALUES).tolist() == [0] * 5 + [51] + [52] * 26


@pytest.mark.parametrize("threads", [32, 96, 1024, 40])
def test_barriers_between_warps(threads: int) -> None:
    """Every thread reads what one of another warp has written, many times."""
    body = f""".shared .u32 s[1024]; mov.u32 %r5, s; shl.b32 %r6, %r1, 2; add.u32 %r6, %r5, %r6;
    add.u32 %r7, %r1, 33; rem.u32 %r7, %r7, {threads}; shl.b32 %r7, %r7, 2; add.u32 %r7, %r5, %r7;
    mov.u32 %r9, %r1; mov.u32 %r8, 0;
    L: st.shared.u32 [%r6], %r9; bar.sync 0; ld.shared.u32 %r9, [%r7]; barrier.cta.sync.aligned 0;
    add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 5; @%p1 bra L;"""
    for schedule in (None, "random:3", "random:4"):
        found = lanes(body, np.zeros(threads), threads, on=machine(schedule=schedule))
        assert (found == (np.arange(threads) + 5 * 33) % threads).all(), schedule


def test_named_barriers_hand_over() -> None:
    """One warp fills, another waits for it; the third has nothing to do with it."""
    body = """.shared .u32 s[32]; mov.u32 %r5, s; and.b32 %r6, %r1, 31; shl.b32 %r6, %r6, 2;
    add.u32 %r6, %r5, %r6; mov.u32 %r9, 1; setp.ge.u32 %p1, %r1, 64; @%p1 bra E;
    setp.ge.u32 %p1, %r1, 32; @%p1 bra TAKE;
    st.shared.u32 [%r6], %r2; bar.arrive 3, 64; bra E;
    TAKE: bar.sync 3, 64; ld.shared.u32 %r9, [%r6];
    E:"""
    values = np.arange(96) + 100
    for seed in range(4):
        found = lanes(body, values, 96, on=machine(schedule=f"random:{seed}"))
        assert found.tolist() == [1] * 32 + list(range(100, 132)) + [1] * 32


@pytest.mark.parametrize("threads", [64, 50])
@pytest.mark.parametrize(
    "opcode", ["bar.red.{}.{}", "barrier.cta.red.{}.aligned.{}", "barrier.red.{}.{}"]
)
def test_barriers_that_reduce(opcode: str, threads: int) -> None:
    for values in (np.arange(threads) % 3, np.ones(threads), np.zeros(threads)):
        true = values == 1
        count = opcode.format("popc", "u32")
        body = f"setp.eq.u32 %p1, %r2, 1; {count} %r3, 0, %p1;\n"
        body += f"{opcode.format('and', 'pred')} %p2, 1, %p1;\n"
        body += f"{opcode.format('or', 'pred')} %p3, 0, %p1;\n"
        body += f"{count} %r4, 0, !%p1; selp.u32 %r5, 1000, 0, %p2; selp.u32 %r6, 2000, 0, %p3;\n"
        body += "add.u32 %r9, %r3, %r5; add.u32 %r9, %r9, %r6; mad.lo.u32 %r9, %r4, 10000, %r9;"
        wanted = true.sum() + 1000 * true.all() + 2000 * true.any() + 10000 * (~true).sum()
        assert (lanes(body, values, threads) == wanted).all()


def test_special_registers() -> None:
    names = ["%tid.x", "%tid.y", "%tid.z", "%ntid.x", "%ntid.y", "%ntid.z", "%ctaid.x", "%ctaid.y",
             "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z", "%laneid", "%warpid", "%nwarpid",
             "%clusterid.x", "%nclusterid.y", "%cluster_ctaid.x", "%cluster_nctaid.z",
             "%cluster_ctarank", "%cluster_nctarank", "%lanemask_lt", "%lanemask_le",
             "%lanemask_eq",
             "%lanemask_gt", "%lanemask_ge", "WARP_SZ", "%dynamic_smem_size"]  # fmt: skip
    block, grid = (4, 3, 5), (2, 3, 2)
    threads = 60
    lines = [
        "mov.u32 %r1, %ctaid.z; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.x;",
        "mad.lo.u32 %r1, %r1, 3, %r2; mad.lo.u32 %r1, %r1, 2, %r3;",
        "mov.u32 %r4, %tid.z; mov.u32 %r5, %tid.y; mov.u32 %r6, %tid.x;",
        "mad.lo.u32 %r4, %r4, 3, %r5; mad.lo.u32 %r4, %r4, 4, %r6;",
        f"mad.lo.u32 %r1, %r1, {threads}, %r4;",
        f"ld.param.u64 %rd1, [a0]; mul.wide.u32 %rd2, %r1, {4 * len(names)};",
        "add.u64 %rd1, %rd1, %rd2;",
    ]
    for i, name in enumerate(names):
        lines.append(f"mov.u32 %r9, {name}; st.global.u32 [%rd1+{4 * i}], %r9;")
    out = np.zeros(12 * threads * len(names), np.uint32)
    text = kernel("\n".join([*lines, "ret;"]), pointers(1))
    (found,) = launch(text, [out], grid=grid, block=block, smem=64)
    rows = found.reshape(12, threads, len(names))
    for b in range(12):
        cta = (b % 2, b // 2 % 3, b // 6)
        for t in range(threads):
            lane = t % 32
            full = (1 << 32) - 1
            wanted = [t % 4, t // 4 % 3, t // 12, *block, *cta, *grid, lane, t // 32, 2,
                      cta[0], 3, 0, 1, 0, 1,
                      (1 << lane) - 1, (2 << lane) - 1, 1 << lane, full & -(2 << lane),
                      full & -(1 << lane), 32, 64]  # fmt: skip
            assert rows[b, t].tolist() == wanted


def test_one_module_may_have_all_helpers_of_barriers() -> None:
    """A kernel whose warps arrive and wait, in a process that has compiled neither before."""
    names = [f"barrier:{what}:aligned" for what in ("sync", "arrive", "red")]
    names += [f"barrier:{what}:single" for what in ("sync", "arrive", "red")]
    text = "\n".join([helpers.DECLARED, *map(helpers.text, names)])
    module = binding.parse_assembly(text)
    module.verify()
    assert len([each for each in module.functions if "barrier:" in each.name]) == 2 * len(names)

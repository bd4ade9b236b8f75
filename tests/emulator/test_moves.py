"""Loads and stores: widths, vectors, signs and spaces; and which names they may have."""

from __future__ import annotations

import random

import numpy as np
import ptx_forms
import pytest
from ptx_programs import integers, kernel, launch, machine, pointers

from ferrule.emulator.instructions.forms import FORMS
from ferrule.emulator.instructions.table import found, ordered
from ferrule.emulator.machine import Fault, PtxError

VALUES = integers(np.uint64, 256, 4).view(np.uint8)
START = "mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [a0]; ld.param.u64 %rd2, [a1];\n"


@pytest.mark.parametrize(
    "kind", ["u8", "s8", "b8", "u16", "s16", "b16", "u32", "s32", "u64", "f32", "f64"]
)
def test_loads_extend_by_their_sign(kind: str) -> None:
    size = int(kind[1:]) // 8
    register = {"f32": "%f1", "f64": "%fd1"}.get(kind, "%rd9")
    body = (
        START
        + f"mul.wide.u32 %rd3, %r1, {size}; add.u64 %rd3, %rd1, %rd3;\n"
        + f"ld.global.{kind} {register}, [%rd3];\n"
    )
    if kind[0] == "f":
        body += (
            f"mov.b64 %rd9, {{{register}, 0f00000000}};"
            if kind == "f32"
            else f"mov.b64 %rd9, {register};"
        )
    body += "mul.wide.u32 %rd4, %r1, 8; add.u64 %rd4, %rd2, %rd4; st.global.u64 [%rd4], %rd9; ret;"
    given = VALUES[: 32 * size]
    _, out = launch(kernel(body, pointers(2)), [given, np.zeros(32, np.uint64)])
    dtype = np.dtype(f"{'i' if kind[0] == 's' else 'u'}{size}")
    assert (
        out == given.view(dtype).astype(np.int64 if kind[0] == "s" else np.uint64).view(np.uint64)
    ).all()


SPACES = {
    "global": "ld.param.u64 %rd5, [a2]; mul.wide.u32 %rd6, %r1, 16; add.u64 %rd5, %rd5, %rd6;",
    "shared": ".shared .align 16 .b8 s[512]; mov.u64 %rd5, s; mul.wide.u32 %rd6, %r1, 16;"
    "add.u64 %rd5, %rd5, %rd6;",
    "local": ".local .align 16 .b8 l[16]; mov.u64 %rd5, l;",
    "local by 32 bits": ".local .align 16 .b8 l[16]; mov.b32 %r9, l; cvt.u64.u32 %rd5, %r9;",
    "generic shared": ".shared .align 16 .b8 s[512]; mov.u64 %rd5, s; cvta.shared.u64 %rd5, %rd5;"
    "mul.wide.u32 %rd6, %r1, 16; add.u64 %rd5, %rd5, %rd6;",
    "generic local": ".local .align 16 .b8 l[16]; mov.u64 %rd5, l; cvta.local.u64 %rd5, %rd5;",
}
VECTORS = {"v2.b64": "%rd8, %rd9", "v4.b32": "%r4, %r5, %r6, %r7", "v2.f64": "%fd1, %fd2",
           "v4.f32": "%f1, %f2, %f3, %f4"}  # fmt: skip


@pytest.mark.parametrize("space", SPACES)
def test_spaces_and_vectors(space: str) -> None:
    """16 bytes of each thread go through a space and come back."""
    where = "" if "generic" in space else f".{space.partition(' ')[0]}"
    for vector, registers in VECTORS.items():
        body = (
            START
            + SPACES[space]
            + f"""
        mul.wide.u32 %rd3, %r1, 16; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
        ld.global.{vector} {{{registers}}}, [%rd1]; st{where}.{vector} [%rd5], {{{registers}}};
        mov.b32 %r4, 0; mov.b64 %rd8, 0; mov.f32 %f1, 0f00000000; mov.f64 %fd1, 0d0000000000000000;
        ld{where}.{vector} {{{registers}}}, [%rd5];
        st.global.{vector} [%rd2], {{{registers}}}; ret;"""
        )
        given = VALUES[:512]
        arrays = [given, np.zeros(512, np.uint8), np.zeros(512, np.uint8)]
        assert (launch(kernel(body, pointers(3)), arrays)[1] == given).all(), vector


def test_constants_and_parameters() -> None:
    body = """ld.param.u64 %rd2, [a0]; ld.param.v2.u16 {%h1, %h2}, [p]; ld.param.s8 %r3, [p+4];
    mov.b64 %rd5, p; cvta.param.u64 %rd5, %rd5; ld.u32 %r4, [%rd5+8]; ld.param.u32 %r5, [%rd7+4];
    mov.b32 %r9, p; cvt.u64.u32 %rd6, %r9; cvta.param.u64 %rd6, %rd6; setp.ne.u64 %p1, %rd5, %rd6;
    @%p1 trap; ld.param.u32 %r9, [%r9+8]; setp.ne.u32 %p1, %r4, %r9; @%p1 trap;
    mov.u32 %r1, %tid.x; mul.wide.u32 %rd4, %r1, 4; mov.u64 %rd8, c; add.u64 %rd9, %rd8, %rd4;
    ld.const.u32 %r6, [%rd9]; ld.const.u32 %r7, [c+8]; cvt.u32.u16 %r8, %h2; add.u32 %r8, %r8, %r3;
    add.u32 %r8, %r8, %r4; add.u32 %r8, %r8, %r6; add.u32 %r8, %r8, %r7;
    add.u64 %rd2, %rd2, %rd4; st.global.u32 [%rd2], %r8; ret;""".replace(
        "ld.param.u32 %r5, [%rd7+4];", ""
    )
    constants = ", ".join(str(i * i) for i in range(32))
    text = kernel(
        body,
        ".param .u64 a0, .param .align 4 .b8 p[12]",
        before=f".const .u32 c[32] = {{{constants}}};",
    )
    data = (1 | 700 << 16), 0xFE, 5000
    (out,) = launch(text, [np.zeros(32, np.uint32)], *data)
    assert (out == 700 - 2 + 5000 + np.arange(32) ** 2 + 4).all()


def test_bytes_of_registers() -> None:
    body = (
        START
        + """ld.global.u32 %r2, [%rd1]; mov.b32 {%h1, %h2}, %r2; mov.b32 %r3, {%h2, %h1};
    mov.b64 %rd5, {%r3, %r2}; mov.b64 {%h1, %h2, %h3, %h4}, %rd5;
    mov.b64 %rd6, {%h4, %h3, %h2, %h1};
    mov.b64 {_, %r4}, %rd6; st.global.u64 [%rd2], %rd6; st.global.u32 [%rd2+8], %r4; ret;"""
    )
    _, out = launch(
        kernel(body, pointers(2)),
        [np.array([0x11223344], np.uint32), np.zeros(16, np.uint8)],
        block=(1, 1, 1),
    )
    assert out.view(np.uint32)[:3].tolist() == [0x33441122, 0x11223344, 0x11223344]


def test_where_an_address_is() -> None:
    body = (
        START
        + """.shared .b32 s; .local .b32 l; mov.u64 %rd5, s; cvta.shared.u64 %rd5, %rd5;
    isspacep.shared %p1, %rd5; isspacep.global %p2, %rd5; isspacep.shared %p3, %rd1;
    isspacep.global %p4, %rd1;
    cvta.to.shared.u64 %rd6, %rd5; mov.u64 %rd7, s; setp.eq.u64 %p5, %rd6, %rd7;
    isspacep.shared::cta %p6, %rd5;
    selp.u32 %r2, 1, 0, %p1; selp.u32 %r3, 2, 0, %p2; add.u32 %r2, %r2, %r3;
    selp.u32 %r3, 4, 0, %p3;
    add.u32 %r2, %r2, %r3; selp.u32 %r3, 8, 0, %p4; add.u32 %r2, %r2, %r3; selp.u32 %r3, 16, 0, %p5;
    add.u32 %r2, %r2, %r3; selp.u32 %r3, 32, 0, %p6; add.u32 %r2, %r2, %r3;
    st.global.u32 [%rd2], %r2; ret;"""
    )
    out = launch(kernel(body, pointers(2)), [VALUES, np.zeros(1, np.uint32)], block=(1, 1, 1))[1]
    assert out[0] == 1 + 8 + 16 + 32


def test_whether_an_address_is_the_threads_own() -> None:
    body = (
        START
        + """.local .b32 l; mov.u64 %rd5, l; cvta.local.u64 %rd5, %rd5; cvta.param.u64 %rd6, a0;
    isspacep.local %p1, %rd5; isspacep.local %p2, %rd6; isspacep.param %p3, %rd5;
    isspacep.param::entry %p4, %rd6; isspacep.local %p5, %rd1; isspacep.global %p6, %rd5;
    selp.u32 %r2, 1, 0, %p1; @%p2 add.u32 %r2, %r2, 2; @%p3 add.u32 %r2, %r2, 4;
    @%p4 add.u32 %r2, %r2, 8; @%p5 add.u32 %r2, %r2, 16; @%p6 add.u32 %r2, %r2, 32;
    st.global.u32 [%rd2], %r2; ret;"""
    )
    out = launch(kernel(body, pointers(2)), [VALUES, np.zeros(1, np.uint32)], block=(1, 1, 1))[1]
    assert out[0] == 1 + 8


def test_loads_and_stores_past_the_caches() -> None:
    body = (
        START
        + """ldu.global.v2.u32 {%r2, %r3}, [%rd1]; ld.mmio.relaxed.sys.global.u32 %r4, [%rd1+4];
    add.u32 %r2, %r2, %r3; st.mmio.relaxed.sys.global.u32 [%rd2], %r2; ldu.u32 %r5, [%rd1+8];
    st.global.v2.u32 [%rd2+8], {%r4, %r5}; ret;"""
    )
    given = [np.array([3, 4, 5], np.uint32), np.zeros(4, np.uint32)]
    assert list(launch(kernel(body, pointers(2)), given, block=(1, 1, 1))[1]) == [7, 0, 4, 5]


def test_registers_of_the_system() -> None:
    """Of most there is nothing to tell; the clock of all has two halves."""
    names = ("%envreg3", "%pm1", "%gridid", "%globaltimer_hi")
    body = START + "mov.u64 %rd5, %globaltimer; shr.u64 %rd5, %rd5, 32; cvt.u32.u64 %r9, %rd5;"
    for i, name in enumerate(names):
        body += f"mov.u32 %r2, {name}; st.global.u32 [%rd2+{4 * i}], %r2;\n"
    body += "st.global.u32 [%rd2+16], %r9; mov.u32 %r3, %aggr_smem_size; ret;"
    given = [VALUES, np.zeros(5, np.uint32)]
    found = launch(kernel(body, pointers(2)), given, block=(1, 1, 1))[1]
    assert list(found[:3]) == [0, 0, 0] and found[3] - found[4] in (0, 1)


def test_shared_memory_that_is_reserved_for_the_system() -> None:
    """Behind the variables, in two regions; a kernel that does not ask for it has none."""
    names = "begin", "0", "1", "end", "cap"
    body = START + ".shared .b32 v; st.shared.b32 [v], 7;\n"
    for i, name in enumerate(names):
        body += f"mov.u32 %r{i + 2}, %reserved_smem_offset_{name};"
        body += f"st.global.b32 [%rd2+{4 * i}], %r{i + 2};\n"
    body += """st.shared.b32 [%r4+284], 5; ld.shared.b32 %r8, [%r4+284]; ld.shared.b32 %r9, [v];
    add.u32 %r8, %r8, %r9; st.global.b32 [%rd2+20], %r8;
    mov.u32 %r8, %total_smem_size; st.global.b32 [%rd2+24], %r8; ret;"""
    given = [VALUES, np.zeros(7, np.uint32)]
    found = launch(kernel(body, pointers(2)), given, block=(1, 1, 1))[1]
    assert list(found) == [16, 16, 528, 1040, 1024, 12, 1040]
    with pytest.raises(PtxError, match="reserved_smem_offset_2"):
        machine().load(kernel("mov.u32 %r2, %reserved_smem_offset_2; ret;"))


def test_without_a_debugger_a_breakpoint_ends_the_thread() -> None:
    with pytest.raises(Fault, match="k: brkpt was executed; block .*thread .*PTX line"):
        launch(kernel(START + "setp.eq.u32 %p1, 1, 1; @%p1 brkpt; ret;", pointers(2)),
               [VALUES, np.zeros(1, np.uint32)], block=(1, 1, 1))  # fmt: skip


def test_hints_for_caches() -> None:
    """As Triton writes them for eviction policies; a hint and its policy belong together."""
    body = (
        START
        + """createpolicy.fractional.L2::evict_last.b64 %rd5, 1.0;
    createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %rd6;
    createpolicy.range.global.L2::evict_last.b64 %rd7, [%rd1], 64, 128;
    ld.global.L1::evict_last.L2::cache_hint.b32 {%r2}, [%rd1+0], %rd5;
    ld.global.nc.L1::no_allocate.L2::cache_hint.L2::128B.v2.b32 {%r3, %r4}, [%rd1], %rd6;
    add.u32 %r2, %r2, %r4;
    st.global.L1::evict_first.L2::cache_hint.b32 [%rd2+0], {%r2}, %rd7; pmevent 3; ret;"""
    )
    out = launch(kernel(body, pointers(2)), [VALUES, np.zeros(1, np.uint32)], block=(1, 1, 1))[1]
    words = VALUES.view(np.uint32)
    assert out[0] == (int(words[0]) + int(words[1])) % 2**32
    for wrong in ("ld.global.L2::cache_hint.b32 %r2, [%rd1];", "ld.global.b32 %r2, [%rd1], %rd5;"):
        with pytest.raises(PtxError, match="operands"):
            machine().load(kernel(wrong + " ret;"))


def test_names() -> None:
    """Names that patterns of the table spell are found; with a word more or twice they are not."""
    rng = random.Random(5)
    forms = [form for opcode in ("ld", "st") for form in FORMS[opcode]]
    for form in (each for each in forms if "async" not in each.pattern.pattern):
        for _ in range(150):
            name = form.opcode + ptx_forms.one(form.pattern.pattern, rng)
            assert found(name), name
            words = name.split(".")
            at = rng.randrange(1, len(words))
            assert not found(".".join([*words[:at], "near", *words[at:]])), name
            assert not found(f"{name}.{words[-1]}"), name
    for name in ("ld.const.weak.relaxed.u32", "st.const.u32x", "ld.global.v3.f32"):
        assert not found(name), name


ORDERS = {
    "vote.ballot.sync.b32": "vote.sync.ballot.b32",
    "redux.add.sync.s32": "redux.sync.add.s32",
    "fma.ftz.rn.f32": "fma.rn.ftz.f32",
    "cvt.sat.rn.ftz.f16.f32": "cvt.rn.ftz.sat.f16.f32",
    "ld.u32.global": "ld.global.u32",
    "prefetch.L2.global": "prefetch.global.L2",
    "ldmatrix.aligned.sync.m8n8.x1.shared.b16": "ldmatrix.sync.aligned.m8n8.x1.shared.b16",
    # Types and layouts have an order of their own.
    "cvt.f16.rn.f32": "cvt.rn.f16.f32",
    "mma.aligned.sync.m16n8k16.row.col.f32.f16.f16.f32": None,
    "cvt.u32.u32.rn": None,
    "add.near.f32": None,
}


def test_modifiers_in_another_order() -> None:
    """ptxas takes them; those whose order has a meaning keep it."""
    for name, wanted in ORDERS.items():
        assert ordered(name) == wanted, name
    body = START + "setp.lt.u32 %p1, %r1, 3; vote.ballot.sync.b32 %r2, %p1, -1;"
    body += "st.u32.global [%rd2], %r2; ret;"
    given = [VALUES, np.zeros(1, np.uint32)]
    assert launch(kernel(body, pointers(2)), given, block=(32, 1, 1))[1][0] == 7

"""wgmma of the emulated GPU: all layouts of shared memory, types and shapes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from ptx_programs import HEADER, Array, launch, machine
from ptx_tensors import DTYPES, summed
from warpgroup_matrices import Layout, k_major, mn_major

from ferrule.emulator.machine import Fault, PtxError

SIZE = 65536
BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1}


def program(text: str, count: int, words: int, waits: str) -> str:
    """Shared memory from a0; D from a1 and to a2, [register, thread]; A from a3."""
    registers = "{" + ", ".join(f"%d{i}" for i in range(count)) + "}"
    loads = "\n".join(f"ld.global.b32 %d{i}, [%rd11+{512 * i}];" for i in range(count))
    stores = "\n".join(f"st.global.b32 [%rd12+{512 * i}], %d{i};" for i in range(count))
    factors = "\n".join(f"ld.global.b32 %a{i}, [%rd13+{512 * i}];" for i in range(4))
    return f"""{HEADER}
    .extern .shared .align 1024 .b8 data[];
    .visible .entry k(.param .u64 a0, .param .u64 a1, .param .u64 a2, .param .u64 a3,
                      .param .u64 a4) {{
    .reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .b32 %d<{count}>; .reg .b32 %a<4>;
    ld.param.u64 %rd0, [a0]; ld.param.u64 %rd1, [a1]; ld.param.u64 %rd2, [a2];
    ld.param.u64 %rd3, [a3];
    ld.param.u64 %rd4, [a4];
    mov.u32 %r0, %tid.x; mul.wide.u32 %rd10, %r0, 4;
    add.u64 %rd11, %rd1, %rd10; add.u64 %rd12, %rd2, %rd10; add.u64 %rd13, %rd3, %rd10;
    mov.u32 %r1, %r0;
    L: shl.b32 %r2, %r1, 4; cvt.u64.u32 %rd5, %r2; add.u64 %rd5, %rd0, %rd5;
    ld.global.v4.b32 {{%r3,%r4,%r5,%r6}}, [%rd5]; st.shared.v4.b32 [%r2], {{%r3,%r4,%r5,%r6}};
    add.u32 %r1, %r1, 128; setp.lt.u32 %p0, %r1, {words // 4}; @%p0 bra L;
    bar.sync 0; fence.proxy.async;
    {loads}
    {factors}
    ld.global.u64 %rd6, [%rd4]; ld.global.u64 %rd7, [%rd4+8]; ld.global.u32 %r7, [%rd4+16];
    setp.ne.u32 %p1, %r7, 0;
    wgmma.fence.sync.aligned;
    {text.format(d=registers, a="{%a0, %a1, %a2, %a3}")}
    wgmma.commit_group.sync.aligned;
    {waits}
    {stores}
    ret; }}"""


WAIT = "wgmma.wait_group.sync.aligned 0;"


def places(columns: int) -> tuple[Array, Array]:
    """Row and column of element [i, thread] of D, as the manual's figure has it."""
    i, thread = np.indices((columns // 2, 128))
    row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (i // 2 % 2)
    return row, 8 * (i // 4) + thread % 4 * 2 + i % 2


def held(matrix: Array) -> Array:
    """A in registers, [register, thread]: 4 bytes of columns from row g or g+8."""
    register, thread = np.indices((4, 128))
    row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (register % 2)
    words = np.ascontiguousarray(matrix).view(np.uint32)
    return np.asarray(words[row, register // 2 * 4 + thread % 4])


def run(text: str, columns: int, left: Layout, right: Layout, a: Array, b: Array, d: Array,
        keeps: bool = True, waits: str = WAIT, schedule: str | None = None) -> Array:  # fmt: skip
    """D of `text` on A [64, k], B [k, columns] and D [64, columns]."""
    memory = np.zeros(SIZE, np.uint8)
    left.put(memory, a)
    right.put(memory, np.ascontiguousarray(b.T))
    row, column = places(columns)
    words = d[row, column]
    if d.itemsize == 2:
        words = words.view(np.uint16).reshape(-1, 2, 128).astype(np.uint32)
        words = words[:, 0] | words[:, 1] << 16
    words = np.ascontiguousarray(words).view(np.uint32)
    more = np.array([left.descriptor, right.descriptor, int(keeps)], np.uint64)
    ptx = program(text, len(words), SIZE // 4, waits)
    arrays = [memory, words, np.zeros_like(words), held(a), more]
    found = launch(ptx, arrays, block=(128, 1, 1), smem=SIZE, on=machine(schedule=schedule))[2]
    if d.itemsize == 2:
        found = np.stack([found & 0xFFFF, found >> 16], 1).astype(np.uint16).reshape(-1, 128)
    whole = np.empty(d.shape, found.dtype)
    whole[row, column] = found
    return whole.view(d.dtype)


def small(kind: str, shape: tuple[int, int], seed: int) -> Array:
    rng = np.random.default_rng(seed)
    return rng.integers(0 if kind[0] == "u" else -4, 5, shape).astype(DTYPES[kind])


LAYOUTS = [(trans, span) for trans in (False, True) for span in (0, 32, 64, 128)]


@pytest.mark.parametrize(("b_trans", "b_span"), LAYOUTS)
@pytest.mark.parametrize(("a_trans", "a_span"), [*LAYOUTS[::3], (None, 0)])
def test_layouts(a_trans: bool | None, a_span: int, b_trans: bool, b_span: int) -> None:
    """A from shared memory or registers, B from behind it, each in all layouts."""
    columns = 96
    a, b, d = (
        small("f16", (64, 16), 1),
        small("f16", (16, columns), 2),
        small("f32", (64, columns), 3),
    )
    left = (mn_major if a_trans else k_major)(1024, a_span, 64)
    right = (mn_major if b_trans else k_major)(32768, b_span, columns)
    source, turns = (
        ("{a}", str(int(b_trans)))
        if a_trans is None
        else ("%rd6", f"{int(a_trans)}, {int(b_trans)}")
    )
    name = f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.f16.f16"
    text = f"{name} {{d}}, {source}, %rd7, %p1, 1, 1, {turns};"
    found = run(text, columns, left, right, a, b, d)
    assert np.array_equal(found, d + a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("step", [32, 64, 96])
def test_a_start_within_a_swizzled_row(step: int) -> None:
    """The next columns of k of a tile with rows of 128 bytes."""
    a, b, d = small("bf16", (64, 16), 1), small("bf16", (16, 64), 2), small("f32", (64, 64), 3)
    left, right = (
        Layout(1024 + step, False, 128, 16, 1024),
        Layout(16384 + step, False, 128, 16, 1024),
    )
    text = "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {d}, %rd6, %rd7, %p1, 1, 1, 0, 0;"
    found = run(text, 64, left, right, a, b, d)
    assert np.array_equal(found, d + a.astype(np.float32) @ b.astype(np.float32))


FLOATS = [
    ("f16", "f16", 8, True, 1, 1), ("f16", "f16", 88, False, -1, -1),
    ("f16", "f32", 256, True, 1, -1),
    ("bf16", "f32", 16, True, -1, 1), ("bf16", "f32", 24, False, 1, 1),
    ("tf32", "f32", 8, True, 1, 1), ("tf32", "f32", 40, True, -1, 1),
    ("e4m3", "f16", 24, True, 1, 1), ("e4m3", "f32", 16, False, 1, -1),
    ("e5m2", "f32", 88, True, 1, 1),
    ("e5m2", "f16", 8, True, -1, -1),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "d_kind", "columns", "keeps", "sign_a", "sign_b"), FLOATS)
def test_floats(
    kind: str, d_kind: str, columns: int, keeps: bool, sign_a: int, sign_b: int
) -> None:
    depth = 32 // BYTES[kind]
    a, b, d = (
        small(kind, (64, depth), 1),
        small(kind, (depth, columns), 2),
        small(d_kind, (64, columns), 3),
    )
    turns = ", 0, 0" if BYTES[kind] == 2 else ""
    text = (
        f"wgmma.mma_async.sync.aligned.m64n{columns}k{depth}.{d_kind}.{kind}.{kind} "
        f"{{d}}, %rd6, %rd7, %p1, {sign_a}, {sign_b}{turns};"
    )
    found = run(text, columns, k_major(0, 32, 64), k_major(32768, 128, columns), a, b, d, keeps)
    wanted = sign_a * sign_b * (a.astype(np.float32) @ b.astype(np.float32)) + (d if keeps else 0)
    assert np.array_equal(found.astype(np.float32), wanted.astype(np.float32))


def test_sums_are_rounded_in_the_order_of_k() -> None:
    rng = np.random.default_rng(4)
    a, b = (
        rng.standard_normal((64, 16)).astype(np.float16),
        rng.standard_normal((16, 8)).astype(np.float16),
    )
    d = rng.standard_normal((64, 8)).astype(np.float32)
    text = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {d}, {a}, %rd7, %p1, 1, 1, 0;"
    found = run(text, 8, k_major(0, 0, 64), k_major(32768, 64, 8), a, b, d)
    assert [Fraction(float(x)) for x in found.ravel()] == list(summed(a, b, d).ravel())


@pytest.mark.parametrize("registers", [False, True])
@pytest.mark.parametrize(("a_kind", "b_kind", "sat"), [
    ("s8", "s8", ""), ("u8", "s8", ".satfinite"), ("u8", "u8", ""), ("s8", "u8", ".satfinite"),
])  # fmt: skip
def test_integers(a_kind: str, b_kind: str, sat: str, registers: bool) -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.integers(np.iinfo(t).min, np.iinfo(t).max, s, t, endpoint=True)
            for t, s in ((DTYPES[a_kind], (64, 32)), (DTYPES[b_kind], (32, 48))))  # fmt: skip
    d = rng.choice(np.array([-(2**31), 2**31 - 1, 0, 77], np.int32), (64, 48))
    source = "{a}" if registers else "%rd6"
    name = f"wgmma.mma_async.sync.aligned.m64n48k32{sat}.s32.{a_kind}.{b_kind}"
    text = f"{name} {{d}}, {source}, %rd7, %p1;"
    found = run(text, 48, k_major(0, 128, 64), k_major(32768, 0, 48), a, b, d)
    wanted = a.astype(np.int64) @ b.astype(np.int64) + d
    wanted = np.clip(wanted, -(2**31), 2**31 - 1) if sat else wanted
    assert np.array_equal(found, wanted.astype(np.int32))


@pytest.mark.parametrize("registers", [False, True])
def test_bits(registers: bool) -> None:
    rng = np.random.default_rng(6)
    a, b = rng.integers(0, 256, (64, 32), np.uint8), rng.integers(0, 256, (32, 16), np.uint8)
    d = rng.integers(-9, 9, (64, 16), np.int32)
    source = "{a}" if registers else "%rd6"
    text = f"wgmma.mma_async.sync.aligned.m64n16k256.s32.b1.b1.and.popc {{d}}, {source}, %rd7, %p1;"
    found = run(text, 16, k_major(0, 64, 64), k_major(32768, 32, 16), a, b, d)
    both = np.unpackbits(a, axis=1).astype(np.int32) @ np.unpackbits(b, axis=0).astype(np.int32)
    assert np.array_equal(found, d + both)


ONE = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {d}, %rd6, %rd7, %p1, 1, 1, 0, 0;"


def values() -> tuple[Layout, Layout, Array, Array, Array]:
    a, b, d = small("f16", (64, 16), 1), small("f16", (16, 8), 2), small("f32", (64, 8), 3)
    return k_major(0, 128, 64), k_major(32768, 128, 8), a, b, d


CLEARED = """mad.lo.u32 %r8, %r0, 8, 32768; mov.b64 %rd8, 0;
    st.shared.b64 [%r8], %rd8; bar.sync 0;"""
"""Zeros over B."""


def test_shared_memory_is_read_late() -> None:
    given = values()
    assert np.array_equal(run(ONE, 8, *given, waits=CLEARED + WAIT), given[4])


def test_random_schedules_read_at_any_time() -> None:
    given = values()
    seen = set()
    for seed in range(4):
        found = run(ONE, 8, *given, waits=CLEARED + WAIT, schedule=f"random:{seed}")
        seen |= set((found == given[4]).reshape(4, -1).all(axis=1).tolist())
    assert seen == {True, False}


@pytest.mark.parametrize("waits", ["", "wgmma.wait_group.sync.aligned 1;", WAIT])
def test_who_uses_the_result_waits_for_it(waits: str) -> None:
    """Two that add to the same registers, in two groups. ptxas waits where a program does not."""
    left, right, a, b, d = values()
    text = ONE + "wgmma.commit_group.sync.aligned;\n" + ONE
    product = a.astype(np.float32) @ b.astype(np.float32)
    assert np.array_equal(run(text, 8, left, right, a, b, d, waits=waits), d + 2 * product)


@pytest.mark.parametrize("grouped", [True, False])
def test_who_stores_the_result_waits_for_it(grouped: bool) -> None:
    """Also where a product is in no group yet, as behind a loop over elements in memory."""
    left, right, a, b, d = values()
    ends = "wgmma.commit_group.sync.aligned;" if grouped else ""
    text = f"{ONE}{ends}\n.local .align 4 .b32 kept; st.local.b32 [kept], %d0;"
    text += "ld.local.b32 %d0, [kept];"
    found = run(text, 8, left, right, a, b, d, waits="")
    assert np.array_equal(found, d + a.astype(np.float32) @ b.astype(np.float32))


def test_a_matrix_outside_of_shared_memory_is_named() -> None:
    left, right, a, b, d = values()
    ptx_left = Layout(SIZE - 1024, False, 128, 16, 1024)
    memory = np.zeros(SIZE, np.uint8)
    ptx = program(ONE, 4, SIZE // 4, WAIT)
    more = np.array([ptx_left.descriptor, right.descriptor, 1], np.uint64)
    words = np.zeros((4, 128), np.uint32)
    with pytest.raises(Fault, match="of shared memory") as caught:
        launch(ptx, [memory, words, words, held(a), more], block=(128, 1, 1), smem=SIZE)
    assert caught.value.kind == "space"


REST = "{d}, %rd6, %rd7"


@pytest.mark.parametrize(("text", "words"), [
    (f".sync.aligned.m64n12k16.f32.f16.f16 {REST}, %p1, 1, 1, 0, 0;", "12 columns"),
    (f".sync.aligned.m64n8k16.f32.f16.bf16 {REST}, %p1, 1, 1, 0, 0;", "not emulated"),
    (f".sync.aligned.m64n8k16.f32.f16.f16 {REST}, %p1, 1, 1;", "operands"),
    (f".sync.aligned.m64n8k16.f32.f16.f16 {REST}, %p1, 2, 1, 0, 0;", "signs"),
    (f".sp.sync.aligned.m64n8k32.f32.f16.f16 {REST}, %r1, 0, %p1, 1, 1, 0, 0;", "not emulated"),
])  # fmt: skip
def test_other_forms_are_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(PtxError, match=words):
        machine().load(program("wgmma.mma_async" + text, 4, SIZE // 4, WAIT))


def test_tensor_memory_is_refused_in_words() -> None:
    with pytest.raises(PtxError, match="tcgen05.* no tensor memory"):
        machine().load(program("tcgen05.wait::ld.sync.aligned;", 4, SIZE // 4, WAIT))

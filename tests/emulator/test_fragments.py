"""wmma of the emulated GPU: all types, shapes and layouts, against exact arithmetic."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from ptx_fragments import sizes
from ptx_programs import Array, kernel, launch, machine
from ptx_tensors import DTYPES, summed

from ferrule.emulator.machine import Fault, PtxError

WIDE = ("m16n16k16", "m32n8k16", "m8n32k16")
LAYOUTS = [
    ("row", "col", "row"),
    ("col", "row", "col"),
    ("row", "row", "col"),
    ("col",) * 2 + ("row",),
]
REGISTERS = {
    "f16": (8, 8, 8), "bf16": (4, 2, 8), "s8": (2, 1, 4), "u8": (2, 1, 4),
}  # fmt: skip
"""Of A: in shapes of 16, 8 and 32 rows; of B likewise, by its columns."""


def count(of: str, t: str, shape: str) -> int:
    """The registers of a fragment, by the manual's tables."""
    m, n, _ = sizes(shape)
    if of in "cd":
        small = shape.startswith("m8n8")
        return 2 if small else 4 if t == "f16" else 8
    if t in REGISTERS:
        return REGISTERS[t][(16, 8, 32).index(m if of == "a" else n)]
    return {"tf32": 4}.get(t, 1)


def group(of: str, t: str, shape: str) -> str:
    return "{" + ", ".join(f"%{of}{i}" for i in range(count(of, t, shape))) + "}"


def program(
    shape: str,
    t: str,
    c: str,
    d: str,
    by: tuple[str, ...],
    tail: str = "",
    head: str = "",
    space: str = ".global",
) -> str:
    """Loads of A, B and C with strides from parameters, a product, and a store."""
    types = {"a": t, "b": t, "c": c, "d": d}
    declared = [
        f".reg .{'f64' if kind == 'f64' else 'b32'} %{of}<{count(of, kind, shape)}>;"
        for of, kind in types.items()
    ]
    middle = f"{d}.{c}" if t == "f16" else f"{d}.{t}.{t}.{c}"
    lines = [f"ld.param.u64 %rd{i}, [a{i}];" for i in range(4)]
    lines += [f"ld.param.u32 %r{i}, [s{i}];" for i in range(4)]
    lines += [
        f"wmma.load.{of}.sync.aligned.{by[i]}.{shape}{space}.{types[of]} "
        f"{group(of, types[of], shape)}, [%rd{i}], %r{i};"
        for i, of in enumerate("abc")
    ]
    lines.append(
        f"wmma.mma{head}.sync.aligned.{by[0]}.{by[1]}.{shape}.{middle}{tail} "
        + ", ".join(group(of, types[of], shape) for of in "dabc")
        + ";"
    )
    lines.append(
        f"wmma.store.d.sync.aligned.{by[2]}.{shape}{space}.{d} [%rd3], {group('d', d, shape)}, %r3;"
    )
    parameters = ", ".join(
        [f".param .u64 a{i}" for i in range(4)] + [f".param .u32 s{i}" for i in range(4)]
    )
    return kernel("\n".join([*lines, "ret;"]), parameters, "\n".join(declared))


def placed(matrix: Array, by: str, gap: int) -> tuple[Array, int]:
    """The bytes of a matrix in rows or columns with `gap` more elements, and the stride."""
    lines = matrix if by == "row" else matrix.T
    whole = np.zeros((lines.shape[0], lines.shape[1] + gap), matrix.dtype)
    whole[:, : lines.shape[1]] = lines
    return whole, whole.shape[1]


def run(
    ptx: str,
    a: Array,
    b: Array,
    c: Array,
    d: Any,
    by: tuple[str, ...],
    gap: int = 16,
    on: Any = None,
) -> Array:
    """D of a program."""
    given, strides = zip(
        *(placed(x, y, gap) for x, y in zip((a, b, c), by, strict=True)), strict=True
    )
    out, stride = placed(np.zeros(c.shape, d), by[2], gap)
    found = launch(ptx, [*given, out], *strides, stride, on=on)[3]
    lines = found[:, : found.shape[1] - gap]
    return lines if by[2] == "row" else lines.T


def drawn(t: str, shape: tuple[int, int], seed: int) -> Array:
    rng = np.random.default_rng(seed)
    if t[0] in "su":
        limits = np.iinfo(DTYPES[t])
        return rng.integers(limits.min, limits.max + 1, shape).astype(DTYPES[t])
    values = (rng.standard_normal(shape) * 2.0 ** rng.integers(-4, 5, shape)).astype(DTYPES[t])
    if t == "tf32":
        values = (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return values


FLOATS = [
    *[(shape, "f16", c, d) for shape in WIDE for c in ("f16", "f32") for d in ("f16", "f32")],
    *[(shape, "bf16", "f32", "f32") for shape in WIDE],
    ("m16n16k8", "tf32", "f32", "f32"), ("m8n8k4", "f64", "f64", "f64"),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "t", "c", "d"), FLOATS)
def test_floats(shape: str, t: str, c: str, d: str) -> None:
    m, n, k = sizes(shape)
    left, right, add = drawn(t, (m, k), 1), drawn(t, (k, n), 2), drawn(c, (m, n), 3)
    exact = summed(left, right, add, *((53, -1022) if t == "f64" else (24, -126)))
    wanted = np.array([float(x) for x in exact.ravel()]).reshape(m, n)
    for by in LAYOUTS if (c, d) in (("f32", "f32"), ("f64", "f64")) else LAYOUTS[:2]:
        found = run(program(shape, t, c, d, by), left, right, add, DTYPES[d], by)
        if d == "f16":
            assert np.array_equal(found, wanted.astype(np.float32).astype(np.float16))
        else:
            assert [Fraction(float(x)) for x in found.ravel()] == list(exact.ravel())


@pytest.mark.parametrize("shape", WIDE)
@pytest.mark.parametrize("t", ["s8", "u8"])
def test_bytes(shape: str, t: str) -> None:
    m, n, k = sizes(shape)
    left, right = drawn(t, (m, k), 1), drawn(t, (k, n), 2)
    add = np.random.default_rng(3).choice([2**31 - 1, -(2**31), 0, 77], (m, n)).astype(np.int32)
    wanted = left.astype(np.int64) @ right.astype(np.int64) + add
    for by, tail in zip(LAYOUTS, ("", ".satfinite", ".satfinite", ""), strict=True):
        found = run(program(shape, t, "s32", "s32", by, tail), left, right, add, np.int32, by)
        whole = np.clip(wanted, -(2**31), 2**31 - 1) if tail else wanted
        assert np.array_equal(found, whole.astype(np.int32))


def bits(values: Array, each: int) -> Array:
    """Rows of small integers as bytes, the first lowest."""
    parts = (values & ((1 << each) - 1)).reshape(values.shape[0], -1, 8 // each)
    return (parts << (each * np.arange(8 // each))).sum(2).astype(np.uint8)


@pytest.mark.parametrize(("t", "head", "tail"), [
    ("s4", "", ""), ("u4", "", ".satfinite"), ("b1", ".xor.popc", ""), ("b1", ".and.popc", "")
])  # fmt: skip
def test_parts_of_bytes(t: str, head: str, tail: str) -> None:
    each = int(t[1])
    shape = {4: "m8n8k32", 1: "m8n8k128"}[each]
    depth = sizes(shape)[2]
    rng = np.random.default_rng(5)
    least = -8 if t == "s4" else 0
    left, right = rng.integers(least, least + (1 << each), (2, 8, depth))
    add = rng.choice([2**31 - 1, -(2**31), 0, 77], (8, 8)).astype(np.int32)
    product = left @ right.T
    if each == 1:
        pairs = left[:, None], right[None]
        product = (pairs[0] ^ pairs[1] if "xor" in head else pairs[0] & pairs[1]).sum(2)
    wanted = product + add.astype(np.int64)
    wanted = np.clip(wanted, -(2**31), 2**31 - 1) if tail else wanted
    by = ("row", "col", "row")
    ptx = program(shape, t, "s32", "s32", by, tail, head)
    out = np.zeros((8, 24), np.int32)
    strides = depth, depth, 8, 24
    found = launch(ptx, [bits(left, each), bits(right, each), add, out], *strides)[3]
    assert np.array_equal(found[:, :8], wanted.astype(np.int32)) and not found[:, 8:].any()


def test_generic_and_shared_memory_and_strides_that_are_not_said() -> None:
    """Through shared memory, by an address of 32 bits, a symbol, and generic addresses."""
    rng = np.random.default_rng(7)
    a = rng.integers(-4, 5, (16, 16)).astype(np.float16)
    body = """
    ld.param.u64 %rd0, [a0];
    ld.param.u64 %rd1, [a1];
    wmma.load.a.sync.aligned.row.m16n16k16.f16 {%w0,%w1,%w2,%w3,%w4,%w5,%w6,%w7}, [%rd0];
    wmma.load.c.sync.aligned.row.m16n16k16.f16 {%x0,%x1,%x2,%x3}, [%rd0], 16;
    wmma.store.d.sync.aligned.col.m16n16k16.shared.f16 [tile], {%x0,%x1,%x2,%x3};
    mov.u32 %r1, tile;
    wmma.load.b.sync.aligned.col.m16n16k16.shared::cta.f16
        {%y0,%y1,%y2,%y3,%y4,%y5,%y6,%y7}, [%r1+0], 16;
    wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16 {%x0,%x1,%x2,%x3},
        {%w0,%w1,%w2,%w3,%w4,%w5,%w6,%w7}, {%y0,%y1,%y2,%y3,%y4,%y5,%y6,%y7}, {%x0,%x1,%x2,%x3};
    wmma.store.d.sync.aligned.row.m16n16k16.f16 [%rd1], {%x0,%x1,%x2,%x3};
    ret;"""
    registers = ".reg .b32 %w<8>, %x<4>, %y<8>;\n.shared .align 32 .b8 tile[512];"
    ptx = kernel(body, ".param .u64 a0, .param .u64 a1", registers)
    found = launch(ptx, [a, np.zeros((16, 16), np.float16)])[1]
    assert np.array_equal(found, a @ a + a)  # the tile is a turned, and read turned


def faulty(
    offset: int = 0, stride: int = 24, size: int = 2000, block: int = 32, more: str = ""
) -> str:
    """What is said of a load of A."""
    registers = ".reg .b32 %w<8>;"
    body = f"""ld.param.u64 %rd0, [a0]; {more}
    wmma.load.a.sync.aligned.row.m16n16k16.global.f16
        {{%w0,%w1,%w2,%w3,%w4,%w5,%w6,%w7}}, [%rd0+{offset}], {stride};
    ret;"""
    with pytest.raises(Fault) as caught:
        launch(
            kernel(body, ".param .u64 a0", registers), [np.zeros(size, np.uint8)],
            block=(block, 1, 1), on=machine("memory"),
        )  # fmt: skip
    return str(caught.value)


def test_faults_name_the_instruction() -> None:
    name = r"k: wmma\.load\.a\.sync\.aligned\.row\.m16n16k16\.global\.f16"
    assert re.match(rf"{name} of 4 bytes at 0x\w+, ", faulty(size=750))
    assert re.match(rf"{name} at 0x\w+, which is no multiple of 32;", faulty(offset=16))
    assert re.match(rf"{name} at 0x\w+, which is no multiple of 16;", faulty(stride=20))
    assert re.match(rf"{name}: it takes all 32 threads of a warp", faulty(block=16))
    differ = "mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 32; add.u64 %rd0, %rd0, %rd1;"
    assert re.match(rf"{name}: its address and stride must be the same", faulty(more=differ))


@pytest.mark.parametrize("name", [
    "load.a.sync.aligned.row.m16n16k8.f16", "load.a.sync.aligned.col.m8n8k32.s4",
    "load.c.sync.aligned.row.m16n16k16.bf16", "store.d.sync.aligned.row.m16n16k16.global.s8",
    "load.a.sync.aligned.row.m16n16k16.f16.global", "start", "check.32.16",
])  # fmt: skip
def test_other_forms_are_refused_by_name(name: str) -> None:
    with pytest.raises(PtxError, match=re.escape(f"wmma.{name} is not emulated")):
        machine().load(kernel(f"wmma.{name} {{%r0}}, [%rd0];"))
    with pytest.raises(PtxError, match=r"m8n8k4\.rz\.f64\.f64\.f64\.f64 is not emulated"):
        machine().load(
            kernel("wmma.mma.sync.aligned.row.col.m8n8k4.rz.f64.f64.f64.f64 %fd0,%fd1,%fd2,%fd3;")
        )


def test_the_number_of_registers_is_looked_at() -> None:
    with pytest.raises(PtxError, match="a fragment has 2 registers, not 8"):
        machine().load(kernel("wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r0, %r1}, [%rd0];"))

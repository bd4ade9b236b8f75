"""ldmatrix, stmatrix and movmatrix of the emulated GPU against matrices of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_programs import Array, kernel, launch, machine, pointers
from ptx_tensors import warp

from ferrule.emulator.machine import Fault


def fragment(matrix: Array) -> Array:
    """What the lanes have of a matrix of 8 by 8: the elements 2(l%4), 2(l%4)+1 of row l/4."""
    lanes = np.arange(32)
    low, high = (matrix[lanes // 4, 2 * (lanes % 4) + i].astype(np.uint32) for i in (0, 1))
    return np.asarray(low | high << 16)


def tiles(count: int) -> Array:
    rng = np.random.default_rng(count)
    return rng.integers(0, 1 << 16, (count, 8, 8), dtype=np.uint16)


def rows(count: int) -> Array:
    """Row i of matrix j is at another place each time, 16 bytes apart."""
    return np.random.default_rng(7).permutation(64)[: 8 * count] * 16


FORMS = [
    (1, "", ".shared"), (1, ".trans", ""), (2, "", ""), (2, ".trans", ".shared::cta"),
    (4, "", ".shared::cta"), (4, ".trans", ".shared"),
]  # fmt: skip


def copies(space: str) -> str:
    """To shared memory and back; %r1 is the address of the lane's row."""
    to = "" if space else "cvt.u64.u32 %rd5, %r1; cvta.shared.u64 %rd5, %rd5;"
    return f"""
    mov.u32 %r0, %tid.x;
    ld.param.u64 %rd0, [a0]; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd0, %rd0, %rd1;
    ld.global.u32 %r1, [%rd0];
    {to}
    """


def shape(count: int, trans: str) -> str:
    """As documented, or in CUTLASS's order."""
    return f".x{count}{trans}.m8n8" if count == 2 else f".m8n8.x{count}{trans}"


@pytest.mark.parametrize(("count", "trans", "space"), FORMS)
def test_ldmatrix(count: int, trans: str, space: str) -> None:
    given, places = tiles(count), rows(count)
    memory = np.zeros(64 * 8, np.uint16)
    for at, row in zip(places, given.reshape(-1, 8), strict=True):
        memory[at // 2 : at // 2 + 8] = row
    place = "%r1" if space else "%rd5"
    registers = "{" + ", ".join(f"%r{10 + i}" for i in range(count)) + "}"
    body = f"""{copies(space)}
    ld.param.u64 %rd2, [a1]; mul.wide.u32 %rd3, %r0, 32; add.u64 %rd2, %rd2, %rd3;
    shl.b32 %r2, %r0, 5;
    ld.global.v4.b32 {{%r3,%r4,%r5,%r6}}, [%rd2]; st.shared.v4.b32 [%r2], {{%r3,%r4,%r5,%r6}};
    ld.global.v4.b32 {{%r3,%r4,%r5,%r6}}, [%rd2+16]; st.shared.v4.b32 [%r2+16], {{%r3,%r4,%r5,%r6}};
    bar.sync 0;
    ldmatrix.sync.aligned{shape(count, trans)}{space}.b16 {registers}, [{place}];
    ld.param.u64 %rd6, [a2]; mul.wide.u32 %rd7, %r0, 4; add.u64 %rd6, %rd6, %rd7;
    {" ".join(f"st.global.b32 [%rd6+{128 * i}], %r{10 + i};" for i in range(count))}
    ret;"""
    addresses = np.resize(places, 32).astype(np.uint32)
    ptx = kernel(body, pointers(3), before=".extern .shared .align 16 .b8 s[];")
    found = launch(ptx, [addresses, memory, np.zeros((count, 32), np.uint32)], smem=1024)[2]
    for i in range(count):
        assert np.array_equal(found[i], fragment(given[i].T if trans else given[i]))


@pytest.mark.parametrize(("count", "trans", "space"), FORMS)
def test_stmatrix(count: int, trans: str, space: str) -> None:
    given, places = tiles(count), rows(count)
    held = np.stack([fragment(each) for each in given])
    place = "%r1" if space else "%rd5"
    registers = "{" + ", ".join(f"%r{10 + i}" for i in range(count)) + "}"
    body = f"""{copies(space)}
    ld.param.u64 %rd2, [a1]; mul.wide.u32 %rd3, %r0, 4; add.u64 %rd2, %rd2, %rd3;
    {" ".join(f"ld.global.b32 %r{10 + i}, [%rd2+{128 * i}];" for i in range(count))}
    stmatrix.sync.aligned{shape(count, trans)}{space}.b16 [{place}], {registers};
    bar.sync 0;
    ld.param.u64 %rd6, [a2]; mul.wide.u32 %rd7, %r0, 32; add.u64 %rd6, %rd6, %rd7;
    shl.b32 %r2, %r0, 5;
    ld.shared.v4.b32 {{%r3,%r4,%r5,%r6}}, [%r2]; st.global.v4.b32 [%rd6], {{%r3,%r4,%r5,%r6}};
    ld.shared.v4.b32 {{%r3,%r4,%r5,%r6}}, [%r2+16]; st.global.v4.b32 [%rd6+16], {{%r3,%r4,%r5,%r6}};
    ret;"""
    addresses = np.resize(places, 32).astype(np.uint32)
    ptx = kernel(body, pointers(3), before=".extern .shared .align 16 .b8 s[];")
    found = launch(ptx, [addresses, held, np.zeros(512, np.uint16)], smem=1024)[2]
    wanted = np.full(512, 0xCDCD, np.uint16)
    matrices = given.transpose(0, 2, 1) if trans else given
    for at, row in zip(places, matrices.reshape(-1, 8), strict=True):
        wanted[at // 2 : at // 2 + 8] = row
    assert np.array_equal(found, wanted)


def test_movmatrix() -> None:
    (given,) = tiles(1)
    held = fragment(given)[None]
    found = warp("movmatrix.sync.aligned.m8n8.trans.b16 {d}, {0};", [held], np.zeros_like(held))
    assert np.array_equal(found[0], fragment(given.T))


@pytest.mark.parametrize(("address", "kind"), [(8, "misaligned"), (1024, "space")])
def test_rows_are_checked(address: int, kind: str) -> None:
    body = f"mov.u32 %r1, {address}; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r2}}, [%r1]; ret;"
    ptx = kernel(body, before=".extern .shared .align 16 .b8 s[];")
    with pytest.raises(Fault, match=r"ldmatrix\S+ .*0x") as caught:
        launch(ptx, [], smem=1024, on=machine())
    assert caught.value.kind == kind

"""Quick code first, fast code where time goes by: the same results, and one compilation a text."""

from __future__ import annotations

import struct
from time import process_time

import numpy as np
import pytest
from ptx_programs import kernel, launch, machine, pointers

from ferrule.emulator.machine import jit, running

LOOP = """
.shared .u32 s[64];
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, 0; mov.u32 %r4, %r1; mov.u32 %r7, s;
shl.b32 %r8, %r1, 2; add.u32 %r8, %r7, %r8; xor.b32 %r9, %r8, 128;
L: mad.lo.u32 %r4, %r4, 1664525, %r2; and.b32 %r5, %r4, 3; setp.eq.u32 %p1, %r5, 0; @%p1 bra M;
xor.b32 %r4, %r4, %r3; popc.b32 %r6, %r4; mad.lo.u32 %r4, %r4, 7, %r6;
M: st.shared.u32 [%r8], %r4; bar.sync 0; ld.shared.u32 %r6, [%r9]; bar.sync 0;
add.u32 %r4, %r4, %r6; shfl.sync.bfly.b32 %r6, %r4, 5, 31, -1; mad.lo.u32 %r4, %r6, 3, %r4;
add.u32 %r4, %r4, %r1;
add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 9; @%p2 bra L;
ld.param.u64 %rd1, [a0]; mad.lo.u32 %r5, %r2, 64, %r1; mul.wide.u32 %rd2, %r5, 4;
add.u64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r4; ret;
"""


def run(blocks: int = 40) -> list[int]:
    out = np.zeros(64 * blocks, np.uint32)
    text = kernel(LOOP, pointers(1))
    return list(launch(text, [out], grid=(blocks, 1, 1), block=(64, 1, 1))[0])


def test_both_codes_do_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the code changes in the middle of a launch."""
    monkeypatch.setattr(running, "_LEAST", 1e9)
    monkeypatch.setattr(running, "_SECONDS_AN_INSTRUCTION", 0)
    quick = run()
    monkeypatch.setattr(running, "_LEAST", 0)
    monkeypatch.setattr(running, "_FIRST_THREADS", 64)
    assert run() == quick
    assert len(set(quick)) > 1000


def test_a_kernel_that_takes_long_becomes_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_LEAST", 0)
    monkeypatch.setattr(running, "_SECONDS_AN_INSTRUCTION", 0)
    gpu = machine()
    found = gpu.load(kernel(LOOP, pointers(1))).kernels["k"]
    assert not found._runner._tiers.fast
    place = gpu.memory.allocate(4 * 64)
    found.launch((1, 1, 1), (64, 1, 1), smem=0, parameters=struct.pack("<Q", place))
    assert found._runner._tiers.fast


def products(count: int) -> str:
    """A kernel of so many products of matrices, as compilers write them for large tiles."""
    lines = [
        f"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {each}, {{%r1,%r2,%r3,%r4}}, "
        f"{{%r5,%r6}}, {each};"
        for i in range(count)
        for each in ["{" + ",".join(f"%a{4 * (i % 32) + j}" for j in range(4)) + "}"]
    ]
    stored = "ld.param.u64 %rd1, [a0]; st.global.f32 [%rd1], %a1; ret;"
    return kernel("\n".join([*lines, stored]), pointers(1), ".reg .f32 %a<128>;")


@pytest.mark.nightly
def test_the_time_of_fast_code_grows_with_its_length() -> None:
    """Four times the length took LLVM more than ten times as long."""
    seconds = []
    for count in (100, 400):
        found = machine().load(products(count)).kernels["k"]
        symbols = jit.helper_addresses(found._translation.helpers)
        start = process_time()
        jit.compiled(found._translation.text(running.FAST), ("step",), symbols, 1)
        seconds.append(process_time() - start)
    assert seconds[1] < 6 * seconds[0], seconds


def test_a_text_is_compiled_once() -> None:
    run()
    before = running._code.cache_info().misses
    run()
    assert running._code.cache_info().misses == before


def test_constants_where_registers_stand() -> None:
    """Predicates and values that are the same for all lanes, in branches, stores and votes."""
    body = """mov.pred %p1, -1; mov.pred %p2, 0; mov.u32 %r1, 7; mov.u32 %r2, %tid.x;
    ld.param.u64 %rd1, [a0]; mul.wide.u32 %rd2, %r2, 4; add.u64 %rd1, %rd1, %rd2;
    @%p2 bra E; @!%p1 bra E; st.global.u32 [%rd1], 5;
    mov.pred %p3, 1; vote.sync.ballot.b32 %r3, %p3, -1; @%p3 bra L; st.global.u32 [%rd1], 6;
    L: and.b32 %r3, %r3, %r1; st.global.u32 [%rd1], %r3; E: ret;"""
    (found,) = launch(kernel(body, pointers(1)), [np.zeros(32, np.uint32)])
    assert (found == 7).all()


def test_a_text_is_translated_once() -> None:
    """For all machines with the same checks that have its variables at the same places."""
    text = kernel(LOOP, pointers(1))
    first, second = (machine().load(text).kernels["k"] for _ in range(2))
    assert first._translation is second._translation
    assert machine("").load(text).kernels["k"]._translation is not first._translation
    assert machine("memory,init").load(text).kernels["k"]._translation is not first._translation
    gpu = machine()
    text = kernel("ld.global.u32 %r1, [v];\nret;", before=".global .u32 v = 5;")
    first, second = (gpu.load(text).kernels["k"] for _ in range(2))
    assert first._translation is not second._translation

"""Kernels in PTX for `emulated.py`."""

from __future__ import annotations

from typing import Final

_HEADER: Final = ".version 8.8\n.target sm_90a\n.address_size 64\n"
_REGISTERS: Final = ".reg .pred %p<3>;\n.reg .b32 %r<20>;\n.reg .f32 %f<20>;\n.reg .b64 %rd<20>;\n"

SAXPY: Final = f"""{_HEADER}
.visible .entry k(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n)
{{
{_REGISTERS}
ld.param.u64 %rd1, [x];
ld.param.u64 %rd2, [y];
ld.param.f32 %f1, [a];
ld.param.u32 %r5, [n];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %tid.x;
mad.lo.s32 %r4, %r1, %r2, %r3;
setp.ge.s32 %p1, %r4, %r5;
@%p1 bra DONE;
cvta.to.global.u64 %rd3, %rd1;
mul.wide.s32 %rd4, %r4, 4;
add.s64 %rd5, %rd3, %rd4;
cvta.to.global.u64 %rd6, %rd2;
add.s64 %rd7, %rd6, %rd4;
ld.global.f32 %f2, [%rd5];
ld.global.f32 %f3, [%rd7];
fma.rn.f32 %f4, %f2, %f1, %f3;
st.global.f32 [%rd7], %f4;
DONE:
ret;
}}
"""
"""20 instructions of each thread."""


class Matmul:
    """c = a b for square matrices of `size`, in tiles of 16 by 16; and what it executes."""

    def __init__(self, size: int) -> None:
        before = f"""ld.param.u64 %rd1, [a];
ld.param.u64 %rd2, [b];
ld.param.u64 %rd3, [c];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %tid.y;
mov.u32 %r3, %ctaid.x;
mov.u32 %r4, %ctaid.y;
shl.b32 %r5, %r4, 4;
add.u32 %r5, %r5, %r2;
shl.b32 %r6, %r3, 4;
add.u32 %r6, %r6, %r1;
mad.lo.u32 %r7, %r5, {size}, %r1;
mad.lo.u32 %r8, %r2, {size}, %r6;
mul.wide.u32 %rd4, %r7, 4;
add.u64 %rd1, %rd1, %rd4;
mul.wide.u32 %rd4, %r8, 4;
add.u64 %rd2, %rd2, %rd4;
mov.u32 %r9, sa;
mov.u32 %r10, sb;
shl.b32 %r11, %r2, 6;
add.u32 %r12, %r9, %r11;
shl.b32 %r13, %r1, 2;
add.u32 %r14, %r12, %r13;
add.u32 %r15, %r10, %r13;
add.u32 %r16, %r15, %r11;
mov.f32 %f1, 0f00000000;
mov.u32 %r17, 0;"""
        inner = "\n".join(
            f"ld.shared.f32 %f4, [%r12+{4 * i}];\nld.shared.f32 %f5, [%r15+{64 * i}];\n"
            "fma.rn.f32 %f1, %f4, %f5, %f1;"
            for i in range(16)
        )
        loop = f"""ld.global.f32 %f2, [%rd1];
ld.global.f32 %f3, [%rd2];
st.shared.f32 [%r14], %f2;
st.shared.f32 [%r16], %f3;
bar.sync 0;
{inner}
bar.sync 0;
add.u64 %rd1, %rd1, 64;
add.u64 %rd2, %rd2, {64 * size};
add.u32 %r17, %r17, 16;
setp.lt.u32 %p1, %r17, {size};
@%p1 bra LOOP;"""
        after = f"""mad.lo.u32 %r18, %r5, {size}, %r6;
mul.wide.u32 %rd4, %r18, 4;
add.u64 %rd3, %rd3, %rd4;
st.global.f32 [%rd3], %f1;
ret;"""
        once = before.count(";") + after.count(";")
        self.instructions: Final = size * size * (once + size // 16 * loop.count(";"))
        self.text: Final = (
            f"{_HEADER}.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c)\n{{\n"
            f".shared .align 16 .b8 sa[1024];\n.shared .align 16 .b8 sb[1024];\n{_REGISTERS}"
            f"{before}\nLOOP:\n{loop}\n{after}\n}}\n"
        )


def long_kernel(count: int, number: int) -> str:
    """About `count` instructions as a compiler writes them, of which `number` is one."""
    lines = [
        "ld.param.u64 %rd1, [a];", "mov.u32 %r1, %tid.x;", "mul.wide.u32 %rd2, %r1, 4;",
        "add.u64 %rd3, %rd1, %rd2;", f"add.u32 %r2, %r1, {number};",
    ]  # fmt: skip
    turn = 0
    while len(lines) < count - 12:
        turn += 1
        lines += [
            f"ld.global.f32 %f1, [%rd3+{128 * (turn % 8)}];", "mul.f32 %f2, %f1, 0f40490FDB;",
            "fma.rn.f32 %f3, %f2, %f1, %f2;", f"mad.lo.s32 %r3, %r2, {turn}, %r1;",
            "cvt.rn.f32.s32 %f4, %r3;", f"setp.gt.s32 %p1, %r3, {7 * turn};",
            "selp.f32 %f5, %f3, %f4, %p1;", f"@%p1 bra L{turn};", "add.f32 %f5, %f5, %f4;",
            f"L{turn}:", f"st.global.f32 [%rd3+{128 * (turn % 8)}], %f5;", "add.u32 %r2, %r2, 1;",
        ]  # fmt: skip
    return f"{_HEADER}.visible .entry k(.param .u64 a)\n{{\n{_REGISTERS}" + "\n".join(
        [*lines, "ret;\n}\n"]
    )

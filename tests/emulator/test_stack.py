"""Functions that call themselves, and memory that threads take from their stack."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from ptx_programs import kernel, launch, machine, pointers

from ferrule.emulator.machine import Fault, PtxError

OUT = "ld.param.u64 %rd1, [a0]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;\n"
OUT += "add.u64 %rd3, %rd1, %rd2;\n"


def lanes(body: str, before: str, **more: object) -> list[int]:
    """What each of 32 threads leaves in %r9."""
    text = kernel(OUT + body + "\nst.global.u32 [%rd3], %r9;\nret;", pointers(1), before=before)
    (found,) = launch(text, [np.zeros(32, np.uint32)], **more)  # type: ignore[arg-type]
    return [int(each) for each in found]


def called(name: str, argument: str = "%r1", result: str = "%r9") -> str:
    return (
        f"{{ .param .b32 p; .param .b32 s; st.param.b32 [p], {argument};\n"
        f"call (s), {name}, (p); ld.param.b32 {result}, [s]; }}\n"
    )


def function(name: str, body: str, parameters: str = ".param .b32 x") -> str:
    return (
        f".func (.param .b32 r) {name}({parameters})\n{{\n.reg .b32 %r<10>; .reg .b64 %rd<10>;"
        f".reg .pred %p<4>; .reg .b16 %h<4>; .reg .f64 %fd<4>;\n"
        f"ld.param.b32 %r1, [x];\n{body}\nst.param.b32 [r], %r9;\nret;\n}}\n"
    )


FIBONACCI = function(
    "fib",
    "mov.u32 %r9, %r1; setp.lt.u32 %p1, %r1, 2; @%p1 bra E;\nsub.u32 %r2, %r1, 1;\n"
    + called("fib", "%r2", "%r3")
    + "sub.u32 %r2, %r1, 2;\n"
    + called("fib", "%r2", "%r4")
    + "add.u32 %r9, %r3, %r4;\nE:",
)


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@pytest.mark.parametrize("checks", ["", "memory", "memory,sync,race,init"])
@pytest.mark.parametrize("schedule", [None, "random:5"])
def test_recursion(checks: str, schedule: str | None) -> None:
    body = "and.b32 %r1, %r1, 15;\n" + called("fib")
    found = lanes(body, FIBONACCI, on=machine(checks, schedule))
    assert found == [fibonacci(i & 15) for i in range(32)]


def test_two_that_call_each_other() -> None:
    """Also through an address, and through a function that is copied in."""
    before = (
        ".func (.param .b32 r) even(.param .b32 x);\n"
        + function("step", called("even"))
        + function(
            "odd",
            "mov.u32 %r9, 0; setp.eq.u32 %p1, %r1, 0; @%p1 bra E; sub.u32 %r1, %r1, 1;\n"
            + called("step")
            + "E:",
        )
        + function(
            "even",
            "mov.u32 %r9, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra E; sub.u32 %r1, %r1, 1;\n"
            "mov.u64 %rd1, odd; { .param .b32 p; .param .b32 s; st.param.b32 [p], %r1;\n"
            "proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
            "call (s), %rd1, (p), proto; ld.param.b32 %r9, [s]; }\nE:",
        )
    )
    assert lanes(called("even"), before) == [1 - i % 2 for i in range(32)]


def test_what_is_kept_over_a_call() -> None:
    """Predicates, registers of 16 and 64 bits, and a variable whose address is handed on."""
    more = (
        ".local .b32 v[3]; setp.eq.u32 %p1, %r1, 0; mov.u32 %r9, 0; @%p1 bra E;\n"
        "st.local.u32 [v+4], %r1; and.b32 %r2, %r1, 1; setp.ne.u32 %p2, %r2, 0;\n"
        "cvt.u16.u32 %h1, %r1; cvt.rn.f64.u32 %fd1, %r1; sub.u32 %r2, %r1, 1;\n"
        + called("f", "%r2", "%r3")
        + "cvt.u32.u16 %r4, %h1; cvt.rzi.u32.f64 %r5, %fd1; mov.u64 %rd1, v;\n"
        "cvta.local.u64 %rd2, %rd1; ld.u32 %r6, [%rd2+4]; mov.u32 %r8, v;\n"
        "ld.local.u32 %r7, [%r8+4];\n"
        "add.u32 %r9, %r3, %r4; add.u32 %r9, %r9, %r5; add.u32 %r9, %r9, %r6;\n"
        "add.u32 %r9, %r9, %r7; @%p2 add.u32 %r9, %r9, 1000;\nE:"
    )
    wanted = [4 * i * (i + 1) // 2 + 1000 * ((i + 1) // 2) for i in range(32)]
    big = called("f")
    text = kernel(
        OUT + big + "\nst.global.u32 [%rd3], %r9;\nret;", pointers(1), before=function("f", more)
    )
    gpu = machine("memory,init")
    place = gpu.memory.allocate(128)
    chosen = gpu.load(text).kernels["k"]
    data = place.to_bytes(8, "little")
    with pytest.raises(Fault, match=r"the thread's stack is full.*cuCtxSetLimit") as caught:
        chosen.launch((1, 1, 1), (32, 1, 1), smem=0, parameters=data, stack=512)
    assert caught.value.kind == "stack"
    chosen.launch((1, 1, 1), (32, 1, 1), smem=0, parameters=data, stack=4096)
    found = np.ctypeslib.as_array((ctypes.c_uint32 * 32).from_address(place))
    assert found.tolist() == wanted


def test_printing_from_within(capfd: pytest.CaptureFixture[str]) -> None:
    before = (
        ".extern .func (.param .b32 s) vprintf(.param .b64 f, .param .b64 v);\n"
        ".global .b8 text[4] = {37, 117, 10, 0};\n"
        + function(
            "down",
            "mov.u32 %r9, 0; setp.eq.u32 %p1, %r1, 0; @%p1 bra E; sub.u32 %r2, %r1, 1;\n"
            + called("down", "%r2", "%r3")
            + ".local .align 8 .b8 v[8]; st.local.u32 [v], %r1; mov.u64 %rd1, v;\n"
            "cvta.local.u64 %rd1, %rd1; mov.u64 %rd2, text; cvta.global.u64 %rd2, %rd2;\n"
            "{ .param .b64 f; .param .b64 w; .param .b32 s; st.param.b64 [f], %rd2;\n"
            "st.param.b64 [w], %rd1; call (s), vprintf, (f, w); ld.param.b32 %r4, [s]; }\n"
            "add.u32 %r9, %r3, %r4;\nE:",
        )
    )
    body = "mov.u32 %r2, 3; setp.ne.u32 %p1, %r1, 0; mov.u32 %r9, 0; @%p1 bra Z;\n"
    assert lanes(body + called("down", "%r2") + "Z:", before)[0] == 3
    assert capfd.readouterr().out == "1\n2\n3\n"


ALLOCA = """mov.u32 %r9, 0; mov.u32 %r2, 0; stacksave.u64 %rd9;
L: shl.b32 %r3, %r1, 2; add.u32 %r3, %r3, 4; cvt.u64.u32 %rd4, %r3;
alloca.u64 %rd5, %rd4, 16; alloca.u64 %rd6, 4;
and.b64 %rd7, %rd5, 15; cvt.u32.u64 %r5, %rd7; add.u32 %r9, %r9, %r5;
mul.wide.u32 %rd7, %r1, 4; add.u64 %rd7, %rd7, %rd5; st.local.u32 [%rd7], 7;
cvta.local.u64 %rd8, %rd6; st.u32 [%rd8], %r1; ld.local.u32 %r5, [%rd7]; add.u32 %r9, %r9, %r5;
ld.local.u32 %r5, [%rd6]; add.u32 %r9, %r9, %r5;
RESTORE
add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 40; @%p1 bra L;"""


def test_alloca() -> None:
    body = ALLOCA.replace("RESTORE", "stackrestore.u64 %rd9;")
    assert lanes(body, "") == [40 * (7 + i) for i in range(32)]
    with pytest.raises(Fault, match="the thread's stack is full"):
        lanes(ALLOCA.replace("RESTORE", ""), "")
    with pytest.raises(Fault, match="the thread's stack is full"):
        lanes("mov.u64 %rd4, -8; alloca.u64 %rd5, %rd4; mov.u32 %r9, 0;", "")


def test_functions_give_back_what_they_take() -> None:
    """Those that are copied in, and those that call themselves."""
    take = "cvt.u64.u32 %rd1, 100; alloca.u64 %rd2, %rd1, 4; st.local.u32 [%rd2+96], %r1;\n"
    plain = function("plain", take + "ld.local.u32 %r9, [%rd2+96];")
    loop = "mov.u32 %r8, 0; mov.u32 %r9, 0;\nL: " + called("NAME", "%r1", "%r7")
    loop += "add.u32 %r9, %r9, %r7; add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 50; @%p1 bra L;"
    assert lanes(loop.replace("NAME", "plain"), plain) == [50 * i for i in range(32)]
    deep = function(
        "deep",
        take + "mov.u32 %r9, 0; and.b32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 0; @%p1 bra E;\n"
        "sub.u32 %r2, %r1, 1;\n" + called("deep", "%r2", "%r3")
        + "ld.local.u32 %r4, [%rd2+96]; add.u32 %r9, %r3, %r4;\nE:",
    )  # fmt: skip
    wanted = [50 * sum(range(i - i % 4 + 1, i + 1)) for i in range(32)]
    assert lanes(loop.replace("NAME", "deep"), deep) == wanted


@pytest.mark.parametrize(
    "line",
    [
        "alloca.b64 %rd1, 8;",
        "alloca.u64 %rd1;",
        "alloca.u64 %rd1, 8, 3;",
        "alloca.u64 %rd1, 8, 512;",
        "stacksave.u64 5;",
        "stacksave.u64 %rd1, %rd2;",
    ],
)
def test_wrong_forms(line: str) -> None:
    with pytest.raises(PtxError, match="is not emulated"):
        machine().load(kernel(line + " ret;"))


def test_barriers_and_shuffles_inside() -> None:
    """Lanes of one depth meet, whatever the others do."""
    body = (
        "mov.u32 %r9, 0; setp.eq.u32 %p1, %r1, 0; @%p1 bra E; sub.u32 %r2, %r1, 1;\n"
        + called("g", "%r2", "%r3")
        + "shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1; add.u32 %r9, %r4, 1; bar.sync 0;\nE:"
    )
    assert lanes("mov.u32 %r1, 5;\n" + called("g"), function("g", body)) == [5] * 32


def test_ackermann() -> None:
    """Results that are arguments at the same time, and a call as the last thing."""
    body = """ld.param.b32 %r2, [y]; setp.ne.u32 %p1, %r1, 0; @%p1 bra A;
add.u32 %r9, %r2, 1; bra E;
A: sub.u32 %r3, %r1, 1; setp.ne.u32 %p1, %r2, 0; mov.u32 %r4, 1; @!%p1 bra B;
{ .param .b32 p; .param .b32 q; sub.u32 %r5, %r2, 1; st.param.b32 [p], %r1; st.param.b32 [q], %r5;
call (p), ack, (p, q); ld.param.b32 %r4, [p]; }
B: { .param .b32 p; .param .b32 q; .param .b32 s; st.param.b32 [p], %r3; st.param.b32 [q], %r4;
call (s), ack, (p, q); ld.param.b32 %r9, [s]; }
E:"""
    before = function("ack", body, ".param .b32 x, .param .b32 y")
    text = """and.b32 %r2, %r1, 3; { .param .b32 p; .param .b32 q; .param .b32 s;
    st.param.b32 [p], 2; st.param.b32 [q], %r2; call (s), ack, (p, q); ld.param.b32 %r9, [s]; }"""
    assert lanes(text, before) == [2 * (i & 3) + 3 for i in range(32)]


def test_gaps_of_what_is_handed_over() -> None:
    """Nobody writes them, and calls copy them; what the function reads itself is checked."""
    body = """mov.u32 %r9, 5; setp.eq.u32 %p1, %r1, 0; @%p1 bra E; sub.u32 %r2, %r1, 1;
{ .param .align 8 .b8 p[16]; .param .b32 s; st.param.b32 [p], %r2; st.param.b32 [p+8], 1;
call (s), f, (p); ld.param.b32 %r9, [s]; }
E: ld.param.b64 %rd1, [x+8];"""
    before = function("f", body, ".param .align 8 .b8 x[16]")
    call = """{ .param .align 8 .b8 p[16]; .param .b32 s; st.param.b32 [p], 3;
    call (s), f, (p); ld.param.b32 %r9, [s]; }"""
    assert lanes(call, before, on=machine("memory,init")) == [5] * 32
    wrong = before.replace("E: ld", ".local .b32 v; ld.local.b32 %r4, [v];\nE: ld")
    with pytest.raises(Fault, match="which nobody has written"):
        lanes(call, wrong, on=machine("memory,init"))

"""Calls: arguments, results, variables of functions, and calls through addresses."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_programs import kernel, launch, machine, pointers

from ferrule.emulator.machine import Fault, PtxError

ADD = """
.func (.param .b32 r) add(.param .b32 x, .param .b32 y)
{
.reg .b32 %a<4>;
ld.param.b32 %a1, [x];
ld.param.b32 %a2, [y];
add.s32 %a3, %a1, %a2;
st.param.b32 [r], %a3;
ret;
}
"""
OUT = "ld.param.u64 %rd1, [a0]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;\n"
OUT += "add.u64 %rd3, %rd1, %rd2;\n"


def lanes(body: str, before: str, **more: object) -> list[int]:
    """What each of 32 threads leaves in %r9."""
    text = kernel(OUT + body + "\nst.global.u32 [%rd3], %r9;\nret;", pointers(1), before=before)
    (found,) = launch(text, [np.zeros(32, np.uint32)], **more)  # type: ignore[arg-type]
    return [int(each) for each in found]


def test_a_call() -> None:
    body = """{ .param .b32 p; .param .b32 q; .param .b32 s;
    st.param.b32 [p], %r1; st.param.b32 [q], 5;
    call.uni (s), add, (p, q);
    ld.param.b32 %r9, [s]; }"""
    assert lanes(body, ADD) == [i + 5 for i in range(32)]


def test_a_result_that_is_an_argument() -> None:
    """The function has its arguments until it ends, whatever it has written to its result."""
    twice = """
.func (.param .b32 r) f(.param .b32 x)
{
.reg .b32 %a<4>;
st.param.b32 [r], 100;
ld.param.b32 %a1, [x];
ld.param.b32 %a2, [r];
add.s32 %a1, %a1, %a2;
st.param.b32 [r], %a1;
ret;
}
"""
    body = """{ .param .b32 p; st.param.b32 [p], %r1; call (p), f, (p); ld.param.b32 %r9, [p]; }"""
    assert lanes(body, twice) == [i + 100 for i in range(32)]


def test_guarded_calls() -> None:
    body = """setp.lt.u32 %p1, %r1, 4; mov.u32 %r9, 77;
    { .param .b32 p; .param .b32 s;
    st.param.b32 [p], %r1;
    @%p1 call (s), add, (p, p);
    @%p1 ld.param.b32 %r9, [s]; }"""
    assert lanes(body, ADD) == [2 * i if i < 4 else 77 for i in range(32)]


def test_variables_of_functions_are_one_for_all_calls() -> None:
    count = """
.func (.param .b32 r) next()
{
.global .u32 counter = 10;
.reg .b32 %a<2>;
.reg .b64 %b;
mov.u64 %b, counter;
atom.global.add.u32 %a0, [counter], 1;
st.param.b32 [r], %a0;
ret;
}
"""
    call = "{ .param .b32 s; call (s), next, (); ld.param.b32 %r8, [s]; }\n"
    body = "mov.u32 %r9, 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra E;\n"
    body += call + "add.u32 %r9, %r9, %r8;\n" + call + "mad.lo.u32 %r9, %r8, 100, %r9;\nE:"
    assert lanes(body, count)[0] == 1110


def test_shared_variables_of_functions() -> None:
    put = """
.func put(.param .b32 x) { .shared .u32 s[32]; .reg .b32 %a<4>; .reg .b64 %b<4>;
ld.param.b32 %a1, [x]; mov.u32 %a2, %tid.x; mov.u32 %a3, s; mad.lo.u32 %a3, %a2, 4, %a3;
st.shared.u32 [%a3], %a1; ret; }
.func (.param .b32 r) other() { .shared .u32 s[32]; .reg .b32 %a<4>;
mov.u32 %a2, %tid.x; mov.u32 %a3, s; mad.lo.u32 %a3, %a2, 4, %a3;
st.shared.u32 [%a3], 9; ld.shared.u32 %a1, [%a3]; st.param.b32 [r], %a1; ret; }
.func (.param .b32 r) get(.param .b32 p) { .reg .b32 %a<4>;
ld.param.b32 %a1, [p]; ld.shared.u32 %a2, [%a1]; st.param.b32 [r], %a2; ret; }
"""
    body = """{ .param .b32 p; .param .b32 s;
    mul.lo.u32 %r2, %r1, 3; st.param.b32 [p], %r2; call put, (p);
    st.param.b32 [p], %r1; call put, (p);
    call (s), other, ();
    mul.lo.u32 %r2, %r1, 4; st.param.b32 [p], %r2; call (s), get, (p);
    ld.param.b32 %r9, [s]; }"""
    assert lanes(body, put) == list(range(32))


def test_a_variable_and_a_parameter_of_one_name() -> None:
    """A function sees the module's variable where a caller's own has its name."""
    before = (
        ".global .u32 v = 5;\n.func (.param .b32 r) f() { .reg .b32 %a; ld.global.u32 %a, [v];\n"
    )
    before += "st.param.b32 [r], %a; ret; }"
    body = """.local .u32 v; st.local.u32 [v], 7;
    { .param .b32 s; call (s), f, (); ld.param.b32 %r8, [s]; }
    ld.local.u32 %r7, [v]; mad.lo.u32 %r9, %r8, 10, %r7;"""
    assert lanes(body, before)[0] == 57


INDIRECT = (
    ADD
    + """
.func (.param .b32 r) sub(.param .b32 x, .param .b32 y)
{
.reg .b32 %a<4>;
ld.param.b32 %a1, [x];
ld.param.b32 %a2, [y];
sub.s32 %a3, %a1, %a2;
st.param.b32 [r], %a3;
ret;
}
.global .u64 table[2] = {add, sub};
"""
)
CALL = """{ .param .b32 p; .param .b32 q; .param .b32 s;
st.param.b32 [p], %r1; st.param.b32 [q], 3;
proto: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);
call (s), %rd4, (p, q), proto;
ld.param.b32 %r9, [s]; }"""


def test_calls_through_a_table() -> None:
    body = (
        """and.b32 %r2, %r1, 1; mul.wide.u32 %rd4, %r2, 8; mov.u64 %rd5, table;
    add.u64 %rd4, %rd4, %rd5; ld.global.u64 %rd4, [%rd4];\n"""
        + CALL
    )
    assert lanes(body, INDIRECT) == [(i - 3 if i & 1 else i + 3) & 0xFFFFFFFF for i in range(32)]


def test_calls_through_a_register_with_targets() -> None:
    body = "mov.u64 %rd4, sub;\n" + CALL.replace(
        "proto: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);",
        "proto: .calltargets add, sub;",
    )
    assert lanes(body, INDIRECT)[:3] == [0xFFFFFFFD, 0xFFFFFFFE, 0xFFFFFFFF]


def test_a_call_of_no_function() -> None:
    with pytest.raises(Fault, match=r"call of an address that no function has.*thread \(0, 0, 0\)"):
        lanes("mov.u64 %rd4, 64;\n" + CALL, INDIRECT)


WRONG = {
    "{ .param .b32 p; .param .b64 s; call (s), add, (p, p); }": "results of .4. bytes, .* .8.",
    "{ .param .b32 p; .param .b32 s; call (s), add, (p); }": "parameters of .4, 4. bytes, .* .4.",
    "{ .param .b32 p; .param .b32 s; call (s), lost, (p); }": "lost is called and has no body",
    "vprintf %rd1, %rd2;": "vprintf is not emulated",
    "barrier_result.popc.u32 %r1;": "barrier_result.popc.u32 is not emulated",
    "call add;": "parameters of",
    "call (%r1), add, (%r2, %r3);": "calls with registers",
}


@pytest.mark.parametrize("body", WRONG)
def test_wrong_calls(body: str) -> None:
    with pytest.raises(PtxError, match=WRONG[body]):
        machine().load(kernel(body + " ret;", before=ADD))

"""What the body of LLVM IR takes for granted of its parameters, or does with them, without a word
among their attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import CFunction, HostCode
from ferrule.compiler.errors import CompileError
from ferrule.specs import Pointer, Scalar, Signature, Tensor

n = specs.sym_int64(symbol="n")
x, y = Tensor("x", (n,), "float32"), Tensor("y", (n,), "float32")
MORE = """
declare void @llvm.assume(i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def built(body: str, params: Any = (x, y), head: str = "ptr %a, ptr %b") -> fe.Function:
    source = HostCode.from_llvm(f"define void @f({head}) {{\n{body}\nret void\n}}\n{MORE}")
    given = [getattr(each, "data", each) for each in params]
    return compiler.build(Signature("s", params), CFunction("f", given, code=source))


# ---- alignment ----

LOADED = "store <8 x float> %v, ptr %b, align 4"
BODIES = {
    "load": f"%v = load <8 x float>, ptr %a, align 32\n{LOADED}",
    "natural": f"%v = load <8 x float>, ptr %a\n{LOADED}",
    "store": "store <8 x float> zeroinitializer, ptr %a, align 32",
    "distance": f"%p = getelementptr float, ptr %a, i64 8\n%v = load <8 x float>, ptr %p\n{LOADED}",
    "members": f"""%p = getelementptr {{i64, [3 x i64]}}, ptr %a, i64 1, i32 0
        %v = load <8 x float>, ptr %p\n{LOADED}""",
    "on the stack": f"""%s = alloca ptr\nstore ptr %a, ptr %s\n%p = load ptr, ptr %s
        %v = load <8 x float>, ptr %p\n{LOADED}""",
    "assume": 'call void @llvm.assume(i1 true) ["align"(ptr %a, i64 32)]',
    "memcpy": "call void @llvm.memcpy.p0.p0.i64(ptr %b, ptr align 32 %a, i64 64, i1 false)",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_an_alignment_that_the_body_assumes_is_compared(body: str) -> None:
    with pytest.raises(CompileError, match="multiple of 32 bytes .*x is promised at one of 4"):
        built(body)
    built(body, (Tensor("x", (n,), "float32", align=32), y))


def test_less_is_no_promise() -> None:
    built("%v = load float, ptr %a\nstore float %v, ptr %b")
    built("%v = load <8 x float>, ptr %a, align 4\nstore <8 x float> %v, ptr %b, align 4")


def test_code_that_asks_for_the_address_may_choose_by_it() -> None:
    asks = """%q = ptrtoint ptr %a to i64\n%r = and i64 %q, 31\n%c = icmp eq i64 %r, 0
        br i1 %c, label %yes, label %no\nyes:\n"""
    built(f"{asks}{BODIES['load']}\nbr label %no\nno:")
    with pytest.raises(CompileError, match="multiple of 32"):
        built(
            f"%w = load <8 x float>, ptr %a\nstore <8 x float> %w, ptr %b\n{asks}br label %no\nno:"
        )


def test_a_plain_pointer_is_checked_by_the_call() -> None:
    pointer = Pointer("x")
    body = "%v = load <8 x float>, ptr %a\nstore <8 x float> %v, ptr %b, align 4"
    f, out = built(body, (pointer, y)), np.zeros(8, np.float32)
    memory = np.arange(32, dtype=np.float32)
    start = memory.ctypes.data + -memory.ctypes.data % 32
    f(start, out)
    assert out[0] == (start - memory.ctypes.data) // 4
    with pytest.raises(ValueError, match="x is not aligned to 32 bytes"):
        f(start + 4, out)


# ---- writes ----

only_read = Tensor("x", (n,), "float32", read_only=True)
WRITES = {
    "store": "store float 1.0, ptr %a",
    "somewhere": "%i = load i64, ptr %b, align 4\n"
    "%p = getelementptr float, ptr %a, i64 %i\nstore float 1.0, ptr %p",
    "chosen": "%c = icmp eq ptr %a, %b\n%p = select i1 %c, ptr %a, ptr %b\nstore float 1.0, ptr %p",
    "atomic": "%o = atomicrmw add ptr %a, i32 1 seq_cst",
    "memcpy": "call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 64, i1 false)",
}


@pytest.mark.parametrize("body", WRITES.values(), ids=WRITES)
def test_what_is_only_read_is_not_written(body: str) -> None:
    with pytest.raises(CompileError, match="writes through argument #0 of f, .*read_only=True"):
        built(body, (only_read, y))
    built(body)


def test_nor_promised_to_be_written_alone() -> None:
    with pytest.raises(CompileError, match="writes through argument #0"):
        built("", (only_read,), "ptr writeonly %a")
    built("%v = load float, ptr %a\nstore float %v, ptr %b", (only_read, y))


# ---- kinds of numbers ----


@pytest.mark.parametrize(("dtype", "kind"), [("float32", "float"), ("float64", "double")])
def test_numbers_that_it_does_not_take_are_refused(dtype: str, kind: str) -> None:
    f = built("", (Scalar("s", dtype),), f"{kind} nofpclass(nan inf) %a")
    f(1.5)
    for number in (float("nan"), float("inf"), float("-inf")):
        with pytest.raises(ValueError, match=r"s is -?(NaN|inf), .*\(nofpclass\)"):
            f(number)
    built("", (Scalar("s", dtype),), f"{kind} nofpclass(ninf) %a")(float("inf"))


def test_what_nobody_checks_is_refused() -> None:
    for kind, dtype, word in (("float", "float32", "zero"), ("half", "float16", "nan")):
        with pytest.raises(CompileError, match=rf"nofpclass\({word}\)"):
            built("", (Scalar("s", dtype),), f"{kind} nofpclass({word}) %a")

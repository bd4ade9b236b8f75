"""`Callback`: functions of tvm-ffi as C function pointers."""

from __future__ import annotations

import ctypes
import threading
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_objects import c_object

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import (
    Callback,
    CFunction,
    CString,
    HostCode,
    Reference,
    Struct,
    cast,
)
from ferrule.compiler.conventions import Sequence as Steps
from ferrule.compiler.conventions.c.callbacks import MOST_CALLS
from ferrule.specs import Signature
from ferrule.specs.params import Function, Pointer, Scalar, Tensor

N = specs.sym_int(symbol="n")
X = Tensor("x", (N,), "float32")
F = Function("compare")
ITEMS = [X.data, cast(N, "uint64"), cast(4, "uint64")]
FLOATS = ctypes.POINTER(ctypes.c_float)


def sorting(context: bool) -> fe.Function:
    """qsort, or qsort_r with its context."""
    compare = Callback(F, ["pointer"] * 2, returns="int32", context=2 if context else None)
    more = [compare.user_data] if context else []
    name = "qsort_r" if context else "qsort"
    return compiler.build(Signature("sort", [X, F]), CFunction(name, [*ITEMS, compare, *more]))


sort = sorting(False)
sort_r = sorting(True)
each_way = pytest.mark.parametrize("fn", [sort, sort_r], ids=["static", "context"])


def compare(a: Any, b: Any) -> int:
    first, second = (ctypes.cast(each, FLOATS)[0] for each in (a, b))
    return (first > second) - (first < second)


def shuffled(count: int = 20) -> Any:
    return np.random.default_rng(count).permutation(count).astype(np.float32)


@each_way
def test_python_sorts(fn: fe.Function) -> None:
    x = shuffled()
    fn(x, compare)
    np.testing.assert_array_equal(x, np.arange(20))


LESS = """
define i32 @less(ptr %a, ptr %b) {
  %x = load float, ptr %a
  %y = load float, ptr %b
  %l = fcmp olt float %x, %y
  %g = fcmp ogt float %x, %y
  %li = zext i1 %l to i32
  %gi = zext i1 %g to i32
  %r = sub i32 %gi, %li
  ret i32 %r
}
"""


@each_way
def test_a_compiled_function_sorts_without_python(fn: fe.Function, tmp_path: Path) -> None:
    a, b = Pointer("a"), Pointer("b")
    call = CFunction("less", [a, b], returns="int32", code=HostCode.from_llvm(LESS))
    less = compiler.build(Signature("less", [a, b]), call)
    x = shuffled(1000)
    fn(x, less)
    np.testing.assert_array_equal(x, np.arange(1000))
    fn.export_library(str(tmp_path / "sort.so"))
    again = fe.runtime.load_module(str(tmp_path / "sort.so"))
    again.sort(x, lambda a, b: compare(b, a))
    np.testing.assert_array_equal(x, np.arange(1000)[::-1])


class Odd(Exception):
    pass


@each_way
@pytest.mark.parametrize(
    ("wrong", "error", "match"),
    [
        (lambda a, b: 1 // 0, ZeroDivisionError, "division"),
        (lambda a: 1, TypeError, "takes 1 positional argument but 2 were given"),
        (lambda a, b: "x", TypeError, "result of the callback compare, expected int, but got str"),
        (lambda a, b: None, TypeError, "the callback compare, expected int, but got None"),
        (
            lambda a, b: 1 << 31,
            OverflowError,
            "Out of bound result of the callback compare, expected int32, but got 2147483648",
        ),
        (lambda a, b: -(1 << 70), OverflowError, "result of the callback compare, expected an int"),
    ],
)
def test_the_first_error_ends_the_call_and_no_callback_runs_behind_it(
    fn: fe.Function, wrong: Callable[..., Any], error: type[Exception], match: str
) -> None:
    seen: list[object] = []

    def counted(*given: Any) -> Any:
        seen.append(given)
        return wrong(*given) if len(seen) == 3 else compare(*given)

    if error is TypeError and "positional" in match:
        counted = wrong  # type: ignore[assignment]
    with pytest.raises(error, match=match):
        fn(shuffled(), counted)
    assert len(seen) in (0, 3)
    x = shuffled()
    fn(x, compare)
    np.testing.assert_array_equal(x, np.arange(20))


def test_the_traceback_shows_the_line_of_the_callback() -> None:
    def fails(a: Any, b: Any) -> int:
        raise LookupError("here it is")

    with pytest.raises(LookupError, match="here it is") as caught:
        sort(shuffled(), fails)
    assert "in fails" in "".join(traceback.format_exception(caught.value))


def test_nested_calls_have_a_thunk_each_up_to_a_number() -> None:
    depth = 0

    def nested(limit: int, a: Any, b: Any) -> int:
        nonlocal depth
        depth += 1
        if depth < limit:
            sort(shuffled(2), partial(nested, limit))
        return compare(a, b)

    x = shuffled(2)[::-1].copy()
    sort(x, partial(nested, MOST_CALLS))
    assert depth == MOST_CALLS
    depth = 0
    with pytest.raises(RuntimeError, match=f"callback compare is in use by {MOST_CALLS} calls"):
        sort(x, partial(nested, MOST_CALLS + 1))
    depth = 0
    sort(x, partial(nested, MOST_CALLS))


@each_way
def test_threads_sort_at_the_same_time(fn: fe.Function) -> None:
    wrong: list[object] = []

    def work(sign: int) -> None:
        x = shuffled(100)
        fn(x, lambda a, b: sign * compare(a, b))
        if x.tolist() != sorted(x.tolist(), reverse=sign < 0):
            wrong.append(x)

    threads = [threading.Thread(target=work, args=((-1) ** i,)) for i in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


SOURCE = """
#include <stddef.h>
#include <stdint.h>
typedef void* (*all_t)(_Bool, int8_t, uint16_t, int64_t, size_t, float, double, const char*, void*);
void* call_all(all_t f, size_t big) {
    return f(1, -8, 65535, -5, big, 0.5f, 0.25, "text", (void*)16);
}
static int (*kept)(void*, int); static void* user;
void keep(int (*f)(void*, int), void* data) { kept = f; user = data; }
int run(int k) { int all = 0; for (int i = 0; i < k; i++) all += kept(user, i); return all; }
int8_t narrow(int8_t (*f)(void)) { return f(); }
float number(float (*f)(void)) { return f(); }
_Bool flag(_Bool (*f)(void)) { return f(); }
uint64_t wide(uint64_t (*f)(void)) { return f(); }
"""
KINDS = ("bool", "int8", "uint16", "int64", "uint64", "float32", "float64", CString, "pointer")


@pytest.fixture(scope="module")
def code() -> HostCode:
    return HostCode.from_object(c_object(SOURCE))


def built(
    code: HostCode, name: str, params: Sequence[Any], *given: Any, **more: Any
) -> fe.Function:
    return compiler.build(Signature(name, params), CFunction(name, given, code=code, **more))


@pytest.mark.needs_cc
def test_every_type_arrives_and_a_pointer_comes_back(code: HostCode) -> None:
    f, big = Function("f"), Scalar("big", "uint64")
    callback = Callback(f, KINDS, returns="pointer")
    fn = built(code, "call_all", [f, big], callback, big, returns="pointer")
    seen: list[Any] = []

    def record(*given: Any) -> Any:
        seen[:] = given
        return given[-1]

    assert fn(record, 7).value == 16
    assert [getattr(each, "value", each) for each in seen] == [
        True, -8, 65535, -5, 7, 0.5, 0.25, "text", 16,
    ]  # fmt: skip
    assert fn(lambda *_: 32, 7).value == 32 and not fn(lambda *_: None, 7).value
    with pytest.raises(
        OverflowError, match=r"argument #4 of the callback f is 18446744073709551615"
    ):
        fn(record, 2**64 - 1)
    with pytest.raises(TypeError, match="callback f, expected a pointer, but got str"):
        fn(lambda *_: "16", 7)


@pytest.mark.needs_cc
@pytest.mark.parametrize(
    ("name", "dtype", "good", "bad"),
    [
        ("narrow", "int8", -128, [(128, OverflowError), ("x", TypeError)]),
        ("number", "float32", 0.5, [("x", TypeError)]),
        ("flag", "bool", True, [(2, ValueError), (0.5, TypeError)]),
        ("wide", "uint64", 2**64 - 1, [(-1, OverflowError), (2**64, OverflowError)]),
    ],
)
def test_results_of_each_type(
    code: HostCode, name: str, dtype: str, good: Any, bad: list[tuple[Any, type[Exception]]]
) -> None:
    f = Function("f")
    fn = built(code, name, [f], Callback(f, [], returns=dtype), returns=dtype)
    assert fn(lambda: good) == good
    for value, error in bad:
        with pytest.raises(error, match="callback f"):
            fn(lambda value=value: value)


@pytest.mark.needs_cc
def test_a_callback_lives_as_long_as_the_call_with_all_its_steps(code: HostCode) -> None:
    f, k = Function("f"), Scalar("k", "int32")
    callback = Callback(f, ["int32"], returns="int32", context=0, on_error=1000)
    keep = CFunction("keep", [callback, callback.user_data], code=code)
    run = CFunction("run", [k], returns="int32", code=code)
    fn = compiler.build(Signature("f", [f, k]), Steps([keep, run]))
    assert fn(lambda i: i * i, 4) == 14
    with pytest.raises(ZeroDivisionError):
        fn(lambda i: 1 // i, 4)


@pytest.mark.parametrize(
    ("made", "error", "match"),
    [
        (lambda: Callback(compare, []), TypeError, "expected a Function of the signature"),
        (lambda: Callback(Pointer("p"), []), TypeError, "an address of C goes as a Pointer"),
        (lambda: Callback(F, "pointer"), TypeError, "params must be in a list"),
        (lambda: Callback(F, ["float16"]), ValueError, "C has no float16 as a parameter"),
        (lambda: Callback(F, [3]), TypeError, "expected a dtype, 'pointer' or CString, but got 3"),
        (lambda: Callback(F, [], returns="string"), ValueError, "nobody would own the text"),
        (
            lambda: Callback(F, ["pointer"], context=3),
            ValueError,
            r"position of the void\* among its own 2 parameters in C, from 0 on, but got 3",
        ),
        (lambda: Callback(F, []).user_data, ValueError, "say which of its parameters it is"),
        (lambda: Callback(F, [], on_error=1), ValueError, "returns nothing after an error, not 1"),
        (
            lambda: Callback(F, [], returns="int8", on_error=200),
            ValueError,
            "on_error=200 does not fit int8",
        ),
        (
            lambda: CFunction("qsort", [*ITEMS, F]),
            TypeError,
            r"conventions\.Callback\(…\) makes one",
        ),
        (
            lambda: CFunction("qsort", [*ITEMS, compare]),
            TypeError,
            r"conventions\.Callback\(…\) of a",
        ),
    ],
)
def test_what_is_no_callback(made: Callable[[], Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        made()


def test_a_function_of_ctypes_for_a_pointer_says_how_to_cast_it() -> None:
    p = Pointer("p")
    fn = compiler.build(Signature("f", [p]), CFunction("labs", [p]))
    made = ctypes.CFUNCTYPE(None)(lambda: None)
    with pytest.raises(TypeError, match=r"ctypes\.cast\(.*ctypes\.c_void_p\)"):
        fn(made)


@pytest.mark.needs_cc
def test_a_struct_holds_a_callback_and_its_context() -> None:
    """As GSL's `gsl_function`, by its address."""
    source = "struct g { double (*f)(double, void*); void *user; };\n"
    source += "double at(const struct g *g, double x) { return g->f(x, g->user); }"
    f, x = Function("f"), Scalar("x", "float64")
    callback = Callback(f, ["float64"], returns="float64", context=1)
    given = Reference(Struct([callback, callback.user_data]), reads_only=True)
    fn = built(HostCode.from_object(c_object(source)), "at", [f, x], given, x, returns="float64")
    assert fn(lambda value: value * 2, 1.5) == 3
    with pytest.raises(ZeroDivisionError):
        fn(lambda value: 1 / 0, 1.5)


WALK = """
int walk(int depth, int (*enter)(void *, int), int (*leave)(int, void *), void *user) {
  if (depth < 0) return 0;
  if (enter && enter(user, depth)) return 1;
  if (walk(depth - 1, enter, leave, user)) return 1;
  return leave(depth, user);
}
"""


@pytest.mark.needs_cc
@pytest.mark.parametrize("whose", [0, 1])
def test_callbacks_share_the_context_that_a_library_has_for_several(whose: int) -> None:
    """Whichever `user_data` it gets, each calls its own function, also nested."""
    depth, enter, leave = Scalar("depth", "int32"), Function("enter"), Function("leave")
    maybe = specs.Optional("enter", enter)
    first = Callback(maybe, ["int32"], returns="int32", context=0, on_error=1)
    second = Callback(leave, ["int32"], returns="int32", context=1, on_error=1)
    code = HostCode.from_object(c_object(WALK))
    data = (first, second)[whose].user_data
    call = CFunction("walk", [depth, first, second, data], returns="int32", code=code)
    walk = compiler.build(Signature("walk", [depth, maybe, leave]), call)
    seen: list[int] = []

    def entered(at: int) -> int:
        seen.append(at)
        if at == 2:
            walk(0, lambda i: seen.append(100 + i) or 0, lambda i: seen.append(-100 - i) or 0)
        return 0

    assert walk(2, entered, lambda at: seen.append(-at) or 0) == 0
    assert seen == [2, 100, -100, 1, 0, 0, -1, -2]
    seen.clear()
    assert walk(1, None, lambda at: seen.append(-at) or 0) == 0 and seen == [0, -1]
    with pytest.raises(ZeroDivisionError):
        walk(1, lambda at: 0, lambda at: 1 // at)
    with pytest.raises(TypeError, match="expected int, but got str"):
        walk(1, lambda at: "no", lambda at: 0)

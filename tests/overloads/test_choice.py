"""`fe.overload`: which candidate a call runs, from Python and as a function of tvm-ffi."""

from __future__ import annotations

import gc
import inspect
import resource
import sys
import weakref
from typing import Any

import numpy as np
import pytest
import tvm_ffi

import ferrule as fe

CPU = "--target cpu"


def compiled(function: Any, *examples: Any) -> fe.Function:
    return fe.compile(function, *examples, options=CPU)


def vector(dtype: Any = fe.Float32, divisibility: int = 1, **options: Any) -> Any:
    shape = (fe.sym_int(symbol="n", divisibility=divisibility),)
    return fe.make_fake_compact_tensor(dtype, shape, **options)


def first(a):
    return 1


def second(a):
    return 2


def third(a):
    return 3


def with_default(a, k: fe.Int32 = 3):
    return k


def other_default(a, k: fe.Int32 = 4):
    return k


def two(a, k):
    return k


def given_back(a):
    return a


def and_next(a):
    return a, a + 1


def ended(a):
    return None


def renamed(b):
    return 2


@pytest.fixture(scope="module")
def by_dtype() -> fe.Function:
    return fe.overload(
        [compiled(first, vector(fe.Float16)), compiled(second, vector()), compiled(third, "text")]
    )


def test_the_candidate_that_takes_the_arguments_runs(by_dtype):
    assert [by_dtype(np.zeros(3, np.float16)), by_dtype(np.zeros(3, np.float32))] == [1, 2]
    assert by_dtype("x") == 3
    assert by_dtype(a=np.zeros(3, np.float32)) == 2


def test_of_two_that_take_the_arguments_the_first_one_runs():
    narrow, wide = compiled(first, fe.Int8), compiled(second, fe.Int64)
    assert [fe.overload([narrow, wide])(k) for k in (5, 300)] == [1, 2]
    assert [fe.overload([wide, narrow])(k) for k in (5, 300)] == [2, 2]


def bounded(low: int | None, high: int | None) -> Any:
    shape = (fe.sym_int(symbol="n", min=low, max=high),)
    return fe.make_fake_compact_tensor(fe.Float32, shape)


def test_the_first_whose_bounds_hold_runs():
    small, large = compiled(first, bounded(1, 64)), compiled(second, bounded(16, 4096))
    f = fe.overload([small, large], "rms")
    n = fe.sym_int(symbol="n")
    even = fe.compile(third, vector(), options=CPU, requires=[fe.specs.divisible(n, 2)])
    g = fe.overload([small, large, even], "rms")
    for size in (1, 16, 64):
        assert f(np.zeros(size, np.float32)) == 1
    assert f(np.zeros(65, np.float32)) == f(np.zeros(4096, np.float32)) == 2
    assert g(np.zeros(0, np.float32)) == g(np.zeros(4098, np.float32)) == 3
    uncovered = [
        "expected to be at least 1, but got 0",
        "expected to be at least 16, but got 0",
    ]
    with pytest.raises(TypeError, match="(?s)" + ".*".join(uncovered)):
        f(np.zeros(0, np.float32))
    with pytest.raises(
        TypeError, match="(?s)most 64, .* most 4096, .* n % 2 == 0, but got n = 409"
    ):
        g(np.zeros(4099, np.float32))


def test_a_call_that_only_the_checker_finds_right_is_still_the_first_ones():
    """One row has any stride; the second candidate takes it on its hot path."""
    shape = (fe.sym_int(), fe.sym_int())
    rows = compiled(first, fe.make_fake_compact_tensor(fe.Float32, shape, stride_order=(1, 0)))
    strides = (fe.sym_int64(), fe.sym_int64())
    anything = compiled(second, fe.make_fake_tensor(fe.Float32, shape, strides))
    both = fe.overload([rows, anything])
    wide = np.zeros((4, 8), np.float32)
    assert rows(wide[:1, :3]) == 1
    assert [both(wide[:1, :3]), both(wide[:2, :3])] == [1, 2]


@pytest.mark.parametrize("offset", [0, 4])
def test_a_special_case_comes_in_front_of_the_general_one(offset):
    aligned = compiled(first, vector(divisibility=4, assumed_align=16))
    both = fe.overload([aligned, compiled(second, vector())])
    memory = np.zeros(64, np.float32)
    start = -memory.ctypes.data % 16 // 4 + offset // 4
    assert both(memory[start : start + 8]) == (2 if offset else 1)
    assert both(memory[start : start + 7]) == 2


def test_candidates_may_differ_in_the_number_of_arguments():
    both = fe.overload([compiled(first, fe.Int32), compiled(two, fe.Int32, fe.Float32)], "f")
    assert [both(7), both(7, 0.5), both(a=7), both(7, k=1), both(np.int8(7), np.float32(2))] == [
        1,
        0.5,
        1,
        1.0,
        2.0,
    ]
    with pytest.raises(TypeError, match=r"^f\(\) takes 1 or 2 arguments but 3 were given$"):
        both(1, 2, 3)


def test_a_name_that_differs_is_no_keyword():
    both = fe.overload([compiled(first, vector(fe.Float16)), compiled(renamed, vector())])
    assert both(np.zeros(3, np.float32)) == 2
    assert list(inspect.signature(both).parameters) == ["arg0"]
    with pytest.raises(TypeError, match="unexpected keyword argument 'b'"):
        both(b=np.zeros(3, np.float32))


def test_defaults_are_those_of_all_candidates():
    halves, floats = (compiled(with_default, vector(d), 3) for d in (fe.Float16, fe.Float32))
    both = fe.overload([halves, floats])
    assert [both(np.zeros(1, np.float32)), both(np.zeros(1, np.float16), k=8)] == [3, 8]
    message = "the candidates differ in their defaults; give all the same ones"
    with pytest.raises(fe.CompileError, match=message):
        fe.overload([halves, compiled(other_default, vector(), 4)])
    message = "with different numbers of parameters cannot have defaults"
    with pytest.raises(fe.CompileError, match=message):
        fe.overload([halves, compiled(first, vector())])


def weighted(a, b, k: fe.Int32 = 3):
    return 10 + k


def unweighted(a, b=None, k: fe.Int32 = 3):
    return k


def test_a_default_that_a_candidate_refuses_is_the_others():
    """What is left out is None: a tensor it is not."""
    both = fe.overload(
        [compiled(weighted, vector(), vector(), 3), compiled(unweighted, vector(), None, 3)]
    )
    x = np.zeros(1, np.float32)
    assert [both(x), both(x, None, 4), both(x, x, 5), both(x, b=x, k=6)] == [3, 4, 15, 16]


def test_each_candidate_gives_back_what_it_does_alone():
    texts, numbers = compiled(given_back, "x"), compiled(given_back, fe.Float64)
    nothing, pairs = compiled(ended, vector()), compiled(and_next, fe.Int32)
    every = fe.overload([texts, pairs, numbers, nothing], "f")
    assert [every("é"), every(2), every(0.1)] == ["é", (2, 3), 0.1]
    assert every(np.zeros(2, np.float32)) is None
    assert str(inspect.signature(every).return_annotation) == (
        "str | Tuple[int32, int32] | float64 | None"
    )


def test_other_callers_see_one_function(by_dtype):
    generic = tvm_ffi.Function.__call__
    assert generic(by_dtype, np.zeros(3, np.float32)) == 2
    name = "ferrule.test.overloads.by_dtype"
    fe.register_global_func(name, by_dtype)
    assert tvm_ffi.get_global_func(name)("x") == 3


def test_values_that_python_has_to_look_at_reach_the_right_candidate():
    both = fe.overload([compiled(first, fe.Int32), compiled(second, fe.Float32)])
    assert [both(np.int8(3)), both(np.float16(3)), both(True)] == [1, 2, 1]
    either = fe.overload([compiled(first, vector()), compiled(second, (fe.Int32, "x"))])
    assert [either(np.zeros(2, np.float32)), either((1, "a")), either([1, "a"])] == [1, 2, 2]


def test_an_array_that_cannot_be_written_is_taken_where_no_candidate_writes():
    reading = [compiled(first, vector(d)) for d in (fe.Float16, fe.Float32)]
    frozen = np.zeros(3, np.float32)
    frozen.flags.writeable = False
    assert fe.overload(reading)(frozen) == 1


def test_an_overload_is_a_candidate_of_none():
    inner = fe.overload([compiled(first, fe.Int32), compiled(second, "x")])
    outer = fe.overload([inner, compiled(third, vector())], "outer")
    assert [outer(1), outer("x"), outer(np.zeros(1, np.float32))] == [1, 2, 3]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "overload takes compiled functions, but got none"),
        (print, "overload takes compiled functions, but got <built-in function print>"),
        ([print], "overload takes compiled functions, but #0 is <built-in function print>"),
    ],
)
def test_only_compiled_functions_are_joined(given, message):
    with pytest.raises(fe.CompileError) as caught:
        fe.overload(given)
    assert str(caught.value).startswith(message)


def test_a_loaded_function_cannot_be_joined(tmp_path):
    compiled(first, fe.Int32).export_to_c(tmp_path / "first.o")
    loaded = fe.runtime.load_module(tmp_path / "first.o")["first"]
    with pytest.raises(fe.CompileError, match="first was loaded, and is machine code"):
        fe.overload([loaded])


def test_references_and_memory_stay_flat(by_dtype):
    taken, refused = np.zeros(3, np.float32), np.zeros(3)
    long = "long enough to be on the heap"

    def rounds(count: int) -> None:
        for _ in range(count):
            by_dtype(taken)
            by_dtype(long)
            try:
                by_dtype(refused)
            except TypeError:
                pass

    rounds(500)
    gc.collect()
    before = [sys.getrefcount(each) for each in (taken, refused, long)]
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rounds(4000)
    gc.collect()
    assert [sys.getrefcount(each) for each in (taken, refused, long)] == before
    # Each refusal makes four errors of some hundred bytes: lost, they would be megabytes.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 1000


def test_the_code_of_an_overload_goes_with_it():
    both = fe.overload([compiled(first, fe.Int32), compiled(second, "x")])
    engine = weakref.ref(both)
    del both
    gc.collect()
    assert engine() is None

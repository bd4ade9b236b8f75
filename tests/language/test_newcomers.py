"""Programs that somebody writes on the first day, and that mean nothing here: each message pinned.

Each is the whole message, to be read aloud: what is wrong, where, and what to write instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from lowered import lower, vector

import ferrule as fe

WRONG: list[Callable[..., Any]] = []


def wrong(function: Callable[..., Any]) -> Callable[..., Any]:
    """Takes a wrong program of a float32 vector and an int32 into the list."""
    WRONG.append(function)
    return function


@dataclass(frozen=True)
class Pair:
    x: fe.Float32
    y: fe.Float32


@dataclass
class WithConstructor:
    x: float

    def __init__(self, x: float) -> None:
        self.x = x + 1


def times(x, n: fe.Constexpr):
    return x * n


def returns_on_one_way(x):
    if x > 0:
        return x


def returns_two_types(x):
    if x > 0:
        return x
    return fe.Int32(x)


def counted(i: fe.Int32):
    return i + 1


# ---- compile time and run time ----


@wrong
def constexpr_parameter(a, n):
    a[0] = times(a[1], n)


@wrong
def const_expr_of_run_time(a, n):
    if fe.const_expr(n > 3):
        a[0] = 1.0


@wrong
def static_assert_fails(a, n):
    fe.static_assert(a.ndim == 2, "a must be a matrix")


@wrong
def static_assert_of_run_time(a, n):
    fe.static_assert(n > 0)


@wrong
def comprehension_over_range(a, n):
    values = [a[i] for i in range(n)]
    a[0] = values[0]


@wrong
def list_of_a_run_time_length(a, n):
    values = [0.0] * n
    a[0] = values[0]


@wrong
def dict_with_a_run_time_key(a, n):
    a[0] = {1: 2.0, 2: 3.0}[n]


@wrong
def string_with_a_run_time_index(a, n):
    a[0] = len("abc"[n])


@wrong
def set_of_run_time_values(a, n):
    a[0] = len({n, 1})


@wrong
def text_of_a_number(a, n):
    a[0] = len(str(n))


# ---- functions ----


@wrong
def helper_returns_on_one_way(a, n):
    a[0] = returns_on_one_way(a[1])


@wrong
def helper_returns_two_types(a, n):
    a[0] = returns_two_types(a[1])


@wrong
def float_for_an_int_parameter(a, n):
    a[0] = counted(a[1])


@wrong
def too_many_arguments(a, n):
    a[0] = (lambda x: x)(a[0], a[1])


@wrong
def numpy_function_makes_memory(a, n):
    scratch = np.zeros(n)
    a[0] = scratch[0]


@wrong
def function_of_math(a, n):
    a[0] = math.exp(a[1])


@wrong
def calls_a_number(a, n):
    a[0] = n(3)


@wrong
def method_of_an_array(a, n):
    a[0] = a.sum()


@wrong
def sum_of_a_tensor(a, n):
    a[0] = sum(a)


# ---- objects ----


@wrong
def constructor_of_its_own(a, n):
    a[0] = WithConstructor(a[1]).x


@wrong
def sets_a_field(a, n):
    p = Pair(a[0], a[1])
    p.x = 3.0
    a[0] = p.x


@wrong
def leaves_a_field_out(a, n):
    a[0] = Pair(a[0]).x


@wrong
def chooses_between_classes(a, n):
    p = Pair(a[0], a[1]) if n > 3 else (a[0], a[1])
    a[0] = p[0]


@wrong
def changes_the_class(a, n):
    p = Pair(a[0], a[1])
    if n > 3:
        p = (1.0, 2.0)
    a[0] = p[0]


@wrong
def attribute_of_a_number(a, n):
    a[0] = n.value


# ---- numbers ----


@wrong
def literal_too_large(a, n):
    a[0] = n + 3_000_000_000


@wrong
def division_by_zero(a, n):
    a[0] = 1 // 0


@wrong
def compares_with_none(a, n):
    if n == None:  # noqa: E711
        a[0] = 1.0


@wrong
def compares_with_a_string(a, n):
    if n == "one":
        a[0] = 1.0


@wrong
def adds_a_string(a, n):
    a[0] = n + "1"


@wrong
def conversion_to_a_python_type(a, n):
    a[0] = n.to(float)


@wrong
def integer_power(a, n):
    a[0] = n**n


@wrong
def index_of_an_element(a, n):
    a[0] = a[0][1]


@wrong
def assigns_a_size(a, n):
    a.shape[0] = 3


@wrong
def unpacks_a_number(a, n):
    x, y = n
    a[0] = x + y


# ---- loops and statements ----


@wrong
def range_of_a_float(a, n):
    for i in range(n / 2):
        a[i] = 1.0


@wrong
def misspelt_hint(a, n):
    for i in fe.range(n, unrol=4):
        a[i] = 1.0


@wrong
def hint_of_run_time(a, n):
    for i in fe.range(8, unroll=n):
        a[i] = 1.0


@wrong
def sums_up_an_unknown_name(a, n):
    for i in range(n):
        total += a[i]  # noqa: F821
    a[0] = total


@wrong
def reads_the_loop_variable_afterwards(a, n):
    for i in range(n):
        if a[i] > 0:
            break
    a[0] = i


@wrong
def leaves_a_list_in_a_loop(a, n):
    found = []
    for i in range(n):
        if a[i] > 0:
            found.append(i)
            break
    a[0] = len(found)


@wrong
def matches(a, n):
    match n:
        case {"k": 1}:
            a[0] = 1.0


@wrong
def deletes(a, n):
    x = a[0]
    del x


@wrong
def opens_a_file(a, n):
    with open("x") as file:
        file.read()


# ---- errors and printing ----


@wrong
def printf_with_too_few_values(a, n):
    fe.printf("{} {}", n)


@wrong
def text_that_shows_a_tensor(a, n):
    fe.printf(str(a))


@wrong
def printf_of_a_float_as_integer(a, n):
    fe.printf("%d", a[0])


@wrong
def printf_with_names(a, n):
    fe.printf("n = {n}", n)


@fe.kernel
def sets_kernel(a):
    a[0] = 1.0


@wrong
def launch_with_names_of_others(a, n):
    sets_kernel(a).launch(blocks=1, threads=2)


@wrong
def launch_without_a_grid(a, n):
    sets_kernel(a).launch(block=32)


@wrong
def launch_without_keywords(a, n):
    sets_kernel(a).launch(1, 32)


@wrong
def kernel_with_an_index(a, n):
    sets_kernel[1, 32](a)


@wrong
def name_like_its_own(a, n):
    a[0] = name_like_its_ow  # noqa: F821  (what it is about)


@wrong
def length_of_an_f_string(a, n):
    a[0] = len(f"n = {n}")


@wrong
def nonlocal_name(a, n):
    k = n

    def more():
        nonlocal k
        k = k + 1

    more()
    a[0] = k


@wrong
def printf_of_an_f_string(a, n):
    fe.printf(f"n = {n:,}")


@wrong
def printf_with_a_lone_brace(a, n):
    fe.printf("{", n)


@wrong
def printf_to_a_file(a, n):
    fe.printf("{}", n, file=2)


@wrong
def printf_of_a_character(a, n):
    fe.printf("%c", n)


@wrong
def assert_shows_a_tensor(a, n):
    assert a[0] > 0, f"got {a}"


@wrong
def assert_with_a_format(a, n):
    assert n > 0, f"got {n:04d}"


@wrong
def assert_shows_too_much(a, n):
    assert n > 0, f"{n} {n} {n} {n} {n} {n} {n} {n} {n}"


@wrong
def raises_in_every_call(a, n):
    raise ValueError("never call this")


@wrong
def raises_an_unknown_error(a, n):
    if n < 0:
        raise StopIteration


@wrong
def launch_of_no_call(a, n):
    sets_kernel.launch(a, grid=1, block=32)


@pytest.mark.parametrize("function", WRONG, ids=lambda f: f.__name__)
def test_newcomer(function: Callable[..., Any], golden: Any) -> None:
    with pytest.raises(fe.CompileError) as caught:
        lower(function, vector(), fe.Int32(3))
    span = caught.value.diagnostic.span
    assert span is not None
    golden(f"newcomers/{function.__name__}.txt", str(caught.value).replace(span.file, "program.py"))


def test_there_are_fifty() -> None:
    assert len(WRONG) >= 50


def test_a_marked_function_outside_of_a_compiled_one() -> None:
    with pytest.raises(TypeError, match=r"sets_kernel cannot be indexed: .*launch\("):
        sets_kernel[1, 32](np.zeros(1))


def test_launch_of_a_kernel_that_is_not_called() -> None:
    wanted = r"a kernel has no attribute 'launch': write sets_kernel\(\.\.\.\)\.launch\("
    with pytest.raises(AttributeError, match=wanted):
        sets_kernel.launch(np.zeros(1), grid=1, block=32)
    assert not hasattr(sets_kernel, "other")


def typed(a: fe.Tensor, n: fe.Int32, s: fe.Constexpr = 3, d: fe.Float32 = 1.0):
    pass


def test_signatures_have_the_names_that_users_write() -> None:
    with pytest.raises(fe.CompileError) as caught:
        fe.compile(typed, np.zeros(1))
    assert caught.value.diagnostic.expected == (
        "one example for each parameter of typed"
        "(a: 'fe.Tensor', n: 'fe.Int32', s: 'fe.Constexpr' = 3, d: 'fe.Float32' = 1.0)"
    ).replace("'", "")

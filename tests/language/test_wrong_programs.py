"""More wrong programs: what once was no error, or an error of another kind, is pinned here."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lowered import lower, vector

import ferrule as fe

CONSTANT = 3


@dataclass(frozen=True)
class Holder:
    items: list[float]


HOLDER = Holder([])


@fe.kernel
def kernel(a, b):
    b[fe.arch.thread_idx()[0]] = a[0]


@fe.kernel
def taking(a, what):
    a[0] = 1.0


@fe.kernel
def dotted(a):
    a[fe.arch.thread_idx().x] = 1.0


@fe.kernel
def compared(a):
    i = fe.arch.thread_idx()
    if i < a.shape[0]:
        a[i] = 1.0


def helper(x):
    return x + 1


def loop_changes_a_string(a):
    name = "x"
    for _ in range(3):
        name = b"longer"
    a[0] = len(name)


def loop_changes_a_tensor(a, b):
    t = a
    for i in range(3):
        t[i] = 1.0
        t = fe.empty((i,), fe.Float32)


def loop_changes_a_constants_type(a):
    x = fe.Int32(0)
    half = 0.5
    for i in range(3):
        x += i
        half = i
    a[0] = x + half


def loop_grows_a_tuple(a):
    t = (0.0,)
    for i in range(3):
        t = (*t, a[i])
    a[0] = len(t)


def number_or(a):
    a[0] = a[1] or 5.0


def is_true(a):
    if (a[0] > 0) is True:
        a[0] = 1.0


def in_values(a):
    if a[0] in range(3):
        a[0] = 1.0


def tuple_order(a):
    if (a[0], a[1]) < (0, 0):
        a[0] = 1.0


def list_count(a):
    a[0] = [a[0], a[1]].count(3)


def changes_a_dict(a):
    values = {"k": 1.0}
    if a[0] > 0:
        values.update(k=2.0)
    a[0] = values["k"]


def changes_an_inner_list(a):
    values = ([], [])
    for i in range(3):
        values[0].append(i)
    a[0] = len(values[0])


def too_large_for_a_float(a):
    a[0] = a[1] + 10**400


def kernel_of_a_dict(a):
    taking(a, {"x": a[0]}).launch(grid=1, block=1)


def kernel_of_a_closure(a, alpha: fe.Float32):
    taking(a, lambda x: x * alpha).launch(grid=1, block=1)


def stored_kernel_call(a):
    call = kernel(a, a)
    a[0] = 1.0 if call is None else 2.0


def kernel_in_brackets(a):
    kernel[1, 1](a, a)


def decorated_inside(a):
    @fe.kernel
    def inner(x):
        x[0] = 1.0

    inner(a).launch(grid=1, block=1)


def typed_negative_index(a):
    a[fe.Int32(-2)] = 1.0


def constexpr_of_run_time(a):
    for i in fe.range_constexpr(a.shape[0]):
        a[i] = 1.0


def reversed_range(a):
    for i in reversed(range(a.shape[0])):
        a[i] = 1.0


def coordinate_by_name(a):
    dotted(a).launch(grid=1, block=1)


def coordinate_as_number(a):
    compared(a).launch(grid=1, block=1)


def unrolls_too_much(a):
    for _ in fe.range_constexpr(9000):
        for _ in fe.range_constexpr(9000):
            pass


def misspelt_function(a):
    a[0] = fe.math.expp(a[1])


def rebinds_a_tensor(a):
    a = 3.0
    a[0] = 1.0


def sets_an_attribute(a):
    a.shape = 3


def all_of_it(a):
    a[...] = 1.0


def truth_of_whole(a):
    a[:] = 0 < a[:] < 1


def tensor_chosen_at_run_time(a, b):
    c = a if a[0] > 0 else fe.empty((1,), fe.Int32)
    c[0] = 1.0


def nested_recursion(a):
    def f(x):
        return f(x)

    a[0] = f(a[0])


def after_unicode(a):
    a[0] = len("äöü") + undefinierte  # noqa: F821


def assigns_in_an_expression(a):
    if (x := a[0]) > 0:
        a[0] = x


def tries(a):
    try:
        a[0] = 1.0
    finally:
        a[0] = 2.0


def changes_globals(a):
    global CONSTANT
    CONSTANT = 4


def formats(a):
    a[0] = len(f"{a[1]}")


def expression_used_too_late(a):
    doubled = a[:] * 2
    a[0] = 100.0
    a[:] = doubled


def argument_given_twice(a):
    a[0] = helper(**{"x": 1}, x=a[0])  # noqa: PIE804


def changes_an_objects_list(a):
    if a[0] > 0:
        HOLDER.items.append(1.0)
    a[0] = len(HOLDER.items)


ONE: Callable[[], list[Any]] = lambda: [vector()]  # noqa: E731
TWO: Callable[[], list[Any]] = lambda: [vector(), vector()]  # noqa: E731
WRONG: list[tuple[Callable[..., Any], Callable[[], list[Any]]]] = [
    (loop_changes_a_string, ONE),
    (loop_changes_a_tensor, TWO),
    (loop_changes_a_constants_type, ONE),
    (loop_grows_a_tuple, ONE),
    (number_or, ONE),
    (is_true, ONE),
    (in_values, ONE),
    (tuple_order, ONE),
    (list_count, ONE),
    (changes_a_dict, ONE),
    (changes_an_inner_list, ONE),
    (too_large_for_a_float, ONE),
    (kernel_of_a_dict, ONE),
    (kernel_of_a_closure, lambda: [vector(), 1.0]),
    (stored_kernel_call, ONE),
    (kernel_in_brackets, ONE),
    (decorated_inside, ONE),
    (typed_negative_index, ONE),
    (constexpr_of_run_time, ONE),
    (reversed_range, ONE),
    (coordinate_by_name, ONE),
    (coordinate_as_number, ONE),
    (unrolls_too_much, ONE),
    (misspelt_function, ONE),
    (rebinds_a_tensor, ONE),
    (sets_an_attribute, ONE),
    (all_of_it, ONE),
    (truth_of_whole, ONE),
    (tensor_chosen_at_run_time, TWO),
    (nested_recursion, ONE),
    (after_unicode, ONE),
    (assigns_in_an_expression, ONE),
    (tries, ONE),
    (changes_globals, ONE),
    (formats, ONE),
    (expression_used_too_late, ONE),
    (argument_given_twice, ONE),
    (changes_an_objects_list, ONE),
]


@pytest.mark.parametrize(
    ("function", "examples"), WRONG, ids=[function.__name__ for function, _ in WRONG]
)
def test_wrong_program(
    function: Callable[..., Any], examples: Callable[[], list[Any]], golden: Any
) -> None:
    with pytest.raises(fe.CompileError) as caught:
        lower(function, *examples())
    span = caught.value.diagnostic.span
    assert span is not None
    text = str(caught.value).replace(span.file, Path(span.file).name)
    golden(f"errors/{function.__name__}.txt", text)


def test_where_only_a_function_can_stand() -> None:
    for wrong in (functools.partial(helper, 1), len, [].append):
        with pytest.raises(fe.CompileError, match="marks a function, but got"):
            fe.jit(wrong)

    @functools.wraps(helper)
    def wrapper(*args):
        return helper(*args)

    for refused in (fe.jit, fe.kernel, lambda f: fe.compile(f, vector())):
        with pytest.raises(fe.CompileError, match="helper is wrapped by a decorator"):
            refused(wrapper)


def test_a_helper_without_source_is_an_error_where_it_is_called() -> None:
    names: dict[str, Any] = {}
    exec("def sourceless(x):\n    return x + 1\n", names)
    sourceless = names["sourceless"]

    def calls_it(a):
        a[0] = sourceless(a[0])

    with pytest.raises(fe.CompileError, match="the source of 'sourceless' cannot") as caught:
        lower(calls_it, vector())
    assert caught.value.diagnostic.span is not None


def loads(a):
    a.store(a.load() * 0.0)


def takes_a_method(a):
    a[0] = a.size


def takes_a_slice(a):
    a[1:3] = a[0:2]


def rounds_as_in_c(a):
    a[0] = fe.math.rint(a[0])


def takes_a_name_of_numpy(a):
    a[0] = fe.math.arcsin(a[0])


def misspells(a):
    a[0] = fe.math.sqr(a[0])


AS_IN_NUMPY = {
    loads: ("a has the shape (n), which is known only", "a[:] is the whole tensor, as in a[:] = 0"),
    takes_a_method: ("expected a number, but got the method size", "call it: .size()"),
    takes_a_slice: ("slices with bounds are not supported", "loop over range(start, stop)"),
    rounds_as_in_c: ("fe.math has no attribute 'rint'", "did you mean .roundeven?"),
    takes_a_name_of_numpy: ("fe.math has no attribute 'arcsin'", "did you mean .asin?"),
    misspells: ("fe.math has no attribute 'sqr'", "did you mean .sqrt?"),
}


@pytest.mark.parametrize("function", AS_IN_NUMPY, ids=lambda function: function.__name__)
def test_what_is_written_as_in_numpy_or_c(function: Callable[..., Any]) -> None:
    message, hint = AS_IN_NUMPY[function]
    with pytest.raises(fe.CompileError) as caught:
        lower(function, vector())
    assert caught.value.diagnostic.message.startswith(message)
    assert (caught.value.diagnostic.hint or "").startswith(hint)

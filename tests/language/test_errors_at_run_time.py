"""`assert` and `raise` at run time: the class, the words and the line of what a call raises."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pytest
from lowered import lower, text, vector

import ferrule as fe

CPU = "--target cpu"


def compiled(function: Any, *examples: Any) -> Any:
    return fe.compile(function, *examples, options=CPU)


def lines(error: BaseException) -> list[str]:
    """The source lines of a traceback, innermost last."""
    return [frame.line or "" for frame in traceback.extract_tb(error.__traceback__)]


def raises_kind(n: fe.Int32, kind: fe.Constexpr):
    if n == 1:
        raise kind("later")
    if n == 2:
        raise kind


@pytest.mark.parametrize(
    "kind",
    [
        *(Exception, NotImplementedError, OSError, LookupError, ArithmeticError, BufferError),
        *(EOFError, FloatingPointError, NameError, TimeoutError, PermissionError, UnicodeError),
        *(ValueError, RecursionError, SyntaxError, SystemError, ReferenceError, ImportError),
    ],
    ids=lambda kind: kind.__name__,
)
def test_every_error_of_python_can_be_raised(kind: type[Exception]) -> None:
    f = compiled(raises_kind, 1, kind)
    f(0)
    for n, shown in ((1, "later"), (2, "")):
        with pytest.raises(kind) as caught:
            f(n)
        assert type(caught.value) is kind and str(caught.value) == shown


@pytest.mark.parametrize("kind", [KeyboardInterrupt, StopIteration, UserWarning, SystemExit, int])
def test_what_is_no_error_of_python_is_not_raised(kind: Any) -> None:
    with pytest.raises(fe.CompileError, match="this raise is not supported"):
        compiled(raises_kind, 1, kind)


def checked(a, n: fe.Int32):
    assert n > 0, "n must be positive: {}"
    assert n < 100
    a[0] = n
    if n == 50:
        assert n != 50, f"not {n}, after {a.shape[0]} and {[1, 2]}"
    a[1] = n


def test_an_assert_raises_with_its_message_and_line() -> None:
    f, a = compiled(checked, vector(fe.Int32), 1), np.zeros(3, np.int32)
    with pytest.raises(AssertionError) as caught:
        f(a, -1)
    assert str(caught.value) == "n must be positive: {}"
    assert lines(caught.value)[-1] == 'assert n > 0, "n must be positive: {}"'
    assert not a.any()
    with pytest.raises(AssertionError) as caught:
        f(a, 100)
    assert str(caught.value) == "assertion failed: n < 100"
    with pytest.raises(AssertionError) as caught:
        f(a, 50)
    assert str(caught.value) == "not 50, after 3 and [1, 2]"
    assert a.tolist() == [50, 0, 0]
    f(a, 7)
    assert a.tolist() == [7, 7, 0]


@fe.kernel
def checking(a):
    i = fe.arch.block_idx()[0] * 4 + fe.arch.thread_idx()[0]
    if i >= a.shape[0]:
        return
    assert a[i] >= 0, f"element {i} is negative"
    a[i] += 1


def launches(a):
    checking(a).launch(grid=2, block=4)
    a[0] = 100


def test_an_assert_in_a_kernel_names_block_and_thread() -> None:
    f = compiled(launches, vector(fe.Int32))
    with pytest.raises(AssertionError) as caught:
        f(np.array([1, 2, 3, 4, 5, -1], np.int32))
    assert str(caught.value) == ("element 5 is negative in block (1, 0, 0), thread (1, 0, 0)")
    assert lines(caught.value)[-1] == 'assert a[i] >= 0, f"element {i} is negative"'
    a = np.arange(7, dtype=np.int32)
    f(a)
    assert a.tolist() == [100, 2, 3, 4, 5, 6, 7]


def positive(x):
    if x < 0:
        raise ValueError(f"{x} is negative")
    if x == 0:
        raise ZeroDivisionError
    return x * 2


def raises(a, n: fe.Int32):
    a[0] = positive(n)
    for i in range(n):
        if i > 5:
            raise IndexError(f"{i} of {n}")
        a[1] = i


def test_a_raise_raises() -> None:
    f, a = compiled(raises, vector(fe.Int32), 1), np.zeros(2, np.int32)
    with pytest.raises(ValueError, match="^-3 is negative$"):
        f(a, -3)
    with pytest.raises(ZeroDivisionError):
        f(a, 0)
    with pytest.raises(IndexError, match="^6 of 9$"):
        f(a, 9)
    assert a.tolist() == [18, 5]
    f(a, 4)
    assert a.tolist() == [8, 3]


def test_an_assert_that_is_known_to_hold_costs_nothing() -> None:
    def function(a):
        assert a.ndim == 1
        fe.static_assert(a.ndim == 1, "a vector")
        a[0] = 1

    assert len(lower(function, vector(fe.Int32)).host.body.ops) == 3


def whole(a, b, c):
    c[:] = a[:] // b[:] + a[:] % b[:]


def test_division_by_zero_in_whole_tensors_is_a_kernels() -> None:
    v = vector(fe.Int32)
    a, b, c = np.array([7, -7, 5], np.int32), np.array([2, 2, 0], np.int32), np.ones(3, np.int32)
    compiled(whole, v, v, v)(a, b, c)
    assert c.tolist() == [4, -3, 0]


def always(n: fe.Int32):
    raise ValueError(f"bad {n}")


def behind_a_return(n: fe.Int32):
    if n > 0:
        return
    raise ValueError(f"bad {n}")


def known_to_raise(n: fe.Int32):
    if fe.const_expr(True):
        raise ValueError(f"bad {n}")


def bad(n):
    raise ValueError(f"bad {n}")


def in_a_helper(n: fe.Int32):
    bad(n)


def in_words(n: fe.Int32):
    fe.raise_error("ValueError", "bad {}", n)


def with_more_behind(n: fe.Int32):
    total = 0
    for i in range(n, 3):
        total += i
    bad(n)
    return total


@pytest.mark.parametrize(
    "program",
    [always, behind_a_return, known_to_raise, in_a_helper, in_words, with_more_behind],
    ids=lambda program: program.__name__,
)
def test_an_error_with_a_value_of_the_call_is_raised_in_every_call(program: Any) -> None:
    with pytest.raises(ValueError, match=r"^bad -3$"):
        compiled(program, fe.Int32)(-3)


def test_an_assert_that_is_known_to_fail_shows_what_it_would_say() -> None:
    def asserts(n: fe.Int32):
        assert fe.const_expr(False), f"bad {n}"

    with pytest.raises(fe.CompileError, match=r"assertion failed at compile time: f'bad \{n\}'"):
        compiled(asserts, fe.Int32)


def bumped(a):
    a[0] += 1
    return a[0]


def root(p, x):
    while p[x] != x:
        x = p[x]
    return x


def test_the_message_of_an_assertion_that_holds_is_not_evaluated() -> None:
    @fe.jit
    def changes(a: fe.Tensor, n: fe.Int32):
        assert n < 5, f"a0 is {bumped(a)}"
        return n

    a = np.zeros(4, np.int32)
    assert changes(a, 3) == 3
    assert not a.any()
    with pytest.raises(AssertionError, match="^a0 is 1$"):
        changes(a, 7)
    assert a[0] == 1

    @fe.jit
    def divides(n: fe.Int32):
        assert n == 0 or n > 2, f"the rest is {100 % n}"
        return n

    assert divides(0) == 0
    with pytest.raises(AssertionError, match="^the rest is -98$"):
        divides(-99)

    @fe.jit
    def reads(p: fe.Tensor, x: fe.Int32):
        assert x < 0 or root(p, x) == 0, f"{x} has the root {root(p, x)}"
        return x

    tree = np.array([0, 0, 2, 2], np.int32)
    assert (reads(tree, -2_000_000_000), reads(tree, 1)) == (-2_000_000_000, 1)
    with pytest.raises(AssertionError, match="^3 has the root 2$"):
        reads(tree, 3)


def test_the_message_of_a_kernel_s_assertion_is_not_evaluated() -> None:
    @fe.kernel
    def work(a: fe.Tensor, n: fe.Int32):
        assert n < 5, f"a0 is {bumped(a)}"

    @fe.jit
    def launches(a: fe.Tensor, n: fe.Int32):
        work(a, n).launch(grid=1, block=3)

    a = np.zeros(4, np.int32)
    launches(a, 3)
    assert not a.any()
    with pytest.raises(AssertionError, match="^a0 is 1 in block"):
        launches(a, 7)


def test_a_message_that_only_computes_stays_where_it_is() -> None:
    """Numbers that cost nothing need no branch."""

    def computes(n: fe.Int32, m: fe.Int32):
        assert n < 5, f"{n + 1} and {m * 2}"
        return n

    assert "if " not in text(computes, fe.Int32, fe.Int32)

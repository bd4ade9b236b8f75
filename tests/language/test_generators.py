"""`any` and `all` of generators, which go no further than Python's; with what that does."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import run_all_ways
from hypothesis import given, settings
from hypothesis import strategies as st

import ferrule as fe

INT32 = np.iinfo(np.int32)


def noted(a, x):
    """Counts how often it was called."""
    a[0] = a[0] + 1
    return x


def some(a, k: fe.Int32):
    a[1] = any(noted(a, v) > k for v in (1, 2, 3))


def every(a, k: fe.Int32):
    a[1] = all(noted(a, v) > k for v in (3, 2, 1))


def nested(a, k: fe.Int32):
    a[1] = any(all(noted(a, v + w) > k for w in (0, 1)) for v in (1, 2, 3))


def with_conditions(a, k: fe.Int32):
    if any(noted(a, v * w) == k for v in (1, 2, 3) if v != 2 for w in (1, 5)):
        a[1] = 7


def known_in_between(a, k: fe.Int32):
    a[1] = any((noted(a, v) > k if v != 2 else v == 2) for v in (1, 2, 3))


def known_from_the_start(a, k: fe.Int32):
    a[1] = any(noted(a, 1) is None if v else True for v in (0, 1))


def of_nothing(a, k: fe.Int32):
    a[0], a[1] = any(v > k for v in ()), all(v > k for v in ())


def a_list(a, k: fe.Int32):
    a[1] = any([noted(a, v) > k for v in (1, 2, 3)])  # noqa: C419  (the list is what it is about)


PROGRAMS = (
    some, every, nested, with_conditions, known_in_between, known_from_the_start, of_nothing, a_list
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("k", [0, 1, 2, 9])
def test_items_behind_what_decides_do_nothing(program, k) -> None:
    assert run_all_ways(program, (np.zeros(2, np.int32), k)).error is None


def divides(a, k: fe.Int32, n: fe.Int32, m: fe.Int32):
    a[0] = any(12 // v > 1 for v in (k, n, m))
    a[1] = all(12 // v > 1 for v in (k, n, m))


@pytest.mark.parametrize("three", [(1, 0, 0), (12, 0, 1), (12, 12, 0), (0, 1, 1), (1, 2, 0)])
def test_a_fault_behind_what_decides_never_happens(three) -> None:
    run_all_ways(divides, (np.zeros(2, np.int32), *three))


def known(a, k: fe.Int32):
    a[0] = any(1 // v > 0 for v in (1, 0))
    a[1] = k


def test_what_is_known_while_compiling_goes_no_further_either() -> None:
    assert run_all_ways(known, (np.zeros(2, np.int32), 3)).error is None


NUMBERS = st.integers(INT32.min, INT32.max)


@settings(max_examples=20, deadline=None)
@given(st.tuples(NUMBERS, NUMBERS, NUMBERS), st.integers(-3, 3))
def test_pure_conditions_are_as_in_python(three, k) -> None:
    a = np.zeros(2, np.int32)
    COMPARED(a, k, *three)
    assert a.tolist() == [any(v > k for v in three), all(v > k for v in three)]


def compared(a, k: fe.Int32, x: fe.Int32, y: fe.Int32, z: fe.Int32):
    a[0] = any(v > k for v in (x, y, z))
    a[1] = all(v > k for v in (x, y, z))


COMPARED = fe.compile(
    compared,
    fe.make_fake_compact_tensor(fe.Int32, (2,)),
    *[fe.Int32] * 4,
    options="--target cpu",
)

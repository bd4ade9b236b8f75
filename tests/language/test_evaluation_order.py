"""The order in which a compiled function evaluates what it calls with is Python's."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import ferrule as fe

CPU = "--target cpu"


def at(log: fe.Tensor, place: int) -> Any:
    """Notes at the end of the log that this place was evaluated; gives its number."""
    count = log[0] + 1
    log[0] = count
    log[count] = place
    return place


def three(a: Any, b: Any, c: Any = 0) -> Any:
    return a * 100 + b * 10 + c


def chosen(log: fe.Tensor, place: int) -> Any:
    at(log, place)
    return three


@dataclass(frozen=True)
class Sums:
    log: Any

    def of(self, *numbers: Any) -> Any:
        total = 0
        for each in numbers:
            total = total * 10 + each
        return total


def positions(log: fe.Tensor, out: fe.Tensor) -> None:
    out[0] = three(at(log, 1), at(log, 2), at(log, 3))


def keywords(log: fe.Tensor, out: fe.Tensor) -> None:
    out[0] = three(at(log, 1), c=at(log, 3), b=at(log, 2))


def callees(log: fe.Tensor, out: fe.Tensor) -> None:
    out[0] = chosen(log, 9)(at(log, 1), at(log, 2))


def starred(log: fe.Tensor, out: fe.Tensor) -> None:
    out[0] = three(at(log, 1), *(at(log, 2), at(log, 3)))


def starred_behind_keywords(log: fe.Tensor, out: fe.Tensor) -> None:
    out[0] = three(c=at(log, 3), *(at(log, 1), at(log, 2)))  # noqa: B026


def mapped(log: fe.Tensor, out: fe.Tensor) -> None:
    out[0] = three(at(log, 1), c=at(log, 3), b=at(log, 2))


def nested(log: fe.Tensor, out: fe.Tensor) -> None:
    out[0] = three(three(at(log, 1), at(log, 2)), at(log, 3), at(log, 4) + at(log, 5))


def methods(log: fe.Tensor, out: fe.Tensor) -> None:
    out[0] = Sums(log).of(at(log, 1), at(log, 2), at(log, 3))


def operators(log: fe.Tensor, out: fe.Tensor) -> None:
    out[0] = at(log, 1) + at(log, 2) * at(log, 3)


def stores(log: fe.Tensor, out: fe.Tensor) -> None:
    out[at(log, 0)] = at(log, 7)


def tuples(log: fe.Tensor, out: fe.Tensor) -> None:
    out[0], out[at(log, 1)] = at(log, 5), at(log, 6)


def comparisons(log: fe.Tensor, out: fe.Tensor) -> None:
    out[0] = 1 if at(log, 1) < at(log, 2) < at(log, 3) else 0


FUNCTIONS = (
    positions, keywords, callees, starred, starred_behind_keywords, mapped, nested, methods,
    operators, stores, tuples, comparisons,
)  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_order_is_pythons(function: Any) -> None:
    wanted_log, wanted = np.zeros(12, np.int32), np.zeros(2, np.int32)
    function(wanted_log, wanted)
    log, out = np.zeros(12, np.int32), np.zeros(2, np.int32)
    fe.compile(fe.jit(function), log, out, options=CPU)(log, out)
    np.testing.assert_array_equal(log, wanted_log)
    np.testing.assert_array_equal(out, wanted)

"""Functions of every calling convention as pickles, and loaded by many threads."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest

from ferrule.runtime import Function

GIVEN = np.arange(5, dtype=np.float32)

pytestmark = pytest.mark.needs_cc


def value(function: Function) -> Any:
    """What a call gives, without the number of calls that `sequence` tells."""
    numbers = (2.0,) if len(function.signature.params) > 1 else ()
    result = function(GIVEN, *numbers)
    first = result[0] if isinstance(result, tuple) else result
    return np.from_dlpack(first).tolist() if hasattr(first, "shape") else first


def test_a_pickle_holds_the_code_of_others(conventions: list[Function]) -> None:
    again = pickle.loads(pickle.dumps(conventions))
    assert list(map(value, again)) == list(map(value, conventions))
    assert [each.signature for each in again] == [each.signature for each in conventions]


def test_threads_load_and_call_at_once(conventions: list[Function]) -> None:
    data, wanted = pickle.dumps(conventions), list(map(value, conventions))
    start = Barrier(8)

    def values(_: int) -> list[Any]:
        start.wait()
        return list(map(value, pickle.loads(data)))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(values, range(8))) == [wanted] * 8

"""Lists and Dicts that a host function changes."""

from __future__ import annotations

from typing import Any

import pytest
import tvm_ffi
from registered import Token

import ferrule as fe

CPU = "--target cpu"
CALLS = 500
OBJECT = fe.Object["ffi.Object"]

pytestmark = pytest.mark.skipif(
    not hasattr(tvm_ffi, "Dict"), reason="tvm-ffi has no Lists and Dicts before 0.1.9"
)


def compiled(function: Any, *examples: Any) -> fe.Function:
    return fe.compile(function, *examples, options=CPU)


def wrong(function: Any, *examples: Any) -> str:
    with pytest.raises(fe.CompileError) as caught:
        compiled(function, *examples)
    return str(caught.value)


def test_lists_and_dicts_grow_and_change() -> None:
    def host(n: fe.Int32, x: fe.List[fe.Int32], d: fe.Dict[str, float], key):
        made = fe.List()
        for i in range(n):
            made.append((i, key))
            x.append(i)
        x[0] = n
        x[-1] += 10
        d[key] = n
        d[key] += 0.5
        return made, len(x), d[key]

    items, pairs = tvm_ffi.List([7, 8]), tvm_ffi.Dict({})
    made, size, value = compiled(host, 1, None, None, "key")(2, items, pairs, "k")
    assert (made, size, value) == ([(0, "k"), (1, "k")], 4, 2.5)
    assert (list(items), dict(pairs.items())) == ([2, 8, 0, 11], {"k": 2.5})


def test_what_does_not_fit_is_refused() -> None:
    def outside(x: fe.List[int], i: fe.Int64):
        x[i] = 1

    with pytest.raises(IndexError, match="index of x, which has 1 elements, but got 1"):
        compiled(outside, None, 1)(tvm_ffi.List([1]), 1)

    def text(x: fe.List[str]):
        x.append(3)

    assert "the list x has str in it, but gets 3 (int)" in wrong(text, None)

    def array(x: fe.Array[int]):
        x[0] = 3

    assert "an Array and a Map never change" in wrong(array, None)

    def appended(x: fe.Array[int]):
        x.append(3)

    assert "a List is appended to" in wrong(appended, None)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda x: x[1:], "parts of the array x are not taken at run time"),
        (lambda x: x == x, "the array x is compared with =="),
        (lambda x: [*zip(x, x, strict=True)], "zip of the array x, whose length is known at the"),
        (lambda x: list(enumerate(x)), "enumerate of the array x, whose length is known at the"),
    ],
)
def test_what_only_python_does_with_containers_says_so(body: Any, message: str) -> None:
    def host(x: fe.Array[int]):
        return body(x)

    assert message in wrong(host, None)


def test_references_of_what_is_put_in_are_right() -> None:
    def host(x: fe.List, d: fe.Dict, item: OBJECT):
        x.append(item)
        x[0] = item
        d["item"] = item
        d["item"] = (item, x[-1])

    function, token = compiled(host, None, None, None), Token()
    value = tvm_ffi.convert([token])
    before = token.count
    for _ in range(CALLS):
        function(tvm_ffi.List([0]), tvm_ffi.Dict({}), value)
    assert token.count == before

"""Containers that a host function makes: to return them, and to hand them to calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm_ffi
from lowered import vector

import ferrule as fe
from ferrule.specs import params

CPU = "--target cpu"


def compiled(function: Any, *examples: Any) -> fe.Function:
    return fe.compile(function, *examples, options=CPU)


def wrong(function: Any, *examples: Any) -> str:
    with pytest.raises(fe.CompileError) as caught:
        compiled(function, *examples)
    return str(caught.value)


def test_an_array_of_values_of_every_kind() -> None:
    seen: list[Any] = []

    def host(n: fe.Int32, x: fe.Float32, s, a, f):
        inner = fe.Array(n, n + 1)
        f(fe.Array(n, x, True, s, "constant", b"\\0", None, fe.Float16, inner, a))
        return fe.Array(inner, s), fe.Array()

    function = compiled(host, 1, 1.0, "s", vector(), params.Function("f"))
    array = np.arange(3, dtype=np.float32)

    def look(value: Any) -> None:
        *rest, tensor = value
        seen.append((*rest[:7], str(rest[7]), tuple(rest[8]), np.from_dlpack(tensor).tolist()))

    found, empty = function(5, 0.5, "a text that is no small one", array, look)
    assert seen == [
        (5, 0.5, True, "a text that is no small one", "constant", b"\\0", None, "float16", (5, 6),
         [0.0, 1.0, 2.0])
    ]  # fmt: skip
    assert (found, empty) == (((5, 6), "a text that is no small one"), ())


def test_maps_lists_dicts_and_shapes() -> None:
    def host(n: fe.Int64, key):
        by_text = fe.Map({"one": n, "two": 2})
        pairs = fe.Map([(key, by_text), (n, None)])
        return by_text, pairs, fe.List(n, 2.5), fe.Dict({1: key}), fe.Shape((n, 2 * n)), fe.Map()

    by_text, pairs, numbers, by_number, shape, empty = compiled(host, 1, "key")(3, "the key")
    assert dict(by_text) == {"one": 3, "two": 2}
    assert dict(pairs)["the key"] == by_text
    assert list(numbers) == [3, 2.5]
    assert dict(by_number) == {1: "the key"}
    assert isinstance(shape, tvm_ffi.Shape)
    assert tuple(shape) == (3, 6)
    assert len(empty) == 0


def test_a_new_container_is_read_as_a_parameter_is() -> None:
    def host(n: fe.Int32, key):
        numbers = fe.Array(n, n * 2)
        known = fe.Map({"a": n})
        total = fe.Int32(0)
        for v in numbers:
            total += v
        return total, numbers[-1], len(numbers), known.get(key, -1), key in known

    assert compiled(host, 1, "key")(4, "a") == (12, 8, 2, 4, True)
    assert compiled(host, 1, "key")(4, "b") == (12, 8, 2, -1, False)


def test_a_container_made_in_a_loop_is_new_each_time() -> None:
    seen: list[Any] = []

    def host(n: fe.Int32, f):
        for i in range(n):
            f(fe.Array(i, fe.Map({"square": i * i})))

    compiled(host, 1, params.Function("f"))(3, seen.append)
    assert [(i, m["square"]) for i, m in seen] == [(0, 0), (1, 1), (2, 4)]


def test_what_cannot_be_in_a_container_is_refused() -> None:
    def pairs(n: fe.Int64):
        return fe.Map([n])

    assert "a dict, or a list of keys and values, [(key, value), ...]" in wrong(pairs, 1)

    def sizes(x: fe.Float32):
        return fe.Shape((x, 1))

    assert "a run-time float32 is no size" in wrong(sizes, 1.0)

    def keyword(n: fe.Int64):
        return fe.Array(n=n)

    assert "fe.Array takes no argument 'n'" in wrong(keyword, 1)

    def key(s):
        return fe.Map({s: 1})

    assert "cannot be the key of a dict" in wrong(key, "s")

    def nothing(f):
        return fe.Array(f.launch)

    assert "has no attribute 'launch'" in wrong(nothing, params.Function("f"))

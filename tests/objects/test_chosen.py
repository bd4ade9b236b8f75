"""Objects, containers, texts and tensors that branches choose and loops carry."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from lowered import vector
from registered import Token, node_class, use_count

import ferrule as fe
from ferrule.specs import params

CPU = "--target cpu"
CALLS = 2_000
LONG = "a string that is no small one"
FUNCTION = params.Function("f")
BASE = fe.Object["ferrule.test.Base"]
NODE = fe.Object["ferrule.test.Node"]


def compiled(function: Any, *examples: Any) -> fe.Function:
    node_class()
    return fe.compile(function, *examples, options=CPU)


def wrong(function: Any, *examples: Any) -> str:
    with pytest.raises(fe.CompileError) as caught:
        compiled(function, *examples)
    return str(caught.value)


def chain(count: int) -> Any:
    """Nodes with the numbers 1, 2, …, each held by the one before it."""
    node = None
    for number in range(count, 0, -1):
        node = node_class()(number, inner=node)
    return node


# ---- branches ----


def test_texts_are_chosen() -> None:
    def host(k: fe.Int32, name):
        mode = "small"
        if k > 1:
            mode = "large"
        elif k == 1:
            mode = name
        other = name if k > 1 else b"x" if False else "none"
        return mode, len(mode), other, mode == name

    function = compiled(host, 1, "name")
    assert function(0, LONG) == ("small", 5, "none", False)
    assert function(1, LONG) == (LONG, len(LONG), "none", True)
    assert function(2, LONG) == ("large", 5, LONG, False)


def test_containers_and_objects_are_chosen() -> None:
    def host(k: fe.Int32, a: fe.Array[int], b: fe.Array[str], node: NODE):
        x = a if k > 0 else fe.Array(7, 8, 9)
        y = a if k > 0 else b
        z = node.inner if k > 0 else node
        return x[-1], y, z

    function, node = compiled(host, 1, None, None, None), chain(2)
    before = use_count(node), use_count(node.inner)
    number, items, inner = function(1, [1, 2], ["s"], node)
    assert (number, items, inner.number) == (2, (1, 2), 2)
    number, items, same = function(0, [1, 2], ["s"], node)
    assert (number, items, same.same_as(node)) == (9, ("s",), True)
    del inner, same
    assert (use_count(node), use_count(node.inner)) == before


def test_an_object_of_two_types_is_one_of_what_both_are() -> None:
    def host(k: fe.Int32, node: NODE, base: BASE):
        x = node if k > 0 else base
        return x.number

    node, base = chain(1), node_class().__base__(5)
    function = compiled(host, 1, None, None)
    assert (function(1, node, base), function(0, node, base)) == (1, 5)

    def of_one(k: fe.Int32, node: NODE, base: BASE):
        x = node if k > 0 else base
        return x.weight

    assert "has no field or method 'weight'" in wrong(of_one, 1, None, None)


def test_what_may_be_absent_is_chosen() -> None:
    def host(k: fe.Int32, name: str | None):
        x = None
        if k > 0:
            x = "given" if k > 1 else name
        if x is None:
            return "nothing"
        return x

    function = compiled(host, 1, str | None)
    assert [function(k, n) for k in (0, 1, 2) for n in (None, LONG)] == [
        "nothing", "nothing", "nothing", LONG, "given", "given",
    ]  # fmt: skip


def test_tensors_are_chosen() -> None:
    def host(k: fe.Int32, a):
        t = fe.zeros(a.shape, a.dtype)
        if k > 0:
            t = fe.full(a.shape, 3, a.dtype)
        t[:] = t[:] + a[:]
        return t

    def given(k: fe.Int32, a, b):
        t = a if k > 0 else b
        t[0] = 5

    a, b = np.arange(3, dtype=np.float32), np.zeros(3, np.float32)
    function = compiled(host, 1, vector())
    assert np.from_dlpack(function(1, a)).tolist() == [3, 4, 5]
    assert np.from_dlpack(function(0, a)).tolist() == [0, 1, 2]
    function = compiled(given, 1, vector(), vector())
    function(1, a, b)
    assert (a[0], b[0]) == (5, 0)
    a.setflags(write=False)
    with pytest.raises(BufferError, match="read-only"):
        function(0, a, b)


def test_a_helper_gives_back_what_it_chooses() -> None:
    def pick(k, a, b):
        if k > 0:
            return a, "first"
        return b, "second"

    def host(k: fe.Int32, a: fe.Array[int], b: fe.Array[int]):
        x, name = pick(k, a, b)
        return x[0], name

    function = compiled(host, 1, None, None)
    assert [function(k, [1], [2]) for k in (1, 0)] == [(1, "first"), (2, "second")]


def test_kinds_that_differ_are_an_error_where_they_are_read() -> None:
    def texts(k: fe.Int32, a: fe.Array[int]):
        x = "a"
        if k > 0:
            x = a
        return x

    message = wrong(texts, 1, None)
    assert "'x' is the array a on one way and 'a' (str) on the other" in message
    assert "one kind of number, text, object or tensor" in message

    def tensors(k: fe.Int32, a):
        t = fe.empty((k,), fe.Float32)
        if k > 0:
            t = a
        t[0] = 1

    assert "both must have one dtype and, in the same symbols, one shape" in wrong(
        tensors, 1, vector()
    )

    def unread(k: fe.Int32, a: fe.Array[int]):
        x = "a"
        if k > 0:
            x = a
        x = k
        return x

    assert compiled(unread, 1, None)(3, []) == 3


# ---- loops ----


def test_a_list_of_objects_is_walked() -> None:
    def host(head: NODE):
        total, node = head.number, head.inner
        while node is not None:
            total += node.number
            node = fe.as_type(node, NODE).inner
        return total

    def last(head: NODE):
        node = head
        while True:
            following = node.inner
            if following is None:
                break
            node = fe.as_type(following, NODE)
        return node

    head = chain(50)
    nodes = [head]
    while nodes[-1].inner is not None:
        nodes.append(nodes[-1].inner)
    before = [use_count(node) for node in nodes]
    function, end = compiled(host, None), compiled(last, None)
    for _ in range(CALLS // 50):
        assert function(head) == 50 * 51 // 2
        assert end(head).number == 50
    assert [use_count(node) for node in nodes] == before


def test_a_walk_from_a_parameter_ends_where_nothing_follows() -> None:
    def host(head: BASE):
        total = fe.Int64(0)
        node = head
        while node is not None:
            total += node.number
            node = fe.as_type(node, NODE).inner
        return total

    assert compiled(host, None)(chain(4)) == 10


@pytest.mark.parametrize("start", ["", "seven77", LONG])
def test_texts_are_carried(start: str) -> None:
    def host(n: fe.Int32, s, f):
        before = "none"
        for i in range(n):
            before, s = s, f(s, i, result=str)
        return before, s

    function = compiled(host, 1, "s", FUNCTION)
    grow = tvm_ffi.convert(lambda s, i: f"{s}{i}")
    assert function(0, start, grow) == ("none", start)
    assert function(1, start, grow) == (start, f"{start}0")
    assert function(5, start, grow) == (f"{start}0123", f"{start}01234")


def test_names_that_change_places_keep_their_objects() -> None:
    def host(n: fe.Int32, f):
        a, b, c = fe.Array("a"), fe.Array("b"), fe.Array("c")
        for i in range(n):
            a, b, c = b, c, fe.Array(f(i, result=str))
        return a[0], b[0], c[0]

    function = compiled(host, 1, FUNCTION)
    label = tvm_ffi.convert(lambda i: f"{LONG} {i}")
    words = ["a", "b", "c", *(f"{LONG} {i}" for i in range(8))]
    for n in range(8):
        assert list(function(n, label)) == words[n : n + 3]


def test_tensors_are_carried() -> None:
    def swapped(a, n: fe.Int32):
        source, target = fe.empty_like(a), fe.zeros_like(a)
        source[:] = a[:]
        for _ in range(n):
            target[:] = source[:] + 1
            source, target = target, source
        return source

    def made(a, n: fe.Int32):
        t = fe.zeros_like(a)
        for _ in range(n):
            following = fe.empty_like(a)
            following[:] = t[:] + a[:]
            t = following
        return t

    a = np.arange(3, dtype=np.float32)
    function, sums = compiled(swapped, vector(), 1), compiled(made, vector(), 1)
    for n in range(5):
        assert np.from_dlpack(function(a, n)).tolist() == (a + n).tolist()
        assert np.from_dlpack(sums(a, n)).tolist() == (a * n).tolist()


def test_a_part_of_a_tensor_that_a_loop_makes_is_no_longer_there() -> None:
    def host(a, n: fe.Int32):
        t = a
        for _ in range(n):
            t = fe.zeros_like(a)
        a[0] = t[0]

    assert "nobody owns it in the next iteration" in wrong(host, vector(), 1)


def test_loops_that_are_left_early_have_what_they_had_then() -> None:
    def host(items: fe.Array[Any], wanted: fe.Int64, f):
        last = fe.Array("start")
        for item in items:
            number = f(item, result=fe.Int64)
            if number < 0:
                return "negative", last
            last = fe.Array(item)
            if number == wanted:
                break
        return "found", last

    function = compiled(host, None, 1, FUNCTION)
    assert function([1, 2, 3], 2, int) == ("found", (2,))
    assert function([1, -2, 3], 3, int) == ("negative", (1,))
    assert function([], 3, int) == ("found", ("start",))
    with pytest.raises(ValueError, match="invalid literal"):
        function(["1", "x"], 3, int)


def test_unions_are_carried() -> None:
    def host(n: fe.Int32, f):
        x = fe.call(f, 0, result=fe.Int32 | str)
        for i in range(n):
            x = fe.call(f, i + 1, result=fe.Int32 | str)
        return x

    function = compiled(host, 1, FUNCTION)
    values = [1, LONG, "s", 2]
    assert [function(n, lambda i: values[i]) for n in range(4)] == values


def test_what_is_chosen_and_carried_is_released_on_every_way() -> None:
    def host(items: fe.Array[Any], k: fe.Int32, f):
        kept = items[0]
        other = items[0] if k % 2 == 0 else items[1]
        for item in items:
            t = fe.Array(kept, item)
            kept = f(t, result=Any)
            if k == 3:
                raise ValueError("three")
        return kept, other

    def give(array: Any) -> Any:
        if array[1] == "raise":
            raise KeyError("raise")
        return array[1]

    function, callback = compiled(host, None, 1, FUNCTION), tvm_ffi.convert(give)
    token, other = Token(), Token()
    before = token.count, other.count
    for items in ([token, other], [token, other, "raise"], [token, other, LONG]):
        for k in (0, 1, 3) * (CALLS // 30):
            try:
                function(items, k, callback)
            except (KeyError, ValueError):
                pass
    del items
    gc.collect()
    assert (token.count, other.count) == before


def test_tensors_that_are_carried_are_released() -> None:
    def host(t, n: fe.Int32, f):
        kept = f(t, result=pair)
        for _ in range(n):
            kept = f(kept, result=pair)
        return kept

    pair = fe.make_fake_compact_tensor(fe.Float32, (2,))

    tensors = [tvm_ffi.from_dlpack(np.zeros(2, np.float32)) for _ in range(3)]
    order: Iterator[int] = iter(())

    def give(_: Any) -> Any:
        return tensors[next(order)]

    def count(value: Any) -> int:
        return ctypes.c_uint32.from_address(value.__chandle__()).value

    function = compiled(host, vector(), 1, FUNCTION)
    before = [count(tensor) for tensor in tensors]
    for _ in range(CALLS // 10):
        order = iter((0, 1, 2, 0, 1))
        assert function(np.zeros(1, np.float32), 4, give).same_as(tensors[1])
    gc.collect()
    assert [count(tensor) for tensor in tensors] == before


def test_a_tensor_and_a_view_of_it_are_told_by_their_layouts() -> None:
    def divided(a: fe.Tensor, i: fe.Int32):
        b = a
        if i > 0:
            b = fe.flat_divide(a, (2, 2))
        b.fill(0.0)

    with pytest.raises(
        fe.CompileError,
        match=r"tensor a with the layout \(2,2,2,2\):\(4,1,8,2\) on one way and the tensor a with "
        r"the layout \(4,4\):\(4,1\) on the other",
    ):
        fe.compile(divided, np.zeros((4, 4), np.float32), 1)

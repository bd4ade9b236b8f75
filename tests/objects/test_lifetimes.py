"""The references of every object are right after many calls of every kind, errors included."""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any

import pytest
import tvm_ffi
import tvm_ffi.testing
from registered import base_class, node_class, use_count

import ferrule as fe
from ferrule.specs import params

CPU = "--target cpu"
CALLS = 4_000
MADE_IN_CPP = fe.Object["testing.TestObjectDerived"]
NODE = fe.Object["ferrule.test.Node"]


def compiled(function: Any, *examples: Any) -> fe.Function:
    base_class()
    return fe.compile(function, *examples, options=CPU)


class Token:
    """A Python object that tvm-ffi holds as it is."""


def references(token: Token) -> int:
    gc.collect()
    return sys.getrefcount(token)


def test_fields_are_read_and_set_without_a_trace() -> None:
    def host(o: MADE_IN_CPP, other: fe.Array, label):
        o.v_array = other
        o.v_str = label
        kept = o.v_array
        o.v_i64 = len(kept) + len(o.v_str)
        o.v_array = fe.Array(other, o.v_map)
        return o.v_str, kept, o.v_array

    function = compiled(host, None, None, "label")
    o, other, label = _derived(), tvm_ffi.Array([1, 2]), "a label that is no small one"
    before = use_count(o), use_count(other), use_count(o.v_map)
    for _ in range(CALLS):
        found = function(o, other, label)
    assert (found[0], o.v_i64) == (label, 2 + len(label))
    del found
    o.v_array = tvm_ffi.Array([])
    assert (use_count(o), use_count(other), use_count(o.v_map)) == before


def _derived() -> Any:
    return tvm_ffi.testing.create_object(
        "testing.TestObjectDerived",
        v_i64=1,
        v_f64=1.0,
        v_str="s",
        v_map=tvm_ffi.Map({1: 2}),
        v_array=tvm_ffi.Array([]),
    )


def test_new_objects_are_released_or_returned() -> None:
    def host(node, n: fe.Int64):
        for i in range(3):
            made = fe.make_object("testing.TestIntPair", i, n)
            fe.Array(made, node, fe.Map({"made": made, "node": node}))
            if n == 7:
                raise ValueError("seven")
        return fe.make_object("testing.TestIntPair", n, n), fe.List(node, made_of(node))

    def made_of(node: Any) -> Any:
        return fe.Array(node, node.held)

    function = compiled(host, NODE, 1)
    token = Token()
    node = node_class()(1, held=token)
    before = references(token), use_count(node)
    for i in range(CALLS // 10):
        if i % 3 == 0:
            with pytest.raises(ValueError, match="seven"):
                function(node, 7)
        else:
            pair, listed = function(node, i * 8)
            assert (pair.a, listed[1][1]) == (i * 8, token)
    del pair, listed
    assert (references(token), use_count(node)) == before


def test_what_a_class_of_python_keeps_is_tvm_ffis_own_affair() -> None:
    """Setters of such classes may keep a reference for good: compiled code keeps as many."""
    Node, token = node_class(), Token()

    def host(node):
        node.held = node.held

    function = compiled(host, NODE)
    node = Node(1, held=token)

    def kept(call: Any) -> int:
        before = references(token)
        for _ in range(100):
            call(node)
        return references(token) - before

    def in_python(node: Any) -> None:
        node.held = node.held

    assert kept(function) == kept(in_python)


def test_a_method_and_a_callback_that_raise_leak_nothing() -> None:
    def host(node, values: fe.Map[str, NODE], f):
        first = values["the first key"]
        made = fe.Array(first, node.held)
        f(made, first.held)
        return made

    function = compiled(host, NODE, None, params.Function("f"))
    Node, token = node_class(), Token()
    node, first = Node(1, held=token), Node(2, held=token)
    values = tvm_ffi.Map({"the first key": first})

    def refuse(*given: Any) -> None:
        raise KeyError("refused")

    before = references(token), use_count(first), use_count(values)
    for _ in range(CALLS // 10):
        with pytest.raises(KeyError, match="refused"):
            function(node, values, refuse)
        with pytest.raises(KeyError, match="Missing key 'the first key' of values"):
            function(node, {}, refuse)
        function(node, values, lambda *given: None)
    assert (references(token), use_count(first), use_count(values)) == before


def test_a_wrong_element_is_refused_and_released() -> None:
    def host(x: fe.List[NODE], f):
        f()
        return x[0].number

    function = compiled(host, None, params.Function("f"))
    good, bad = node_class()(1), base_class()(1)
    values = tvm_ffi.List([good])

    def exchange() -> None:
        values[0] = bad

    before = use_count(bad)
    for _ in range(CALLS // 10):
        values[0] = good
        with pytest.raises(TypeError, match="but got ferrule.test.Base"):
            function(values, exchange)
    values.clear()
    gc.collect()
    assert use_count(bad) == before


def test_threads_look_a_field_up_at_once() -> None:
    def host(node, n: fe.Int32):
        total = fe.Int64(0)
        for _ in range(n):
            total += node.number + len(node.label)
        return total

    function = compiled(host, NODE, 1)
    node, found = node_class()(3, "label"), []
    start = threading.Barrier(4)

    def call() -> None:
        start.wait()
        found.append(function(node, 500))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [4000] * 4

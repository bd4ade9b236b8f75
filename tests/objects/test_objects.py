"""Objects of registered types: fields, methods, constructors, subclasses, and their errors."""

from __future__ import annotations

from typing import Any

import pytest
import tvm_ffi
from registered import base_class, node_class

import ferrule as fe
from ferrule.specs import params

CPU = "--target cpu"
MADE_IN_CPP, PAIR = fe.Object["testing.TestObjectBase"], fe.Object["testing.TestIntPair"]
BASE, NODE = fe.Object["ferrule.test.Base"], fe.Object["ferrule.test.Node"]


def compiled(function: Any, *examples: Any) -> fe.Function:
    base_class()
    return fe.compile(function, *examples, options=CPU)


def wrong(function: Any, *examples: Any) -> str:
    with pytest.raises(fe.CompileError) as caught:
        compiled(function, *examples)
    return str(caught.value)


# ---- fields ----


def test_fields_of_every_kind_are_read_by_their_names() -> None:
    def host(node):
        limit, inner = node.limit, node.inner
        most = limit if limit is not None else -1
        below = inner.number if inner is not None else -1
        return node.number, node.label, node.weight, node.ready, most, len(node.sizes), below

    function = compiled(host, NODE)
    Base, Node = base_class(), node_class()
    node = Node(3, "a label that is long", 2.5, True, 9, tvm_ffi.Array([1, 2]), Base(4))
    assert function(node) == (3, "a label that is long", 2.5, True, 9, 2, 4)
    assert function(Node(-1)) == (-1, "none", 1.0, False, -1, 0, -1)


def test_an_optional_number_is_chosen_by_a_branch() -> None:
    def host(node):
        limit = node.limit
        if limit is None:
            return "no limit"
        if limit > 5:
            return "far"
        return "near"

    function = compiled(host, NODE)
    Node = node_class()
    assert [function(Node(1, limit=n)) for n in (None, 3, 7)] == ["no limit", "near", "far"]


def test_a_field_is_set_and_read_again() -> None:
    def host(node, label):
        node.number += 5
        node.label = label
        node.weight = node.number
        node.sizes = fe.Array(1, node.number)
        node.inner = node
        node.held = None
        inner = node.inner
        if inner is None:
            return "nothing"
        return inner.label

    function = compiled(host, NODE, "label")
    node = node_class()(2, held=[1])
    assert function(node, "another label") == "another label"
    assert (node.number, node.label, node.weight, list(node.sizes)) == (
        7, "another label", 7.0, [1, 7],
    )  # fmt: skip
    assert node.held is None
    node.inner = None


def test_what_a_field_cannot_hold_is_its_setters_error() -> None:
    def host(node, text):
        node.number = text

    function = compiled(host, NODE, "text")
    with pytest.raises(TypeError, match="int"):
        function(node_class()(1), "text")


def test_a_field_of_any_kind_is_handed_on() -> None:
    seen: list[Any] = []

    def host(node, f):
        f(node.held)

    function = compiled(host, NODE, params.Function("f"))
    for value in (1, "a text that is no small one", None, tvm_ffi.Array([1])):
        function(node_class()(1, held=value), seen.append)
    assert seen[:3] == [1, "a text that is no small one", None]
    assert list(seen[3]) == [1]


def test_a_derived_object_is_taken_and_another_is_refused() -> None:
    def host(base):
        return base.number

    function = compiled(host, BASE)
    assert function(node_class()(8)) == 8
    derived = compiled(host, NODE)
    expected = "expected ferrule.test.Node, but got "
    for value, kind in ((base_class()(1), "ferrule.test.Base"), (3, "int"), (None, "None")):
        with pytest.raises(TypeError, match=expected + kind):
            derived(value)


def test_an_object_in_a_container_is_checked_where_it_is_read() -> None:
    def host(x: fe.List[NODE], f):
        f()
        return x[0].weight

    function = compiled(host, None, params.Function("f"))
    values = tvm_ffi.List([node_class()(1, weight=0.25)])
    assert function(values, lambda: None) == 0.25

    def replace() -> None:
        values[0] = base_class()(1)

    wanted = r"expected Object\(ferrule.test.Node\), but got ferrule.test.Base"
    message = rf"Mismatched type of x\[0\], {wanted}"
    with pytest.raises(TypeError, match=message):
        function(values, replace)


# ---- methods ----


def test_a_method_is_called_with_the_object() -> None:
    import tvm_ffi.testing as registered

    def host(o: MADE_IN_CPP, n: fe.Int64):
        return o.add_i64(n) + o.add_i64(1)

    function = compiled(host, None, 1)
    created = registered.create_object("testing.TestObjectBase", v_i64=12, v_str="s")
    assert function(created, 3) == 28
    created = registered.create_object("testing.TestObjectDerived", v_i64=12, v_f64=1.0,
        v_str="s", v_map=tvm_ffi.Map({}), v_array=tvm_ffi.Array([]))  # fmt: skip
    assert function(created, 3) == 28


# ---- new objects ----


def test_a_class_and_a_type_key_make_objects() -> None:
    Node = node_class()

    def by_class(n: fe.Int64, label):
        return Node(n, label, weight=0.5, sizes=fe.Array(n))

    def by_key(n: fe.Int64, label):
        made = fe.make_object("ferrule.test.Node", n, label=label)
        made.ready = n > 3
        return made, made.number

    found = compiled(by_class, 1, "label")(4, "a label that is long")
    assert isinstance(found, Node)
    assert (found.number, found.label, found.weight) == (4, "a label that is long", 0.5)
    assert list(found.sizes) == [4]
    found, number = compiled(by_key, 1, "label")(4, "short")
    assert (number, found.number, found.label, found.ready) == (4, 4, "short", True)


def test_what_a_constructor_refuses_comes_out() -> None:
    def host(text):
        return fe.make_object("ferrule.test.Base", text)

    with pytest.raises(TypeError, match="ferrule.test.Base"):
        compiled(host, "text")("no number")


def test_either_way_of_a_branch_returns_an_object() -> None:
    Base = base_class()

    def host(n: fe.Int64):
        if n > 3:
            return Base(n, "large")
        return Base(n, "small")

    function = compiled(host, 1)
    assert [function(n).label for n in (1, 5)] == ["small", "large"]


# ---- what is refused while compiling ----


def test_unknown_names_are_refused_with_what_there_is() -> None:
    def field(node):
        return node.numbr

    message = wrong(field, NODE)
    assert "of type ferrule.test.Node has no field or method 'numbr'" in message
    assert "did you mean .number?" in message

    def unset(node):
        node.colour = 1

    assert "no field or method 'colour'" in wrong(unset, NODE)

    def unknown(node):
        return node.number

    message = wrong(unknown, fe.Object["ferrule.test.Nobody"])
    assert "tvm-ffi does not know the type 'ferrule.test.Nobody' here" in message

    def keyword():
        return fe.make_object("ferrule.test.Base", 1, colour=2)

    assert "has no field 'colour' to make an object with" in wrong(keyword)

    def nameless():
        return fe.make_object(3)

    assert "make_object takes the key of a registered type" in wrong(nameless)


def test_a_read_only_field_and_wrong_arguments_are_refused() -> None:
    def write(pair: PAIR):
        pair.a = 1

    assert "the field 'a' of testing.TestIntPair is read-only" in wrong(write, None)

    def count(pair: PAIR):
        return pair.sum(1)

    assert "testing.TestIntPair.sum takes 0 arguments, but got 1" in wrong(count, None)

    def keyword(pair: PAIR):
        return pair.sum(x=1)

    assert "takes no argument 'x'" in wrong(keyword, None)


def test_a_kernel_reads_no_field() -> None:
    def host(a: fe.Tensor, node):
        for i in range(a.shape[0]):
            a[i] = node.number

    a = fe.make_fake_compact_tensor(fe.Int64, (2,))
    import numpy as np

    array = np.zeros(2, np.int64)
    compiled(host, a, NODE)(array, node_class()(6))
    assert array.tolist() == [6, 6]


# ---- examples ----


def test_a_class_and_an_object_are_examples_and_annotations() -> None:
    Base, Node = base_class(), node_class()

    def host(base, node: Any):
        return base.number + node.number

    host.__annotations__["node"] = Node
    function = compiled(host, Base(1), None)
    text = "host(base: Object(ferrule.test.Base), node: Object(ferrule.test.Node)) -> int64"
    assert str(function.signature) == text
    assert str(compiled(host, Base, Node).signature) == text
    assert function(Base(1), Node(2)) == 3

"""Values of any kind: returned, asked for what they are, and made of what is known."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from lowered import vector
from registered import Token, node_class

import ferrule as fe
from ferrule.specs import params

CPU = "--target cpu"
NAME = "ferrule.test.objects.any"
LONG = "a string that is no small one"
_POINTER = ctypes.c_void_p
ITEMS = fe.Array[int] | None
NODE = fe.Object["ferrule.test.Node"]


def compiled(function: Any, *examples: Any) -> fe.Function:
    node_class()
    return fe.compile(function, *examples, options=CPU)


def floats(*values: float) -> Any:
    return tvm_ffi.from_dlpack(np.array(values, np.float32))


@pytest.mark.parametrize(
    "value",
    [1, 2.5, True, None, "abc", LONG, b"\0", b"b" * 20, (1, (2, LONG)), tvm_ffi.dtype("int8")],
)
def test_a_value_of_any_kind_is_returned(value: Any) -> None:
    def element(x: fe.Array[Any]):
        return x[0]

    def parameter(x):
        return x, (x,)

    def called():
        return fe.call(NAME, result=Any), 1

    function = compiled(element, None)
    assert str(function.signature) == "element(x: Array[Any]) -> Any"
    assert function([value]) == value
    assert compiled(parameter, params.AnyValue("x"))(value) == (value, (value,))
    fe.register_global_func(NAME, lambda: value, override=True)
    assert compiled(called)() == (value, 1)


def test_a_field_of_any_kind_is_returned_and_handed_on() -> None:
    def host(x: NODE, f):
        f(x.held)
        return x.held

    got: list[Any] = []
    function = compiled(host, None, params.Function("f"))
    token = Token()
    node = node_class()(1, held=token)
    before = token.count
    assert function(node, tvm_ffi.convert(got.append)) is token
    assert got == [token]
    got.clear()
    gc.collect()
    assert token.count == before


def test_other_functions_get_values_of_any_kind() -> None:
    def inner(x: fe.Array[Any], k: fe.Int32):
        if k > 0:
            return x[1]
        return x[0]

    inner = compiled(inner, None, 1)

    def outer(x: fe.Array[Any], k: fe.Int32):
        return inner(x, k), k

    function, token = compiled(outer, None, 1), Token()
    before = token.count
    found = [function([LONG, token], k) for k in (0, 1) * 100]
    assert found[:2] == [(LONG, 0), (token, 1)]
    found.clear()
    gc.collect()
    assert token.count == before


def test_an_annotation_lets_each_way_return_another_kind(tmp_path: Any) -> None:
    def host(k: fe.Int32, a, name) -> Any:
        if k == 0:
            return name
        if k == 1:
            return k, LONG, (2.5, None), a.dtype
        if k == 2:
            return fe.zeros_like(a)
        if k == 3:
            return
        return k

    function, a = compiled(host, 1, vector(), "name"), np.ones(2, np.float32)
    function.export_to_c(tmp_path / "host.o")
    for each in (function, fe.runtime.load_module(tmp_path / "host.o").host):
        assert each(0, a, LONG) == LONG
        assert each(1, a, "") == (1, LONG, (2.5, None), tvm_ffi.dtype("float32"))
        assert np.from_dlpack(each(2, a, "")).tolist() == [0, 0]
        assert [each(k, a, "") for k in (3, 4)] == [None, 4]

    def given(a) -> Any:
        return a, 1

    same, one = compiled(given, vector())(a)
    assert one == 1 and same.data_ptr() == a.ctypes.data

    def part_of_it(a) -> Any:
        return fe.local_tile(a, (2,), (0,)), 1

    with pytest.raises(fe.CompileError, match="which has no object of its own"):
        compiled(part_of_it, vector())


def test_what_may_be_absent_or_of_two_kinds_is_returned() -> None:
    def host(x: fe.Int32 | None, u: fe.Int32 | str):
        return x, u

    function = compiled(host, fe.Int32 | None, fe.Int32 | str)
    assert function(None, LONG) == (None, LONG)
    assert function(3, 4) == (3, 4)


def test_a_tensor_that_is_lent_for_the_call_is_not_returned() -> None:
    def host(x):
        return x

    function = compiled(host, params.AnyValue("x"))
    value, error = (ctypes.c_int64 * 4)(), _POINTER()
    value[:2] = [7, 1 << 20]  # a DLTensor*, which is only handed on
    library = ctypes.CDLL(None)
    result = ctypes.addressof(value) + 16
    call = library.TVMFFIFunctionCall
    call.argtypes = (_POINTER, _POINTER, ctypes.c_int32, _POINTER)
    assert call(function.__chandle__(), ctypes.addressof(value), 1, result) == -1
    library.TVMFFIErrorMoveFromRaised(ctypes.byref(error))
    assert error.value is not None
    library.TVMFFIObjectDecRef(error)
    assert value[2] == 0


# ---- as_type ----


def test_a_value_is_what_it_must_be() -> None:
    def host(x: fe.Array[Any], node: NODE):
        number, text, t = fe.as_type(x[0], fe.Int8), fe.as_type(x[1], str), fe.as_type(x[2], pair)
        items, inner = fe.as_type(x[3], fe.Array[str]), fe.as_type(node.inner, NODE)
        t[0] = t[1] + number
        return text == "abc", len(items), inner.weight, fe.as_type(x[0], float), t

    pair = fe.make_fake_compact_tensor(fe.Float32, (2,))
    function, t = compiled(host, None, None), floats(1, 2)
    node = node_class()(1, inner=node_class()(2, weight=7.5))
    found = function([3, "abc", t, ["a", "b"]], node)
    assert found[:4] == (True, 2, 7.5, 3.0)
    assert found[4].same_as(t)
    assert np.from_dlpack(t).tolist() == [5, 2]


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("x", TypeError, "Mismatched type of x[0], expected int8, but got str"),
        (None, TypeError, "Mismatched type of x[0], expected int8, but got None"),
        (300, OverflowError, "Out of bound x[0], expected int8, but got 300"),
    ],
)
def test_a_value_that_is_not_what_it_must_be(
    value: Any, error: type[Exception], message: str
) -> None:
    def host(x: fe.Array[Any]):
        return fe.as_type(x[0], fe.Int8)

    with pytest.raises(error) as caught:
        compiled(host, None)([value])
    assert message in str(caught.value)


def test_a_tensor_in_a_field_is_checked() -> None:
    def host(node: NODE):
        return fe.as_type(node.held, anything).shape[0]

    anything = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(symbol="m"),))

    function = compiled(host, None)
    assert function(node_class()(1, held=floats(1, 2, 3))) == 3
    wrong = tvm_ffi.from_dlpack(np.zeros((2, 2), np.float32))
    with pytest.raises(ValueError, match="expected ndim=1, but got ndim=2"):
        function(node_class()(1, held=wrong))
    with pytest.raises(
        TypeError, match="expected a tensor object that can be kept, .* but got None"
    ):
        function(node_class()(1))


def test_as_type_of_what_is_known_is_an_error() -> None:
    def host(k: fe.Int32):
        return fe.as_type(k, fe.Int64)

    with pytest.raises(fe.CompileError, match="as_type of a run-time int32, whose kind is known"):
        compiled(host, 1)


def test_none_is_told_from_other_values() -> None:
    def host(x: fe.Array[Any], m: fe.Map[str, Any]):
        return x[0] is None, x[0] is not None, m.get("a") is None

    function = compiled(host, None, None)
    assert function([None], {"a": None}) == (True, False, True)
    assert function([0], {}) == (False, True, True)


def test_values_are_read_of_maps_of_any_kind() -> None:
    def host(m: fe.Map[str, str], n: fe.Map[str, fe.Array[int]], o: fe.Map[str, int], k):
        items = n.get(k)
        count = -1
        if items is not None:
            count = len(items)
        return m.get(k, "none"), n.get(k, fe.Array(1, 2)), count, o.get(k), o.get(k, 5)

    function = compiled(host, None, None, None, "k")
    assert function({"a": LONG}, {"a": [3]}, {"a": 7}, "a") == (LONG, (3,), 1, 7, 7)
    assert function({"a": LONG}, {}, {}, "b") == ("none", (1, 2), -1, None, 5)


# ---- isinstance and is ----


def test_the_class_of_a_value_is_asked_for() -> None:
    base = node_class().__base__

    def host(x: fe.Array[Any]):
        total = fe.Int64(0)
        for v in x:
            if isinstance(v, str):
                total += len(v)
            elif isinstance(v, int):
                total += v
            elif isinstance(v, fe.Array):
                total += 100 * len(v)
            elif isinstance(v, base):
                total += 1000 * v.number
            elif isinstance(v, (float, type(None))):
                total += 10_000
            elif isinstance(v, fe.Tensor):
                total += 100_000
        return total

    values = [LONG, True, 5, [1, 2], node_class()(3), base(4), None, 2.5, floats(1), b"x"]
    assert compiled(host, None)(values) == len(LONG) + 6 + 200 + 7000 + 20_000 + 100_000


def test_an_object_may_be_of_a_derived_class() -> None:
    derived = node_class()

    def host(o: fe.Object[derived.__base__]):
        if isinstance(o, derived):
            return o.weight
        return -1.0

    function = compiled(host, None)
    assert function(derived(1, weight=2.5)) == 2.5
    assert function(derived.__base__(1)) == -1

    def unknown(o: NODE):
        return isinstance(o, list)

    with pytest.raises(fe.CompileError, match="isinstance asks for <class 'list'>"):
        compiled(unknown, None)


def test_two_names_of_one_object_are_told_from_two_objects() -> None:
    def host(a: NODE, b: NODE):
        return a is b, a is not b

    function, a, b = compiled(host, None, None), node_class()(1), node_class()(1)
    assert (function(a, a), function(a, b)) == ((True, False), (False, True))

    def equal(a: NODE, b: NODE):
        return a == b

    with pytest.raises(fe.CompileError, match="the object a is compared with =="):
        compiled(equal, None, None)

    def texts(a):
        return a is other

    other = "x"
    with pytest.raises(fe.CompileError, match="the string a is compared with 'is'"):
        compiled(texts, "a")


# ---- parameters ----


def test_an_annotation_alone_says_what_a_parameter_is() -> None:
    def host(s: str, b: bytes, f: Callable[[int], int], t: params.DataType("t"), x, y, z):
        return s, b, t, len(x), y(2, result=int), z

    examples = (None, None, None, None, str, print, Any)
    function = compiled(host, *examples)
    assert str(function.signature).startswith(
        "host(s: str, b: bytes, f: Function, t: dtype, x: str, y: Function, z: Any) -> "
    )
    assert function("a", b"b", print, "int8", "xx", lambda i: i + 1, [1])[3:] == (2, 3, (1,))

    def may_be(x: ITEMS, y: str | fe.Array[str]):
        if x is None:
            return -1
        if isinstance(y, str):
            return len(y)
        return len(x) + len(y)

    function = compiled(may_be, None, None)
    assert str(function.signature).startswith(
        "may_be(x: Optional[Array[int64]], y: Union[str, Array[str]])"
    )
    assert [function(*given) for given in ((None, ""), ([1], "abc"), ([1], ["a"]))] == [-1, 3, 2]


def test_an_optional_result_is_annotated() -> None:
    def host(k: fe.Int32) -> str | None:
        if k > 0:
            return "text"
        return None

    assert [compiled(host, 1)(k) for k in (1, 0)] == ["text", None]

    def without(k: fe.Int32):
        if k > 0:
            return "text"
        return None

    with pytest.raises(fe.CompileError, match="annotate the function, -> Any or -> str"):
        compiled(without, 1)

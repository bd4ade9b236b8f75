"""Containers as parameters: length, elements, keys, loops, and what their errors say."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import tvm_ffi
from registered import use_count

import ferrule as fe
from ferrule.specs import params

CPU = "--target cpu"


def compiled(function: Any, *examples: Any) -> fe.Function:
    return fe.compile(function, *examples, options=CPU)


def wrong(function: Any, *examples: Any) -> str:
    with pytest.raises(fe.CompileError) as caught:
        compiled(function, *examples)
    return str(caught.value)


# ---- Array and List ----


def element(x: fe.Array[fe.Int32], i: fe.Int64):
    return x[i]


@pytest.mark.parametrize("index", [0, 2, -1, -3])
def test_an_index_is_as_in_python(index: int) -> None:
    values = [10, 20, 30]
    assert compiled(element, None, 1)(values, index) == values[index]


@pytest.mark.parametrize("index", [3, -4, 2**63 - 1, -(2**63)])
def test_an_index_out_of_bounds_is_an_index_error(index: int) -> None:
    message = rf"Out of bound index of x, which has 3 elements, but got {index}"
    with pytest.raises(IndexError, match=message):
        compiled(element, None, 1)([1, 2, 3], index)


def test_a_constant_index_and_the_length() -> None:
    def host(x: fe.List[fe.Float64]):
        return len(x), x[0], x[-1]

    function = compiled(host, None)
    assert function(tvm_ffi.List([1.5, 2, True])) == (3, 1.5, 1.0)
    with pytest.raises(IndexError, match="which has 0 elements, but got 0"):
        function(tvm_ffi.List([]))


def test_a_loop_goes_over_the_elements() -> None:
    def host(x: fe.Array[fe.Int32], stop: fe.Int32):
        total = fe.Int32(0)
        for v in x:
            if v < 0:
                continue
            if v == stop:
                break
            total += v
        return total

    function = compiled(host, None, 1)
    assert function([1, -5, 2, 99, 4], 99) == 3
    assert function([], 99) == 0


def test_an_empty_container_is_false() -> None:
    def host(x: fe.Array, m: fe.Map):
        return bool_of(x), bool_of(m)

    def bool_of(value: Any) -> Any:
        return 1 if value else 0

    function = compiled(host, None, None)
    assert function([1], {}) == (1, 0)
    assert function([], {1: 2}) == (0, 1)


def test_elements_of_every_kind_are_what_their_spec_says() -> None:
    def host(
        s: fe.Array[str], b: fe.Array[bytes], y: fe.Array[bool], u: fe.Array[fe.Uint8],
        d: fe.Array[params.DataType("d")], n: fe.Array[fe.Array[fe.Int64]],
    ):  # fmt: skip
        return s[0], s[1], len(s[2]), b[0], y[0], u[0], d[0], n[1][0]

    function = compiled(host, *[None] * 6)
    texts = ["short", "a text that is no small one", "gr\xfc\xdfe"]
    found = function(texts, [b"a\0b"], [True], [255], [tvm_ffi.dtype("float16")], [[1], [2]])
    assert found == ("short", texts[1], 5, b"a\0b", True, 255, "float16", 2)


def test_an_optional_element_may_be_none() -> None:
    def host(x: fe.Array[int | None]):
        total = fe.Int64(0)
        for i in range(len(x)):
            v = x[i]
            if v is not None:
                total += v
        return total

    assert compiled(host, None)([1, None, 5]) == 6


def test_an_optional_element_needs_a_name_before_it_is_used() -> None:
    def host(x: fe.Array[int | None]):
        return x[0] + 1

    assert "give it a name, x = x[0], and use that inside" in wrong(host, None)


def test_an_element_of_any_kind_is_handed_on() -> None:
    seen: list[Any] = []

    def host(x: fe.Array, f):
        for v in x:
            f(v)

    function = compiled(host, None, params.Function("f"))
    function([1, "a text that is no small one", None, (2, 3)], seen.append)
    assert seen == [1, "a text that is no small one", None, (2, 3)]


def test_a_list_that_changes_is_read_as_it_is_then() -> None:
    def host(x: fe.List[fe.Int8], f):
        total = fe.Int32(0)
        for v in x:
            total += v
            f()
        return total

    function = compiled(host, None, params.Function("f"))
    values = tvm_ffi.List([1, 2, 3])

    def change(value: Any) -> None:
        values[2] = value

    change(3)
    assert function(values, lambda: change(7)) == 10
    with pytest.raises(TypeError, match=r"Mismatched type of x\[2\], expected int8, but got str"):
        function(values, lambda: change("seven"))
    change(3)
    with pytest.raises(OverflowError, match=r"Out of bound x\[2\], expected int8, but got 300"):
        function(values, lambda: change(300))
    change(3)
    with pytest.raises(IndexError, match="Out of bound index of x, which has 0 elements"):
        function(values, values.clear)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (fe.Int8, (-128, 127, True), (-129, 128, 1.0, None, "1", 2**70)),
        (fe.Uint16, (0, 65535), (-1, 65536)),
        (fe.Int64, (-(2**63), 2**63 - 1), (2**63,)),
        (fe.Uint64, (0, 2**63 - 1), (-1,)),
        (bool, (True, False, 1, 0), (2, -1, 0.0)),
        (fe.Float32, (1.5, 2, True, -1e300), ("1.5", None)),
        (str, ("", "short", "a text that is no small one"), (b"short", 1, None)),
        (bytes, (b"", b"bytes that are no small ones"), ("text",)),
        (int | None, (None, 5), ("None", 1.5)),
        (fe.Array[int], ((), (1, 2)), (1, ("a",))),
    ],
)
def test_every_element_is_checked_at_the_call(kind: Any, good: Any, bad: Any) -> None:
    def host(x):
        return len(x)

    function = compiled(host, fe.Array[kind])
    first = good[0]
    for value in good:
        assert function((value, first, value)) == 3
    for value in bad:
        with pytest.raises((TypeError, ValueError), match=r"on x\[1\](\[0\])? in argument #0"):
            function((first, value))


def test_tensors_in_containers_are_used_written_and_returned() -> None:
    import numpy as np

    tensor = fe.make_fake_compact_tensor(fe.Float32, (3,))

    def host(x, m):
        for v in x:
            v[:] = v[:] + 1.0
        for v in m.values():
            v[0] = 7.0
        return x[-1], m["w"][0]

    function = compiled(host, fe.Array[tensor], fe.Map[str, tensor])
    a, b = np.zeros(3, np.float32), np.ones(3, np.float32)
    found, first = function([a, b], {"w": a})
    assert (np.from_dlpack(found).tolist(), first) == ([2, 2, 2], 7)
    assert (a.tolist(), b.tolist()) == ([7, 1, 1], [2, 2, 2])
    with pytest.raises(ValueError, match="shape"):
        function([np.zeros(4, np.float32)], {"w": a})


# ---- Map and Dict ----


def value_of(m: fe.Map[str, fe.Int64], key):
    return m[key]


@pytest.mark.parametrize("count", [1, 4, 5, 100])
def test_a_value_is_found_by_its_key_in_maps_of_any_size(count: int) -> None:
    values = {f"key number {i}": i * i for i in range(count)}
    function = compiled(value_of, None, "key")
    assert [function(values, key) for key in values] == list(values.values())


def test_a_key_that_is_missing_is_a_key_error() -> None:
    function = compiled(value_of, None, "key")
    for key in ("other", "another key that is long"):
        with pytest.raises(KeyError, match=f"Missing key '{key}' of m"):
            function({"one": 1}, key)

    def by_number(m: fe.Dict[int, str], key: fe.Int32):
        return m[key]

    function = compiled(by_number, None, 1)
    assert function(tvm_ffi.Dict({7: "seven"}), 7) == "seven"
    with pytest.raises(KeyError, match="Missing key -3 of m"):
        function(tvm_ffi.Dict({7: "seven"}), -3)


def test_in_and_get_ask_without_an_error() -> None:
    def host(m: fe.Map[str, fe.Float64], key):
        return key in m, key not in m, m.get(key, 0.5), "a" in m, len(m)

    function = compiled(host, None, "key")
    assert function({"a": 2.0, "b": 3}, "b") == (True, False, 3.0, True, 2)
    assert function({"b": 3.0}, "a") == (False, True, 0.5, False, 1)


@pytest.mark.parametrize("count", [0, 3, 40])
def test_a_loop_goes_over_keys_values_and_items(count: int) -> None:
    seen: list[Any] = []

    def host(m: fe.Map[str, fe.Int64], f):
        for key in m:
            f(key)
        for value in m.values():
            f(value)
        total = fe.Int64(0)
        for key, value in m.items():
            if value == 1:
                continue
            f(key, value)
            total += value
        for key in m.keys():
            f(key)
        return total

    values = {f"the key {i}": i for i in range(count)}
    function = compiled(host, None, params.Function("f"))
    rest = {key: value for key, value in values.items() if value != 1}
    assert function(values, lambda *given: seen.append(given)) == sum(rest.values())
    keys = [(key,) for key in values]
    assert seen == [*keys, *((value,) for value in values.values()), *rest.items(), *keys]


# ---- what is refused while compiling ----


def test_what_a_container_does_not_do_is_refused_with_another_way() -> None:
    def search(x: fe.Array[fe.Int32], i: fe.Int32):
        return i in x

    assert "compare its elements in a loop" in wrong(search, None, 1)

    def by_float(x: fe.Array[fe.Int32]):
        return x[0.5]

    assert "the array x is indexed by 0.5" in wrong(by_float, None)

    def attribute(x: fe.Array[fe.Int32]):
        return x.first

    assert "the array x has no attribute 'first'" in wrong(attribute, None)

    def wrong_key(m: fe.Map[str, int]):
        return m[1]

    assert "a key of m is a string, not 1 (int)" in wrong(wrong_key, None)

    def texts(m: fe.Map[str, str]):
        return m.get("a", 1)

    assert "m.get('a', 1): this value is the string" in wrong(texts, None)


def test_a_kernel_reads_no_container_but_its_host_function_does() -> None:
    @fe.kernel
    def kernel(a: fe.Tensor, x):
        a[0] = len(x)

    def host(a: fe.Tensor, x: fe.Array[fe.Int32]):
        kernel(a, x).launch(grid=1, block=1)

    tensor = fe.make_fake_compact_tensor(fe.Int64, (1,))
    assert "a kernel cannot take the array x" in wrong(host, tensor, None)

    def elements(a: fe.Tensor, x: fe.Array[fe.Int64]):
        for i in range(a.shape[0]):
            a[i] = x[i]

    import numpy as np

    a = np.zeros(1, np.int64)
    compiled(elements, tensor, None)(a, [5])
    assert a[0] == 5


# ---- examples and annotations ----


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (fe.Array, "Array[Any]"),
        (fe.Array[fe.Int32], "Array[int32]"),
        (fe.List[str], "List[str]"),
        (fe.Map[str, float], "Map[str, float64]"),
        (fe.Dict[int, fe.Array[bytes]], "Dict[int64, Array[bytes]]"),
        (tvm_ffi.Array[int], "Array[int64]"),
        (tvm_ffi.Map[str, float], "Map[str, float64]"),
        (tvm_ffi.List, "List[Any]"),
        (fe.Array[fe.Object["my.Type"]], "Array[Object(my.Type)]"),
    ],
)
def test_an_annotation_is_a_spec(annotation: Any, text: str) -> None:
    def host(x):
        return len(x)

    assert str(compiled(host, annotation).signature).startswith(f"host(x: {text})")
    host.__annotations__["x"] = annotation
    assert str(compiled(host, None).signature).startswith(f"host(x: {text})")


def test_a_real_container_is_an_example() -> None:
    def host(x, m):
        return len(x), len(m)

    function = compiled(host, tvm_ffi.Array([1]), tvm_ffi.Map({}))
    assert str(function.signature) == "host(x: Array[Any], m: Map[Any, Any]) -> Tuple[int64, int64]"


def test_a_wrong_annotation_says_what_it_takes() -> None:
    with pytest.raises(TypeError, match=r"Map\[key, value\] has two kinds"):
        fe.Map[str]
    with pytest.raises(TypeError, match="is no kind of element"):
        fe.Array[3]
    with pytest.raises(TypeError, match="takes the key of a type"):
        fe.Object[3]
    with pytest.raises(RuntimeError, match="Array has a meaning only in a function that is comp"):
        fe.Array(1)


# ---- lifetimes ----


def test_elements_are_released_whatever_happens() -> None:
    def host(x: fe.Array[fe.Array], m: fe.Map[str, object], f):
        for v in x:
            f(v)
        for value in m.values():
            f(value)
        f(m["key"])
        return x[0]

    function = compiled(host, None, None, params.Function("f"))
    inner, calls = tvm_ffi.Array([1, 2]), 0
    x, m = tvm_ffi.Array([inner, inner]), tvm_ffi.Map({"key": inner, "long key to see": inner})

    def fail_sometimes(value: Any) -> None:
        nonlocal calls
        calls += 1
        if calls % 7 == 0:
            raise ValueError("no")

    before = use_count(inner), use_count(x), use_count(m)
    for _ in range(400):
        try:
            function(x, m, fail_sometimes)
        except ValueError:
            pass
    gc.collect()
    assert (use_count(inner), use_count(x), use_count(m)) == before


def test_a_dict_is_iterated_as_it_was_at_the_beginning() -> None:
    def host(m: fe.Dict[str, int], change):
        total = fe.Int64(0)
        for key in m:
            change(m, key)
        for key, value in m.items():
            if key != "a":
                total += value
        for value in m.values():
            total += value
        return total, len(m)

    function = compiled(host, None, params.Function("change"))
    items = tvm_ffi.Dict({"a": 1, "b" * 20: 2})
    before = use_count(items)
    assert function(items, lambda m, key: m.__setitem__(key + "!", 10)) == (2 + 20 + 23, 4)
    assert function(items, lambda m, key: m.__delitem__(key)) == (0, 0)
    assert function(tvm_ffi.Dict({}), lambda m, key: 1 / 0) == (0, 0)

    def fails(m: Any, key: str) -> None:
        raise KeyError(key)

    items["a"] = 3
    with pytest.raises(KeyError, match="a"):
        function(items, fails)
    assert use_count(items) == before

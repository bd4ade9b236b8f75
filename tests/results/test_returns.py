"""`return` in host functions: what comes back, of which types, and what cannot be returned."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest
import tvm_ffi
from lowered import vector

import ferrule as fe

CPU = "--target cpu"


def compiled(function: Any, *examples: Any) -> fe.Function:
    return fe.compile(function, *examples, options=CPU)


def wrong(function: Any, *examples: Any) -> str:
    with pytest.raises(fe.CompileError) as caught:
        compiled(function, *examples)
    return str(caught.value)


@fe.jit
def add(a: fe.Int32, b: fe.Int32) -> fe.Int32:
    return a + b


def test_a_number() -> None:
    function = compiled(add, fe.Int32, fe.Int32)
    assert str(function.signature) == "add(a: int32, b: int32) -> int32"
    assert function(2, 3) == 5
    assert function(2**31 - 1, 1) == -(2**31)


def test_a_plain_function_is_called_as_it_is() -> None:
    assert add(20, 22) == 42


def test_every_scalar_dtype_comes_back() -> None:
    @fe.jit
    def same(x):
        return x

    for dtype in (fe.Int8, fe.Int16, fe.Int32, fe.Int64, fe.Uint8, fe.Uint16, fe.Uint32):
        low, high = dtype.range
        function = compiled(same, dtype)
        assert (function(low), function(high)) == (low, high)
    for dtype in (fe.Float16, fe.BFloat16, fe.Float32, fe.TFloat32, fe.Float64):
        assert compiled(same, dtype)(-1.5) == -1.5
    assert compiled(same, fe.Boolean)(True) is True
    assert compiled(same, fe.Uint64)(2**63 - 1) == 2**63 - 1


def test_tuples_strings_and_none() -> None:
    @fe.jit
    def several(a: fe.Int32, name: str):
        return a, (name, "größe", b"\0\1"), None, (), True

    function = compiled(several, fe.Int32, "example")
    assert function(7, "a longer name than seven bytes") == (
        7,
        ("a longer name than seven bytes", "größe", b"\0\1"),
        None,
        (),
        True,
    )
    assert function(-1, "")[1][0] == ""


def test_dtypes_and_devices() -> None:
    @fe.jit
    def kinds(a: fe.Tensor, dtype, device):
        return a.element_type, dtype, device

    function = compiled(kinds, vector(fe.Float16), fe.specs.params.DataType("dtype"),
                        fe.specs.params.Device("device"))  # fmt: skip
    found = function(np.zeros(2, np.float16), tvm_ffi.dtype("int8"), tvm_ffi.device("cuda", 3))
    assert [str(each) for each in found] == ["float16", "int8", "cuda:3"]


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass
class Point:
    x: Any
    y: Any


def test_named_tuples_and_dataclasses_come_back_as_tuples() -> None:
    @fe.jit
    def records(a: fe.Int32):
        return Pair(a, Point(a + 1, 2.5))

    found = compiled(records, fe.Int32)(1)
    assert (found, type(found), type(found[1])) == ((1, (2, 2.5)), tuple, tuple)


def test_a_shape_where_it_is_annotated() -> None:
    @fe.jit
    def shape(a: fe.Tensor, k: fe.Int32) -> fe.Shape:
        return a.shape[0], k, 3

    function = compiled(shape, vector(), fe.Int32)
    found = function(np.zeros(5, np.float32), 4)
    assert (type(found), found) == (tvm_ffi.Shape, (5, 4, 3))


def test_early_returns_on_run_time_branches() -> None:
    @fe.jit
    def sign(x: fe.Float32) -> fe.Int32:
        if x > 0:
            return 1
        if x < 0:
            return -1
        return 0

    function = compiled(sign, fe.Float32)
    assert [function(x) for x in (2.5, -0.5, 0.0)] == [1, -1, 0]


def test_a_return_inside_a_loop() -> None:
    @fe.jit
    def find(a: fe.Tensor, wanted: fe.Float32):
        for i in range(a.shape[0]):
            if a[i] == wanted:
                return i, "found"
        return -1, "missing, not in the tensor"

    function = compiled(find, vector(), fe.Float32)
    array = np.arange(5, dtype=np.float32)
    assert function(array, 3.0) == (3, "found")
    assert function(array, 9.0) == (-1, "missing, not in the tensor")


def test_python_numbers_take_the_type_of_the_other_way() -> None:
    @fe.jit
    def clamp(x: fe.Float64):
        if x < 0:
            return 0
        return x

    function = compiled(clamp, fe.Float64)
    assert str(function.signature.result.dtype.name) == "float64"
    assert (function(-1.0), function(0.1)) == (0.0, 0.1)


def test_helpers_return_what_they_like() -> None:
    def pair(x):
        return [x, x + 1]

    @fe.jit
    def host(a: fe.Int32):
        return pair(a)[1]

    assert compiled(host, fe.Int32)(1) == 2


def test_objects_are_handed_back() -> None:
    @fe.jit
    def same(f):
        return f

    function = compiled(same, fe.specs.params.Function("f"))
    callback = tvm_ffi.convert(lambda x: x + 1)
    assert function(callback)(41) == 42


def test_an_annotation_converts_numbers() -> None:
    @fe.jit
    def wide(a: fe.Int32) -> tuple[fe.Int64, fe.Float64]:
        return a, a

    assert str(compiled(wide, fe.Int32).signature.result) != ""
    assert compiled(wide, fe.Int32)(3) == (3, 3.0)


def test_annotations_that_say_nothing_here() -> None:
    @fe.jit
    def anything(a: fe.Int32) -> Any:
        return a

    @fe.jit
    def unknown(a: fe.Int32) -> OnlyForTypeCheckers:  # type: ignore[name-defined] # noqa: F821
        return a

    assert compiled(anything, fe.Int32)(1) == compiled(unknown, fe.Int32)(1) == 1


def test_nothing_is_none() -> None:
    @fe.jit
    def nothing(a: fe.Int32) -> None:
        if a > 0:
            return
        return None

    function = compiled(nothing, fe.Int32)
    assert function.signature.result is None
    assert function(1) is None


def test_an_annotation_that_does_not_fit_names_both_types() -> None:
    @fe.jit
    def to_int(x: fe.Float32) -> fe.Int32:
        return x

    @fe.jit
    def to_number(a: fe.Tensor) -> fe.Int32:
        return fe.empty_like(a)

    @fe.jit
    def to_text(x: fe.Int32) -> str:
        return x

    @fe.jit
    def to_pair(x: fe.Int32) -> tuple[fe.Int32, fe.Int32]:
        return x, x, x

    @fe.jit
    def to_nothing(x: fe.Int32) -> None:
        return x

    @fe.jit
    def from_nothing(x: fe.Int32) -> fe.Int32:
        fe.static_assert(True)

    assert "is annotated as Int32, but gets a run-time float32" in wrong(to_int, fe.Float32)
    assert "fe.empty_like(a), but is annotated as Int32" in wrong(to_number, vector())
    assert "the result is a run-time int32, but is annotated as str" in wrong(to_text, fe.Int32)
    assert "a tuple of 3 values, but is annotated as tuple[Int32, Int32]" in wrong(
        to_pair, fe.Int32
    )
    assert "the result is a run-time int32, but is annotated as None" in wrong(to_nothing, fe.Int32)
    assert "from_nothing returns nothing, but is annotated as Int32" in wrong(
        from_nothing, fe.Int32
    )


def test_ways_that_disagree_name_both_types() -> None:
    @fe.jit
    def numbers(x: fe.Int32, y: fe.Float32):
        if x > 0:
            return x
        return y

    @fe.jit
    def kinds(x: fe.Int32):
        if x > 0:
            return "positive"
        return x

    @fe.jit
    def sometimes(x: fe.Int32):
        if x > 0:
            return x

    @fe.jit
    def tensors(x: fe.Int32, a: fe.Tensor):
        if x > 0:
            return fe.empty_like(a)
        return fe.empty((3, 1), fe.Float32)

    assert "it is int32 on one way and float32 on the other" in wrong(numbers, fe.Int32, fe.Float32)
    message = wrong(kinds, fe.Int32)
    assert "the returned value is a string on one way and a run-time int32 on the other" in message
    assert "returns a run-time int32 on one way and nothing" in wrong(sometimes, fe.Int32)
    message = wrong(tensors, fe.Int32, vector())
    assert "a tensor of shape (n) and dtype float32 on one way" in message
    assert "a tensor of shape (3, 1) and dtype float32 on the other" in message


def test_what_cannot_be_returned_says_what_to_write() -> None:
    @fe.jit
    def expression(a: fe.Tensor):
        return a[:] + 1.0

    @fe.jit
    def a_list(x: fe.Int32):
        return [x, x]

    @fe.jit
    def part(a: fe.Tensor):
        t = fe.empty_like(a)
        return t.reshape((a.shape[0], 1))

    assert "t = fe.empty(shape, dtype); t[:] = ...; return t" in wrong(expression, vector())
    assert "hint: return a tuple, (x, y)" in wrong(a_list, fe.Int32)
    assert "which has no object of its own" in wrong(part, vector())

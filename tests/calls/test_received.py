"""What comes back from `fe.call`: every kind, checked, owned, released."""

from __future__ import annotations

import ctypes
import gc
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tvm_ffi

import ferrule as fe
from ferrule.specs import params

NAME = "ferrule.test.calls.give"
HEAP = "a string of more than seven bytes"


def vector(symbol: str = "n") -> Any:
    return fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(symbol=symbol),))


def compiled(function: Any, *examples: Any) -> fe.Function:
    return fe.compile(function, *examples, options="--target cpu")


class Giver:
    """A registered function that gives `value`, or raises it."""

    value: Any = None

    def __call__(self, *_: Any) -> Any:
        if isinstance(self.value, BaseException):
            raise self.value
        return self.value


@pytest.fixture
def giver() -> Iterator[Giver]:
    made = Giver()
    tvm_ffi.register_global_func(NAME, made)
    yield made
    tvm_ffi.registry.remove_global_func(NAME)


def floats(*values: float) -> Any:
    return tvm_ffi.from_dlpack(np.array(values, np.float32))


def count_of(value: Any) -> int:
    """How many references an object of tvm-ffi has."""
    return ctypes.c_uint32.from_address(value.__chandle__()).value


@pytest.mark.parametrize("value", ["", "1234567", "12345678", HEAP, "gr\xfc\xdfe \u4f60\u597d" * 9])
def test_strings_come_back_and_go_on(giver: Giver, value: str) -> None:
    def host():
        text = fe.call(NAME, result=str)
        return text, len(text), text == HEAP

    giver.value = value
    assert compiled(host)() == (value, len(value), value == HEAP)


@pytest.mark.parametrize("value", [b"", b"\0", b"a\0b\0c\0d", b"\0" * 100])
def test_bytes_come_back_with_their_zeros(giver: Giver, value: bytes) -> None:
    def host():
        return fe.call(NAME, result=bytes)

    giver.value = value
    assert compiled(host)() == value


def test_a_tensor_is_used_written_and_returned(giver: Giver) -> None:
    def host(a):
        t = fe.call(NAME, result=vector("m"))
        for i in range(t.shape[0]):
            t[i] = t[i] + a[0]
        return t

    giver.value = floats(1, 2, 3)
    before, function = count_of(giver.value), compiled(host, vector())
    result = function(np.ones(1, np.float32))
    assert result.same_as(giver.value)
    assert np.from_dlpack(result).tolist() == [2, 3, 4]
    del result
    assert count_of(giver.value) == before


def test_a_tensor_is_handed_on_as_the_object_that_it_is(giver: Giver) -> None:
    got: list[Any] = []
    keep = tvm_ffi.convert(got.append)

    def host(f):
        f(fe.call(NAME, result=vector("m")))

    giver.value = floats(1, 2)
    compiled(host, params.Function("f"))(keep)
    assert got[0].same_as(giver.value)


def test_tensors_in_tuples_are_returned_as_the_objects_that_they_are(giver: Giver) -> None:
    optional = params.Optional("o", params.Tensor("o", (fe.sym_int(symbol="m"),), fe.Float32))

    def host(k: fe.Int32):
        (_, t), u = fe.call(NAME, result=((str, vector("m")), optional))
        if u is not None:
            if k > 0:
                return t, u
            return u, t
        return t, t

    function, (first, second) = compiled(host, 1), (floats(1), floats(2))
    before = count_of(first), count_of(second)
    for value, k, wanted in ((second, 1, (first, second)), (second, 0, (second, first))):
        giver.value = ((HEAP, first), value)
        found = function(k)
        assert all(map(tvm_ffi.Tensor.same_as, found, wanted))
    giver.value, found = ((HEAP, first), None), None
    found = function(1)
    assert found[1].same_as(first)
    del found
    giver.value = None
    gc.collect()
    assert (count_of(first), count_of(second)) == before


def test_a_symbol_of_the_parameters_is_checked_and_others_are_what_came(giver: Giver) -> None:
    def host(a):
        known = fe.call(NAME, result=vector("n"))
        other = fe.call(NAME, result=vector("m"))
        return known.shape[0], other.shape[0]

    giver.value = floats(1, 2, 3)
    function = compiled(host, vector("n"))
    assert function(np.zeros(3, np.float32)) == (3, 3)
    with pytest.raises(ValueError, match=r"^Mismatched n in the result .*expected 4, but got 3$"):
        function(np.zeros(4, np.float32))


def test_tuples_optionals_and_unions_come_back(giver: Giver) -> None:
    def several():
        i, (s, x) = fe.call(NAME, result=(fe.Int8, (str, fe.Float32)))
        return x, s, i

    def optional():
        t = fe.call(NAME, result=fe.Int32 | None)
        if t is None:
            return -1
        return t

    def either():
        t = fe.call(NAME, result=fe.Int32 | str)
        if isinstance(t, fe.Int32):
            return t
        return fe.Int32(len(t))

    giver.value = (5, (HEAP, 2))
    assert compiled(several)() == (2.0, HEAP, 5)
    function = compiled(optional)
    for giver.value in (None, 7):
        assert function() == (-1 if giver.value is None else 7)
    function = compiled(either)
    for giver.value in (3, HEAP):
        assert function() == (3 if giver.value == 3 else len(HEAP))


def test_dtypes_devices_shapes_and_objects_come_back(giver: Giver) -> None:
    n = fe.sym_int(symbol="k")

    def host():
        d = fe.call(NAME, 0, result=params.DataType("d"))
        return d == fe.Float16, d

    def sizes():
        a, b = fe.call(NAME, result=params.Shape("s", (n, 3)))
        return a + b

    def objects():
        f = fe.call(NAME, result=params.Function("f"))
        return f(20, result=fe.Int32), f

    giver.value = tvm_ffi.dtype("float16")
    assert compiled(host)() == (True, tvm_ffi.dtype("float16"))
    giver.value = tvm_ffi.Shape((39, 3))
    assert compiled(sizes)() == 42
    giver.value = tvm_ffi.convert(lambda x: x + 1)
    number, function = compiled(objects)()
    assert (number, function(1)) == (21, 2)


@pytest.mark.parametrize(
    ("wanted", "value", "error", "message"),
    [
        (str, 3, TypeError, "type on the result when calling: `{}(...) -> str`, expected str, but"),
        (bytes, "x" * 20, TypeError, "-> bytes`, expected bytes, but got str"),
        ((fe.Int8, str), (300, ""), ValueError, "result[0] in the result when calling"),
        ((fe.Int8, str), (1,), ValueError, "expected tuple size=2, but got tuple size=1"),
        (vector("m"), None, TypeError, "that can be kept, not a DLTensor* (view), but got None"),
        (vector("m"), np.zeros((1, 1), np.float32), ValueError, "expected ndim=1, but got ndim=2"),
        (vector("m"), np.zeros(1, np.int8), ValueError, "dtype=float32, but got dtype=int8"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_an_error(
    giver: Giver, wanted: Any, value: Any, error: type[Exception], message: str
) -> None:
    def host():
        fe.call(NAME, result=wanted)

    giver.value = value
    with pytest.raises(error) as caught:
        compiled(host)()
    assert message.replace("{}", NAME) in str(caught.value)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (fe.Tensor, "the result of a call is"),
        ("float32", "the result of a call is 'float32'"),
        ((fe.Int8, 3), "the result of a call is 3"),
        (params.Stream("s"), "the result of a call is"),
    ],
)
def test_what_is_no_spec_is_a_compile_error(wanted: Any, message: str) -> None:
    def host():
        fe.call(NAME, result=wanted)

    with pytest.raises(fe.CompileError) as caught:
        compiled(host)
    assert message in str(caught.value)


def test_nothing_leaks_on_any_way(giver: Giver) -> None:
    def run(k: int, a: Any) -> None:
        try:
            function(a, k)
        except (KeyError, ValueError, ZeroDivisionError, TypeError):
            pass

    def looped(a, k: fe.Int32):
        for _ in range(k):
            t, text = fe.call(NAME, a, result=(vector("m"), str))
            if len(text) == 0:
                fe.raise_error("ValueError", "no {}", text)
            a[0] = a[0] + t[0]

    function, a = compiled(looped, vector(), 1), tvm_ffi.from_dlpack(np.zeros(4, np.float32))
    tensor = floats(1, 2, 3)
    before = count_of(tensor), count_of(a)
    for giver.value in (
        (tensor, HEAP),
        (tensor, ""),
        (tensor, 3),
        (tensor, HEAP, 1),
        KeyError("no key"),
        ZeroDivisionError("by 0"),
        tensor,
    ):
        for k in (0, 1, 3) * 100:
            run(k, a)
    giver.value = None
    gc.collect()
    assert (count_of(tensor), count_of(a)) == before


def test_an_interrupt_in_a_callback_is_one_outside(giver: Giver) -> None:
    def host(a):
        fe.call(NAME, a, result=str)
        a[0] = 1

    giver.value, a = KeyboardInterrupt(), np.zeros(1, np.float32)
    with pytest.raises(KeyboardInterrupt):
        compiled(host, vector())(a)
    assert a[0] == 0


def test_an_exported_function_receives_too(giver: Giver, tmp_path: Any) -> None:
    def host():
        return fe.call(NAME, result=(str, fe.Int32))

    file = tmp_path / "host.o"
    compiled(host).export_to_c(file)
    giver.value = (HEAP, 4)
    assert fe.runtime.load_module(file).host() == (HEAP, 4)


def test_texts_that_are_returned_are_released(giver: Giver) -> None:
    def host(k: fe.Int32):
        first = fe.call(NAME, result=str)
        if k > 0:
            return fe.call(NAME, result=str)
        if k < 0:
            fe.raise_error("ValueError", "{}", first)
        return first

    giver.value = HEAP
    function = compiled(host, 1)
    assert [function(k) for k in itertools.repeat(1, 3)] == [HEAP] * 3
    assert function(0) == HEAP
    with pytest.raises(ValueError, match=HEAP):
        function(-1)

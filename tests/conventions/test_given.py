"""Values of a call that are given back."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest
import tvm_ffi

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import (
    GIVEN,
    CFunction,
    Give,
    Made,
    Out,
    Require,
    Sequence,
    View,
    cast,
)
from ferrule.specs import Pointer, Scalar, Signature, Tensor

N, M = (specs.sym_int(symbol=name) for name in "nm")
X = Tensor("x", (N, M), "float32")


class Called:
    """A callable that can be referred to weakly."""

    def __call__(self) -> int:
        return 1


def test_parameters_sizes_and_addresses(tmp_path: Any) -> None:
    numbers = [Scalar(dtype, dtype) for dtype in ("bool", "int8", "uint64", "float16", "float64")]
    given = [*numbers, Pointer("p")]
    values = [N * M, cast(M, "uint8"), 7, *given]
    f = compiler.build(Signature("same", [X, *given]), Give(*values))
    assert str(f.signature).endswith(
        "-> Tuple[int64, uint8, int64, bool, int8, uint64, float16, float64, Pointer()]"
    )
    f.export_library(tmp_path / "same.so")
    for each in (f, fe.runtime.load_module(tmp_path / "same.so").same):
        *back, address = each(np.zeros((2, 3), np.float32), True, -5, 1 << 63, 0.5, 0.1, 4096)
        assert back == [6, 3, 7, True, -5, 1 << 63, 0.5, 0.1]
        assert address.value == 4096
    with pytest.raises(ValueError, match="does not fit uint8"):
        f(np.zeros((2, 256), np.float32), True, -5, 0, 0.5, 0.1, 0)


def test_what_a_call_wrote_behind_the_call() -> None:
    x, exponent = Scalar("x", "float64"), Out("int32", "exponent", result=False)
    steps = [CFunction("frexp", [x, exponent]), Give(exponent.value * 2)]
    f = compiler.build(Signature("twice", [x]), Sequence(steps))
    assert [f(8.0), f(0.25)] == [8, -2]
    with pytest.raises(ValueError, match="exponent"):
        compiler.build(Signature("twice", [x]), Sequence(steps[::-1]))


TEXTS = ["", "short", "long enough to be an object", "\u00e9\0b"]


def test_texts_and_objects_come_back_and_are_owned(tmp_path: Any) -> None:
    """An object is the same one, and is released with the last who has it."""
    kept = [
        specs.String("s", default="x"),
        specs.Bytes("b"),
        specs.DataType("t"),
        specs.Device("d"),
    ]
    objects = [specs.Function("f"), specs.Array("l"), specs.Map("m")]
    f = compiler.build(Signature("same", [*kept, *objects]), Give(*kept, *objects))
    assert str(f.signature).endswith(
        "Tuple[str, bytes, dtype, Device, Function, Array[Any], Map[Any, Any]]"
    )
    f.export_to_c(tmp_path / "same.o")
    call, numbers = Called(), tvm_ffi.convert([1])
    for each in (f, fe.runtime.load_module(tmp_path / "same.o").same):
        for text in TEXTS:
            given = text, text.encode(), "int8", "cuda:1"
            s, b, t, d, function, back, mapped = each(*given, call, numbers, {"a": 1})
            assert (s, b, str(t), str(d)) == given
            assert function() == 1 and back.same_as(numbers) and mapped["a"] == 1
    gone = weakref.ref(call)
    del call, function
    gc.collect()
    assert gone() is None


def test_an_error_behind_it_releases_nothing_twice() -> None:
    f, k = specs.Function("f"), Scalar("k", "int32")
    call, checked = Called(), Require(k.value > 0, "none", when=k.value < 5)
    function = compiler.build(Signature("same", [f, k]), Sequence([Give(f), checked]))
    before = sys.getrefcount(call)
    for _ in range(3):
        with pytest.raises(ValueError, match="same: expected k > 0, but got k = 0: none"):
            function(call, 0)
        assert function(call, 7)() == 1
    gc.collect()
    assert sys.getrefcount(call) == before


def test_a_tensor_comes_back_as_the_same_memory_and_keeps_it(tmp_path: Any) -> None:
    """By the first calls, the direct entry, a file, and an overload; nothing is left behind."""
    x, k = Tensor("x", (N,), "float32"), Scalar("k", "int32")
    steps = [CFunction("memset", [x.data, k, cast(x.nbytes, "uint64")]), Give(x, N, x)]
    f = compiler.build(Signature("fill", [x, k]), Sequence(steps))
    assert "x: Tensor([n], float32, device=cpu, owning=True)" in f.signature.text()
    other = compiler.build(Signature("whole", [i := Tensor("i", (N,), "int32"), k]), Give(i))
    f.export_to_c(tmp_path / "fill.o")
    loaded = fe.runtime.load_module(tmp_path / "fill.o").fill
    chosen = fe.overload([other, f])
    array = np.ones(3, np.float32)
    before = sys.getrefcount(array)
    for each in (f, loaded, chosen):
        for _ in range(20):
            first, size, again = each(array, 0)
            assert size == 3 and first.same_as(again) and not array.any()
            assert np.from_dlpack(first).ctypes.data == array.ctypes.data
        tensor = tvm_ffi.from_dlpack(array)
        assert each(tensor, 1)[0].same_as(tensor) and array.any()
    gone = weakref.ref(array)
    del array, tensor, again
    assert first.shape == (3,) and gone() is not None
    del first
    gc.collect()
    assert gone() is None and before


def test_a_tensor_of_a_tuple_and_none_that_stands_elsewhere(tmp_path: Any) -> None:
    pair = specs.Tuple("pair", [Tensor("u", (N,), "float32"), Scalar("k", "int32")])
    f = compiler.build(Signature("first", [X, pair]), Give(pair.items[0]))
    array = np.zeros(2, np.float32)
    back = f(np.zeros((2, 1), np.float32), (array, 1))
    assert np.from_dlpack(back).ctypes.data == array.ctypes.data
    absent = specs.Optional("o", Tensor("o", (N,), "float32"))
    for wrong in (absent.item, Tensor("y", (N,), "float32")):
        with pytest.raises(ValueError, match="is no parameter, and no item of a tuple, in f"):
            compiler.build(Signature("f", [X, absent]), Give(wrong))
    with pytest.raises(ValueError, match="is read_only, but what comes back could be written"):
        Give(Tensor("x", (N,), "float32", read_only=True))


def test_values_at_places_of_results(tmp_path: Any) -> None:
    """Texts, parts of arguments and tensors of a size that an integer tells, among the results."""
    k, out = Scalar("k", "int64"), Tensor("out", (N,), "float32")
    room = Tensor("room", (k.value + 1, 2), "float32", device="cpu")
    part = View(X, (M - 1, N), (1, M), 1)
    fills = [
        CFunction("memset", [each.data, 0, cast(each.nbytes, "uint64")]) for each in (out, room)
    ]
    steps = Sequence([*fills, Give("mode", part, Made(room), k, 5)], temporaries=[room])
    order = [GIVEN, out, GIVEN, specs.NoneValue("nothing"), GIVEN]
    f = compiler.build(Signature("several", [X, k]), steps, results=order)
    assert str(f.signature).endswith(
        "Tuple[str, Tensor([n], float32), Tensor([m - 1, n], float32), None, "
        "Tensor([n0, 2], float32), int64, int64]"
    )
    f.export_library(tmp_path / "several.so")
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for each in (f, fe.runtime.load_module(tmp_path / "several.so").several):
        text, made, turned, nothing, temporary, *numbers = each(x, 6)
        assert (text, nothing, numbers) == ("mode", None, [6, 5])
        assert np.from_dlpack(made).shape == (3,) and np.from_dlpack(temporary).shape == (7, 2)
        np.testing.assert_array_equal(np.from_dlpack(turned), x[:, 1:].T)
        assert np.shares_memory(np.from_dlpack(turned), x)
    rest = f(x.copy(), 6)[2]
    gc.collect()
    np.testing.assert_array_equal(np.from_dlpack(rest), x[:, 1:].T)
    with pytest.raises(
        ValueError, match="2 places of results=.* are GIVEN, but .* gives 1 results"
    ):
        compiler.build(Signature("f", [X]), Give(N), results=[GIVEN, GIVEN])
    with pytest.raises(ValueError, match="the call does not make 'out'"):
        compiler.build(Signature("f", [X]), Give(Made(out)))
    with pytest.raises(ValueError, match="is read_only, but what comes back could be written"):
        Give(View(Tensor("x", (N,), "float32", read_only=True), (N,), (1,)))


def test_a_program_gives_back_what_it_has_made_what_it_got_and_no_part() -> None:
    same = compiler.build(Signature("same", [x := Tensor("x", (N,), "float32")]), Give(x))

    @fe.jit
    def made(a: fe.Tensor):
        t = fe.empty_like(a)
        t[:] = a[:]
        return same(t)

    @fe.jit
    def lent(a: fe.Tensor):
        return same(a)

    @fe.jit
    def part(a: fe.Tensor):
        return same(fe.domain_offset((0,), fe.domain_offset((1,), a)))

    vector = fe.make_fake_compact_tensor(fe.Float32, (N,))
    f = fe.compile(made, vector, options="--target cpu")
    assert np.from_dlpack(f(np.arange(3, dtype=np.float32))).tolist() == [0, 1, 2]
    f, array = fe.compile(lent, vector, options="--target cpu"), np.arange(3, dtype=np.float32)
    assert f.signature.params[0].owning
    assert np.shares_memory(np.from_dlpack(f(array)), array)
    with pytest.raises(fe.CompileError, match="same may give its argument x back, but part has"):
        fe.compile(part, vector, options="--target cpu")


def test_other_values_are_refused() -> None:
    for wrong in (specs.Stream("s"), specs.AnyValue("v"), 1.5, None, True, b"n"):
        with pytest.raises(TypeError, match="Give: expected a size, a number, an address, a text"):
            Give(wrong)
    with pytest.raises(ValueError, match="expected a size or a parameter"):
        Give()
    with pytest.raises(ValueError, match="in no parameter of f"):
        compiler.build(Signature("f", [Scalar("a", "int32")]), Give(N))

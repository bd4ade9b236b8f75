"""Tensors whose elements are not what their memory holds, and objects that are none at all."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import specs

CPU = "--target cpu"


@fe.jit
def add_one(a: fe.Tensor):
    a[0] = a[0] + 1


@fe.jit
def copied(a: fe.Tensor, b: fe.Tensor):
    b[:] = a[:]


@fe.jit
def takes(x, kind):
    return 1


def _vector(dtype: Any = fe.Float32) -> Any:
    return fe.make_fake_compact_tensor(dtype, (fe.sym_int(),))


def _ways() -> dict[str, Callable[[Any], Any]]:
    """Ways of a value to ferrule."""
    plain = fe.compile(add_one, _vector(), options=CPU)
    anything = fe.compile(takes, specs.AnyValue("x"), specs.DataType("d"), options=CPU)
    listed = fe.compile(takes, specs.List("x"), specs.DataType("d"), options=CPU)
    dtype = np.dtype("int8")
    return {
        "entry": plain,
        "bind": plain.bind,
        "keyword": lambda x: plain(a=x),
        "any": lambda x: anything(x, "int8"),
        "generic": lambda x: anything(x, dtype),
        "list": lambda x: listed([x], "int8"),
        "tuple": lambda x: anything((1, x), "int8"),
        "from_dlpack": fe.from_dlpack,
        "held": lambda x: plain(fe.from_dlpack(x)),
    }


WAYS = sorted(_ways())


# ---- torch: pending changes ----


@pytest.mark.needs_torch
@pytest.mark.parametrize("way", WAYS)
def test_a_tensor_that_torch_negates_lazily_is_refused(way: str) -> None:
    import torch

    call, base = _ways()[way], torch.ones(3)
    negated = torch._neg_view(base)
    imaginary = torch.zeros(3, dtype=torch.complex64).conj().imag
    for lazy in (negated, imaginary, torch.nn.Parameter(negated, requires_grad=False)):
        if not lazy.is_neg():
            continue
        with pytest.raises(TypeError, match=r"negates lazily: call resolve_neg\(\)"):
            call(lazy)
        if way not in ("from_dlpack", "held") or lazy.is_contiguous():
            call(lazy.resolve_neg())
    assert negated[0] in (-1, *range(-9, 0))


@pytest.mark.needs_torch
def test_examples_are_refused_too() -> None:
    import torch

    for call in (add_one, lambda x: fe.compile(add_one, x, options=CPU)):
        with pytest.raises(fe.CompileError, match="negates lazily"):
            call(torch._neg_view(torch.ones(3)))


@pytest.mark.needs_torch
def test_the_bits_are_found_and_say_what_torch_says() -> None:
    import torch

    from ferrule.runtime.values.lazybits import lazy_bits

    bits = lazy_bits()
    assert bits is not None
    for dtype in (torch.float64, torch.bfloat16, torch.int8, torch.complex64):
        plain = torch.zeros((3, 2), dtype=dtype)
        for each in (plain, plain.t(), plain[1:], torch._neg_view(plain), plain.conj()):
            assert bits.pending(each) == (each.is_neg() or each.is_conj())


@pytest.mark.needs_torch
def test_without_the_bits_the_tensor_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from ferrule.runtime.calls.function import HEAP
    from ferrule.runtime.entry import entries, surroundings

    assert HEAP is not None
    monkeypatch.setattr(surroundings, "lazy_bits", lambda: None)
    found = surroundings.find_surroundings(HEAP.type, HEAP.handle_offset)
    assert found.lazy is None
    fresh = entries.Entries(HEAP, {False: 0, True: 0}, 0)
    assert fresh is not None
    text = entries.support_text(entries.host_triple(), found, entries.instance_layout(HEAP))
    assert "torch_is_neg" in text
    assert torch.Tensor.is_neg is not None


# ---- NumPy: masks ----


@pytest.mark.parametrize("way", WAYS)
def test_a_mask_is_refused(way: str) -> None:
    call, x = _ways()[way], np.ones(3, np.float32)
    with pytest.raises(TypeError, match=r"masked array, and a Tensor has no mask: call filled"):
        call(np.ma.masked_array(x, mask=[True, False, False]))
    assert (x == 1).all()
    call(np.ma.masked_array(x))
    call(np.ma.masked_array(x, mask=[False] * 3))


# ---- what is no capsule ----

_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)


_OTHER = ctypes.create_string_buffer(b"other")  # a capsule does not copy its name


class Exporting:
    """An object with `__dlpack__`, which gives or raises this."""

    def __init__(self, given: Any) -> None:
        self.given = given

    def __dlpack__(self, **options: Any) -> Any:
        if isinstance(self.given, Exception):
            raise self.given
        return self.given() if callable(self.given) else self.given

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def _used() -> Any:
    capsule = np.ones(3, np.float32).__dlpack__()
    np.from_dlpack(Exporting(capsule))
    return capsule


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("given", "text"),
    [
        (5, "__dlpack__ gives no capsule, but int"),
        ("x", "__dlpack__ gives no capsule, but str"),
        (_new(1, ctypes.addressof(_OTHER), None), "__dlpack__ gives a capsule named 'other'"),
        (_used(), "__dlpack__ gives a capsule that was used before"),
    ],
)
def test_what_is_no_capsule_is_named(way: str, given: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        _ways()[way](Exporting(given))


@pytest.mark.parametrize("way", WAYS)
def test_the_error_of_the_object_comes_through(way: str) -> None:
    class Mine(Exception):
        pass

    with pytest.raises((Mine, TypeError)) as raised:
        _ways()[way](Exporting(Mine("mine")))
    assert isinstance(raised.value, Mine) or isinstance(raised.value.__cause__, Mine)


def test_an_object_with_a_capsule_is_taken() -> None:
    x = np.ones(3, np.float32)
    for call in _ways().values():
        call(Exporting(lambda: x.__dlpack__()))
    assert x[0] > 1


def test_the_cause_of_a_refused_example_is_kept() -> None:
    with pytest.raises(fe.CompileError) as raised:
        fe.compile(add_one, Exporting(ValueError("mine")), options=CPU)
    assert isinstance(raised.value.__cause__, ValueError)


# ---- numbers ----


class LyingInt(int):
    def __int__(self) -> int:
        return 98

    def __index__(self) -> int:
        return 97


class LyingFloat(float):
    def __float__(self) -> float:
        return 98.0


@pytest.mark.parametrize("dtype", [fe.Int32, fe.Float64])
def test_a_subclass_is_taken_as_what_it_holds(dtype: Any) -> None:
    @fe.jit
    def same(x: dtype):  # type: ignore[valid-type]
        return x

    function = fe.compile(same, dtype, options=CPU)
    assert function(LyingInt(3)) == 3
    if dtype is fe.Float64:
        assert function(LyingFloat(2.5)) == 2.5


def test_a_subclass_as_any_value() -> None:
    @fe.jit
    def same(x):
        return x

    function = fe.compile(same, specs.AnyValue("x"), options=CPU)
    assert [function(LyingInt(3)), function(LyingFloat(2.5))] == [3, 2.5]


# ---- torch: tensors that stand for others ----


def _transformed(how: str, run: Callable[[Any], Any]) -> None:
    """Give `run` a tensor that stands for others in torch."""
    import torch

    x = torch.zeros(2, 3)
    if how == "fake":
        from torch._subclasses import FakeTensorMode

        with FakeTensorMode():
            fake = torch.zeros(3)
        run(fake)
    elif how == "vmap":
        torch.vmap(run)(x)
    elif how == "grad":
        torch.func.grad(lambda each: (run(each), each.sum())[1])(x[0])
    else:
        torch.func.jvp(lambda each: (run(each), each.sum())[1], (x[0],), (x[0],))


@pytest.mark.needs_torch
@pytest.mark.parametrize("how", ["fake", "vmap", "grad", "jvp"])
@pytest.mark.parametrize("way", ["entry", "bind", "keyword"])
def test_a_tensor_that_stands_for_others_is_refused_by_name(way: str, how: str) -> None:
    with pytest.raises(TypeError, match=r"(?s)on argument #0 .* fe\.torch_op"):
        _transformed(how, _ways()[way])


# ---- what has an array inside ----


class Frame:
    """As the columns of pandas, Polars and xarray."""

    def to_numpy(self) -> Any:
        return np.ones(3, np.float32)


class Proxy:
    """As arrays of packages without DLPack."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.ones(3, np.float32)


INSIDE = {
    "memoryview": (lambda: memoryview(np.ones(3, np.float32)), r"numpy\.asarray\(value\)"),
    "array.array": (lambda: array("f", [1, 1, 1]), r"numpy\.asarray\(value\)"),
    "bytes": (lambda: b"12345678", r"numpy\.frombuffer\(value, dtype\)"),
    "bytearray": (lambda: bytearray(8), r"numpy\.frombuffer\(value, dtype\)"),
    "to_numpy": (Frame, r"value\.to_numpy\(\)"),
    "__array__": (Proxy, r"numpy\.asarray\(value\)"),
}


@pytest.mark.parametrize("name", list(INSIDE))
def test_a_value_with_an_array_inside_says_how_to_pass_it(name: str) -> None:
    make, says = INSIDE[name]
    with pytest.raises(TypeError, match=rf"argument #0 .*: pass .*{says}"):
        _ways()["entry"](make())


PACKAGES = {
    "pandas": ("Series", lambda kind, x: kind(x), r"Series of pandas: .*to_numpy"),
    "polars": ("Series", lambda kind, x: kind(x), r"Series of polars: .*to_numpy"),
    "xarray": ("DataArray", lambda kind, x: kind(x), r"DataArray of xarray: .*to_numpy"),
}


@pytest.mark.parametrize("package", list(PACKAGES))
def test_columns_and_labelled_arrays_say_how_to_pass_their_array(package: str) -> None:
    name, make, says = PACKAGES[package]
    kind = getattr(pytest.importorskip(package), name)
    value = make(kind, np.ones(3, np.float32))
    with pytest.raises(TypeError, match=says):
        _ways()["entry"](value)
    _ways()["entry"](np.array(value.to_numpy()))


def test_an_arrow_array_is_a_tensor_that_is_only_read() -> None:
    arrow = pytest.importorskip("pyarrow")
    value = arrow.array(np.ones(3, np.float32))
    out = np.zeros(3, np.float32)
    fe.compile(copied, _vector(), _vector(), options=CPU)(value, out)
    assert (out == 1).all()


def test_arrays_of_ml_dtypes_are_tensors() -> None:
    kind = pytest.importorskip("ml_dtypes").bfloat16
    vector = _vector(fe.BFloat16)
    x, y = np.arange(3).astype(kind), np.zeros(3, kind)
    fe.compile(copied, vector, vector, options=CPU)(x, y)
    assert (x == y).all()

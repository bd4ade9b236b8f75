"""Values of JAX, ml_dtypes and cuda-python, as examples and in calls; nothing needs a GPU."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import specs
from ferrule.runtime import Function, from_dlpack, tensor_spec
from ferrule.runtime.values import foreign
from ferrule.specs.text import kind_text

CPU = "--target cpu"


def text(spec: specs.Param) -> str:
    return kind_text(spec, {}, full=True)


def add(a, b, k: fe.Float32):
    for i in range(a.shape[0]):
        b[i] = a[i] + k


def adding(dtype: Any) -> Function:
    fake = fe.make_fake_compact_tensor(dtype, (fe.sym_int(),))
    return fe.compile(add, fake, fake, 1.0, options=CPU)


def nothing(x):
    pass


# ---- torch ----


@pytest.mark.needs_torch
@pytest.mark.parametrize("kind", ["sparse", "sparse_csr", "quantized", "nested", "meta"])
def test_a_tensor_of_torch_without_elements_in_memory_is_named(kind: str) -> None:
    import torch

    base = torch.ones(2, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that some of these are deprecated or new
        make: dict[str, Callable[[], Any]] = {
            "sparse": base.to_sparse,
            "sparse_csr": base.to_sparse_csr,
            "quantized": lambda: torch.quantize_per_tensor(base, 0.1, 0, torch.qint8),
            "nested": lambda: torch.nested.nested_tensor([base[0], base[0, :1]]),
            "meta": lambda: base.to("meta"),
        }
        tensor = make[kind]()
    fake = fe.make_fake_tensor("float32", (2, 2), (2, 1))
    function = fe.compile(_two, fake, (fake, 1), options=CPU)
    expected = rf"argument #0 .*a: Tensor\(.*expected Tensor, but got a .*{kind.partition('_')[0]}"
    for call in (
        lambda: function(tensor, (base, 1)),
        lambda: function(b=(base, 1), a=tensor),
        lambda: function.bind(tensor, (base, 1))(),
    ):
        with pytest.raises(TypeError, match=expected) as caught:
            call()
        assert "Exception raised from" not in str(caught.value)
    with pytest.raises(TypeError, match=rf"b\[0\] in argument #1 .*{kind.partition('_')[0]}"):
        function(base, (tensor, 1))
    function(base, (base, 1))


@pytest.mark.needs_torch
def test_a_complex_tensor_that_torch_conjugates_lazily_is_refused() -> None:
    import torch

    fake = fe.make_fake_compact_tensor("complex64", (2,))
    function = fe.compile(_two, fake, (fake, 1), options=CPU)
    plain = torch.ones(2, dtype=torch.complex64)
    lazy = plain.conj()
    for good in (plain, lazy.resolve_conj(), torch.nn.Parameter(plain)):
        function(good, (good, 1))
    for call in (
        lambda: function(lazy, (plain, 1)),
        lambda: function(b=(plain, 1), a=lazy),
        lambda: function.bind(lazy, (plain, 1)),
        lambda: function(plain, (lazy, 1)),
    ):
        with pytest.raises(TypeError, match=r"conjugates lazily: call resolve_conj\(\)"):
            call()


def _two(a, b):
    pass


# ---- ml_dtypes ----

BYTES = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e3m4", "float8_e8m0fnu")


@pytest.mark.parametrize("name", BYTES)
def test_arrays_of_ml_dtypes_are_examples(name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.zeros((2, 3), getattr(ml_dtypes, name))
    assert text(tensor_spec("a", array)) == f"Tensor([2, 3], {name}, device=cpu)"
    turned = from_dlpack(array.T).mark_layout_dynamic()
    assert text(turned.__ferrule_spec__("a")).startswith(f"Tensor([?, ?], {name}, strides=[1, ?]")
    array.flags.writeable = False
    assert tensor_spec("a", array).read_only


def test_arrays_of_ml_dtypes_go_into_calls() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a, b = (np.arange(6).astype(ml_dtypes.bfloat16)[::2] for _ in range(2))
    function = fe.compile(add, *[fe.make_fake_tensor("bfloat16", (3,), (2,))] * 2, 1.0, options=CPU)
    function(a, b, 1.0)
    assert b.tolist() == [1, 3, 5]
    function(from_dlpack(a), from_dlpack(b), ml_dtypes.bfloat16(1.5))
    assert b.tolist() == [1.5, 3.5, 5.5]
    a.flags.writeable = False
    function(a, b, 0)
    assert b.tolist() == [0, 2, 4]
    with pytest.raises(BufferError, match="expected an array that can be written"):
        function(a, a, 0)


def test_an_array_of_another_dtype_is_named() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.zeros(3, ml_dtypes.float8_e5m2)
    with pytest.raises(ValueError, match="expected dtype=float32, but got dtype=float8_e5m2"):
        adding(fe.Float32)(array, array, 1)


@pytest.mark.parametrize("name", ["int4", "uint4", "float4_e2m1fn", "float6_e2m3fn"])
def test_elements_of_less_than_a_byte_are_refused(name: str) -> None:
    """NumPy keeps each in a byte of its own, DLPack packs them."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.zeros(3, getattr(ml_dtypes, name))
    match = f"an array of {name}, which DLPack does not have in this form"
    with pytest.raises(TypeError, match=match):
        tensor_spec("a", array)
    with pytest.raises(TypeError, match=f"expected Tensor, but got {match}"):
        adding(fe.Float32)(array, array, 1)


def test_scalars_of_ml_dtypes_are_examples() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    compiled = fe.compile(nothing, ml_dtypes.bfloat16(3), options=CPU)
    assert str(compiled.signature) == "nothing(x: bfloat16)"


@pytest.mark.parametrize(
    ("example", "dtype"),
    [
        (np.float64(3), "float64"),
        (np.float32(3), "float32"),
        (np.int8(3), "int8"),
        (np.uint64(3), "uint64"),
        (np.bool_(True), "bool"),
    ],
)
def test_scalars_of_numpy_are_examples(example: Any, dtype: str) -> None:
    assert str(fe.compile(nothing, example, options=CPU).signature) == f"nothing(x: {dtype})"


# ---- JAX ----


def test_arrays_of_jax_are_examples() -> None:
    jax = pytest.importorskip("jax")
    for name in ("float32", "bfloat16", "int8", "bool", "float8_e4m3fn", "complex64"):
        spec = tensor_spec("a", jax.numpy.zeros((2, 3), name))
        assert text(spec) == f"Tensor([2, 3], {name}, device=cpu, read_only=True)"


def test_arrays_of_jax_are_read_and_not_written() -> None:
    jax = pytest.importorskip("jax")
    function, out = adding(fe.Float32), np.zeros(3, np.float32)
    a = jax.numpy.arange(3, dtype="float32")
    function(a, out, 1)
    assert out.tolist() == [1, 2, 3]
    match = r"Mismatched b on argument #1 .*expected an array that can be written, but got one of J"
    for array in (a, from_dlpack(a)):
        with pytest.raises(BufferError, match=match):
            function(out, array, 1)
    assert a.tolist() == [0, 1, 2]


def test_dtypes_of_jax_are_dtypes() -> None:
    jax = pytest.importorskip("jax")
    for dtype in (jax.numpy.bfloat16, jax.numpy.dtype("bfloat16")):
        assert foreign.data_type(dtype) == foreign.DataTypeValue(4, 16)


# ---- cuda-python ----


def test_streams_of_cuda_python() -> None:
    driver = pytest.importorskip("cuda.bindings.driver")

    def annotated(a, s: driver.CUstream):
        a[0] = 1.0

    def plain(a, s):
        a[0] = 1.0

    stream = driver.CUstream(0x1234)
    for function in (annotated, plain):
        array = np.zeros(2, np.float32)
        compiled = fe.compile(function, from_dlpack(array), stream, options=CPU)
        assert str(compiled.signature).endswith("s: Stream)")
        for given in (stream, driver.CUstream(0), 0, None):
            compiled(array, given)
    found = foreign.stream(stream)
    assert isinstance(found, ctypes.c_void_p) and found.value == 0x1234


def test_pointers_of_cuda_python() -> None:
    driver = pytest.importorskip("cuda.bindings.driver")
    found = foreign.pointer(driver.CUdeviceptr(4096))
    assert isinstance(found, ctypes.c_void_p) and found.value == 4096


def test_streams_of_the_cuda_runtime() -> None:
    runtime = pytest.importorskip("cuda.bindings.runtime")
    stream = runtime.cudaStream_t(77)
    found = foreign.stream(stream)
    assert isinstance(found, ctypes.c_void_p) and found.value == 77
    assert str(fe.compile(nothing, stream, options=CPU).signature) == "nothing(x: Stream)"


def test_a_stream_of_the_protocol_is_an_example() -> None:
    class Stream:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, 0x42

    compiled = fe.compile(nothing, Stream(), options=CPU)
    assert str(compiled.signature) == "nothing(x: Stream)"
    compiled(Stream())

"""What each kind of parameter is given: the type index, the value, and what is refused by name."""

from __future__ import annotations

import ctypes
import gc
import sys
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
import tvm_ffi

from ferrule import specs
from ferrule.runtime import Function, from_dlpack
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.calls.function import HEAP
from ferrule.runtime.calls.plan import accepted_types
from ferrule.runtime.values.foreign import has_big_ints

from .conftest import Maker

F32, I32, I64 = specs.Float32, specs.Int32, specs.Int64
BIG_INT = 78


class Colour(IntEnum):
    RED = 3


class Pair(NamedTuple):
    x: Any
    y: Any


@dataclass
class Point:
    x: Any
    y: Any = 0


@dataclass
class Swapped:
    y: Any
    x: Any


class Opaque:
    def __tvm_ffi_opaque_ptr__(self) -> int:
        return 4096


class CudaStream:
    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 4096


class DriverStream:
    """As cuda-python's CUstream was before the protocol."""

    def __int__(self) -> int:
        return 4096


DriverStream.__module__ = "cuda.bindings.driver"


def tensor(name: str = "a", **options: Any) -> specs.Tensor:
    return specs.Tensor(name, (specs.sym_int(symbol="n"),), F32, **options)


def scalar(name: str, dtype: specs.DType = I32) -> specs.Scalar:
    return specs.Scalar(name, dtype)


def frozen(count: int = 4) -> np.ndarray[Any, Any]:
    array = np.arange(count, dtype=np.float32)
    array.flags.writeable = False
    return array


ARRAY = np.arange(4, dtype=np.float32)
N = specs.sym_int(symbol="n")


def every_kind() -> dict[str, specs.Param]:
    """One parameter of each kind."""
    return {
        type(param).__name__: param
        for param in (
            tensor(owning=True),
            scalar("a"),
            specs.Shape("a", (N, 4)),
            specs.Pointer("a", F32),
            specs.Stream("a"),
            specs.Tuple("a", (scalar("0"), tensor("1"))),
            specs.Optional("a", scalar("a")),
            specs.Union("a", (scalar("a"), specs.String("a"))),
            specs.String("a"),
            specs.Bytes("a"),
            specs.DataType("a"),
            specs.Device("a"),
            specs.NoneValue("a"),
            specs.Constant("a", 3),
            specs.Function("a"),
            specs.Array("a", scalar("a")),
            specs.List("a", scalar("a")),
            specs.Map("a", specs.String("a"), scalar("a")),
            specs.Dict("a", specs.String("a"), scalar("a")),
            specs.Object("a", "ffi.Function"),
            specs.Module("a"),
            specs.AnyValue("a"),
        )
    }


def test_the_list_of_kinds_is_whole() -> None:
    from typing import get_args

    kinds = {kind.__name__ for kind in get_args(specs.Param)}
    assert kinds == {*every_kind(), "EnvStream", "AnyOrTuple"}


GOOD: list[tuple[str, Any, int]] = [
    ("Tensor", ARRAY, TypeIndex.TENSOR),
    ("Tensor", tvm_ffi.from_dlpack(ARRAY), TypeIndex.TENSOR),
    ("Tensor", from_dlpack(ARRAY), TypeIndex.TENSOR),
    ("Tensor", from_dlpack(ARRAY).mark_layout_dynamic(), TypeIndex.TENSOR),
    ("Scalar", 1, TypeIndex.INT),
    ("Scalar", True, TypeIndex.BOOL),
    ("Scalar", np.bool_(True), TypeIndex.BOOL),
    ("Scalar", np.uint16(1), TypeIndex.INT),
    ("Scalar", Colour.RED, TypeIndex.INT),
    ("Scalar", specs.Int8(1), TypeIndex.INT),
    ("Shape", (4, 4), TypeIndex.ARRAY),
    ("Shape", [4, np.int64(4)], TypeIndex.ARRAY),
    ("Shape", tvm_ffi.Shape((4, 4)), TypeIndex.SHAPE),
    ("Pointer", ctypes.c_void_p(4096), TypeIndex.OPAQUE_PTR),
    ("Pointer", Opaque(), TypeIndex.OPAQUE_PTR),
    ("Pointer", DriverStream(), TypeIndex.OPAQUE_PTR),
    ("Pointer", specs.make_ptr(F32, 4096), TypeIndex.OPAQUE_PTR),
    ("Pointer", specs.nullptr(F32), TypeIndex.OPAQUE_PTR),
    ("Pointer", 4096, TypeIndex.INT),
    ("Pointer", np.uint64(4096), TypeIndex.INT),
    ("Pointer", None, TypeIndex.NONE),
    ("Stream", CudaStream(), TypeIndex.OPAQUE_PTR),
    ("Stream", DriverStream(), TypeIndex.OPAQUE_PTR),
    ("Stream", Opaque(), TypeIndex.OPAQUE_PTR),
    ("Stream", ctypes.c_void_p(4096), TypeIndex.OPAQUE_PTR),
    ("Stream", 4096, TypeIndex.INT),
    ("Stream", None, TypeIndex.NONE),
    ("Tuple", (1, ARRAY), TypeIndex.ARRAY),
    ("Tuple", [1, ARRAY], TypeIndex.ARRAY),
    ("Tuple", Pair(1, ARRAY), TypeIndex.ARRAY),
    ("Tuple", Point(1, ARRAY), TypeIndex.ARRAY),
    ("Tuple", tvm_ffi.Array([1, ARRAY]), TypeIndex.ARRAY),
    ("Tuple", tvm_ffi.List([1, ARRAY]), TypeIndex.LIST),
    ("Tuple", tvm_ffi.Shape((1, 2)), TypeIndex.ARRAY),
    ("Optional", None, TypeIndex.NONE),
    ("Optional", 1, TypeIndex.INT),
    ("Optional", np.int8(1), TypeIndex.INT),
    ("Union", np.int8(1), TypeIndex.INT),
    ("Union", "x", TypeIndex.SMALL_STR),
    ("String", "short", TypeIndex.SMALL_STR),
    ("String", "long enough for the heap", TypeIndex.STR),
    ("String", np.str_("short"), TypeIndex.SMALL_STR),
    ("Bytes", b"short", TypeIndex.SMALL_BYTES),
    ("Bytes", bytearray(b"long enough for the heap"), TypeIndex.BYTES),
    ("DataType", tvm_ffi.dtype("float32"), TypeIndex.DATA_TYPE),
    ("DataType", "float32", TypeIndex.SMALL_STR),
    ("DataType", F32, TypeIndex.DATA_TYPE),
    ("DataType", specs.Complex64, TypeIndex.DATA_TYPE),
    ("DataType", np.dtype(np.float32), TypeIndex.DATA_TYPE),
    ("DataType", np.dtype(np.complex64), TypeIndex.DATA_TYPE),
    ("DataType", np.dtype(bool), TypeIndex.DATA_TYPE),
    ("DataType", np.float16, TypeIndex.DATA_TYPE),
    ("Device", tvm_ffi.device("cpu", 0), TypeIndex.DEVICE),
    ("Device", "cuda:1", TypeIndex.SMALL_STR),
    ("NoneValue", None, TypeIndex.NONE),
    ("Constant", 3, TypeIndex.INT),
    ("Constant", np.int16(3), TypeIndex.INT),
    ("Function", lambda: 1, TypeIndex.FUNCTION),
    ("Function", len, TypeIndex.FUNCTION),
    ("Function", tvm_ffi.convert(lambda: 1), TypeIndex.FUNCTION),
    ("Array", (1, np.int8(2)), TypeIndex.ARRAY),
    ("Array", tvm_ffi.Array([1]), TypeIndex.ARRAY),
    ("Array", tvm_ffi.List([1]), TypeIndex.ARRAY),
    ("List", [1, np.bool_(True)], TypeIndex.LIST),
    ("List", tvm_ffi.List([1]), TypeIndex.LIST),
    ("List", tvm_ffi.Array([1]), TypeIndex.LIST),
    ("Map", {"a": np.int8(1)}, TypeIndex.MAP),
    ("Map", tvm_ffi.Map({"a": 1}), TypeIndex.MAP),
    ("Dict", {"a": np.int8(1)}, TypeIndex.DICT),
    ("Dict", tvm_ffi.Dict({"a": 1}), TypeIndex.DICT),
    ("Object", tvm_ffi.convert(lambda: 1), TypeIndex.FUNCTION),
    ("Module", tvm_ffi.system_lib(), TypeIndex.MODULE),
    ("AnyValue", 1.5, TypeIndex.FLOAT),
    ("AnyValue", np.bool_(True), TypeIndex.BOOL),
    ("AnyValue", specs.Float32(1), TypeIndex.FLOAT),
    ("AnyValue", F32, TypeIndex.DATA_TYPE),
    ("AnyValue", ARRAY, TypeIndex.TENSOR),
    ("AnyValue", Point(1, 2), TypeIndex.ARRAY),
    ("AnyValue", tvm_ffi.Shape((1, 2)), TypeIndex.SHAPE),
    ("AnyValue", {"a": np.int8(1)}, TypeIndex.MAP),
    ("AnyValue", None, TypeIndex.NONE),
    ("AnyValue", object(), TypeIndex.OPAQUE_PY_OBJECT),
]


@pytest.mark.parametrize(("kind", "value", "index"), GOOD)
def test_what_arrives(make: Maker, kind: str, value: Any, index: int) -> None:
    """By position, by keyword and as the default: the same."""
    param = every_kind()[kind]
    function = make.index(param)
    assert function(value) == index
    assert function(a=value) == index
    plain = make.index(specs.Scalar("z", I32), param)
    assert plain(np.int8(1), value) == index


@pytest.mark.parametrize("kind", every_kind())
def test_a_list_that_holds_itself_is_an_error(make: Maker, kind: str) -> None:
    """On the way tvm-ffi would follow it until the stack ends."""
    itself: list[Any] = [1]
    itself.append(itself)
    function = make.index(every_kind()[kind])
    for value in (itself, (1, itself), (itself,), ((1, 2, itself), 2), {"a": itself}):
        with pytest.raises(RecursionError):
            function(value)


@pytest.mark.parametrize("kind", every_kind())
def test_the_gate_gives_what_the_slow_path_gives(make: Maker, kind: str) -> None:
    """A value of an accepted type arrives as the slow path would have passed it on."""
    param = every_kind()[kind]
    entry = accepted_types(param)
    taken = {*entry.types, entry.array}
    function = make.index(param)
    values = [value for name, value, _ in GOOD if name == kind and type(value) in taken]
    for value in values:
        assert function(value) == function(a=value)
    for value in values if HEAP is not None else []:
        assert not _python_calls(lambda value=value: function(value))


def _python_calls(call: Any) -> list[str]:
    names: list[str] = []

    def profile(frame: Any, event: str, argument: object) -> None:
        if event == "call" and "ferrule" in frame.f_code.co_filename:
            names.append(frame.f_code.co_name)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return [name for name in names if name != "<lambda>"]


@pytest.mark.parametrize("kind", every_kind())
def test_help_and_keywords(make: Maker, kind: str) -> None:
    import inspect

    param = every_kind()[kind]
    function = make.count(specs.EnvStream("stream", "cuda"), param, name="f")
    assert list(inspect.signature(function).parameters) == ["a"]
    shown = str(inspect.signature(function))
    assert f"f{shown}" == str(function.signature) == function.__doc__
    with pytest.raises(TypeError, match=r"f\(\) missing 1 required positional argument: 'a'"):
        function()
    with pytest.raises(TypeError, match=r"f\(\) got an unexpected keyword argument 'stream'"):
        function(None, stream=1)
    assert repr(function) == f"<ferrule.Function {function.signature}>"


def test_defaults(make: Maker) -> None:
    import inspect

    function = make.echo(
        specs.Optional("a", tensor(), default=None),
        specs.String("b", default="x = 1"),
        specs.Tuple("c", (scalar("0"), specs.Bytes("1")), default=(np.int8(1), b"z")),
    )
    assert list(function()) == [1, b"z"]
    assert list(function(ARRAY, c=(2, b"y"))) == [2, b"y"]
    assert function.signature.arguments[1].default == "x = 1"
    parameters = inspect.signature(function).parameters
    assert parameters["a"].default is None
    assert str(parameters["b"].annotation) == "str"
    late = make.echo(specs.Scalar("k", I32, 3), tensor("t", owning=True))
    assert inspect.signature(late).parameters["t"].kind is inspect.Parameter.KEYWORD_ONLY
    assert np.from_dlpack(late(t=ARRAY))[1] == 1


def test_handles(make: Maker) -> None:
    pointer, stream = make.payload(specs.Pointer("a")), make.payload(specs.Stream("a"))
    for value in (Opaque(), DriverStream(), specs.make_ptr(F32, 4096), ctypes.c_void_p(4096)):
        assert pointer(value) == stream(value) == 4096
    assert stream(CudaStream()) == 4096
    assert pointer(specs.nullptr(F32)) == 0


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (F32, 0x00012002),
        (specs.BFloat16, 0x00011004),
        (specs.Complex64, 0x00014005),
        (specs.Float4E2M1FN, 0x00010411),
        (np.dtype(bool), 0x00010806),
        (np.uint8, 0x00010801),
        (tvm_ffi.dtype("float8_e4m3fn"), 0x0001080A),
    ],
)
def test_dtypes_have_their_code_bits_and_lanes(make: Maker, value: Any, word: int) -> None:
    assert make.payload(specs.DataType("a"))(value) == word
    assert make.payload(specs.AnyValue("a"))(value) == word


def test_nested(make: Maker) -> None:
    point = specs.Tuple("0", (scalar("x"), specs.DataType("y")), fields=True)
    nested = specs.Tuple("a", (point, specs.Shape("1", (N, 2)), tensor("2", read_only=True)))
    came = make.echo(nested)((Point(np.int8(1), F32), [specs.Int32(4), 2], frozen()))
    assert list(came[0]) == [1, "float32"]
    assert list(came[1]) == [4, 2]
    np.testing.assert_array_equal(np.from_dlpack(came[2]), frozen())


def test_containers_are_filled_with_what_is_meant(make: Maker) -> None:
    inner = specs.Array("a", specs.Array("a", scalar("a")))
    came = make.echo(inner)([(np.int8(1),), [np.bool_(True), Colour.RED]])
    assert [list(part) for part in came] == [[1], [True, 3]]
    tensors = specs.Dict("a", None, specs.Tensor("a", (4,), F32, read_only=True))
    made = make.echo(tensors)({"x": frozen(), np.int8(1): ARRAY})
    assert isinstance(made, tvm_ffi.Dict)
    assert sorted(map(str, made)) == ["1", "x"]
    anything = make.echo(specs.AnyValue("a"))([Pair(np.int8(1), F32), {"k": np.bool_(False)}])
    assert list(anything[0]) == [1, "float32"]
    assert anything[1]["k"] is False


def message(call: Any, kind: type[Exception]) -> str:
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    assert caught.value.__context__ is None
    depth, trace = 0, caught.value.__traceback__
    while trace is not None:
        depth, trace = depth + 1, trace.tb_next
    # This function's frame, the lambda's, and at most three below.
    assert depth <= 5
    return str(caught.value)


def test_fakes_are_no_arguments(make: Maker) -> None:
    fake = specs.make_fake_compact_tensor(F32, (4,))
    assert message(lambda: make.index(tensor())(fake), TypeError) == (
        "Mismatched type on argument #0 when calling: `index(a: Tensor([n], float32))`, "
        "expected Tensor, but got a fake tensor, which stands for a tensor while compiling"
    )
    pair = specs.Tuple("t", (scalar("0"), specs.Stream("1")))
    assert message(lambda: make.index(pair)((1, specs.make_fake_stream())), TypeError) == (
        "Mismatched type on t[1] in argument #0 when calling: "
        "`index(t: Tuple[int32, Stream])`, "
        "expected Stream, but got a fake stream, which stands for a stream while compiling"
    )


def test_arrays_that_cannot_be_written(make: Maker) -> None:
    np.testing.assert_array_equal(
        np.from_dlpack(make.echo(tensor(read_only=True, owning=True))(frozen())), frozen()
    )
    for value in (frozen(), from_dlpack(frozen())):
        assert message(lambda value=value: make.index(tensor())(value), BufferError) == (
            "Mismatched a on argument #0 when calling: `index(a: Tensor([n], float32))`, "
            "expected an array that can be written, but got a read-only one"
        )
    nested = specs.Tuple("t", (specs.Tuple("0", (tensor("0"),)),))
    text = message(lambda: make.index(nested)(((frozen(),),)), BufferError)
    assert text.startswith("Mismatched t[0][0] on t[0][0] in argument #0 when calling: `index(t: ")
    assert "read-only" in message(lambda: make.index(specs.AnyValue("a"))([frozen()]), BufferError)


@pytest.mark.parametrize(
    "array",
    [
        frozen(0),
        frozen()[::-1],
        np.broadcast_to(np.float32(1), (4,)),
        np.frombuffer(b"\0\0\x80?" * 4, np.float32),
    ],
)
def test_read_only_memory_is_passed_and_not_copied(
    make: Maker, array: np.ndarray[Any, Any]
) -> None:
    came = np.from_dlpack(make.echo(tensor(read_only=True, owning=True))(array))
    np.testing.assert_array_equal(came, array)
    assert came.ctypes.data == array.ctypes.data
    held = sys.getrefcount(array)
    del came
    gc.collect()
    assert sys.getrefcount(array) == held - 1


@pytest.mark.parametrize("value", [Fraction(1, 2), np.timedelta64(5, "s")])
def test_numbers_that_are_none(make: Maker, value: Any) -> None:
    name = type(value).__qualname__
    assert message(lambda: make.index(scalar("a", F32))(value), TypeError) == (
        "Mismatched type on argument #0 when calling: `index(a: float32)`, "
        f"expected float, but got {name}"
    )
    assert "expected int, but" in message(lambda: make.index(scalar("a"))(value), TypeError)
    assert "expected Any, but" in message(lambda: make.index(specs.AnyValue("a"))(value), TypeError)


def test_what_goes_on_to_be_refused(make: Maker) -> None:
    """The wrapper sees a type index that its kind does not take."""
    index = make.index(scalar("a"))
    for value in (Decimal(1), np.array(1), 1j, np.complex64(1), object(), np.datetime64(0, "s")):
        assert index(value) not in (TypeIndex.INT, TypeIndex.BOOL, TypeIndex.FLOAT)
    pointer = make.index(specs.Pointer("a"))
    assert pointer(1.5) == TypeIndex.FLOAT
    assert pointer(True) == TypeIndex.BOOL
    assert pointer(ARRAY) == TypeIndex.TENSOR
    assert make.index(specs.String("a"))(tvm_ffi.dtype("float32")) == TypeIndex.DATA_TYPE
    assert make.index(specs.DataType("a"))(float) == TypeIndex.FUNCTION
    assert make.index(tensor())(1) == TypeIndex.INT
    assert make.index(specs.Shape("a", (N,)))(4) == TypeIndex.INT
    assert list(make.echo(specs.Tuple("a", (scalar("0"),)))((1, 2))) == [1, 2]


def test_fields_have_names(make: Maker) -> None:
    items = (scalar("x"), scalar("y"))
    echo = make.echo(specs.Tuple("t", items, fields=True))
    assert list(echo(Point(1, 2))) == list(echo(Pair(1, 2))) == list(echo((1, 2))) == [1, 2]
    assert message(lambda: echo(Swapped(1, 2)), TypeError) == (
        "Mismatched type on argument #0 when calling: `echo(t: Tuple[int32, int32])`, "
        "expected a tuple with the fields x, y, but got Swapped(y, x)"
    )
    plain = make.echo(specs.Tuple("t", (scalar("0"), scalar("1"))))
    assert list(plain(Swapped(1, 2))) == [1, 2]


def test_attributes_are_fields_and_c_arrays_are_tuples(make: Maker) -> None:
    class Number:
        _type_, value = ctypes.c_int32, 2

    class Struct:
        x, y = 1, Number()

    items = (scalar("x"), scalar("y"))
    named = make.echo(specs.Tuple("t", items, fields=True))
    assert list(named(Struct())) == [1, 2]
    assert list(named((ctypes.c_int32 * 2)(1, 2))) == [1, 2]
    plain = make.index(specs.Tuple("t", (scalar("0"), scalar("1"))))
    assert plain(Struct()) != plain((1, 2))


def test_large_integers(make: Maker) -> None:
    index = make.index(scalar("a", specs.Uint64))
    assert index((1 << 63) - 1) == TypeIndex.INT
    for value in (1 << 63, (1 << 64) - 1, np.uint64(1 << 63), specs.Uint64(1 << 63)):
        if has_big_ints():
            assert index(value) == BIG_INT
        else:
            text = message(lambda value=value: index(value), ValueError)
            assert text.startswith("Out of bound value on argument #0 when calling: `index(a: ")


def test_an_error_of_the_value_itself_is_kept(make: Maker) -> None:
    class Broken:
        def __tvm_ffi_opaque_ptr__(self) -> int:
            raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        make.index(specs.Pointer("a"))(Broken())


def test_unions_ask_each_member(make: Maker) -> None:
    kept = tensor(read_only=True, owning=True)
    members = (kept, scalar("a"), specs.Pointer("a"), specs.DataType("a"))
    union = specs.Union("a", members)
    index = make.index(union)
    wanted = [TypeIndex.TENSOR, TypeIndex.INT, TypeIndex.OPAQUE_PTR, TypeIndex.DATA_TYPE]
    assert [index(v) for v in (frozen(), np.int8(1), Opaque(), F32)] == wanted
    assert [index(v) for v in (ARRAY, 1, ctypes.c_void_p(1), "float32")][:3] == wanted[:3]
    tuples = specs.Union("a", (specs.Tuple("a", (scalar("0"),)), specs.NoneValue("a")))
    assert list(make.echo(tuples)(Point(1, 2))) == [1, 2]
    assert make.index(tuples)(None) == TypeIndex.NONE


def test_a_function_of_ferrule_is_a_callback(make: Maker) -> None:
    add = make.add()
    assert isinstance(add, Function)
    assert make.index(specs.Function("a"))(add) == TypeIndex.FUNCTION
    assert make.echo(specs.Function("a"))(add)(1, 2) == 3


def test_references_stay_flat(make: Maker) -> None:
    nested = make.index(specs.Tuple("a", (scalar("0"), tensor("1", read_only=True))))
    array, refused = frozen(), make.index(tensor())
    nested((1, array))
    before = sys.getrefcount(array)
    for _ in range(500):
        nested(Point(np.int8(1), array))
        with pytest.raises(BufferError):
            refused(array)
    assert sys.getrefcount(array) == before


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_number_of_numpy_is_no_tensor_of_a_union(make: Maker, order: tuple[int, int]) -> None:
    members = specs.Tensor("a", (specs.sym_int(),), F32), scalar("a", F32)
    function = make.index(specs.Union("a", tuple(members[i] for i in order)))
    for value, index in [
        (np.float32(1), TypeIndex.FLOAT),
        (np.int64(1), TypeIndex.INT),
        (np.bool_(True), TypeIndex.BOOL),
        (np.zeros(2, np.float32), TypeIndex.DLTENSOR_PTR),
    ]:
        assert function(value) == index
        assert function(a=value) == index
    for tensor in (members[0], specs.Optional("a", members[0])):
        with pytest.raises(TypeError, match="got float32 of numpy: pass its array, numpy.asarray"):
            make.index(tensor)(np.float32(1))


@pytest.mark.needs_torch
def test_torch(make: Maker) -> None:
    import torch

    for kind, value, index in [
        ("Tensor", torch.zeros(4), TypeIndex.TENSOR),
        ("Tensor", from_dlpack(torch.zeros(4)), TypeIndex.TENSOR),
        ("Tensor", torch.nn.Parameter(torch.zeros(4)), TypeIndex.TENSOR),
        ("Tensor", torch.zeros(4, requires_grad=True) + 1, TypeIndex.TENSOR),
        ("Shape", torch.zeros(4, 4).shape, TypeIndex.ARRAY),
        ("Tuple", torch.Size((1, 2)), TypeIndex.ARRAY),
        ("DataType", torch.float32, TypeIndex.DATA_TYPE),
        ("Device", torch.device("cpu"), TypeIndex.DEVICE),
        ("AnyValue", torch.device("cpu"), TypeIndex.DEVICE),
        ("Array", torch.Size((1, 2)), TypeIndex.ARRAY),
    ]:
        assert make.index(every_kind()[kind])(value) == index
        assert make.index(every_kind()[kind])(a=value) == index
    words = make.payload(specs.DataType("a"))
    assert words(torch.complex64) == specs.Complex64.dlpack
    assert words(torch.bfloat16) == specs.BFloat16.dlpack
    assert words(torch.float8_e5m2) == specs.Float8E5M2.dlpack
    if hasattr(torch, "float4_e2m1fn_x2"):
        assert words(torch.float4_e2m1fn_x2) == 0x00020411
    with pytest.raises(TypeError, match="expected dtype, but got torch.qint8, which DLPack"):
        words(torch.qint8)
    devices = make.payload(specs.Device("a"))
    assert devices(torch.device("cuda", 3)) == 2 | 3 << 32
    assert devices(torch.device("mps")) == 8

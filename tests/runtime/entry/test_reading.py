"""What the direct entry reads by itself, and as what it arrives."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from packed_functions import KEEP, function, number, payload

from ferrule import specs
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.calls.function import HEAP
from ferrule.runtime.entry.key import CallTraits, EntryKey, entry_key
from ferrule.runtime.entry.readers import Form, Reader, readers_of

pytestmark = pytest.mark.skipif(HEAP is None, reason="this interpreter has no slot for a call")

INDEX = number("  %k = load i32, ptr %args\n  %x = sext i32 %k to i64")
PAYLOAD = number(payload(0))

N = specs.sym_int(symbol="n")


def tensor(name: str = "a", **options: Any) -> specs.Tensor:
    return specs.Tensor(name, (N,), specs.Float32, **options)


def scalar(name: str, dtype: specs.DType = specs.Int64) -> specs.Scalar:
    return specs.Scalar(name, dtype)


def field(offset: int, kind: str) -> str:
    """A body that returns a field of the DLTensor of the first argument."""
    wide = "add i64 %v, 0" if kind == "i64" else f"zext {kind} %v to i64"
    return number(
        "  %p = getelementptr i8, ptr %args, i64 8\n  %dl = load ptr, ptr %p\n"
        f"  %f = getelementptr i8, ptr %dl, i64 {offset}\n"
        f"  %v = load {kind}, ptr %f\n  %x = {wide}"
    )


@pytest.mark.parametrize(
    ("param", "value", "index"),
    [
        (tensor(), np.zeros(2, np.float32), TypeIndex.DLTENSOR_PTR),
        (tensor(), tvm_ffi.from_dlpack(np.zeros(2, np.float32)), TypeIndex.TENSOR),
        (tensor(owning=True), np.zeros(2, np.float32), TypeIndex.TENSOR),
        (specs.AnyValue("a"), np.zeros(2, np.float32), TypeIndex.TENSOR),
        (specs.Optional("a", tensor()), None, TypeIndex.NONE),
        (specs.Tuple("a", (scalar("0"), tensor("1"))), (1, np.zeros(2)), TypeIndex.ARRAY),
        (scalar("a"), 3, TypeIndex.INT),
        (scalar("a"), True, TypeIndex.BOOL),
        (scalar("a", specs.Float32), 1.5, TypeIndex.FLOAT),
        (specs.String("a"), "short", TypeIndex.SMALL_STR),
        (specs.String("a"), "long enough for the heap", TypeIndex.STR),
        (specs.Bytes("a"), b"short", TypeIndex.SMALL_BYTES),
        (specs.Pointer("a"), ctypes.c_void_p(4096), TypeIndex.OPAQUE_PTR),
        (specs.Function("a"), tvm_ffi.get_global_func("ffi.Array"), TypeIndex.FUNCTION),
    ],
)
def test_a_value_arrives_as_its_kind(param: specs.Param, value: Any, index: int) -> None:
    assert function(INDEX, param)(value) == index


@pytest.mark.parametrize("value", [0, 1, -1, 2**30, -(2**30), 2**63 - 1, -(2**63)])
def test_ints_arrive_whole(value: int) -> None:
    assert function(PAYLOAD, scalar("a"))(value) == value


def test_floats_and_addresses_arrive_bit_by_bit() -> None:
    bits = function(PAYLOAD, scalar("a", specs.Float64))
    for value in (0.0, -0.0, 1.5, float("inf"), 5e-324):
        assert bits(value) == struct.unpack("<q", struct.pack("<d", value))[0]
    assert function(PAYLOAD, specs.Pointer("a"))(ctypes.c_void_p(0x1234)) == 0x1234
    assert function(PAYLOAD, specs.Pointer("a"))(ctypes.c_void_p()) == 0


@pytest.mark.parametrize("kind", "?bhilqBHILQefdFD")
def test_every_dtype_of_an_array_arrives_as_numpy_exports_it(kind: str) -> None:
    array = np.zeros(3, kind)
    taken = tvm_ffi.from_dlpack(array)
    held = ctypes.c_uint32.from_address(taken.__chandle__() + 24 + 20).value
    assert function(field(20, "i32"), tensor())(array) == held


def test_an_array_arrives_with_its_address_and_dims() -> None:
    array = np.zeros((4, 6), np.float32)[::-1, ::2]
    assert function(field(0, "i64"), tensor())(array) == array.ctypes.data
    assert function(field(8, "i64"), tensor())(array) == 1
    assert function(field(16, "i32"), tensor())(array) == 2
    element = "  %w = load ptr, ptr %f\n  %e = getelementptr i64, ptr %w, i64 {}\n"
    for offset, wanted in ((24, (4, 3)), (32, (-6, 2))):
        for axis, size in enumerate(wanted):
            body = field(offset, "i64").replace(
                "  %v = load i64, ptr %f", element.format(axis) + "  %v = load i64, ptr %e"
            )
            assert function(body, tensor())(array) == size


def test_what_no_entry_reads_has_no_readers() -> None:
    assert readers_of([scalar("a"), specs.Array("b")]) is None
    one = specs.Tuple("a", (scalar("0"),))
    assert readers_of([specs.Union("a", (specs.List("a", scalar("a")), one))]) is None
    assert readers_of([specs.Tuple("a", (specs.Array("0"),))]) is None


def test_the_key_is_of_kinds_and_not_of_the_function() -> None:
    first = specs.Signature("f", (tensor("a"), scalar("k", specs.Int8)))
    second = specs.Signature("g", (specs.Tensor("x", (3, 4), specs.Int8), scalar("y")))
    assert entry_key(first, KEEP) == entry_key(second, KEEP)
    assert entry_key(first, KEEP) != entry_key(first, CallTraits())
    readers = (
        Reader((Form.ARRAY, Form.TORCH, Form.TENSOR)),
        Reader((Form.INT, Form.BOOL, Form.NUMBER)),
    )
    assert entry_key(first, KEEP) == EntryKey(readers, False, False, False, 0)


def test_functions_of_one_key_share_their_entry() -> None:
    assert HEAP is not None
    made = [function(INDEX, tensor(name), traits=KEEP) for name in "ab"]
    places = [id(each) + HEAP.vectorcall_offset for each in made]
    before = [ctypes.c_uint64.from_address(place).value for place in places]
    for each in made:
        each(np.zeros(2))
    after = [ctypes.c_uint64.from_address(place).value for place in places]
    assert before[0] == before[1] != after[0] == after[1]


@pytest.mark.needs_torch
def test_tensors_of_torch_and_its_plain_subclasses_are_borrowed() -> None:
    import torch

    class Plain(torch.Tensor):
        pass

    class Own(torch.Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(*args, **(kwargs or {}))

    index, base = function(INDEX, tensor()), torch.zeros(4)
    borrowed = [base, torch.nn.Parameter(base), base.as_subclass(Plain), base.requires_grad_()]
    assert [index(each) for each in borrowed] == [TypeIndex.DLTENSOR_PTR] * len(borrowed)
    assert index(base.detach().as_subclass(Own)) == TypeIndex.TENSOR
    assert function(INDEX, tensor(owning=True))(base) == TypeIndex.TENSOR


def test_a_tuple_of_borrowed_tensors_is_made_once_and_let_go() -> None:
    body = number(
        "  %p = getelementptr i8, ptr %args, i64 8\n  %o = load ptr, ptr %p\n"
        "  %c = getelementptr i8, ptr %o, i64 24\n  %items = load ptr, ptr %c\n"
        "  %k = load i32, ptr %items\n  %x = sext i32 %k to i64"
    )
    first = function(body, specs.Tuple("a", (tensor("0"), specs.String("1"))))
    assert first((np.zeros(2), "long enough for the heap")) == TypeIndex.DLTENSOR_PTR


NUMBERS = [np.dtype(character).type for character in "?bhilqBHILQefdg"]


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("dtype", [specs.Int64, specs.Float64, specs.Boolean])
def test_numbers_of_numpy_are_read_as_python_s(kind: Any, dtype: specs.DType) -> None:
    """As the call does that converts them in Python; a refusal is the same."""
    head = function(WORD.format(0), scalar("a", dtype))
    word = function(WORD.format(8), scalar("a", dtype))
    values = [kind(0), kind(1), kind(100)]
    if kind(0).dtype.kind in "iu":
        # Larger ones are left to the gate.
        values += [kind(min(np.iinfo(kind).max, (1 << 63) - 1)), kind(np.iinfo(kind).min)]
    for value in values:
        plain = value.item() if not isinstance(value, np.longdouble) else float(value)
        for called in (head, word):
            assert _outcome(called, value) == _outcome(called, plain)


WORD = number("  %p = getelementptr i8, ptr %args, i64 {}\n  %x = load i64, ptr %p")


def _outcome(called: Any, value: Any) -> Any:
    try:
        return called(value)
    except (TypeError, ValueError, OverflowError) as error:
        return str(error)


def test_a_tuple_of_ints_is_a_shape() -> None:
    shape = specs.Shape("a", (2, N))
    called = function(KIND_OF_VALUE, shape)
    assert called((2, 3)) == TypeIndex.ARRAY
    assert called(tvm_ffi.Shape((2, 3))) == TypeIndex.SHAPE
    assert called([2, 3]) == TypeIndex.ARRAY


KIND_OF_VALUE = number("  %k = load i32, ptr %args\n  %x = sext i32 %k to i64")

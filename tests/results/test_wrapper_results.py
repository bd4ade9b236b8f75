"""What a wrapper makes of the leaves that a body left, for every kind of result."""

from __future__ import annotations

import ctypes
import math
import struct
import sys

import numpy as np
import pytest
import tvm_ffi
from llvm_text import verified
from result_bodies import function, origin, plain, scalar

from ferrule.compiler.artefacts import RAISED, Fault
from ferrule.specs import params as P
from ferrule.specs import parse_signature, sym_int
from ferrule.specs.signature import Signature


@pytest.mark.parametrize(
    ("dtype", "leaf", "value"),
    [
        ("int8", "-128", -128),
        ("int16", "-2", -2),
        ("int32", "-2147483648", -(2**31)),
        ("int64", "-9223372036854775808", -(2**63)),
        ("uint8", "255", 255),
        ("uint16", "65535", 65535),
        ("uint32", "4294967295", 2**32 - 1),
        ("uint64", "9223372036854775807", 2**63 - 1),
        ("bool", "1", True),
        ("bool", "0", False),
        ("float32", "0x3FF8000000000000", 1.5),
        ("float64", "0x400921FB54442D18", math.pi),
        ("bfloat16", "-16317", -3.046875),
    ],
)
def test_numbers_come_back_as_python_numbers(dtype: str, leaf: str, value: object) -> None:
    found = plain(scalar(dtype), leaf)()
    assert (found, type(found)) == (value, type(value))


def test_a_float16_is_widened_exactly() -> None:
    half = [0, 0x8000, 1, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xC248, 0x7BFF, 0x7C00, 0xFC00]
    items = P.Tuple("result", [scalar("float16", str(i)) for i in range(len(half))])
    found = function(items, *map(str, half))()
    wanted = np.array(half, np.uint16).view(np.float16).astype(float)
    assert struct.pack("11d", *found) == struct.pack("11d", *wanted)
    assert math.isnan(plain(scalar("float16"), str(0x7E00))())


@pytest.mark.needs_wide_ints
@pytest.mark.parametrize("value", [2**63, 2**64 - 1])
def test_an_unsigned_number_past_the_signed_ones_is_exact(value: int) -> None:
    assert plain(scalar("uint64"), str(value - 2**64))() == value
    pair = P.Tuple("result", [scalar("uint64"), scalar("uint64", "1")])
    assert function(pair, str(value - 2**64), "7")() == (value, 7)


@pytest.mark.parametrize("text", ["", "seven b", "eight by", "größer als klein", "a\0b", "x" * 999])
def test_strings_and_bytes_come_back_whole(text: str) -> None:
    data = text.encode()
    for kind, wanted in ((P.String, text), (P.Bytes, data)):
        found = plain(kind("result"), "@t", str(len(data)), text=data)()
        assert found == wanted
        pair = P.Tuple("result", [kind("0"), kind("1")])
        leaves = ("@t", str(len(data)), "@t", "0")
        assert function(pair, *leaves, text=data)() == (wanted, wanted[:0])


def test_dtypes_devices_pointers_and_shapes() -> None:
    kinds = [P.DataType("0"), P.Device("1"), P.Shape("2", (3, sym_int())), P.Pointer("3")]
    found = function(P.Tuple("result", kinds), "73730", "4294967298", "3", "4", "null")()
    dtype, device, shape, pointer = found
    assert (str(dtype), str(device)) == ("float32", "cuda:1")
    assert (type(shape), shape) == (tvm_ffi.Shape, (3, 4))
    assert pointer is None or pointer.value is None
    assert plain(P.Shape("result", (0, 5)), "0", "5")() == (0, 5)


def test_a_tuple_comes_back_as_a_tuple_at_any_depth() -> None:
    inner = P.Tuple("2", [P.Tuple("0", ()), P.NoneValue("1"), scalar("bool", "2")])
    result = P.Tuple("result", [scalar("int32"), P.String("1"), inner])
    leaves = ("5", "@t", "2", "1")
    assert function(result, *leaves, text=b"ab")() == (5, "ab", ((), None, True))
    # Any other caller gets tvm-ffi's own container.
    assert isinstance(plain(result, *leaves, text=b"ab")(), tvm_ffi.Array)


def test_names_of_fields_do_not_come_back() -> None:
    fields = P.Tuple("result", [scalar("int32", "x"), scalar("int32", "y")], fields=True)
    found = function(fields, "1", "2")()
    assert (found, type(found)) == ((1, 2), tuple)


def test_a_missing_object_is_none() -> None:
    kinds = [P.Tensor("0", (2,), "float32"), P.Function("1"), P.Object("2", "x.Y"), P.Map("3")]
    assert function(P.Tuple("result", kinds), *["null"] * 4)() == (None,) * 4
    assert plain(P.Tensor("result", (2,), "float32"), "null")() is None


def test_a_failed_call_leaves_no_result() -> None:
    fault = Fault("ValueError", "no result today")
    made = origin(scalar("int32"), ["5"], status=1, faults=[fault])
    assert _called(made) == (-1, (0, 0, 0))


def test_a_body_can_set_the_error_itself() -> None:
    fault = Fault("ValueError", "unused")
    made = origin(scalar("int32"), ["5"], status=RAISED, faults=[fault])
    assert _called(made) == (-1, (0, 0, 0))


def _called(made: object) -> tuple[int, tuple[int, ...]]:
    """The status of a call through C, and what its result holds."""
    from result_bodies import _engine

    engine = _engine(made)
    kind = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p
    )
    result = (ctypes.c_int32 * 4)()
    status = kind(engine.address("__tvm_ffi_f"))(None, None, 0, ctypes.addressof(result))
    low, high = result[2], result[3]
    return status, (result[0], result[1], low | high)


def test_results_are_part_of_the_text() -> None:
    result = P.Tuple("result", [scalar("int32"), P.Tensor("1", (sym_int(symbol="m"),), "float16")])
    signature = Signature("f", (P.Scalar("a", "int32"),), result)
    assert str(signature) == "f(a: int32) -> Tuple[int32, Tensor([m], float16)]"
    assert parse_signature(signature.text()) == signature
    assert parse_signature("f() -> None") == Signature("f", ())


def test_the_function_says_what_it_returns() -> None:
    import inspect

    made = function(P.Tuple("result", [scalar("int32"), P.String("1")]), "1", "null", "0")
    assert str(inspect.signature(made)) == "() -> Tuple[int32, str]"


@pytest.mark.parametrize("kind", [P.Stream, P.Optional])
def test_what_nobody_can_own_is_no_result(kind: type) -> None:
    made = kind("0") if kind is P.Stream else kind("0", P.String("0"))
    with pytest.raises(ValueError, match=rf"f: a function cannot return a {kind.__name__}"):
        Signature("f", (), P.Tuple("result", [made]))


def test_wrappers_without_a_result_have_no_code_for_one() -> None:
    from ferrule.compiler.artefacts import Body
    from ferrule.compiler.origin import host_module

    module = host_module(Signature("f", ()), Body("", "ferrule_body", ()))
    assert "result" not in module.wrapper.replace("ptr %result)", "")


def test_every_kind_of_result_is_sound_llvm() -> None:
    kinds = [P.Function, P.Array, P.List, P.Map, P.Dict, P.Module, P.String, P.Bytes, P.DataType]
    items = [kind(str(i)) for i, kind in enumerate(kinds)]
    items += [P.Object("9", "a.B"), P.Shape("10", (1, 2, 3)), scalar("uint64", "11")]
    made = origin(
        P.Tuple("result", items), ["null"] * 6 + ["@t", "0", "@t", "0", "0", "null", *"1230"]
    )
    verified(made.module.wrapper)


def test_numbers_and_tuples_of_them_do_not_meet_python() -> None:
    calls = []
    made = function(scalar("int32"), "4")
    numbers = [scalar(kind) for kind in ("int32", "float64", "bool")]
    tuples = function(P.Tuple("result", [*numbers, P.NoneValue("3")]), "4", "2.0", "1")
    nested = function(P.Tuple("result", [P.Tuple("0", ())]))

    def profile(frame: object, event: str, argument: object) -> None:
        calls.append(event)

    def events(called: object) -> int:
        calls.clear()
        sys.setprofile(profile)
        try:
            called()  # type: ignore[operator]
        finally:
            sys.setprofile(None)
        return calls.count("call")

    assert (made(), tuples()) == (4, (4, 2.0, True, None))
    assert (events(made), events(tuples)) == (0, 0)
    assert events(nested) >= 1

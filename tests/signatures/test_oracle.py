"""The oracle itself: what it says of plain calls, and how good the random ones are."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from draws import hypothesised
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle.arguments import Argument, Big, Handle, Items, NullView, Numbers, Opaque, Text, View
from oracle.calls import calls
from oracle.judge import Accepted, judge
from oracle.leaves import Characters, ObjectAt, SlotAt, StreamOf, types_of
from oracle.rounding import bits_of, is_nan
from oracle.signatures import signatures
from oracle.wrong import Wrong

from ferrule.specs import Float32, Int32, Scalar, Signature, Tensor, sym_int
from ferrule.specs.params import (
    AnyValue,
    EnvStream,
    Function,
    Optional,
    Param,
    Pointer,
    Shape,
    String,
    Tuple,
    Union,
)

N = sym_int(symbol="n", divisibility=2)
A = Tensor("a", (N,), Float32, device="cpu")
FOUR = View((4,), (1,))


def verdict(params: tuple[Param, ...], *arguments: Argument) -> Any:
    return judge(Signature("f", params), arguments)


@pytest.mark.parametrize(
    ("param", "argument", "leaves"),
    [
        (A, FOUR, (4096,)),
        (Scalar("x", "float16"), 1.0, (0x3C00,)),
        (Scalar("x", "uint64"), Big(1 << 63), (1 << 63,)),
        (Scalar("x", "int8"), -1, (0xFF,)),
        (Shape("s", (N, -3), "Coord"), Numbers((4, -3)), ()),
        (Optional("a", A), None, (0, 0)),
        (Optional("a", A), FOUR, (1, 4096)),
        (Union("u", (Scalar("u", Int32), A)), FOUR, (1, 0, 4096)),
        (Tuple("t", (Scalar("0", Int32), AnyValue("1"))), Items((7, None)), (7, SlotAt((0, 1)))),
        (Pointer("p"), None, (0,)),
        (Pointer("p", align=16), 32, (32,)),
        (String("s"), Text(b"ab", "raw"), (Characters(b"ab"), 2)),
        (Function("f"), Handle("ffi.Function"), (ObjectAt((0,)),)),
    ],
)
def test_what_is_accepted(param: Param, argument: Argument, leaves: tuple[Any, ...]) -> None:
    outcome = verdict((param,), argument)
    assert isinstance(outcome, Accepted)
    assert outcome.leaves == leaves
    assert len(types_of(param)) == len(leaves)


def test_an_env_stream_is_no_argument() -> None:
    outcome = verdict((EnvStream("s", "cuda"), Scalar("x", Int32)), 3)
    assert isinstance(outcome, Accepted)
    assert outcome.leaves == (StreamOf((2, 0)), 3)


@pytest.mark.parametrize(
    ("params", "arguments", "kind", "opening"),
    [
        ((A,), (), "TypeError", "Expects "),
        ((A,), (NullView(),), "TypeError", "Mismatched type on argument #0 "),
        ((A, A), (View((3,), (1,)), 1), "TypeError", "Mismatched type on argument #1 "),
        ((A,), (View((3,), (1,)),), "ValueError", "Invalid a.shape[0] on argument #0 "),
        ((A,), (View((1 << 31,), (1,)),), "ValueError", "Out of bound a.shape[0] on argument #0 "),
        ((A, A), (FOUR, View((6,), (1,))), "ValueError", "Mismatched b.shape[0] on argument #1 "),
        ((A,), (View((4,), (2,)),), "ValueError", "Mismatched a.strides[0] on argument #0 "),
        ((A,), (View((4,), (1,), data=2),), "ValueError", "Misaligned Tensor data on argument #0 "),
        ((Tuple("t", (A,)),), (Items((1,)),), "TypeError",
         "Mismatched type on t[0] in argument #0 "),
        ((Tuple("t", (A,)),), (Items((View((3,), (1,)),)),), "ValueError",
         "Invalid t[0].shape[0] on t[0] in argument #0 "),
        ((Shape("s", (N,)),), (Items((True,)),), "TypeError",
         "Invalid shape element type s[0] on argument #0 "),
        ((Pointer("p", nullable=False),), (Opaque(0),), "ValueError", "*on argument #0 "),
    ],
)  # fmt: skip
def test_what_is_refused(
    params: tuple[Param, ...], arguments: tuple[Argument, ...], kind: str, opening: str
) -> None:
    if len(params) == 2:
        params = (params[0], Tensor("b", (N,), Float32, device="cpu"))
    outcome = verdict(params, *arguments)
    assert isinstance(outcome, Wrong)
    assert (outcome.kind, outcome.opening) == (kind, opening)


@given(st.floats(allow_nan=False, width=64))
def test_rounding_is_that_of_python_where_python_has_one(value: float) -> None:
    for name, code in (("float16", "<e"), ("float32", "<f"), ("float64", "<d")):
        try:
            packed = struct.pack(code, value)
        except OverflowError:
            packed = struct.pack(code, float("inf") if value > 0 else float("-inf"))
        assert bits_of(name, value) == int.from_bytes(packed, "little")


def test_rounding_to_bfloat16() -> None:
    assert bits_of("bfloat16", 1.00390625) == 0x3F80  # between two: the even one
    assert bits_of("bfloat16", 1.01171875) == 0x3F82
    assert bits_of("bfloat16", 1.00390625 + 2**-40) == 0x3F81  # float32 would make it a tie
    assert bits_of("bfloat16", 3.4e38) == 0x7F80
    assert bits_of("bfloat16", -1e-45) == 0x8000
    assert is_nan("bfloat16", 0x7FC0) and not is_nan("bfloat16", 0x7F80)


def test_rounding_to_tfloat32() -> None:
    assert bits_of("tfloat32", 1 + 2**-11) == 0x3F800000  # between two: the even one
    assert bits_of("tfloat32", 1 + 3 * 2**-11) == 0x3F804000
    assert bits_of("tfloat32", 1 + 2**-11 + 2**-40) == 0x3F802000  # float32 would make it a tie
    assert bits_of("tfloat32", 3.4028e38) == 0x7F800000
    assert bits_of("tfloat32", -(2.0**-137)) == 0x80000000
    assert is_nan("tfloat32", 0x7FC00000)
    assert not is_nan("tfloat32", 0x7F800000) and not is_nan("tfloat32", 0x7FC00001)


def test_random_calls_are_good_and_bad() -> None:
    """Neither outcome is rare, nor any class of error."""
    counts: dict[str, int] = {}

    @settings(
        max_examples=200,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        signature = data.draw(hypothesised(signatures()))
        for _ in range(4):
            outcome = judge(signature, data.draw(hypothesised(calls(signature))))
            key = outcome.kind if isinstance(outcome, Wrong) else "accepted"
            counts[key] = counts.get(key, 0) + 1

    draw()
    total = sum(counts.values())
    assert set(counts) == {"accepted", "TypeError", "ValueError"}
    assert all(count > total / 20 for count in counts.values()), counts

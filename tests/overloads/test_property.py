"""An overload does what trying its candidates one after the other does."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, Literal

import numpy as np
import pytest
import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st

import ferrule as fe
from ferrule.specs import params


def tensor(dtype: Any, *shape: Any, **options: Any) -> Any:
    sizes = tuple(fe.sym_int(divisibility=-n) if n < 0 else n for n in shape)
    order = tuple(reversed(range(len(shape))))
    return fe.make_fake_compact_tensor(dtype, sizes, stride_order=order, **options)


def strided(dtype: Any, rank: int) -> Any:
    sizes = tuple(fe.sym_int() for _ in range(rank))
    return fe.make_fake_tensor(dtype, sizes, tuple(fe.sym_int64() for _ in range(rank)))


EXAMPLES: Final[tuple[tuple[Any, Any], ...]] = (
    (tensor(fe.Float32, -1), None),
    (tensor(fe.Float32, -4, assumed_align=16), None),
    (tensor(fe.Float32, 4), None),
    (tensor(fe.Float16, -1), None),
    (tensor(fe.Int8, -1), None),
    (tensor(fe.Uint8, -1), None),
    (tensor(fe.Float32, -1, -1), None),
    (tensor(fe.Float32, 2, -2), None),
    (strided(fe.Float32, 2), None),
    (tensor(fe.Float32, -1), fe.Tensor | None),
    (fe.Boolean, None),
    (fe.Int8, None),
    (fe.Int64, None),
    (fe.Uint64, None),
    (fe.Float32, None),
    ("", None),
    (b"", None),
    ("", fe.Int32 | str),
    (params.Constant("a", "mode"), None),
    (params.Constant("a", 1), None),
    (params.DataType("a"), None),
    (params.Device("a"), None),
    (params.Shape("a", (fe.sym_int(), 2)), None),
    ((fe.Int32, fe.Float32), None),
    ((fe.Int32, tensor(fe.Float32, -1)), None),
    (None, None),
    (params.Pointer("a"), None),
    (params.Array("a", params.Scalar("0", fe.Int32)), None),
    (params.List("a"), None),
    (params.Map("a", params.String("0"), params.Scalar("1", fe.Float32)), None),
    (params.Function("a"), None),
    (params.Tuple("a", (params.Optional("0", params.Bytes("0")),)), None),
    (params.AnyValue("a"), None),
)


def arrays() -> list[Any]:
    memory = np.zeros(256, np.uint8)
    memory = memory[-memory.ctypes.data % 16 :]
    floats = memory[:128].view(np.float32)
    square = floats[:16].reshape(4, 4)
    return [
        *(floats[:4], floats[:5], floats[1:5], floats[:0], floats[:8:2], floats[:1]),
        *(memory[2:6].view(np.float16), memory[:3].view(np.int8), memory[:3]),
        *(square, square.T, square[:1, :2], square[:2, :2], square[:, :1], square[:2, :0]),
        *(np.zeros((2, 2)), np.zeros((2, 2, 2), np.float32), np.float32(1) + np.zeros(())),
    ]


VALUES: Final = (
    *arrays(),
    *(True, 0, 1, -1, 127, 128, -(1 << 63), (1 << 63) - 1, 1 << 63, 1 << 64, 0.5, float("nan")),
    *("", "mode", "float32", "cuda:1", "a text of more than seven bytes", b"", b"mode", None),
    *((1, 2), (1, 0.5), [3, 2], (1, "x"), (1, np.zeros(2, np.float32)), (), (b"x",), (None,)),
    *({}, {"a": 1}, {"a": b"x"}, {1: 1}, tvm_ffi.Array([1, 2]), tvm_ffi.List([1, "x"])),
    *(tvm_ffi.Shape((3, 2)), tvm_ffi.dtype("int8"), tvm_ffi.device("cpu"), print, object()),
)


@cache
def candidate(kind: int, result: int) -> fe.Function:
    """A function of one parameter of a kind that gives back a number."""
    example, annotation = EXAMPLES[kind]

    def chosen(a):
        return result

    if annotation is not None:
        chosen.__annotations__["a"] = annotation
    return fe.compile(chosen, example, options="--target cpu")


def outcome(function: Any, value: Any) -> int | Literal["refused"]:
    try:
        return int(function(value))
    except (TypeError, ValueError, BufferError, OverflowError):
        return "refused"


def one_after_the_other(candidates: list[fe.Function], value: Any) -> int | Literal["refused"]:
    for each in candidates:
        found = outcome(each, value)
        if found != "refused":
            return found
    return "refused"


KINDS: Final = st.lists(st.integers(0, len(EXAMPLES) - 1), min_size=2, max_size=4)


@settings(max_examples=20)
@given(KINDS)
def test_an_overload_agrees_with_trying_its_candidates_in_turn(kinds):
    candidates = [candidate(kind, place) for place, kind in enumerate(kinds)]
    both = fe.overload(candidates, "f")
    for value in VALUES:
        wanted = one_after_the_other(candidates, value)
        assert outcome(both, value) == wanted, (both, value)


def test_the_values_of_the_property_reach_every_kind():
    """Else the property above would prove nothing of some kind."""
    for kind, example in enumerate(EXAMPLES):
        found = {outcome(candidate(kind, 0), value) for value in VALUES}
        wanted = {0} if isinstance(example[0], params.AnyValue) else {0, "refused"}
        assert wanted <= found, example


@pytest.mark.parametrize("kind", [1, 8])
def test_a_special_kind_before_every_other_one(kind):
    """Those whose hot path refuses what their checker takes."""
    for other in range(0, len(EXAMPLES), 2):
        pair = [candidate(kind, 0), candidate(other, 1)]
        both = fe.overload(pair, "f")
        for value in VALUES[:18]:
            assert outcome(both, value) == one_after_the_other(pair, value), (other, value)

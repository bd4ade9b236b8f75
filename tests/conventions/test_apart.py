"""Calls whose arrays must share no memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ferrule import compiler, specs
from ferrule.compiler.conventions import NULL, Apart, CFunction, FirstOf, Sequence
from ferrule.compiler.conventions.apart import ends
from ferrule.runtime import Function
from ferrule.specs import Optional, Scalar, Signature, Tensor

n = specs.sym_int64(symbol="n")
x, y, w = (Tensor(name, (n,), "float32") for name in ("x", "y", "w"))
memory = np.zeros(64, np.float32)


def built(check: Apart, *params: Any, **more: Any) -> Function:
    params = params or (x, y, w)
    return compiler.build(Signature("f", params), check, **more)


def test_arrays_that_share_memory_are_refused_and_both_are_named() -> None:
    fn = built(Apart(y, read=[x, w]))
    with pytest.raises(ValueError, match=r"y and x overlap in memory, expected arrays apart: the"):
        fn(memory[:8], memory[1:9], memory[40:48])
    with pytest.raises(ValueError, match="y and w overlap in memory"):
        fn(memory[:8], memory[16:24], memory[23:31])


def test_arrays_side_by_side_and_those_that_are_read_are_taken() -> None:
    fn = built(Apart(y, read=[x, w]))
    fn(memory[:8], memory[8:16], memory[:8])
    fn(memory[4:12], memory[12:20], memory[:8])
    fn(memory[:0], memory[:0], memory[:0])


def test_all_that_are_written_are_apart_from_each_other() -> None:
    fn = built(Apart(x, y.data, w))
    fn(memory[:8], memory[8:16], memory[16:24])
    with pytest.raises(ValueError, match="x and w overlap in memory"):
        fn(memory[:8], memory[8:16], memory[7:15])


def test_strides_tell_where_memoryends() -> None:
    m, s, t = (specs.sym_int64() for _ in range(3))
    a = Tensor("a", (m, 4), "int16", strides=(s, t))
    b = Tensor("b", (specs.sym_int64(),), "int8")
    fn = built(Apart(a, b), a, b)
    raw = np.zeros(256, np.int8)
    rows = raw[64:128].view(np.int16).reshape(4, 8)[::-1, ::2]
    fn(rows, raw[:64])
    fn(rows, raw[126:])
    for inside in (raw[:65], raw[125:]):
        with pytest.raises(ValueError, match="a and b overlap"):
            fn(rows, inside)


def test_two_elements_of_a_packed_tensor_are_one_byte() -> None:
    a = Tensor("a", (6,), "float4_e2m1fn", packed=True)
    wide = Tensor("wide", (6,), "int4")  # of NumPy, a byte for each
    assert (ends(a), ends(wide)) == ((0, 3), (0, 6))


def test_an_optional_tensor_that_is_not_there_overlaps_nothing() -> None:
    maybe = Optional("maybe", Tensor("maybe", (n,), "float32"))
    fn = built(Apart(y, read=[maybe]), y, maybe)
    fn(memory[:8], None)
    fn(memory[:8], memory[8:16])
    with pytest.raises(ValueError, match="y and maybe overlap"):
        fn(memory[:8], memory[7:15])


def test_what_the_call_allocates_is_apart() -> None:
    scratch = Tensor("scratch", (n,), "float32")
    steps = [Apart(y, scratch, read=[x]), CFunction("memmove", [y.data, x.data, x.nbytes])]
    fn = built(Sequence(steps, temporaries=[scratch]), x, results=[y])
    assert np.array_equal(np.from_dlpack(fn(memory[:8])), memory[:8])


def test_it_is_asked_where_its_condition_holds() -> None:
    check = Apart(y, read=[x], when=n > 4, hint="say in_place=True")
    fn = built(FirstOf([check, Apart(y, read=[w])]))
    fn(memory[:4], memory[:4], memory[8:12])
    with pytest.raises(ValueError, match="apart: say in_place=True"):
        fn(memory[:5], memory[:5], memory[8:13])


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (lambda: Apart(y), ValueError, "expected a tensor that is written, and another"),
        (lambda: Apart(read=[x, y]), ValueError, "expected a tensor that is written, and another"),
        (lambda: Apart(y, x, read=[y]), ValueError, "y is named twice"),
        (lambda: Apart(y, [x]), TypeError, r"say which are read alone as read=\[…\]"),
        (lambda: Apart(y, Scalar("k", "int32")), TypeError, "expected tensors, .*Scalar 'k'"),
        (lambda: Apart(y, NULL), TypeError, "expected tensors"),
        (lambda: Apart(y, read=x), TypeError, "the tensors of `read` must be in a list"),
        (lambda: Apart(y, x, hint=3), TypeError, "hint must be a text"),
        (lambda: Apart(y, x, when=True), TypeError, "condition"),
    ],
)
def test_wrong_arguments(make: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        make()


def test_a_tensor_of_another_signature_is_refused_by_the_build() -> None:
    with pytest.raises(ValueError, match="Tensor 'w' is in no parameter"):
        built(Apart(x, w), x, y)

"""Values of a call that are given back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import CFunction, Give, Out, Sequence, cast
from ferrule.specs import Pointer, Scalar, Signature, Tensor

N, M = (specs.sym_int(symbol=name) for name in "nm")
X = Tensor("x", (N, M), "float32")


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


def test_other_values_are_refused() -> None:
    for wrong in (X, specs.String("s"), 1.5, None, True, "n"):
        with pytest.raises(TypeError, match="Give: expected a size, a number or a Pointer"):
            Give(wrong)
    with pytest.raises(ValueError, match="expected a size or a parameter"):
        Give()
    with pytest.raises(ValueError, match="in no parameter of f"):
        compiler.build(Signature("f", [Scalar("a", "int32")]), Give(N))

"""`NoneValue` among the results of `build`: None at its place in the tuple."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import CFunction
from ferrule.specs import NoneValue, Signature, Tensor

N = specs.sym_int(symbol="n")
X = Tensor("x", (N,), "float32")


def copy_of(results: Sequence[Tensor | NoneValue], to: Tensor = X) -> fe.Function:
    step = CFunction("memcpy", [to.data, X.data, X.nbytes])
    return compiler.build(Signature("copy", (X,)), step, results=results)


def test_none_stands_where_it_was_said() -> None:
    y, z = Tensor("y", (N,), "float32"), Tensor("z", (N,), "float32")
    x = np.arange(3, dtype=np.float32)
    for results, kinds in (
        ([y, NoneValue("a")], [True, False]),
        ([NoneValue("a"), z, NoneValue("b"), y], [False, True, False, True]),
    ):
        function = copy_of(results, y)
        found = function(x)
        assert [each is not None for each in found] == kinds
        at = next(at for at, each in enumerate(results) if each is y)
        assert np.from_dlpack(found[at]).tolist() == [0, 1, 2]
        assert "None" in str(function)


def test_none_alone() -> None:
    x = np.zeros(3, np.float32)
    assert tuple(copy_of([NoneValue("a"), NoneValue("b")])(x)) == (None, None)
    assert copy_of([NoneValue("a")])(x) is None


def test_its_name_is_of_its_own() -> None:
    with pytest.raises(ValueError, match="the result 'x' is called as a parameter is"):
        copy_of([NoneValue("x")])

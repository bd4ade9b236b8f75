"""Direct calls whose code is known are quick, and get the function that the whole way gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import ferrule as fe
from ferrule.language import decorators

FACTOR = 2.0


def fresh() -> tuple[Any, Any]:
    """A function, and one with a constant."""

    @fe.jit
    def scaled(a: fe.Tensor, b: fe.Tensor, times=1.0):
        for i in range(a.shape[0]):
            b[i] = a[i] * times * FACTOR

    @fe.jit
    def raised(a: fe.Tensor, power: fe.Constexpr, b: fe.Tensor):
        for i in range(a.shape[0]):
            b[i] = a[i] * power

    return scaled, raised


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The calls that went the whole way."""
    seen: list[Any] = []
    before = decorators.JitFunction._whole_way

    def counted(self: Any, args: Any, kwargs: Any) -> Any:
        seen.append(args)
        return before(self, args, kwargs)

    monkeypatch.setattr(decorators.JitFunction, "_whole_way", counted)
    return seen


def test_the_second_call_is_quick(whole: list[Any]) -> None:
    scaled, _ = fresh()
    for size in (3, 5, 3, 5):
        a, b = np.ones(size, np.float32), np.zeros(size, np.float32)
        scaled(a, b, 3.0)
        assert (b == 6).all()
    assert len(whole) == 2
    scaled(a, b, times=1.0)
    scaled(a, b=b, times=4.0)
    scaled(a, b)
    assert (b == 2).all()
    assert len(whole) == 5
    for _ in range(2):
        scaled(a, b, times=1.0)
        scaled(a, b=b, times=4.0)
    assert (b == 8).all()
    assert len(whole) == 5


OTHERS = {
    "dtype": lambda a, b: (a.astype(np.float64), b.astype(np.float64), 3.0),
    "class of a number": lambda a, b: (a, b, 3),
    "size": lambda a, b: (a[:2].copy(), b[:2].copy(), 3.0),
    "strides": lambda a, b: (np.ones(8, np.float32)[::2], b, 3.0),
    "dims": lambda a, b: (a.reshape(4), b.reshape(4), 3.0),
}


@pytest.mark.parametrize("other", list(OTHERS))
def test_other_arguments_go_the_whole_way(other: str, whole: list[Any]) -> None:
    scaled, _ = fresh()
    a, b = np.ones(4, np.float32), np.zeros(4, np.float32)
    scaled(a, b, 3.0)
    given = OTHERS[other](a, b)
    scaled(*given)
    assert (given[1] == 6).all()
    assert len(whole) == (1 if other == "dims" else 2)


def test_constants_are_compared_by_value_and_class(whole: list[Any]) -> None:
    _, raised = fresh()
    a, b = np.ones(3, np.float32), np.zeros(3, np.float32)
    for power in (2, 3, True, 1, 0.0, -0.0, 2, 3, True, 1, 0.0, -0.0):
        raised(a, power, b)
        assert (b == np.float32(power)).all()
        assert np.signbit(b[0]) == np.signbit(np.float32(power))
    assert len(whole) == 6
    raised(a, power=2, b=b)
    raised(a, b=b, power=2)
    assert (b == 2).all()
    raised(a, np.float32(5), b)  # no class whose values are compared here
    raised(a, np.float32(5), b)
    assert len(whole) == 9


def test_what_is_around_the_function_is_looked_at(
    whole: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    scaled, _ = fresh()
    a, b = np.ones(3, np.float32), np.zeros(3, np.float32)
    scaled(a, b)
    monkeypatch.setitem(globals(), "FACTOR", 7.0)
    scaled(a, b)
    assert (b == 7).all()
    scaled(a, b)
    assert len(whole) == 2
    scaled.function.__defaults__ = (2.0,)
    scaled(a, b)
    assert (b == 14).all()


def test_names_in_annotations_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "Kind", fe.Int64)

    @fe.jit
    def wide(a: fe.Tensor, n: Kind):  # noqa: F821
        a[0] = n

    a = np.zeros(1, np.int64)
    for _ in range(3):
        wide(a, 1 << 40)
        assert a[0] == 1 << 40
    monkeypatch.setitem(globals(), "Kind", fe.Int32)
    with pytest.raises(fe.CompileError, match="range of int32"):
        wide(a, 1 << 40)


def test_errors_of_a_quick_call_are_those_of_a_call() -> None:
    scaled, _ = fresh()
    a, b = np.ones(3, np.float32), np.zeros(3, np.float32)
    scaled(a, b)
    b.flags.writeable = False
    with pytest.raises(BufferError, match="read-only"):
        scaled(a, b)
    with pytest.raises(TypeError):
        scaled(a)
    with pytest.raises(TypeError, match="unexpected keyword"):
        scaled(a, b, wrong=1)


def test_a_subclass_of_an_array_goes_the_whole_way(whole: list[Any]) -> None:
    scaled, _ = fresh()
    a, b = np.ones(3, np.float32), np.zeros(3, np.float32)
    scaled(a, b)
    masked = np.ma.masked_array(a, mask=[True, False, False])
    with pytest.raises((TypeError, fe.CompileError)):
        scaled(masked, b)
    assert len(whole) == 2


@pytest.mark.needs_torch
def test_torch_s_tensors_on_the_cpu_are_quick(whole: list[Any]) -> None:
    import torch

    scaled, _ = fresh()
    for _ in range(3):
        x, y = torch.ones(3), torch.zeros(3)
        scaled(x, y, 3.0)
        assert y.tolist() == [6.0] * 3
    assert len(whole) == 1
    with pytest.raises((TypeError, fe.CompileError), match="negates lazily"):
        scaled(torch._neg_view(x), y, 3.0)
    scaled(np.ones(3, np.float32), y, 3.0)
    assert len(whole) == 3


@dataclass
class Plus:
    by: fe.Int32

    def of(self, x: Any) -> Any:
        return x + self.by


@dataclass
class Times:
    by: fe.Int32

    def of(self, x: Any) -> Any:
        return x * self.by


class Minus(NamedTuple):
    by: int

    def of(self, x: Any) -> Any:
        return x - self.by


@fe.jit
def changed_by(a: fe.Tensor, how: Any, more: tuple[Any]):
    a[0] = more[0].of(how.of(a[0]))


def test_records_of_other_classes_are_other_functions() -> None:
    """Their fields are the same, what their methods do is not."""
    kinds: list[Any] = [Plus, Times, Minus]
    for _ in range(2):
        for first in kinds:
            for second in kinds:
                a = np.full(1, 7, np.int32)
                changed_by(a, first(5), (second(3),))
                assert a[0] == second(3).of(first(5).of(7)), (first, second)


@fe.jit
def rounded(a: fe.Tensor, x: Any):
    a[0] = fe.Float32(x)


def test_narrow_floats_of_other_formats_are_other_functions() -> None:
    for dtype, given in ((fe.Float8E4M3FN, 1.375), (fe.Float8E5M2, 1024.0)):
        a = np.zeros(1, np.float32)
        rounded(a, dtype(given))
        assert a[0] == given  # the first format has nothing so large


LARGE: dict[str, tuple[Any, Any]] = {
    "list": ([0.0] * 100_000, 99_999),
    "dict": (dict.fromkeys(range(5000), 0.0), 4999),
    "ndarray": (np.zeros(5000), 4999),
    "list in a tuple": (([0.0] * 5000,), 4999),
    "objects": (np.array([0.0] * 5000, object), 4999),
    "items that marshal cannot write": ([fe.Float32(0.0)] * 5000, 4999),
}


@pytest.mark.parametrize("kind", LARGE)
def test_changes_inside_of_large_values_are_noticed(kind: str) -> None:
    held, place = LARGE[kind]
    items = held[0] if isinstance(held, tuple) else held

    @fe.jit
    def given(o: fe.Tensor, table: fe.Constexpr, at: fe.Constexpr) -> None:
        o[0] = (table[0] if isinstance(table, tuple) else table)[at]

    @fe.jit
    def outside(o: fe.Tensor) -> None:
        o[0] = items[place]

    o = np.zeros(1)
    for expected in (0.0, 1.0, -0.0, 2.0):
        items[place] = expected
        for call in (lambda: given(o, held, place), lambda: outside(o)):
            o[0] = 9.0
            call()
            assert str(o[0]) == str(expected)

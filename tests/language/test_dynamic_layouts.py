"""Real tensors that stand for tensors of other sizes and strides: the option, and direct calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.cutlass import cute

CPU = "--target cpu"
DYNAMIC = f"{CPU} --dynamic-layout"


def rows(a: fe.Tensor, b: fe.Tensor) -> None:
    print("traced")
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            b[i, j] = a[i, j] * 10 + i


def wanted(a: Any) -> Any:
    return a * 10 + np.arange(a.shape[0])[:, None]


def arrays(*shapes: tuple[int, int]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, 9, shape).astype(np.float64) for shape in shapes]


def test_the_option_makes_one_function_for_all_sizes() -> None:
    first, *others = arrays((2, 3), (5, 4), (1, 7), (3, 1), (0, 2))
    compiled = fe.compile(fe.jit(rows), first, first.copy(), options=DYNAMIC)
    for a in [first, *others, np.ones((6, 8))[::2, :5]]:
        b = np.zeros_like(a)
        compiled(a, b)
        np.testing.assert_array_equal(b, wanted(a))


def test_the_innermost_dim_stays() -> None:
    a = np.ones((2, 3))
    compiled = fe.compile(fe.jit(rows), a, a.copy(), options=DYNAMIC)
    with pytest.raises(ValueError, match=r"Mismatched a.strides\[1\].*expected to be 1, but got 4"):
        compiled(np.ones((3, 4)).T, np.ones((4, 3)))


def test_without_it_the_sizes_are_those_of_the_example() -> None:
    a = np.ones((2, 3))
    compiled = fe.compile(fe.jit(rows), a, a.copy(), options=CPU)
    with pytest.raises(ValueError, match=r"Mismatched a.shape\[0\].*expected to be 2, but got 3"):
        compiled(np.ones((3, 3)), np.ones((3, 3)))


@pytest.mark.parametrize("decorator", [fe.jit(dynamic_layout=True), cute.jit, cute.jit()])
def test_direct_calls_are_compiled_once_for_all_sizes(
    decorator: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    f = decorator(rows)
    for a in arrays((2, 3), (5, 4), (9, 9), (2, 3)):
        b = np.zeros_like(a)
        f(a, b)
        np.testing.assert_array_equal(b, wanted(a))
    assert capsys.readouterr().out.count("traced") == 1
    a = arrays((3, 4))[0].T  # another innermost dim
    b = np.zeros_like(a)
    f(a, b)
    np.testing.assert_array_equal(b, wanted(a))
    assert capsys.readouterr().out.count("traced") == 1


def test_without_it_direct_calls_know_the_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    f = fe.jit(rows)
    for a in arrays((2, 3), (5, 4), (2, 3)):
        f(a, np.zeros_like(a))
    assert capsys.readouterr().out.count("traced") == 2


def test_marked_tensors_are_compiled_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Each has symbols of its own, which mean the same."""
    f = fe.jit(rows)
    for a in arrays((2, 3), (5, 4), (9, 9)):
        b = np.zeros_like(a)
        f(*(fe.from_dlpack(each).mark_layout_dynamic() for each in (a, b)))
        np.testing.assert_array_equal(b, wanted(a))
    assert capsys.readouterr().out.count("traced") == 1


def test_what_symbols_promise_is_part_of_the_key(capsys: pytest.CaptureFixture[str]) -> None:
    """A size that 4 divides is not any size: a later call would be refused."""

    @fe.jit
    def first(a: fe.Tensor) -> None:
        print("traced")
        a[0] = a.shape[0]

    def called(size: int, by: int) -> None:
        a = np.zeros(size)
        first(fe.from_dlpack(a).mark_compact_shape_dynamic(0, divisibility=by))
        assert a[0] == size

    for size, by in ((8, 4), (4, 4), (5, 1), (6, 1), (12, 4)):
        called(size, by)
    assert capsys.readouterr().out.count("traced") == 2


@dataclass
class Pair:
    left: fe.Tensor
    right: fe.Tensor


@fe.jit(dynamic_layout=True)
def sizes(out: fe.Tensor, pairs: tuple[Pair, Pair], *more: fe.Tensor) -> None:
    print("traced")
    out[0] = pairs[0].left.shape[0]
    out[1] = pairs[0].right.shape[0]
    out[2] = pairs[1].left.shape[0]
    out[3] = pairs[1].right.shape[0]
    out[4] = more[0].shape[0]
    out[5] = more[1].shape[0]


def test_each_tensor_has_sizes_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    for lengths in ((3, 3, 3, 3, 3, 3), (1, 2, 3, 4, 5, 6), (6, 5, 4, 3, 2, 1)):
        a, b, c, d, e, f = (np.zeros(n) for n in lengths)
        out = np.zeros(6, np.int64)
        sizes(out, (Pair(a, b), Pair(c, d)), e, f)
        assert tuple(out) == lengths
    assert capsys.readouterr().out.count("traced") == 1


def test_a_broadcast_dim_keeps_its_stride() -> None:
    a = np.broadcast_to(np.arange(3.0), (2, 3)).copy()
    one = np.lib.stride_tricks.as_strided(np.arange(3.0), (2, 3), (0, 8))
    compiled = fe.compile(fe.jit(rows), one, a, options=DYNAMIC)
    b = np.zeros((2, 3))
    compiled(one, b)
    np.testing.assert_array_equal(b, wanted(a))
    with pytest.raises(ValueError, match=r"Mismatched a.strides\[0\].*expected to be 0"):
        compiled(a, b)


def test_it_is_a_bool() -> None:
    with pytest.raises(fe.CompileError, match="dynamic_layout of rows must be a bool, but got 1"):
        fe.jit(dynamic_layout=1)(rows)  # type: ignore[call-overload]
    with pytest.raises(fe.CompileError, match="dynamic_layout must be a bool, but got 1"):
        fe.Options(dynamic_layout=1)  # type: ignore[arg-type]


@pytest.mark.needs_torch
def test_tensors_of_torch(capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    f = cute.jit(rows)
    for shape in ((2, 3), (5, 4), (1, 1), (1, 6)):
        a = torch.arange(shape[0] * shape[1], dtype=torch.float64).reshape(shape)
        b = torch.zeros_like(a)
        f(a, b)
        np.testing.assert_array_equal(b.numpy(), wanted(a.numpy()))
    assert capsys.readouterr().out.count("traced") == 1

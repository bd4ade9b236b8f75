"""Calls count the versions of the torch tensors that they may write, on every way of a call.

Autograd finds by its version that a tensor which it kept was overwritten; without the count the
gradients are wrong, and nobody says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.runtime.values import versions

torch = pytest.importorskip("torch")

CPU = "--target cpu"
N = fe.sym_int()
VECTOR = fe.make_fake_compact_tensor(fe.Float32, (N,))


@fe.jit
def copied(a: fe.Tensor, b: fe.Tensor, times: fe.Int32 = 1):
    b[:] = a[:]


@fe.jit
def into_first(pair: tuple[fe.Tensor, fe.Tensor]):
    pair[0][:] = pair[1][:]


@dataclass
class Pair:
    out: fe.Tensor
    source: fe.Tensor


@fe.jit
def into_member(pair: Pair):
    pair.out[:] = pair.source[:]


@fe.jit
def maybe_filled(a: fe.Tensor, b: fe.Tensor | None = None):
    if b is not None:
        b[:] = a[:]


@fe.jit
def maybe_read(b: fe.Tensor, a: fe.Tensor | None = None):
    if a is not None:
        b[:] = a[:]


@pytest.fixture(scope="module")
def copy() -> Any:
    return fe.compile(copied, VECTOR, VECTOR, fe.Int32(1), options=CPU)


def tensors() -> tuple[Any, Any]:
    return torch.ones(3), torch.zeros(3)


WAYS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "direct": lambda f, a, b: f(a, b, 1),
    "default": lambda f, a, b: f(a, b),
    "keywords": lambda f, a, b: f(b=b, a=a, times=1),
    "slow number": lambda f, a, b: f(a, b, np.int32(1)),
    "subclass": lambda f, a, b: f(a, torch.nn.Parameter(b, requires_grad=False), 1),
    "bound": lambda f, a, b: f.bind(a, b, 1)(),
    "array beside it": lambda f, a, b: f(a.numpy(), b, 1),
    "from_dlpack": lambda f, a, b: f(fe.from_dlpack(a), b, 1),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_written_tensor_is_counted_and_one_that_is_read_is_not(copy: Any, way: str) -> None:
    a, b = tensors()
    for _ in range(3):
        before = a._version, b._version
        WAYS[way](copy, a, b)
        assert a._version == before[0] and b._version > before[1], way
    assert b.tolist() == [1.0, 1.0, 1.0]


def test_each_bound_call_counts(copy: Any) -> None:
    a, b = tensors()
    bound = copy.bind(a, b, 1)
    before = b._version
    for calls in range(1, 4):
        bound()
        assert b._version == before + calls


def test_a_view_shares_its_version(copy: Any) -> None:
    a, base = torch.ones(3), torch.zeros(2, 3)
    copy(a, base[1])
    assert base._version == 1


def test_tuples_members_and_optional_ones() -> None:
    first = fe.compile(into_first, (VECTOR, VECTOR), options=CPU)
    member = fe.compile(into_member, Pair(VECTOR, VECTOR), options=CPU)
    maybe = fe.compile(maybe_filled, VECTOR, VECTOR, options=CPU)
    for call in (
        lambda a, b: first((b, a)),
        lambda a, b: first([b, a]),
        lambda a, b: first.bind((b, a))(),
        lambda a, b: member(Pair(b, a)),
        lambda a, b: maybe(a, b),
        lambda a, b: maybe(a, b=b),
    ):
        a, b = tensors()
        call(a, b)
        assert a._version == 0 and b._version >= 1
        assert b.tolist() == [1.0, 1.0, 1.0]


def test_what_is_only_read_in_tuples_may_be_read_only() -> None:
    first = fe.compile(into_first, (VECTOR, VECTOR), options=CPU)
    maybe = fe.compile(maybe_read, VECTOR, VECTOR, options=CPU)
    frozen, out = np.ones(3, np.float32), np.zeros(3, np.float32)
    frozen.flags.writeable = False
    for call in (
        lambda: first((out, frozen)),
        lambda: first([out, frozen]),
        lambda: first.bind((out, frozen))(),
        lambda: maybe(out, frozen),
        lambda: maybe(out, a=frozen),
    ):
        out[:] = 0
        call()
        assert out.tolist() == [1.0, 1.0, 1.0]
    for refused in (lambda: first((frozen, out)), lambda: maybe(frozen, out)):
        with pytest.raises(BufferError, match="an array that can be written"):
            refused()


def test_autograd_finds_what_a_call_overwrote(copy: Any) -> None:
    x = torch.ones(3, requires_grad=True)
    kept = torch.full((3,), 2.0)
    loss = (x * kept).sum()
    copy(torch.zeros(3), kept)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_tensors_without_a_version(copy: Any) -> None:
    with torch.inference_mode():
        a, b = tensors()
        for way in WAYS.values():
            b.zero_()
            way(copy, a, b)
            assert b.tolist() == [1.0, 1.0, 1.0]


def test_overloads_and_free_dtypes() -> None:
    wide = fe.make_fake_compact_tensor(fe.Float64, (N,))

    @fe.jit
    def filled(a: fe.Tensor, b: fe.Tensor):
        b[:] = a[:]

    both = fe.overload([fe.compile(filled, x, x, options=CPU) for x in (VECTOR, wide)])
    for dtype in (torch.float32, torch.float64):
        a, b = torch.ones(3, dtype=dtype), torch.zeros(3, dtype=dtype)
        both(a, b)
        both(a=a, b=b)
        assert (a._version, b._version) == (0, 2)


# ---- where the counter is ----


def test_the_words_are_found_and_fit() -> None:
    found = versions.version_words()
    assert found is not None, "this torch has another layout: calls count in Python, slowly"
    x = torch.zeros(4)
    for _ in range(5):
        assert found.of(x) == x._version
        x.add_(1)
    with torch.inference_mode():
        assert found.of(torch.zeros(1)) is None


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A torch whose layout cannot be found."""
    from ferrule.runtime.calls import function, plan
    from ferrule.runtime.entry import bound, surroundings

    for module in (versions, plan, function, bound, surroundings):
        monkeypatch.setattr(module, "version_words", lambda: None)
    yield


def test_with_an_unknown_layout_torchs_function_counts(unknown: None) -> None:
    from ferrule.runtime.calls.function import HEAP, _make_gate

    if HEAP is not None:
        _make_gate.cache_clear()
    try:
        copy = fe.compile(copied, VECTOR, VECTOR, fe.Int32(1), options=CPU)
        for name, way in WAYS.items():
            a, b = tensors()
            way(copy, a, b)
            assert a._version == 0 and b._version >= 1, name
        with torch.inference_mode():
            a, b = tensors()
            copy(a, b, 1)
            assert b.tolist() == [1.0, 1.0, 1.0]
    finally:
        if HEAP is not None:
            _make_gate.cache_clear()

"""What torch does to a tensor whose address somebody keeps between calls."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import ferrule as fe
from ferrule.runtime.values import storages
from ferrule.runtime.values.storages import alias, storage_words, storages_of

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.needs_torch

SIZE = 1 << 20  # memory of this size goes back to the system as soon as it is free


@fe.jit
def bump(a: fe.Tensor):
    a[0] = a[0] + 1.0
    return a.shape[0]


@fe.jit
def bump_pair(pair: tuple[fe.Tensor, fe.Int32]):
    a, k = pair
    a[0] = a[0] + k
    return a.shape[0]


@fe.jit
def keep(value):
    return value


def vector() -> Any:
    return fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))


def compiled(function: Any, *examples: Any) -> Any:
    return fe.compile(function, *examples, options="--target cpu")


def set_(tensor: Any) -> None:
    tensor.set_(torch.zeros(1))


def set_data(tensor: Any) -> None:
    tensor.data = torch.zeros(1)


def shrink(tensor: Any) -> None:
    tensor.resize_(1)


def free(tensor: Any) -> None:
    tensor.untyped_storage().resize_(0)


def grow(tensor: Any) -> None:
    tensor.resize_(8 * SIZE)


def share(tensor: Any) -> None:
    tensor.share_memory_()


LOSES = [set_, set_data, shrink]


@pytest.mark.parametrize("change", LOSES)
@pytest.mark.parametrize("parameter", [False, True])
def test_a_bound_call_keeps_the_memory_and_the_shape(
    change: Callable[[Any], None], parameter: bool
) -> None:
    tensor, other = torch.zeros(SIZE), None
    if parameter:
        tensor = torch.nn.Parameter(tensor, requires_grad=False)
    other = torch.from_dlpack(tensor.detach())
    bound = compiled(bump, vector()).bind(tensor)
    assert bound() == SIZE
    change(tensor)
    assert (bound(), other[0].item()) == (SIZE, 2)
    del other
    gc.collect()
    assert bound() == SIZE  # with memory that is gone this ends the process
    assert tensor[0].item() in (0, 3)  # what the tensor has instead of it stays as it is


@pytest.mark.parametrize("change", LOSES)
@pytest.mark.parametrize("container", [tuple, list])
def test_so_does_one_of_a_tensor_in_a_container(
    change: Callable[[Any], None], container: Callable[[Any], Any]
) -> None:
    tensor = torch.zeros(SIZE)
    bound = compiled(bump_pair, (vector(), 1)).bind(container((tensor, 2)))
    change(tensor)
    gc.collect()
    assert bound() == SIZE


@pytest.mark.parametrize("change", [free, grow, share])
def test_a_storage_that_loses_its_memory_is_refused(change: Callable[[Any], None]) -> None:
    first, tensor = torch.zeros(SIZE), torch.zeros(SIZE)

    @fe.jit
    def add(k: fe.Int32, b: fe.Tensor, a: fe.Tensor):
        a[0] = a[0] + b[0] + k

    bound = compiled(add, 1, vector(), vector()).bind(3, a=tensor, b=first)
    bound()
    assert tensor[0].item() == 3
    change(tensor)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"Mismatched a on argument #2 .*: bind the call"):
            bound()


def test_a_tensor_in_a_container_is_guarded_too() -> None:
    class Pair(NamedTuple):
        t: Any
        k: int

    for pair in (lambda t: (t, 1), lambda t: [t, 1]):
        tensor = torch.zeros(SIZE)
        bound = compiled(bump_pair, (vector(), 1)).bind(pair(tensor))
        free(tensor)
        with pytest.raises(RuntimeError, match="Mismatched pair on argument #0"):
            bound()
    assert len(storages_of([Pair(torch.zeros(2), 3), {"x": torch.zeros(3)}])) == 2


def test_memory_that_comes_back_to_its_place_is_the_same() -> None:
    """As where the parameters of a model are gathered before each step, and freed behind it."""
    tensor = torch.zeros(4)
    storage = tensor.untyped_storage()
    bound = compiled(bump, vector()).bind(tensor)
    words = storage_words()
    assert words is not None
    before = words.of(storage)
    storage.resize_(0)
    storage.resize_(16)
    if words.of(storage) == before:
        assert bound() == 4
    else:
        with pytest.raises(RuntimeError, match="bind the call again"):
            bound()


def test_the_words_of_a_storage_are_found_or_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert storage_words() is not None
    monkeypatch.setattr(storages, "_WORDS", range(0))
    storages._found.cache_clear()
    try:
        assert storage_words() is None
        tensor = torch.zeros(3)
        assert compiled(bump, vector()).bind(tensor)() == 3
    finally:
        storages._found.cache_clear()


@pytest.mark.parametrize("change", LOSES)
def test_a_tensor_in_a_container_that_outlives_the_call(change: Callable[[Any], None]) -> None:
    tensor = torch.zeros(SIZE)
    (kept,) = compiled(keep, fe.specs.AnyValue("value"))([tensor])
    change(tensor)
    gc.collect()
    assert torch.from_dlpack(kept).sum().item() == 0
    assert kept.shape[0] == SIZE


def test_what_is_no_tensor_stays_as_it_is() -> None:
    value = object()
    given = (1, [value, {"x": "y"}], None)
    assert alias(given) == given
    assert alias(given)[1][0] is value
    assert storages_of(given) == []
    sparse = torch.zeros(3).to_sparse()
    assert storages_of(sparse) == []

"""The first calls of a function are made by Python, the others by machine code: both alike."""

from __future__ import annotations

import gc
import os
import threading
import traceback
import weakref
from functools import cache
from typing import Any

import numpy as np
import pytest
import tvm_ffi

import ferrule as fe
from ferrule.runtime.calls import function as calls
from ferrule.runtime.calls.function import HEAP, make_function
from ferrule.runtime.calls.plan import origin_of

pytestmark = pytest.mark.skipif(HEAP is None, reason="this interpreter has no slot for a call")

BEFORE = 16


@pytest.fixture(autouse=True)
def as_in_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "CALLS_BEFORE_PREPARED", BEFORE)


def scaled(a: fe.Tensor, by: fe.Int32, factor: fe.Float32 = 2.0) -> tuple[fe.Float32, fe.Int32]:
    if by < 0:
        fe.raise_error("ValueError", "by is {}", by)
    return a[0] * factor, by + 1


@cache
def compiled() -> Any:
    return fe.compile(scaled, fe.make_fake_compact_tensor(fe.Float32, (4,)), fe.Int32, fe.Float32)


def made(kind: Any = fe.Function) -> Any:
    """The function anew, without calls so far."""
    of = compiled()
    return make_function(of.call_plan.code, of.signature, origin_of(of), owner=of, kind=kind)


def is_prepared(function: Any) -> bool:
    assert HEAP is not None
    return HEAP.is_installed(function)


ARRAY = np.full(4, 3, np.float32)
CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((ARRAY, 1), {}),
    ((ARRAY, True, 3.0), {}),
    ((ARRAY,), {"factor": 4.0, "by": 2}),
    ((), {"a": ARRAY, "by": np.int8(4)}),
    ((tvm_ffi.from_dlpack(ARRAY), 1), {}),
    ((ARRAY, -1), {}),
    ((ARRAY[:2], 1), {}),
    ((ARRAY.astype(np.int32), 1), {}),
    ((ARRAY, 2**40), {}),
    ((ARRAY, "text"), {}),
    ((ARRAY,), {}),
    ((ARRAY, 1, 2.0, 3), {}),
    ((ARRAY, 1), {"by": 2}),
    ((ARRAY, 1), {"other": 2}),
]


def outcome(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        result = function(*args, **kwargs)
    except Exception as error:
        return type(error), str(error), type(error.__context__), type(error.__cause__)
    return type(result), [(type(each), each) for each in result]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_both_ways_do_and_raise_the_same(number: int) -> None:
    first, prepared = made(), made().prepare()
    assert outcome(first, *CALLS[number]) == outcome(prepared, *CALLS[number])
    assert (is_prepared(first), is_prepared(prepared)) == (False, True)


def test_the_sixteenth_call_makes_the_entry() -> None:
    function = made()
    for _ in range(BEFORE - 1):
        assert function(ARRAY, 1) == (6.0, 2)
        assert not is_prepared(function)
    assert function(ARRAY, 1) == (6.0, 2)
    assert is_prepared(function)
    assert function(ARRAY, by=2) == (6.0, 3)
    assert function.__call__(ARRAY, by=3) == (6.0, 4)
    assert type(function).__call__(function, ARRAY, 4) == (6.0, 5)


def test_prepare_returns_the_function_and_may_be_repeated() -> None:
    function = made()
    assert function.prepare() is function
    assert function.prepare() is function
    assert function(ARRAY, 1) == (6.0, 2)
    with pytest.raises(RuntimeError, match="this function has no code"):
        fe.Function().prepare()
    with pytest.raises(RuntimeError, match="this function has no code"):
        fe.Function()(1)


def test_refused_calls_count() -> None:
    function = made()
    for _ in range(BEFORE):
        with pytest.raises(ValueError, match="by is -1"):
            function(ARRAY, -1)
    assert is_prepared(function)


def test_tracebacks_have_at_most_one_frame_of_ours() -> None:
    for function, ours in ((made(), ["__call__"]), (made().prepare(), [])):
        with pytest.raises(ValueError, match="by is -1") as caught:
            function(ARRAY, -1)
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert [each.name for each in frames if "/ferrule/runtime/" in each.filename] == ours


class Quiet(fe.Function):  # type: ignore[misc]
    pass


class Loud(fe.Function):  # type: ignore[misc]
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return "loud", super().__call__(*args, **kwargs)


@pytest.mark.parametrize("kind", [Quiet, Loud])
def test_subclasses(kind: Any) -> None:
    function = made(kind)
    expected = {Quiet: (6.0, 2), Loud: ("loud", (6.0, 2))}[kind]
    for _ in range(BEFORE + 2):
        assert function(ARRAY, 1) == expected
    assert is_prepared(function)


def test_bound_calls_are_of_machine_code() -> None:
    assert made().bind(ARRAY, 1)() == (6.0, 2)


def test_threads_may_make_the_sixteenth_call_together() -> None:
    function, results = made(), list[Any]()
    ready = threading.Barrier(8)

    def call() -> None:
        ready.wait()
        results.extend(function(ARRAY, 1) for _ in range(2 * BEFORE))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert results == [(6.0, 2)] * (16 * BEFORE)
    assert is_prepared(function)


@pytest.mark.parametrize("before", [0, BEFORE - 1])
def test_a_forked_child_counts_on(before: int) -> None:
    function = made()
    for _ in range(before):
        function(ARRAY, 1)
    child = os.fork()
    if child == 0:
        right = all(function(ARRAY, 1) == (6.0, 2) for _ in range(BEFORE))
        os._exit(0 if right and is_prepared(function) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not is_prepared(function)


def test_a_function_that_was_moved_away_is_not_prepared_for_its_former_code() -> None:
    def tripled(a: fe.Tensor, by: fe.Int32, factor: fe.Float32 = 2.0) -> tuple[Any, Any]:
        return a[0] * 3.0 * factor, by

    fake = fe.make_fake_compact_tensor(fe.Float32, (4,))
    function, other = made(), fe.compile(tripled, fake, fe.Int32, fe.Float32)
    thief = tvm_ffi.Function.__new__(tvm_ffi.Function)
    thief.__move_handle_from__(function)
    with pytest.raises(RuntimeError, match="was moved away"):
        function(ARRAY, 1)
    function.__move_handle_from__(other)
    del thief  # and with it the code of `scaled`
    gc.collect()
    for _ in range(BEFORE + 2):
        assert function(ARRAY, 1) == (18.0, 1)


def test_a_function_goes_with_its_last_reference() -> None:
    for calls_made in (0, BEFORE - 1, BEFORE + 1):
        function = made()
        for _ in range(calls_made):
            function(ARRAY, 1)
        gone = weakref.ref(function)
        del function
        gc.collect()
        assert gone() is None


@pytest.mark.needs_torch
def test_writes_are_counted_by_both_ways() -> None:
    import torch

    def one(a: fe.Tensor) -> None:
        a[0] = 1.0

    function = fe.compile(one, fe.make_fake_compact_tensor(fe.Float32, (4,)))
    tensor = torch.zeros(4)
    counts = []
    for _ in range(BEFORE + 2):
        before = tensor._version
        function(tensor)
        counts.append(tensor._version - before)
    assert counts == [1] * (BEFORE + 2)


@pytest.mark.needs_torch
@pytest.mark.parametrize("own", [{}, {"__dlpack_c_exchange_api__": None}])
@pytest.mark.parametrize("nested", [False, True])
def test_a_subclass_of_torch_with_its_own_dlpack_is_read_through_it(
    own: dict[str, None], nested: bool
) -> None:
    """By every way of a call: the first ones are tvm-ffi's, the others the direct entry's."""
    import torch

    class Elsewhere(torch.Tensor):
        def __dlpack__(self, **options: Any) -> Any:
            return torch.full((4,), 7.0).__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return torch.zeros(1).__dlpack_device__()

    for name, value in own.items():
        setattr(Elsewhere, name, value)

    @fe.jit
    def plain(x: fe.Tensor, y: fe.Tensor) -> None:
        y[0] = x[0]

    @fe.jit
    def pair(x: tuple[fe.Tensor, fe.Tensor], y: fe.Tensor) -> None:
        y[0] = x[1][0]

    here, y = torch.ones(4), torch.zeros(1)
    value = here.as_subclass(Elsewhere)
    read, examples, argument = plain, here, value
    if nested:
        read, examples, argument = pair, (here, here), (here, value)
    compiled = fe.compile(read, examples, y)
    for call in (compiled, read):
        for _ in range(40):
            call(argument, y.zero_())
            assert y.item() == 7

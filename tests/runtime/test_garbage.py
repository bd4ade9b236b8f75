"""While something is compiled garbage is looked for less often; then all is as it was."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator

import pytest
from lowered import vector

import ferrule as fe
from ferrule.runtime.garbage import MORE, with_fewer_collections


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    before, enabled = gc.get_threshold(), gc.isenabled()
    gc.set_threshold(700, 11, 12)
    yield
    gc.set_threshold(*before)
    (gc.enable if enabled else gc.disable)()


class Seen:
    """Notes the collector's numbers where a compilation indexes it."""

    def __init__(self) -> None:
        self.found: list[tuple[int, ...]] = []

    def __getitem__(self, index: int) -> int:
        self.found.append(gc.get_threshold())
        return index


SEEN = Seen()


def test_a_compilation_raises_the_first_number_alone_and_puts_it_back() -> None:
    def function(a):
        a[0] = SEEN[1]

    SEEN.found.clear()
    fe.compile(function, vector(), options="--target cpu")
    assert set(SEEN.found) == {(MORE, 11, 12)}
    assert gc.get_threshold() == (700, 11, 12)


def test_it_is_put_back_where_a_compilation_fails() -> None:
    def wrong(a):
        a[0] = unknown  # noqa: F821

    with pytest.raises(fe.CompileError):
        fe.compile(wrong, vector(), options="--target cpu")
    assert gc.get_threshold() == (700, 11, 12)


def stops() -> None:
    raise KeyboardInterrupt


def test_it_is_put_back_at_an_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt):
        with_fewer_collections(stops)
    assert gc.get_threshold() == (700, 11, 12)


@pytest.mark.parametrize("number", (0, MORE, 100_000))
def test_a_number_that_is_as_large_stays(number: int) -> None:
    gc.set_threshold(number)
    assert with_fewer_collections(gc.get_threshold)[0] == number
    assert gc.get_threshold()[0] == number


@pytest.mark.parametrize("change", (gc.disable, lambda: gc.set_threshold(1234)))
def test_what_somebody_sets_meanwhile_stays(change: Callable[[], None]) -> None:
    with_fewer_collections(change)
    if change is gc.disable:
        assert (gc.isenabled(), gc.get_threshold()[0]) == (False, 700)
    else:
        assert (gc.isenabled(), gc.get_threshold()[0]) == (True, 1234)


def test_what_is_disabled_stays_so() -> None:
    gc.disable()
    assert with_fewer_collections(gc.isenabled) is False
    assert gc.isenabled() is False


def test_the_last_of_several_threads_puts_it_back() -> None:
    started, go = threading.Event(), threading.Event()

    def waits() -> None:
        started.set()
        go.wait(30)

    thread = threading.Thread(target=with_fewer_collections, args=(waits,))
    thread.start()
    started.wait(30)
    with_fewer_collections(lambda: with_fewer_collections(int))
    assert gc.get_threshold()[0] == MORE
    go.set()
    thread.join()
    assert gc.get_threshold()[0] == 700


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_of_another_thread_has_the_number_from_before() -> None:
    started, go = threading.Event(), threading.Event()

    def waits() -> None:
        started.set()
        go.wait(30)

    thread = threading.Thread(target=with_fewer_collections, args=(waits,))
    thread.start()
    started.wait(30)
    child = os.fork()
    if not child:
        os._exit(0 if gc.get_threshold()[0] == 700 else 1)
    _, status = os.waitpid(child, 0)
    assert gc.get_threshold()[0] == MORE
    go.set()
    thread.join()
    assert (os.waitstatus_to_exitcode(status), gc.get_threshold()[0]) == (0, 700)


def test_a_compilation_that_was_cut_off_in_its_end_is_made_good_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ferrule.runtime import garbage

    with monkeypatch.context() as patch:
        patch.setattr(type(garbage._COLLECTOR), "end", lambda self, compilation: stops())
        with pytest.raises(KeyboardInterrupt) as caught:
            with_fewer_collections(int)
        del caught
    gc.collect()
    assert gc.get_threshold()[0] == MORE
    with_fewer_collections(int)
    assert gc.get_threshold()[0] == 700

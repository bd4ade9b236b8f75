"""What a Python function raises in a call comes out as the object that it is."""

from __future__ import annotations

import gc
import threading
import traceback
import weakref
from typing import Any

import numpy as np
import pytest
import tvm_ffi

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import Callback, CFunction, cast
from ferrule.runtime.values import callbacks
from ferrule.specs import Function, Optional, Signature, Tensor

N = specs.sym_int(symbol="n")
X, F = Tensor("x", (N,), "float32"), Function("f")


def sorting(f: Any) -> fe.Function:
    call = Callback(f, ["pointer", "pointer"], returns="int32")
    items = [X.data, cast(N, "uint64"), cast(4, "uint64"), call]
    return compiler.build(Signature("sort", [X, f]), CFunction("qsort", items))


sort = sorting(F)


def numbers() -> np.ndarray:
    return np.array([3, 1, 2], np.float32)


class Mine(Exception):
    def __init__(self, code: int, *, place: str) -> None:
        super().__init__(code)
        self.place = place


class Words(Mine):
    def __str__(self) -> str:
        raise ValueError("no words")


ERRORS = [
    Mine(7, place="here"),
    Words(7, place="here"),
    OSError(2, "nothing there"),
    KeyError("key"),
    ValueError("a text"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
    ImportError("m", name="m"),
    SystemExit(3),
    KeyboardInterrupt(),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_it_is_the_same_object_with_its_traceback(error: BaseException) -> None:
    def fails(a: Any, b: Any) -> int:
        local = "seen by a debugger"
        raise error if local else ValueError

    for _ in range(2):
        error.__traceback__ = None
        with pytest.raises(type(error)) as caught:
            sort(numbers(), fails)
        assert caught.value is error
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        assert frames[-1].f_code.co_name == "fails"
        assert frames[-1].f_locals["local"] == "seen by a debugger"


def test_through_nested_calls_threads_and_a_cause() -> None:
    def inner(a: Any, b: Any) -> int:
        try:
            {}["x"]
        except KeyError as error:
            raise Mine(1, place=threading.current_thread().name) from error
        return 0

    def outer(a: Any, b: Any) -> int:
        sort(numbers(), inner)
        return 0

    seen: list[Any] = []

    def run() -> None:
        try:
            sort(numbers(), outer)
        except Mine as error:
            seen.append((error.place, threading.current_thread().name, type(error.__cause__)))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(seen) == 8
    assert all(kind is KeyError for _, _, kind in seen)


def test_every_way_to_hand_a_function_over() -> None:
    error = Mine(1, place="p")

    class Callable:
        def __call__(self, *given: Any) -> int:
            raise error

        def method(self, *given: Any) -> int:
            raise error

    maybe = sorting(Optional("f", F))
    for f in (Callable(), Callable().method, lambda *given: Callable()(*given)):
        for each in (sort, maybe):
            with pytest.raises(Mine) as caught:
                each(numbers(), f)
            assert caught.value is error
            with pytest.raises(Mine) as caught:
                each(x=numbers(), f=f)
            assert caught.value is error
    with pytest.raises(Mine) as caught:
        sort.bind(numbers(), Callable())()
    assert caught.value is error


def test_in_jit_functions() -> None:
    error = Mine(1, place="p")

    @fe.jit
    def calls(f: specs.Function, k: fe.Int32):
        return fe.call(f, k, result=fe.Int32)

    def fails(k: int) -> int:
        raise error

    f = fe.compile(calls, Function("f"), fe.Int32, options="--target cpu")
    assert f(lambda k: k + 1, 2) == 3
    with pytest.raises(Mine) as caught:
        f(fails, 2)
    assert caught.value is error


def test_nothing_is_kept_behind_the_call() -> None:
    class Other(Exception):
        pass

    def fails(a: Any, b: Any) -> int:
        raise Other("once")

    gone = []
    for _ in range(3):
        try:
            sort(numbers(), fails)
        except Other as error:
            gone.append(weakref.ref(error))
    gc.collect()
    assert [each() for each in gone] == [None] * 3
    assert not callbacks._PENDING


def test_an_error_of_a_function_that_is_gone_says_its_class() -> None:
    kind = f"{Mine.__module__}.Mine"
    with pytest.raises(Mine):
        sort(numbers(), lambda a, b: (_ for _ in ()).throw(Mine(1, place="p")))
    error = tvm_ffi.core.Error(kind, "a text", "").py_error()
    assert type(error) is RuntimeError and str(error) == f"{kind}: a text"


def test_a_function_of_tvm_ffi_is_handed_over_as_it_is() -> None:
    f = tvm_ffi.convert(lambda a, b: 0)
    sort(numbers(), f)
    assert callbacks.keeping(f) is callbacks.OTHER and callbacks.keeping(3) is callbacks.OTHER


@pytest.mark.needs_cc
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("position", [0, 1])
def test_a_library_that_hands_no_context_through_is_refused(kept: bool, position: int) -> None:
    """A null context was read as the address of a frame: it ended the process."""
    before, behind = ("void*, ", "") if position == 0 else ("", ", void*")
    given = ("0, n", "n, 0")[position]
    code = fe.frontends.c.module(f"""
    typedef int called({before}int{behind});
    int each(int n, called *f, void *user) {{ return f({given}); }}
    """)
    k = specs.Scalar("k", "int32")
    call = Callback(F, ["int32"], returns="int32", context=position, on_error=-7, kept=kept)
    given = [k, call, call.user_data]
    f = compiler.build(
        Signature("each", [k, F]), CFunction("each", given, returns="int32", code=code)
    )
    seen: list[int] = []
    said = "the context of another call" if kept else f"null context as its parameter #{position}"
    for _ in range(3):
        with pytest.raises(RuntimeError, match=said):
            f(3, seen.append)
    assert not seen

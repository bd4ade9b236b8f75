"""What happens around a call of the direct entry: results, errors, the GIL, threads, references."""

from __future__ import annotations

import _thread
import ctypes
import gc
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from packed_functions import KEEP, function, number, outcome, payload, slow

from ferrule import specs
from ferrule.runtime.calls.function import HEAP
from ferrule.runtime.entry.key import CallTraits
from ferrule.runtime.linking.engine import libtvm_ffi

pytestmark = pytest.mark.skipif(HEAP is None, reason="this interpreter has no slot for a call")

ECHO = "  %s = call i32 @TVMFFIAnyViewToOwnedAny(ptr %args, ptr %result)\n  ret i32 %s"
CALL = (
    "  %at = getelementptr i8, ptr %args, i64 8\n  %f = load ptr, ptr %at\n"
    "  %s = call i32 @TVMFFIFunctionCall(ptr %f, ptr null, i32 0, ptr %result)\n  ret i32 %s"
)
"""Calls its first argument."""

HAS_GIL = number(
    "  %at = getelementptr i8, ptr %args, i64 8\n  %f = load ptr, ptr %at\n"
    "  %k = call i32 %f()\n  %x = zext i32 %k to i64"
)
"""Calls the address that is its first argument."""

FAIL = "  call void @TVMFFIErrorSetRaisedFromCStr(ptr @kind, ptr @text)\n  ret i32 -1"
FAIL_TEXT = """
@kind = constant [11 x i8] c"ValueError\\00"
@text = constant [7 x i8] c"broken\\00"
"""

N = specs.sym_int(symbol="n")
RELEASE = CallTraits(releases_gil=True)


def vector(name: str = "a", **options: Any) -> specs.Tensor:
    return specs.Tensor(name, (N,), specs.Float32, **options)


def number_param(name: str = "a") -> specs.Scalar:
    return specs.Scalar(name, specs.Int64)


# ---- results ----


@pytest.mark.parametrize(
    "value",
    [None, True, False, 0, -5, 2**63 - 1, 1.5, "short", "long enough for the heap", b"x", b"y" * 9],
)
@pytest.mark.parametrize("traits", [KEEP, RELEASE])
def test_values_come_back_as_they_went(value: Any, traits: CallTraits) -> None:
    echo = function(ECHO, specs.AnyValue("a"), traits=traits)
    assert echo(value) == value
    assert type(echo(value)) is type(slow(echo, value))


def test_objects_come_back_as_tvm_ffi_gives_them() -> None:
    echo, array = function(ECHO, specs.AnyValue("a")), np.arange(4.0)
    held = tvm_ffi.from_dlpack(array)
    np.testing.assert_array_equal(np.from_dlpack(echo(held)), array)
    listed = tvm_ffi.Array([1, "x"])
    assert list(echo(listed)) == list(slow(echo, listed)) == [1, "x"]
    assert echo(tvm_ffi.get_global_func("ffi.Array"))(1)[0] == 1


@pytest.mark.needs_torch
def test_a_tensor_comes_back_as_one_of_the_callers_framework() -> None:
    import torch

    keep = specs.Tensor("a", (N,), specs.Float32, owning=True)
    echo = function(ECHO, keep, vector("b"))
    held, given = tvm_ffi.from_dlpack(torch.arange(4.0)), torch.zeros(2)
    came = echo(held, given)
    assert type(came) is type(slow(echo, held, given)) is torch.Tensor
    assert torch.equal(came, torch.arange(4.0))
    assert type(echo(held, np.zeros(2, np.float32))) is tvm_ffi.Tensor


# ---- errors ----


@pytest.mark.parametrize("traits", [KEEP, RELEASE])
def test_an_error_is_raised_as_tvm_ffi_raises_it(traits: CallTraits) -> None:
    fail = function(FAIL, number_param(), traits=traits, constants=FAIL_TEXT).prepare()
    frames = []
    for call in (lambda: fail(1), lambda: slow(fail, 1)):
        with pytest.raises(ValueError, match=r"^broken$") as caught:
            call()
        trace = caught.value.__traceback__
        names = []
        while trace is not None:
            names.append(trace.tb_frame.f_code.co_name)
            trace = trace.tb_next
        frames.append([name for name in names if name != "slow"][2:])
        assert caught.value.__context__ is None
    # tvm-ffi names the C functions under the call too, and the slow path has more of them.
    assert frames[0] == frames[1][: len(frames[0])] != []


def test_an_error_of_a_callback_comes_through() -> None:
    call = function(CALL, specs.Function("a"))

    def broken() -> None:
        raise KeyError("mine")

    for given in (broken, tvm_ffi.convert(broken)):
        assert outcome(lambda g=given: call(g)) == outcome(lambda g=given: slow(call, g))
        with pytest.raises(KeyError, match="mine"):
            call(given)
    assert call(tvm_ffi.convert(lambda: 7)) == 7


def test_a_failed_call_leaves_no_error_behind() -> None:
    fail = function(FAIL, number_param(), constants=FAIL_TEXT)
    add = function(number(payload(0)), number_param())
    for _ in range(3):
        with pytest.raises(ValueError, match="broken"):
            fail(1)
        assert add(5) == 5


SPIN = (
    "  br label %again\nagain:\n"
    "  %i = phi i32 [ 0, %0 ], [ %next, %on ]\n  %next = add i32 %i, 1\n"
    "  call i32 @usleep(i32 1000)\n  %s = call i32 @TVMFFIEnvCheckSignals()\n"
    "  %stop = icmp ne i32 %s, 0\n  br i1 %stop, label %raise, label %on\n"
    "on:\n  %end = icmp eq i32 %next, 20000\n  br i1 %end, label %done, label %again\n"
    "done:\n  ret i32 0\n"
    "raise:\n  call void @TVMFFIErrorSetRaisedFromCStr(ptr @kind, ptr @kind)\n  ret i32 -1"
)
SPIN_TEXT = '@kind = constant [19 x i8] c"EnvErrorAlreadySet\\00"\n'


def test_an_interrupt_during_the_call_is_the_error(interruptible: None) -> None:
    spin = function(SPIN, number_param(), constants=SPIN_TEXT)
    timer = threading.Timer(0.05, _thread.interrupt_main)
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        spin(1)
    timer.join()
    assert function(number(payload(0)), number_param())(3) == 3


# ---- the GIL ----


def test_the_gil_is_kept_or_released_as_the_traits_say() -> None:
    check = ctypes.cast(ctypes.pythonapi.PyGILState_Check, ctypes.c_void_p)
    held = function(HAS_GIL, specs.Pointer("a"), traits=KEEP)
    free = function(HAS_GIL, specs.Pointer("a"), traits=RELEASE)
    assert (held(check), free(check)) == (1, 0)
    assert (held.release_gil, free.release_gil) == (False, True)
    assert (slow(held, check), slow(free, check)) == (1, 0)


def test_whether_the_gil_is_released_can_be_set() -> None:
    check = ctypes.cast(ctypes.pythonapi.PyGILState_Check, ctypes.c_void_p)
    function_ = function(HAS_GIL, specs.Pointer("a"), traits=KEEP)
    for released in (True, False, True):
        function_.release_gil = released
        assert function_.release_gil is released
        assert function_(check) == slow(function_, check) == int(not released)


# ---- the caller's surroundings ----


@pytest.mark.needs_torch
def test_the_allocator_of_the_framework_is_there_during_the_call() -> None:
    import torch

    get = ctypes.cast(libtvm_ffi().TVMFFIEnvGetDLPackManagedTensorAllocator, ctypes.c_void_p)
    body = number(
        f"  %g = inttoptr i64 {get.value} to ptr\n"
        "  %p = call ptr %g()\n  %x = ptrtoint ptr %p to i64"
    )
    without = CallTraits(allocates=False)
    outside = function(body, vector(), traits=without)(np.zeros(2, np.float32))
    inside = function(body, vector())(torch.zeros(2))
    assert inside not in (0, outside)
    assert slow(function(body, vector()), torch.zeros(2)) == inside
    assert function(body, vector(), traits=without)(torch.zeros(2)) == outside
    assert function(body, vector())(np.zeros(2, np.float32)) == outside


# ---- lifetimes ----


CALL_SECOND = CALL.replace("i64 8", "i64 24").rpartition("\n")[0] + "\n"
"""Calls its second argument, which does what another thread might do during the call."""


@pytest.mark.parametrize("traits", [KEEP, RELEASE])
def test_arguments_that_everybody_else_lets_go_live_until_the_end(traits: CallTraits) -> None:
    items = specs.Tuple("items", (specs.Tensor("0", (N,), specs.Int64),))
    body = number(CALL_SECOND + "  %x = add i64 1, 0")
    first = function(body, items, specs.Function("then"), traits=traits)
    held = [np.full(100_000, 42)]
    array, alive = weakref.ref(held[0]), []

    def let_go() -> None:
        held.clear()
        gc.collect()
        alive.append(array() is not None)

    assert first(held, tvm_ffi.convert(let_go)) == 1
    assert (alive, array()) == ([True], None)


@pytest.mark.parametrize("traits", [KEEP, RELEASE])
def test_an_array_may_be_given_another_shape_during_the_call(traits: CallTraits) -> None:
    body = number(
        f"{CALL_SECOND}  %p = getelementptr i8, ptr %args, i64 8\n  %dl = load ptr, ptr %p\n"
        "  %q = getelementptr i8, ptr %dl, i64 24\n  %shape = load ptr, ptr %q\n"
        "  %x = load i64, ptr %shape"
    )
    rows = function(body, vector(), specs.Function("then"), traits=traits)
    array = np.zeros((6, 4), np.float32)
    reshape = tvm_ffi.convert(lambda: array.resize((2, 3, 4), refcheck=False))
    assert (rows(array, reshape), array.shape) == (6, (2, 3, 4))


@pytest.mark.parametrize("traits", [KEEP, RELEASE])
def test_eight_threads_call_one_function(traits: CallTraits) -> None:
    body = number(
        "  %p = getelementptr i8, ptr %args, i64 8\n  %dl = load ptr, ptr %p\n"
        "  %d = load ptr, ptr %dl\n  %v = load i64, ptr %d\n"
        "  %q = getelementptr i8, ptr %args, i64 24\n  %k = load i64, ptr %q\n"
        "  %x = add i64 %v, %k"
    )
    add = function(body, specs.Tensor("a", (N,), specs.Int64), number_param("k"), traits=traits)
    wrong: list[int] = []

    def work(base: int) -> None:
        array = np.full(3, base)
        wrong.extend(i for i in range(2000) if add(array, k=i) != base + i)

    threads = [threading.Thread(target=work, args=(n * 10_000,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_references_and_memory_stay_flat() -> None:
    """Good and bad calls of every path, 100 000 of them."""
    pair = specs.Tuple("t", (number_param("0"), specs.String("1")))
    params = (vector("a"), number_param("k"), specs.String("s"), pair)
    count = function(number("  %x = sext i32 %n to i64"), *params)
    fail = function(FAIL, number_param(), constants=FAIL_TEXT)
    array, text = np.zeros(4, np.float32), "long enough for the heap"
    values = (array, 1 << 40, text, (1 << 41, text))

    def bad(call: Any) -> None:
        try:
            call()
        except (TypeError, ValueError):
            return
        raise AssertionError("the call was accepted")

    def rounds(number_: int) -> None:
        for _ in range(number_):
            count(*values)
        for _ in range(number_):
            count(array, s=text, t=values[3], k=1)
        for _ in range(number_ // 20):
            bad(lambda: fail(1))
            bad(lambda: count(array, 1, text))
            bad(lambda: count(array, 1, "\ud800", values[3]))
            count(array, np.int8(1), text, values[3])

    held = [array, values[1], text, values[3], count, fail, np.ndarray, ValueError]
    rounds(100)
    gc.collect()
    before, blocks = [sys.getrefcount(each) for each in held], sys.getallocatedblocks()
    rounds(45_000)
    gc.collect()
    assert [sys.getrefcount(each) for each in held] == before
    assert sys.getallocatedblocks() - blocks < 500


def test_a_function_whose_handle_is_replaced_does_not_use_its_old_code() -> None:
    one = function(number("  %x = add i64 1, 0"), number_param())
    two = function(number("  %x = add i64 2, 0"), number_param())
    assert (one(0), two(0)) == (1, 2)
    thief = tvm_ffi.Function.__new__(tvm_ffi.Function)
    thief.__move_handle_from__(one)
    one.__move_handle_from__(two)
    assert (thief(0), one(0)) == (1, 2)
    with pytest.raises(RuntimeError, match="was moved away"):
        two(0)

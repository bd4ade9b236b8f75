"""Children that are forked while other threads compile: they compile, call and end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ferrule.runtime import forks
from ferrule.runtime.forks import ForkLock

_BEFORE = """
import faulthandler, os, signal, sys, threading, time
sys.modules["torch"] = None
import numpy as np
import ferrule as fe
from ferrule.runtime import forks

def text(k):
    @fe.jit
    def f(a: fe.Tensor, b: fe.Tensor):
        b[:] = a[:] * k + 1.0
    return f

n = fe.sym_int()
VECTOR = fe.make_fake_compact_tensor(fe.Float32, (n,))

def compiled(k):
    return fe.compile(text(k), VECTOR, VECTOR, options="--target cpu")

def check(function, k):
    a, b = np.ones(7, np.float32), np.zeros(7, np.float32)
    function(a, b)
    assert b.tolist() == [k + 1] * 7

def fork(child, seconds=200):
    begin = time.monotonic()
    pid = os.fork()
    if not pid:
        faulthandler.dump_traceback_later(seconds, exit=True)
        try:
            child()
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    took = time.monotonic() - begin
    assert os.waitpid(pid, 0)[1] == 0
    return took
"""


def run(folder: Path, body: str) -> str:
    """What a program prints that begins as above."""
    program = folder / "program.py"
    program.write_text(_BEFORE + body)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


def test_children_compile_while_threads_of_the_parent_do(tmp_path: Path) -> None:
    printed = run(
        tmp_path,
        """
old, shared, stop, failures = compiled(2.0), text(5.0), threading.Event(), []

def busy(number):
    try:
        k = 0
        while not stop.is_set():
            k += 1
            check(compiled(float(k % 9 + number)), float(k % 9 + number))
            check(text(3.0), 3.0)
    except BaseException as error:
        failures.append(error)

def child():
    check(old, 2.0)
    check(compiled(4.0), 4.0)
    check(shared, 5.0)
    old.export_to_c(f"{sys.argv[0]}.{os.getpid()}.o")

threads = [threading.Thread(target=busy, args=(i,)) for i in range(2)]
for thread in threads:
    thread.start()
waits = [fork(child) for _ in range(10)]
stop.set()
for thread in threads:
    thread.join()
assert not failures, failures
assert max(waits) < forks.LONGEST
check(compiled(8.0), 8.0)
print("whole")
""",
    )
    assert printed == "whole"


def test_a_lock_of_a_thread_that_is_no_more_is_free_in_the_child(tmp_path: Path) -> None:
    """Of ferrule's own locks each, held for long by a thread of the parent."""
    printed = run(
        tmp_path,
        """
from ferrule.runtime.calls import function
from ferrule.runtime.calls.plan import origin_of
from ferrule.runtime.loading import systemlib

shared, ready, stop = text(5.0), threading.Event(), threading.Event()
old = compiled(2.0)
origin = origin_of(old)

def holds():
    with shared._lock, origin._lock, function._GATE_LOCK, systemlib._LOCK:
        ready.set()
        stop.wait()

def child():
    check(old, 2.0)
    check(shared, 5.0)
    check(compiled(4.0), 4.0)
    old.export_to_c(f"{sys.argv[0]}.o")

thread = threading.Thread(target=holds)
thread.start()
ready.wait()
fork(child)
stop.set()
thread.join()
check(shared, 5.0)
print("whole")
""",
    )
    assert printed == "whole"


def test_a_fork_waits_for_llvm_and_not_forever(tmp_path: Path) -> None:
    printed = run(
        tmp_path,
        """
from llvmlite.binding import ffi

ready, stop, holding = threading.Event(), threading.Event(), []

def holds(seconds):
    with ffi.lib._lock:
        holding.append(1)
        ready.set()
        stop.wait(seconds)
        holding.pop()

def compiles():
    assert not holding
    check(compiled(3.0), 3.0)

def refused():
    assert holding
    check(old, 2.0)
    try:
        compiled(3.0)
    except RuntimeError as error:
        assert "forked while another thread was compiling" in str(error), error
        return
    raise AssertionError("it compiled")

old = compiled(2.0)
check(old, 2.0)
for seconds, longest, child in ((0.2, 100, compiles), (None, 0.2, refused)):
    forks.LONGEST = longest
    ready.clear(); stop.clear()
    thread = threading.Thread(target=holds, args=(seconds,), daemon=True)
    thread.start()
    ready.wait()
    took = fork(child)
    print(seconds is not None or took >= forks.LONGEST)
    stop.set()
    thread.join()
check(compiled(4.0), 4.0)
forks.LONGEST = 10
fork(lambda: check(compiled(3.0), 3.0))
print("whole")
""",
    )
    assert printed.split() == ["True", "True", "whole"]


def test_a_child_of_a_callback_compiles(tmp_path: Path) -> None:
    """It is forked in the middle of a call, and of a compilation by a signal's handler."""
    printed = run(
        tmp_path,
        """
@fe.jit
def calls(a: fe.Tensor, f):
    f(1)
    a[0] = a[0] + 1.0

def forks_here(*_):
    fork(lambda: (check(compiled(3.0), 3.0), check(text(2.0), 2.0)))

called = fe.compile(calls, VECTOR, fe.specs.params.Function("f"), options="--target cpu")
a = np.zeros(1, np.float32)
called(a, forks_here)
assert a[0] == 1
handled = []
signal.signal(signal.SIGALRM, lambda *_: (handled.append(1), forks_here()))
for _ in range(3):
    signal.setitimer(signal.ITIMER_REAL, 0.004)
    for k in range(3):
        check(compiled(float(k)), float(k))
print(len(handled) > 0)
""",
    )
    assert printed == "True"


def test_a_lock_that_the_forking_thread_has_stays_its_own() -> None:
    lock = ForkLock()
    with lock:
        lock.renew()
        taken: list[bool] = []
        thread = threading.Thread(target=lambda: taken.append(lock._lock.acquire(blocking=False)))
        thread.start()
        thread.join()
        assert taken == [False]
    held, stop = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            stop.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    before = lock._lock
    lock.renew()
    assert lock._lock is not before
    with lock:
        stop.set()
    lock._lock = before
    thread.join()


def test_llvmlites_lock_is_where_it_is_looked_for() -> None:
    pytest.importorskip("llvmlite.binding")
    assert forks._llvm_guard() is not None


def test_all_locks_are_free_in_a_child() -> None:
    """Locks of the package are `ForkLock`s; only the module that makes these has others."""
    root = Path(__file__).parents[2]
    plain = re.compile(r"= (threading\.)?R?Lock\(\)")  # one that is kept
    found = {
        path.name
        for part in ("compiler", "runtime", "specs")
        for path in (root / part).rglob("*.py")
        if plain.search(path.read_text())
    }
    assert found == {"forks.py"}

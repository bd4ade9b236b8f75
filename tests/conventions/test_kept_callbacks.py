"""Callbacks that a C library keeps, and the handles that own them."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tvm_ffi
import tvm_ffi.libinfo
from c_objects import c_compiler
from tvm_ffi.libinfo import find_dlpack_include_path

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import (
    Callback,
    CFunction,
    CString,
    HostCode,
    Reference,
    Sequence,
    Struct,
)
from ferrule.compiler.conventions.c.callbacks import MOST_CALLS
from ferrule.compiler.conventions.c.kept_thunks import MOST_CONTEXTS
from ferrule.specs import Scalar, Signature
from ferrule.specs.params import Function, Optional, String

pytestmark = pytest.mark.needs_cc

SOURCE = """
#include <pthread.h>
#include <stddef.h>
typedef int (*logger)(int n, void *user, const char *text);
static logger kept;
static void *user;
void set_logger(logger given, void *context) { kept = given; user = context; }
int write_log(int n, const char *text) { return kept == NULL ? -100 : kept(n, user, text); }
void set_if(logger given, void *context, int wanted) { if (wanted) set_logger(given, context); }
struct hooks { logger log; void *user; };
void set_hooks(const struct hooks *hooks) { kept = hooks->log; user = hooks->user; }

typedef unsigned char (*plain)(unsigned long long x, double y);
static plain hooks[256];
static int last;
int add_hook(plain given) { hooks[last % 256] = given; return last++ % 256; }
int call_hook(int which, unsigned long long x, double y) { return hooks[which](x, y); }
int add_and_call(plain given, unsigned long long x) { hooks[0] = given; return given(x, 1.0); }

typedef int (*event)(void *user, int n);
static event starts, ends;
static void *events_user;
void set_user(void *context) { events_user = context; }
void on_events(event start, event end) { starts = start; ends = end; }
void on_start(event start, void *context) { starts = start; events_user = context; }
void on_end(event end, void *context) { ends = end; events_user = context; }
int fire(int which, int n) { return (which ? ends : starts)(events_user, n); }

static int in_thread_stop;
static int in_thread_calls;
static void *run(void *which) {
  while (!__atomic_load_n(&in_thread_stop, __ATOMIC_ACQUIRE)) {
    kept(1, user, "t");
    __atomic_add_fetch(&in_thread_calls, 1, __ATOMIC_RELAXED);
  }
  return NULL;
}
static pthread_t threads[4];
void start(void) {
  in_thread_stop = in_thread_calls = 0;
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, run, NULL);
}
int calls(void) { return __atomic_load_n(&in_thread_calls, __ATOMIC_RELAXED); }
void stop(void) {
  __atomic_store_n(&in_thread_stop, 1, __ATOMIC_RELEASE);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}
"""
F = Function("f")
N, X, Y, TEXT = Scalar("n", "int32"), Scalar("x", "uint64"), Scalar("y", "float64"), String("text")
PRINTED = ["int32", CString]


def library_at(folder: Path) -> Path:
    """The library, which keeps one logger and up to 256 hooks."""
    file, made = folder / "keeps.c", folder / "libkeeps.so"
    file.write_text(SOURCE)
    compiled = [c_compiler(), "-O1", "-fPIC", "-shared", str(file), "-o", str(made), "-lpthread"]
    subprocess.run(compiled, check=True)
    return made


class Library:
    """Its functions."""

    def __init__(self, path: Path) -> None:
        self.path, code = path, HostCode.from_library(str(path))
        log = Callback(F, PRINTED, returns="int32", context=1, on_error=-7, kept=True)
        plain = Callback(F, ["uint64", "float64"], returns="uint8", on_error=250, kept=True)
        hooks = Reference(Struct([log, log.user_data]), reads_only=True)

        def built(name: str, params: list[Any], call: Any) -> fe.Function:
            return compiler.build(Signature(name, params), call)

        def called(name: str, given: list[Any], returns: str | None = None) -> CFunction:
            return CFunction(name, given, returns=returns, code=code)

        self.set_logger = built("set_logger", [F], called("set_logger", [log, log.user_data]))
        self.set_hooks = built("set_hooks", [F], called("set_hooks", [hooks]))
        self.write = built("write", [N, TEXT], called("write_log", [N, CString(TEXT)], "int32"))
        self.add_hook = built("add_hook", [F], called("add_hook", [plain], "int32"))
        self.call_hook = built("call_hook", [N, X, Y], called("call_hook", [N, X, Y], "int32"))
        self.add_and_call = built("f", [F, X], called("add_and_call", [plain, X], "int32"))
        chosen = [log, log.user_data, N]
        self.set_if = built("set_if", [F, N], called("set_if", chosen))
        maybe = Optional("f", F, default=None)
        log = Callback(maybe, PRINTED, returns="int32", context=1, kept=True)
        self.set_maybe = built("maybe", [maybe], called("set_logger", [log, log.user_data]))
        self.start, self.stop = (built(name, [], called(name, [])) for name in ("start", "stop"))
        self.calls = built("calls", [], called("calls", [], "int32"))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(library_at(tmp_path_factory.mktemp("keeps")))


def double(n: int, text: str | None) -> int:
    return 2 * n + len(text or "")


@pytest.mark.parametrize("way", ["set_logger", "set_hooks"])
def test_it_lives_as_long_as_its_handle(library: Library, way: str) -> None:
    class Logger:
        def __call__(self, n: int, text: str) -> int:
            return double(n, text)

    logger = Logger()
    gone = weakref.ref(logger)
    handle = getattr(library, way)(logger)
    del logger
    gc.collect()
    assert isinstance(handle, tvm_ffi.Function)
    assert [library.write(n, "ab") for n in range(3)] == [2, 4, 6]
    assert handle() is None
    del handle
    gc.collect()
    assert gone() is None
    assert library.write(1, "ab") == -7


def test_signature_and_files(library: Library, tmp_path: Path) -> None:
    assert library.set_logger.signature.text() == "set_logger(f: Function) -> Function"
    assert str(library.add_hook.signature.result).startswith("Tuple")
    library.set_logger.export_library(str(tmp_path / "set.so"))
    library.set_logger.export_to_c(tmp_path / "set.o")
    for name in ("set.so", "set.o"):
        module = fe.runtime.load_module(tmp_path / name)
        handle = module.set_logger(double)
        del module
        gc.collect()
        assert library.write(4, "a") == 9
        del handle
        gc.collect()
        assert library.write(4, "a") == -7


def test_a_later_error_stays_in_the_handle(library: Library) -> None:
    seen = []

    def unlucky(n: int, text: str | None) -> Any:
        seen.append(n)
        if n == 13:
            raise KeyError("unlucky")
        return "no number" if n == 14 else 1 << 40 if n == 15 else n

    handle = library.set_logger(unlucky)
    assert [library.write(n, "x") for n in (1, 13, 2, 13)] == [1, -7, -7, -7]
    assert seen == [1, 13]
    with pytest.raises(KeyError, match="unlucky"):
        handle()
    assert handle() is None
    assert library.write(3, "x") == 3
    for n, error, text in (
        (14, TypeError, "result of the callback f, expected int, but got str"),
        (15, OverflowError, "Out of bound result of the callback f, expected int32, but got 10995"),
    ):
        assert library.write(n, "x") == -7
        with pytest.raises(error, match=text):
            handle()
    with pytest.raises(TypeError, match="the handle of the callback f takes no arguments"):
        handle(1)
    library.write(13, "x")
    del handle  # the error goes with it


def test_an_error_during_the_call_is_the_call_s_and_there_is_no_handle(library: Library) -> None:
    def wrong(x: int, y: float) -> int:
        raise ZeroDivisionError("at once")

    with pytest.raises(ZeroDivisionError, match="at once"):
        library.add_and_call(wrong, 1)
    assert library.call_hook(0, 1, 1.0) == 250
    with pytest.raises(OverflowError, match="#0 of the callback f is 18446744073709551615"):
        library.add_and_call(lambda x, y: 1, 2**64 - 1)
    value, handle = library.add_and_call(lambda x, y: x + int(y), 3)
    assert (value, library.call_hook(0, 5, 2.0)) == (4, 7)
    del handle


def test_one_that_is_not_given_is_null(library: Library) -> None:
    handle = library.set_maybe()
    assert library.write(1, "x") == -100
    assert handle() is None
    handle = library.set_maybe(double)
    assert library.write(1, "x") == 3


def test_there_are_as_many_as_thunks_and_slots_are_used_again(library: Library) -> None:
    for _ in range(3):
        handles = [library.add_hook(lambda x, y, i=i: x + i) for i in range(MOST_CALLS)]
        with pytest.raises(RuntimeError, match=f"the callback f has {MOST_CALLS} handles, as many"):
            library.add_hook(lambda x, y: 1)
        for i, (which, _) in enumerate(handles):
            assert library.call_hook(which, 100, 0.0) == 100 + i
        which, _ = handles.pop(5)
        del _
        assert library.call_hook(which, 100, 0.0) == 250
        handles.append(library.add_hook(lambda x, y: 9))
        assert library.call_hook(handles[-1][0], 1, 1.0) == 9
        del handles
    handles = [library.set_logger(double) for _ in range(MOST_CONTEXTS)]
    with pytest.raises(RuntimeError, match=f"has {MOST_CONTEXTS} handles, as many as there can be"):
        library.set_logger(double)
    assert library.write(1, "") == 2
    del handles


def test_a_context_of_an_earlier_handle_is_not_that_of_a_later_one(library: Library) -> None:
    first = library.set_if(double, 1)
    del first
    handles = [library.set_if(lambda n, text: 1, 0) for _ in range(MOST_CONTEXTS)]
    assert library.write(1, "x") == -7  # its slot has another callback now
    del handles


G = Function("g")


def event(function: Function) -> Callback:
    return Callback(function, ["int32"], returns="int32", context=0, on_error=-9, kept=True)


def test_several_have_one_context(library: Library) -> None:
    """C hands one `void*` to all of them, whichever of their contexts it was given."""
    code = HostCode.from_library(str(library.path))
    fire = CFunction("fire", [N, Scalar("m", "int32")], returns="int32", code=code)
    fired = compiler.build(Signature("fire", [N, Scalar("m", "int32")]), fire)
    for of in range(2):
        both = event(F), event(G)
        steps = [
            CFunction("on_events", list(both), code=code),
            CFunction("set_user", [both[of].user_data], code=code),
        ]
        listen = compiler.build(Signature("listen", [F, G]), Sequence(steps))
        some = [listen(lambda n, k=k: n + k, lambda n, k=k: n * k) for k in (2, 3, 10)]
        assert (fired(0, 7), fired(1, 7)) == (17, 70)
        start, end = some.pop()
        del start
        gc.collect()
        assert (fired(0, 7), fired(1, 7), end()) == (-9, 70, None)
        some.append(listen(lambda n: 1 // n, lambda n: 5))
        assert (fired(0, 0), fired(1, 0)) == (-9, 5)
        with pytest.raises(ZeroDivisionError):
            some[-1][0]()
        assert (fired(0, 1), some[-1][1]()) == (1, None)


def test_slots_of_several_are_free_together(library: Library) -> None:
    code = HostCode.from_library(str(library.path))
    first, second = event(F), event(G)
    steps = [CFunction("on_events", [first, second], code=code)]
    steps.append(CFunction("set_user", [first.user_data], code=code))
    listen = compiler.build(Signature("listen", [F, G]), Sequence(steps))
    ends = [listen(double, double)[1] for _ in range(MOST_CONTEXTS)]
    with pytest.raises(RuntimeError, match=f"has {MOST_CONTEXTS} handles, as many as there can be"):
        listen(double, double)
    del ends[5]
    assert len(listen(double, double)) == 2
    del ends
    assert len([listen(double, double) for _ in range(MOST_CONTEXTS)]) == MOST_CONTEXTS


def test_a_context_of_another_call_calls_nobody(library: Library) -> None:
    """A library with one `void*` for two functions, which are set one by one."""
    code = HostCode.from_library(str(library.path))
    m = Scalar("m", "int32")
    fired = compiler.build(
        Signature("fire", [N, m]), CFunction("fire", [N, m], returns="int32", code=code)
    )
    seen: list[Any] = []
    set_one = {}
    for name in ("on_start", "on_end"):
        one = event(F)
        call = CFunction(name, [one, one.user_data], code=code)
        set_one[name] = compiler.build(Signature(name, [F]), call)
    start = set_one["on_start"](lambda n: seen.append(("start", n)) or 1)
    end = set_one["on_end"](lambda n: seen.append(("end", n)) or 2)
    assert (fired(1, 4), fired(0, 5)) == (2, -9)
    assert seen == [("end", 4)]
    with pytest.raises(RuntimeError, match="C called the callback f with the context of another"):
        start()
    assert (start(), end()) == (None, None)


def test_a_callback_drops_its_own_handle(library: Library) -> None:
    handles = []

    def once(n: int, text: str) -> int:
        handles.clear()
        gc.collect()
        return n + len(text)

    handles.append(library.set_logger(once))
    assert [library.write(5, "ab") for _ in range(2)] == [7, -7]


def test_threads_call_while_handles_come_and_go(library: Library) -> None:
    compiled = compiler.build(Signature("g", [N, TEXT]), CFunction("abs", [N], returns="int32"))
    handle: Any = library.set_logger(compiled)
    library.start()
    try:
        for _ in range(300):
            before = library.calls()
            while library.calls() == before:
                pass
            handle = None
            handle = library.set_logger(compiled)
    finally:
        library.stop()
    assert library.write(-3, "x") == 3
    assert handle() is None


def test_python_s_threads_make_and_drop_handles(library: Library) -> None:
    def work() -> None:
        for i in range(100):
            which, handle = library.add_hook(lambda x, y: x % 200)
            assert library.call_hook(which, i, 0.0) in (i, 250, *range(100))
            del handle

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    handles = [library.add_hook(lambda x, y: 1) for _ in range(MOST_CALLS)]
    assert len(handles) == MOST_CALLS  # all thunks are free again


def test_a_child_of_a_fork_has_its_own(library: Library) -> None:
    handle = library.set_logger(double)
    child = os.fork()
    if child == 0:
        well = library.write(2, "x") == 5
        del handle
        os._exit(0 if well and library.write(2, "x") == -7 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert library.write(2, "x") == 5


PROGRAM = """
#include <stdio.h>
#include <tvm/ffi/c_api.h>
int __tvm_ffi_set_logger(void *, const TVMFFIAny *, int32_t, TVMFFIAny *);
int write_log(int n, const char *text);
static int doubled(void *self, const TVMFFIAny *args, int32_t count, TVMFFIAny *result) {
  if (args[0].v_int64 == 13) {
    TVMFFIErrorSetRaisedFromCStr("ValueError", "unlucky");
    return -1;
  }
  result->type_index = kTVMFFIInt;
  result->v_int64 = 2 * args[0].v_int64 + count;
  return 0;
}
static void freed(void *self) { puts("freed"); }
int main(void) {
  TVMFFIAny f = {0}, handle = {0}, none = {0};
  TVMFFIObjectHandle error = NULL;
  TVMFFIFunctionCreate(NULL, doubled, freed, (void **)&f.v_obj);
  f.type_index = kTVMFFIFunction;
  if (__tvm_ffi_set_logger(NULL, &f, 1, &handle) != 0) return 1;
  TVMFFIObjectDecRef(f.v_obj);
  int numbers[] = {1, 13, 1};
  for (int i = 0; i < 3; i++) printf("%d\\n", write_log(numbers[i], "x"));
  int status = TVMFFIFunctionCall(handle.v_obj, NULL, 0, &none);
  TVMFFIErrorMoveFromRaised(&error);
  TVMFFIErrorCell *cell = (TVMFFIErrorCell *)((char *)error + sizeof(TVMFFIObject));
  printf("%d %s %d\\n", status, cell->message.data, write_log(2, "x"));
  TVMFFIObjectDecRef(error);
  TVMFFIObjectDecRef(handle.v_obj);
  printf("%d\\n", write_log(1, "x"));
  return 0;
}
"""


def test_a_c_program_keeps_a_callback_and_loses_no_memory(library: Library, tmp_path: Path) -> None:
    library.set_logger.export_to_c(tmp_path / "set.o")
    (tmp_path / "program.c").write_text(PROGRAM)
    needed = [library.path, Path(tvm_ffi.libinfo.find_libtvm_ffi())]
    linked = [str(each) for each in needed] + [f"-Wl,-rpath,{each.parent}" for each in needed]
    includes = [f"-I{tvm_ffi.libinfo.find_include_path()}", f"-I{find_dlpack_include_path()}"]
    command = [c_compiler(), *includes, "program.c", "set.o", *linked, "-ldl", "-o", "program"]
    subprocess.run(command, check=True, cwd=tmp_path)
    checked = ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full"]
    checker = checked if shutil.which("valgrind") else []
    program = [*checker, "./program"]
    done = subprocess.run(program, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "4\n-7\n-7\n-1 unlucky 6\nfreed\n-7\n"


AT_EXIT = """
import sys
from ferrule import compiler, specs
from ferrule.compiler.conventions import Callback, CFunction
F = specs.Function("f")
ending = Callback(F, ["int32"], context=1, kept=True)
call = CFunction("on_exit", [ending, ending.user_data], returns="status")
register = compiler.build(specs.Signature("register", [F]), call)
handle = register(lambda status: print("never: Python has ended before"))
del register
print("well")
"""


def test_a_library_that_calls_when_python_has_ended_gets_on_error() -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_EXIT], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "well\n", "")


@pytest.mark.parametrize(
    ("made", "error", "match"),
    [
        (lambda: Callback(F, [], kept=1), TypeError, "kept must be True or False, but got 1"),
        (
            lambda: CFunction("atexit", [Callback(F, [], kept=True)], when=specs.sym_int() > 0),
            ValueError,
            "a call that depends on a condition can give nothing back",
        ),
    ],
)
def test_what_cannot_be(made: Callable[[], Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        made()


def test_steps_share_a_callback_and_give_one_handle(library: Library) -> None:
    code = HostCode.from_library(str(library.path))
    log = Callback(F, PRINTED, returns="int32", context=1, kept=True)
    steps = [
        CFunction("set_logger", [log, log.user_data], code=code),
        CFunction("write_log", [N, CString("abc")], returns="int32", code=code),
        CFunction("set_logger", [log, log.user_data], code=code),
    ]
    both = compiler.build(Signature("both", [F, N]), Sequence(steps))
    handle, written = both(double, 2)
    assert (written, library.write(3, "x"), handle()) == (7, 7, None)

"""Runs a compilation with enough stack.

Python's parser and LLVM recurse in C: in a thread with a small stack (128 KiB with musl, any size
with `threading.stack_size`), nested brackets would crash the process.
"""

from __future__ import annotations

import contextvars
import ctypes
import resource
import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar

from ferrule.runtime.forks import ForkLock

T = TypeVar("T")

ENOUGH: Final = 4 << 20
"""The bytes of stack for any code that Python itself can parse."""
# More than is needed, and free: pages of a stack that nobody touches are not there.
_LARGE: Final = 16 << 20
_ATTRIBUTES: Final = 256
"""An upper bound of the size of `pthread_attr_t` on all platforms."""
_LOCK: Final = ForkLock()


def on_enough_stack(compute: Callable[[], T]) -> T:
    """The result or exception of a function, which runs in a separate thread if this one's stack is
    small."""
    return compute() if _stack_size() >= ENOUGH else _elsewhere(compute)


def _stack_size() -> int:
    """The bytes of this thread's stack; a large number if unknown."""
    if threading.current_thread() is threading.main_thread():
        # The C library would parse the process's memory map, which is slower than reading a limit.
        soft, _ = resource.getrlimit(resource.RLIMIT_STACK)
        return sys.maxsize if soft == resource.RLIM_INFINITY else soft
    library = _pthreads()
    if library is None:
        return sys.maxsize
    attributes = ctypes.create_string_buffer(_ATTRIBUTES)
    if library.pthread_getattr_np(ctypes.c_void_p(library.pthread_self()), attributes):
        return sys.maxsize
    start, size = ctypes.c_void_p(), ctypes.c_size_t()
    library.pthread_attr_getstack(attributes, ctypes.byref(start), ctypes.byref(size))
    library.pthread_attr_destroy(attributes)
    return size.value


@cache
def _pthreads() -> Any:
    """The functions of the C library; None if it lacks one."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "pthread_getattr_np"):
        return None
    library.pthread_self.restype = ctypes.c_void_p
    return library


def _elsewhere(compute: Callable[[], T]) -> T:
    """Runs a function in a thread with a large stack, and in this one's context."""
    done: list[T] = []
    raised: list[BaseException] = []
    context = contextvars.copy_context()

    def run() -> None:
        try:
            done.append(context.run(compute))
        # Whatever it is: the thread that waits raises it.
        except BaseException as error:
            raised.append(error)

    with _LOCK:  # the size is global: a thread that other code starts now gets a larger stack
        before = threading.stack_size(_LARGE)
        try:
            thread = threading.Thread(target=run, name="ferrule compiles")
            thread.start()
        finally:
            threading.stack_size(before)
    thread.join()
    if raised:
        raise raised[0]
    return done[0]

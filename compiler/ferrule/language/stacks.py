"""Runs a compilation where its thread has enough stack.

Python's parser and LLVM recurse in C: in a thread with a small stack (musl's have 128 KiB, and
`threading.stack_size` sets what it likes) brackets in brackets would end the process.
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
"""Bytes of stack for whatever Python itself can parse."""
_LARGE: Final = 16 << 20
_ATTRIBUTES: Final = 256
"""More bytes than a `pthread_attr_t` has anywhere."""
_LOCK: Final = ForkLock()


def on_enough_stack(compute: Callable[[], T]) -> T:
    """What a function returns or raises, which runs in a thread of its own if this one's stack is
    small."""
    return compute() if _stack_size() >= ENOUGH else _elsewhere(compute)


def _stack_size() -> int:
    """The bytes of this thread's stack; many where that cannot be known."""
    if threading.current_thread() is threading.main_thread():
        # The C library would read the process's map, which takes longer than a limit.
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
    """The functions of the C library; None where it has not all of them."""
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
        except BaseException as error:
            raised.append(error)

    with _LOCK:  # the size is the process's: a thread of others that starts now gets more stack
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

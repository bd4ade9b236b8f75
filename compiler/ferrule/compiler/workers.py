"""Processes of this machine that compile: one job at a time each, and a death costs its job alone.

Unlike `concurrent.futures.ProcessPoolExecutor`, where a process that dies takes all jobs with it.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, Final

from ferrule.compiler.cache.remote import THREAD
from ferrule.specs.deferred import dataclass

TRIES: Final = 2
"""How often a job is begun whose process dies."""


_END: Final = b""
"""The payload that ends a process.  A closed pipe does not: processes that were forked later hold
it open."""


class WorkerDied(RuntimeError):
    """The process that compiled a job died each time."""


@dataclass(slots=True)
class _Worker:
    process: Any
    pipe: Connection
    job: int | None = None


def run(
    work: Callable[[bytes], Any], payloads: Sequence[bytes], count: int
) -> Iterator[tuple[int, Any]]:
    """Run `work` of each payload in processes; its results as they come, with their positions.

    The result is a WorkerDied for a job whose process died twice.
    """
    todo, tries = deque(range(len(payloads))), [0] * len(payloads)
    workers: list[_Worker] = []
    context = _context()
    try:
        left = len(payloads)
        while left:
            while todo and len(workers) < count:
                workers.append(_start(context, work))
            for worker in workers:
                if worker.job is None and todo:
                    _give(worker, todo.popleft(), payloads, tries)
            for worker in _ready(workers):
                result = _result(worker)
                job, worker.job = worker.job, None
                if not isinstance(result, WorkerDied):
                    left -= 1
                    yield job or 0, result
                    continue
                workers.remove(worker)
                if job is None:
                    continue
                if tries[job] < TRIES:
                    todo.appendleft(job)
                    continue
                left -= 1
                yield job, result
    finally:
        for worker in workers:
            _stop(worker)


def forks() -> bool:
    """Whether processes begin as copies of this one, so that `work` can be any function.

    Where threads run a fork is not safe.  The thread of the cache waits for work, and is not one of
    a fork's.
    """
    others = [each for each in threading.enumerate() if each.name != THREAD]
    return sys.platform == "linux" and len(others) == 1


def _context() -> Any:
    """Forked processes have everything imported already."""
    return multiprocessing.get_context("fork" if forks() else "spawn")


def _start(context: Any, work: Callable[[bytes], Any]) -> _Worker:
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, work), daemon=True)
    with warnings.catch_warnings():
        # Python warns of threads in C libraries, which know of forks.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    theirs.close()
    return _Worker(process, ours)


def _serve(pipe: Connection, work: Callable[[bytes], Any]) -> None:
    """The life of a process: jobs until there are none, or nobody is left who asks.

    It is short, so nothing is collected: that would copy all objects that were there before.
    """
    gc.disable()
    while True:
        try:
            payload = pipe.recv_bytes()
        except (EOFError, OSError):
            return
        if payload == _END:
            return
        pipe.send(work(payload))


def _give(worker: _Worker, job: int, payloads: Sequence[bytes], tries: list[int]) -> None:
    worker.job = job
    tries[job] += 1
    try:
        worker.pipe.send_bytes(payloads[job])
    except OSError:
        pass  # it is dead, as `_result` sees


def _ready(workers: Sequence[_Worker]) -> list[_Worker]:
    found = wait([worker.pipe for worker in workers])
    return [worker for worker in workers if worker.pipe in found]


def _result(worker: _Worker) -> Any:
    try:
        return worker.pipe.recv()
    except (EOFError, OSError):
        worker.process.join()
        code = worker.process.exitcode
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return WorkerDied(f"the process that compiled it ended {how}, {TRIES} times")


def _stop(worker: _Worker) -> None:
    if worker.job is None:
        try:
            worker.pipe.send_bytes(_END)
        except OSError:
            pass  # it is dead already
    else:
        worker.process.kill()
    worker.pipe.close()
    worker.process.join()


def cores() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

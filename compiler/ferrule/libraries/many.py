"""`compile_all` and `overload`: many compilations at once, in processes of this machine or others.

A job goes to a worker as its function's name and its arguments, and comes back as the entry of a
cache: an object with its metadata, never a pickled function.  What a worker compiled is used only
if its key is that of this process: otherwise something else is defined in the worker.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import field
from functools import partial
from typing import Any, Final, cast

from ferrule.compiler import workers
from ferrule.compiler.cache.entries import EntryError, packed, unpacked
from ferrule.compiler.cache.keys import Key, Uncacheable, differing
from ferrule.compiler.cache.through import (
    COUNTS,
    Wanted,
    adopted,
    is_kept,
    known,
    log,
    made_here,
    through,
)
from ferrule.compiler.cache.toolchain import content
from ferrule.compiler.conventions.arguments import shown
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.joining import overload as joined
from ferrule.compiler.progress import Tell
from ferrule.compiler.progress import progress as shown_progress
from ferrule.language.compilation import wanted_of
from ferrule.libraries.jobs import Job
from ferrule.libraries.recipes import Recipe
from ferrule.runtime import Function
from ferrule.specs.deferred import dataclass

_FERRULE: Final = "ferrule"
"""The part of a key whose stamps are of one machine; among several its content is compared."""


class CompileAllError(CompileError):
    """Some jobs of `compile_all` did not compile.

    `errors`: the jobs that did not, each with its error; `functions`: the functions in the order of
    the jobs, None for those.
    """

    def __init__(
        self, errors: Sequence[tuple[Job | Recipe, Exception]], functions: Sequence[Function | None]
    ) -> None:
        self.errors = list(errors)
        self.functions = list(functions)
        told = [f"{job.name}: {error}" for job, error in self.errors]
        super().__init__(f"{len(told)} of {len(self.functions)} jobs: " + "\n\n".join(told))


def compile_all(
    jobs: Sequence[Job], executor: Any = None, progress: bool = True, *, count: int | None = None
) -> list[Function]:
    """The functions of jobs, in their order, compiled at once, under the names of their functions.

    `executor`: any `concurrent.futures.Executor`, or anything with its `submit`; without one,
    `count` processes of this machine, by default one for each processor.  What the cache has is not
    compiled again, and what no cache can have is compiled in this process.  A job whose process
    dies is tried once more.  `progress`: a line on a terminal, a bar in a notebook.

    Raises CompileAllError, when all others are done, if any job does not compile; TypeError for
    what is no job, no executor or no count; ValueError for a job with a name of its own.
    """
    _check(jobs, executor, count)
    for position, job in enumerate(jobs):
        if job.name != job.fn.__name__:
            raise ValueError(
                f"compile_all: job #{position}, {job.fn.__name__}, has the name {job.name!r}, "
                f"which counts in a fe.Library: leave it out here"
            )
    return compiled_at_once(jobs, executor, progress, count=count)


def compiled_at_once(
    jobs: Sequence[Job], executor: Any = None, progress: bool = True, *, count: int | None = None
) -> list[Function]:
    """The same for jobs with names of their own, which the caller gives to the functions."""
    every = _All(list(jobs), [None] * len(jobs), [None] * len(jobs))
    with shown_progress("compiling", len(every.jobs), progress) as tell:
        every.tell = partial(_counted, tell, COUNTS.hits, COUNTS.misses)
        away = list(every.begin())
        if away:
            every.run(_grouped(away), executor, count)
    return every.result()


def _check(jobs: Any, executor: Any, count: Any) -> None:
    if isinstance(jobs, str) or not isinstance(jobs, Sequence):
        raise TypeError(f"compile_all takes a list of fe.Job, but got {shown(jobs)}")
    for position, job in enumerate(jobs):
        if not isinstance(job, Job):
            raise TypeError(
                f"compile_all: job #{position} is no fe.Job(fn, args), but {shown(job)}"
            )
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(
            f"compile_all: executor is {executor!r}, expected a concurrent.futures.Executor: of "
            "Dask it is client.get_executor()"
        )
    if count is not None and (type(count) is not int or count < 1):
        raise TypeError(
            f"compile_all: count is a number of processes, an int of at least 1, but got {count!r}"
        )


@dataclass(slots=True)
class _Away:
    """A job for a worker."""

    position: int
    wanted: Wanted
    key: Key
    payload: bytes


@dataclass(slots=True)
class _All:
    """The state of one `compile_all`."""

    jobs: list[Job]
    functions: list[Function | None]
    errors: list[Exception | None]
    tell: Callable[[str], None] = field(default=lambda name: None)

    def begin(self) -> Iterator[_Away]:
        """The jobs for workers; all others are done here."""
        for position, job in enumerate(self.jobs):
            try:
                wanted = wanted_of(job.fn, job.args, job.kwargs, job.options, job.requires)
                key = _key(wanted)
                found = known(wanted, key) if key is not None and is_kept(wanted) else None
                if found is not None:
                    COUNTS.hits += 1
                    self.done(position, found.function())
                elif key is None:
                    self.done(position, through(wanted))
                else:
                    yield _Away(position, wanted, key, _payload(job))
            except Exception as error:
                self.failed(position, error)

    def run(self, groups: list[list[_Away]], executor: Any, count: int | None) -> None:
        """Compile in workers, equal jobs once, and take what comes back."""
        payloads = [group[0].payload for group in groups]
        if executor is None:
            wanted = min(count or workers.cores(), len(groups))
            results = workers.run(_work, payloads, wanted)
        else:
            results = _submitted(executor, payloads)
        for number, result in results:
            for each in groups[number]:
                self.take(each, result)

    def take(self, each: _Away, result: Any) -> None:
        """What a worker sent for a job."""
        try:
            self.done(each.position, _taken(each, result))
        except Exception as error:
            self.failed(each.position, error)

    def done(self, position: int, function: Function) -> None:
        """A job has its function."""
        self.functions[position] = function
        self.tell(self.jobs[position].name)

    def failed(self, position: int, error: Exception) -> None:
        """A job has an error."""
        self.errors[position] = error
        self.tell(self.jobs[position].name)

    def result(self) -> list[Function]:
        """The functions.  CompileAllError if there is an error."""
        pairs = zip(self.jobs, self.errors, strict=True)
        errors = [(job, error) for job, error in pairs if error is not None]
        if errors:
            raise CompileAllError(errors, self.functions) from errors[0][1]
        return [function for function in self.functions if function is not None]


def _grouped(away: list[_Away]) -> list[list[_Away]]:
    """The jobs by their keys."""
    groups: dict[str, list[_Away]] = {}
    for each in away:
        groups.setdefault(each.key.digest, []).append(each)
    return list(groups.values())


def _key(wanted: Wanted) -> Key | None:
    """The key of a compilation; None for one that this process must do itself."""
    try:
        return wanted.key_of()
    except Uncacheable:
        return None


def _payload(job: Job) -> bytes:
    """What a worker is given.  CompileError if it could not find the function."""
    try:
        return pickle.dumps((job.fn, tuple(job.args), dict(job.kwargs), job.options, job.requires))
    except Exception as error:
        raise CompileError(
            Diagnostic(
                f"{job.name} cannot be given to another process: {error}",
                expected="a function of a module, and arguments that can be pickled",
                hint="define the function at the top of a module that workers can import, or "
                "compile it here: fe.compile",
            )
        ) from None


def _work(payload: bytes, far: bool = False) -> tuple[str, Any]:
    """In a worker: compile, and return the outcome. `far`: it may be on another machine."""
    try:
        given = pickle.loads(payload)
    except Exception as error:
        return "lost", f"{type(error).__name__}: {error}"
    try:
        key, entry = made_here(wanted_of(*given))
    except Uncacheable as why:
        return "unkept", str(why)
    except Exception as error:
        return "error", _portable(error)
    return "entry", (dict(key.parts), content() if far else b"", packed(entry))


def _portable(error: Exception) -> Exception:
    """An error that can be pickled and read back."""
    try:
        again = pickle.loads(pickle.dumps(error))
        # Exceptions whose `__init__` has other parameters than its message lose it, or cannot be
        # read back.
        if type(again) is type(error) and str(again) == str(error):
            return error
    except Exception:
        pass
    return CompileError(str(error))


def _taken(each: _Away, result: Any) -> Function:
    """The function from a worker's result."""
    if isinstance(result, Exception):
        raise result
    kind, held = result
    if kind == "error":
        raise held
    if kind == "lost":
        raise CompileError(
            Diagnostic(
                f"{each.wanted.name} is not importable in a worker: {held}",
                hint="put its module where workers import it from, such as an installed package",
            )
        )
    if kind == "entry":
        function = _adopted(each, *held)
        if function is not None:
            return function
    else:
        log(f"compiled here: {each.wanted.name}: {held}")
    return through(each.wanted)


def _adopted(each: _Away, parts: dict[str, str], source: bytes, data: bytes) -> Function | None:
    """The function of a worker's entry; None if the worker compiled something else."""
    others = differing(each.key, parts)
    if others == [_FERRULE] and source == content():
        others = []
    if others:
        log(f"compiled here: {each.wanted.name}: in the worker differs: {', '.join(others)}")
        return None
    try:
        return adopted(each.wanted, each.key, unpacked(data))
    except EntryError as error:
        log(f"compiled here: {each.wanted.name}: what the worker sent: {error}")
        return None


def _submitted(executor: Any, payloads: Sequence[bytes]) -> Iterator[tuple[int, Any]]:
    """Results of an executor as they come; a job that fails otherwise is tried once more."""
    futures: dict[Any, tuple[int, int]] = {}
    for number, payload in enumerate(payloads):
        futures[executor.submit(_work, payload, True)] = number, 1
    while futures:
        for future in _finished(futures):
            number, tries = futures.pop(future)
            try:
                yield number, future.result()
            except Exception as error:
                again = None if tries >= workers.TRIES else _again(executor, payloads[number])
                if again is None:
                    yield number, workers.WorkerDied(f"its worker failed: {error!r}")
                else:
                    futures[again] = number, tries + 1


def _again(executor: Any, payload: bytes) -> Any:
    """A job once more; None if the executor takes none."""
    try:
        return executor.submit(_work, payload, True)
    except Exception:
        return None


def _finished(futures: dict[Any, tuple[int, int]]) -> list[Any]:
    """Some futures that are done."""
    if all(isinstance(each, Future) for each in futures):
        return list(wait(futures, return_when=FIRST_COMPLETED).done)
    first = next(iter(futures))  # of another library: in the order of the jobs
    return [first]


def _counted(tell: Tell, hits: int, misses: int, name: str) -> None:
    tell(f"{name}, {COUNTS.hits - hits} hits, {COUNTS.misses - misses} misses")


def overload(functions: Sequence[Function | Job], name: str | None = None) -> Function:
    """One function that calls the first of these that accepts the arguments.

    `functions`: results of `compile`, in the order in which they are tried, or `Job`s, which are
    compiled as by `compile_all`: at once, in a process for each processor.  `name`: by default that
    of the first one.  A call that all refuse is one TypeError with the reason of each.  In C it is
    one symbol; in Python it accepts keywords if the functions agree in the names.  Raises
    CompileError for anything but compiled functions and jobs, and if the functions have different
    defaults; CompileAllError if a job does not compile.
    """
    if isinstance(functions, Sequence) and any(isinstance(each, Job) for each in functions):
        return joined(_compiled(functions), name)
    return joined(cast("Sequence[Function]", functions), name)


def _compiled(functions: Sequence[Function | Job]) -> list[Function]:
    """The functions, with that of each job in its place."""

    done = iter(compile_all([each for each in functions if isinstance(each, Job)]))
    return [next(done) if isinstance(each, Job) else each for each in functions]

"""Many compilations at once: in processes of this machine, by executors, with deaths and errors."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.compiler import workers
from ferrule.compiler.cache.through import MEMORY
from ferrule.libraries import many

TEXT = """
import ferrule as fe

FACTOR = 1.0


@fe.jit
def scale(a: fe.Tensor, k: fe.Constexpr[int]):
    a[0] = a[0] * k * FACTOR


@fe.jit
def wrong(a: fe.Tensor):
    a[0] = missing
"""


@pytest.fixture
def module(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module that workers can import."""
    name = f"kernels_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(TEXT)
    monkeypatch.syspath_prepend(str(tmp_path))
    forking = workers.multiprocessing.get_context("fork")  # whatever threads other tests left
    monkeypatch.setattr(workers, "_context", lambda: forking)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    yield __import__(name)
    del sys.modules[name]


def vector() -> Any:
    return fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(symbol="n"),))


def jobs(module: ModuleType, factors: range = range(1, 5)) -> list[fe.Job]:
    return [fe.Job(module.scale, (vector(), k), options="--target cpu") for k in factors]


def check(functions: list[fe.Function], factors: range = range(1, 5)) -> None:
    for function, k in zip(functions, factors, strict=True):
        a = np.full(3, 2, np.float32)
        function(a)
        assert a.tolist() == [2.0 * k, 2.0, 2.0]


def test_processes_of_this_machine(module: ModuleType) -> None:
    functions = fe.compile_all(jobs(module), count=2)
    check(functions)
    assert {function.origin for function in functions} == {"compiled"}
    MEMORY.clear()
    again = fe.compile_all(jobs(module, range(1, 6)), count=2)
    check(again, range(1, 6))
    assert [function.origin for function in again] == ["from the cache"] * 4 + ["compiled"]
    assert "scale" in functions[0].inspect_ir()


def test_requirements_reach_the_processes(module: ModuleType) -> None:
    n = fe.sym_int(max=64)  # without a name: what is one symbol stays one
    example = fe.make_fake_compact_tensor(fe.Float32, (n,))
    even = fe.specs.require(fe.specs.divisible(n, 2), "pairs")
    given = [
        fe.Job(module.scale, (example, k), options="--target cpu", requires=requires)
        for k in (7, 8)
        for requires in ([], [even])
    ]
    functions = fe.compile_all(given, count=2)
    assert ["pairs" in each.signature.text() for each in functions] == [False, True] * 2
    functions[0](np.ones(3, np.float32))
    with pytest.raises(ValueError, match="expected n0 % 2 == 0, but got n0 = 3: pairs"):
        functions[1](np.ones(3, np.float32))
    with pytest.raises(TypeError, match=r"Job\(scale\): requires must be a list"):
        fe.Job(module.scale, (example, 7), requires=n < 3)  # type: ignore[arg-type]


def test_without_a_cache(module: ModuleType, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("FERRULE_CACHE", "0")
    check(fe.compile_all(jobs(module), count=2))
    assert not folder.exists()


@pytest.mark.parametrize("cache", ["0", "1"])
def test_equal_jobs_are_compiled_once(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, cache: str
) -> None:
    monkeypatch.setenv("FERRULE_CACHE", cache)
    factors, sent = [3, 5, 3, 3], []

    class Counting(ThreadPoolExecutor):
        def submit(self, *given: Any, **how: Any) -> Future[Any]:
            sent.append(given)
            return super().submit(*given, **how)

    given = [fe.Job(module.scale, (vector(), k), options="--target cpu") for k in factors]
    with Counting(2) as executor:
        functions = fe.compile_all(given, executor)
    assert len(sent) == 2
    assert len({id(each) for each in functions}) == 4
    for function, k in zip(functions, factors, strict=True):
        a = np.ones(1, np.float32)
        function(a)
        assert a[0] == k


def test_errors_come_with_their_jobs(module: ModuleType) -> None:
    given = jobs(module)
    given.insert(2, fe.Job(module.wrong, (vector(),), options="--target cpu"))
    with pytest.raises(fe.CompileAllError, match="1 of 5 jobs: wrong: .*missing") as told:
        fe.compile_all(given, count=2)
    ((job, error),) = told.value.errors
    assert job is given[2]
    assert isinstance(error, fe.CompileError)
    check([function for function in told.value.functions if function is not None])
    assert told.value.functions[2] is None


def test_what_changed_in_this_process_is_compiled_here(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FERRULE_LOG", "cache")

    class Elsewhere(ThreadPoolExecutor):
        """A worker that imported the module, where the factor is 1."""

        def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            with monkeypatch.context() as there:
                there.setattr(module, "FACTOR", 1.0)
                return Failing(0).submit(function, *args, **kwargs)

    module.FACTOR = 10.0
    functions = fe.compile_all(jobs(module, range(1, 3)), Elsewhere())
    check(functions, range(10, 30, 10))
    assert "in the worker differs: the global FACTOR" in capsys.readouterr().err


@pytest.mark.nightly
def test_processes_that_import_anew(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_context", lambda: workers.multiprocessing.get_context("spawn"))
    here = fe.cache.info().misses
    functions = fe.compile_all(jobs(module, range(1, 3)), count=1)
    check(functions, range(1, 3))
    assert fe.cache.info().misses == here + 2
    assert {function.origin for function in functions} == {"compiled"}


def test_a_function_that_no_worker_can_import(folder: Path) -> None:
    class Own:
        factor = 3.0

    factor = Own.factor

    @fe.jit
    def local(a: fe.Tensor):
        a[0] = factor

    @fe.jit
    def of_a_class(a: fe.Tensor):
        a[0] = Own.factor

    job = fe.Job(local, (vector(),), options="--target cpu")
    (function,) = fe.compile_all([job])
    a = np.zeros(2, np.float32)
    function(a)
    assert a.tolist() == [3, 0]
    with pytest.raises(fe.CompileAllError, match="cannot be given to another process") as told:
        fe.compile_all([fe.Job(of_a_class, (vector(),), options="--target cpu")])
    assert "define the function at the top of a module" in str(told.value.errors[0][1])


@contextmanager
def dying(times: int, folder: Path) -> Iterator[None]:
    """Workers that kill themselves so many times in all, at a job with 3 in it."""
    original = many.made_here

    def work(wanted: Any) -> Any:
        if os.getpid() != parent and wanted.name == "scale":
            constants = wanted.make.__closure__[0].cell_contents.examples.constants
            marks = len(list(folder.glob("death-*")))
            if constants == {"k": 3} and marks < times:
                (folder / f"death-{marks}").touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return original(wanted)

    parent = os.getpid()
    many.made_here = work
    try:
        yield
    finally:
        many.made_here = original


def test_a_worker_that_dies_once_loses_nothing(module: ModuleType, tmp_path: Path) -> None:
    with dying(1, tmp_path):
        check(fe.compile_all(jobs(module), count=2))
    assert len(list(tmp_path.glob("death-*"))) == 1


def test_a_worker_that_dies_twice_loses_its_job_alone(module: ModuleType, tmp_path: Path) -> None:
    with dying(9, tmp_path), pytest.raises(fe.CompileAllError) as told:
        fe.compile_all(jobs(module), count=2)
    ((job, error),) = told.value.errors
    assert job.args[1] == 3
    assert isinstance(error, workers.WorkerDied)
    assert "ended by signal 9" in str(error)
    assert [function is None for function in told.value.functions] == [False, False, True, False]


def test_a_thread_pool(module: ModuleType) -> None:
    with ThreadPoolExecutor(2) as executor:
        check(fe.compile_all(jobs(module), executor))


@pytest.mark.nightly
def test_a_process_pool(module: ModuleType) -> None:
    context = workers.multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as executor:
        functions = fe.compile_all(jobs(module), executor)
    check(functions)
    assert {function.origin for function in functions} == {"compiled"}


class Failing(Executor):
    """An executor whose first results are errors."""

    def __init__(self, times: int) -> None:
        self.times = times

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.times -= 1
        if self.times >= 0:
            future.set_exception(OSError("the machine went away"))
        else:
            future.set_result(function(*args, **kwargs))
        return future


def test_an_executor_that_fails_is_asked_once_more(module: ModuleType) -> None:
    check(fe.compile_all(jobs(module), Failing(4)))


def test_an_executor_that_fails_always_is_an_error_of_its_job(module: ModuleType) -> None:
    with pytest.raises(fe.CompileAllError, match="the machine went away"):
        fe.compile_all(jobs(module), Failing(99))


@pytest.mark.nightly
def test_dask(module: ModuleType) -> None:
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as here,
        distributed.Client(here) as client,
    ):
        functions = fe.compile_all(jobs(module), client.get_executor())
    check(functions)
    assert {function.origin for function in functions} == {"compiled"}


@pytest.mark.nightly
def test_ray(module: ModuleType) -> None:
    ray = pytest.importorskip("ray", reason="ray is not installed")

    class OfRay:
        """What has `submit`, of remote functions."""

        def submit(self, function: Any, *args: Any) -> Any:
            return ray.remote(function).remote(*args).future()

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        functions = fe.compile_all(jobs(module), OfRay())
    finally:
        ray.shutdown()
    check(functions)
    assert {function.origin for function in functions} == {"compiled"}


def test_wrong_arguments_are_errors(folder: Path) -> None:
    for jobs_, text in ((3, "takes a list of fe.Job"), ([3], "job #0 is no fe.Job")):
        with pytest.raises(TypeError, match=text):
            fe.compile_all(jobs_)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected a concurrent.futures.Executor"):
        fe.compile_all([], executor=3)
    with pytest.raises(TypeError, match="count is a number of processes, an int of at least 1"):
        fe.compile_all([], count=0)
    assert fe.compile_all([]) == []


def test_a_line_where_there_is_a_terminal(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []

    class Terminal:
        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> None:
            shown.append(text)

        def flush(self) -> None:
            pass

    fe.compile_all(jobs(module, range(1, 3)), count=1)
    monkeypatch.setattr(sys, "stderr", Terminal())
    fe.compile_all(jobs(module, range(1, 3)), count=1)
    assert shown == [], "short compilations are silent"
    monkeypatch.setattr("ferrule.compiler.progress.SILENT", 0.0)
    fe.compile_all(jobs(module, range(1, 4)), count=1)
    assert shown[0].startswith("\rcompiling [########") and " 1 of 3 " in shown[0]
    assert "3 of 3 scale, 2 hits, 1 misses" in shown[-2]
    assert shown[-1] == "\r\x1b[K", "and the line is gone"
    del shown[:]
    fe.compile_all(jobs(module), progress=False)
    assert shown == []


def test_names_of_jobs_are_for_libraries(module: ModuleType) -> None:
    job = fe.Job(module.scale, (vector(), 2), name="other")
    for compiled in (fe.compile_all, fe.overload):
        with pytest.raises(ValueError, match="job #0, scale, has the name 'other', which counts"):
            compiled([job])


def test_candidates_of_an_overload_are_compiled_at_once(module: ModuleType, folder: Path) -> None:
    """Jobs among compiled functions, in their order; a job that does not compile is named."""
    one = fe.compile(module.scale, vector(), 2, options="--target cpu")
    wide = fe.make_fake_compact_tensor(fe.Float64, (fe.sym_int(symbol="n"),))
    job = fe.Job(module.scale, (wide, 3), options="--target cpu")
    both = fe.overload([job, one], "both")
    for dtype, expected in ((np.float64, 3), (np.float32, 2)):
        a = np.ones(1, dtype)
        both(a)
        assert a[0] == expected
    with pytest.raises(fe.CompileAllError, match="wrong: "):
        fe.overload([one, fe.Job(module.wrong, (wide,), options="--target cpu")])

"""Runs tests that were written for the CPU target on a GPU: a pytest plugin, `-p on_gpu`.  The GPU
may be emulated, by FERRULE_GPU.

What a test compiles with `--target cpu` is compiled for the GPU as well.  A call with NumPy arrays
runs on the CPU first, with copies; if that raises, so does the call, and the GPU is left alone,
because a failed assertion there would lose its context for all tests that follow.  Else the call
runs on the GPU with copies of the arrays in its memory, which are then copied back, so that what
the test expects of its arrays is expected of the GPU.  A host function that reads or writes
elements itself becomes a kernel of one thread.

Each call must leave the same bits on both, where one NaN is any other; `same_bits` says where not.

`--on-gpu=compile` leaves the runs out and needs no GPU.  `--on-gpu=compare` leaves the interpreter
and plain Python out, with which the tests compare the CPU's in every run.  The terminal says how
much was done, and what was left out for which reason.
"""

from __future__ import annotations

import inspect
import itertools
import linecache
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import agreement
import numpy as np
import pytest
from device_memory import as_array, copied, hosts, on_device
from plain_python import examples

import ferrule as fe
from ferrule.runtime.errors import StageError

TARGET, ARCH = "--target cpu", "sm_90a"


@dataclass
class Done:
    """What was done in this process."""

    runs: bool
    functions: int = 0
    calls: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def line(self) -> str:
        """For the terminal."""
        text = f"on the GPU: {self.functions} functions, {self.calls} calls"
        left_out = "; ".join(f"{n}: {why}" for why, n in self.left_out.most_common())
        return f"{text}; left out {left_out}" if left_out else text


class OnGpu:
    """A function that was compiled for both targets; its attributes are those of the CPU's."""

    def __init__(self, cpu: fe.Function, gpu: fe.Function, done: Done) -> None:
        self.cpu, self._gpu, self._done = cpu, gpu, done

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cpu, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._done.runs:
            return self.cpu(*args, **kwargs)
        wanted = copied((args, kwargs))
        try:
            result = self.cpu(*wanted[0], **wanted[1])
        except Exception:
            self._done.left_out["the call raises"] += 1
            return self.cpu(*args, **kwargs)
        if result is not None:
            self._done.left_out["the function has a result"] += 1
            return self.cpu(*args, **kwargs)
        with on_device((args, kwargs)) as (positional, keywords):
            self._gpu(*positional, **keywords)
        self._done.calls += 1
        for found, expected in zip(hosts((args, kwargs)), hosts(wanted), strict=True):
            same_bits(found, expected)
        return None


def same_bits(found: Any, wanted: Any) -> None:
    """Raises AssertionError where a tensor on the GPU has not become what it has on the CPU."""
    ours, theirs = as_array(found), as_array(wanted)
    if ours.tobytes() == theirs.tobytes():
        return
    what = "on the GPU, and on the CPU"
    if ours.dtype.kind in "fV":  # V: numbers that NumPy lacks
        ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
        known = ~np.isnan(ours)
        signs = (np.signbit(each[known]) for each in (ours, theirs))
        np.testing.assert_array_equal(*signs, err_msg=f"signs {what}")
    np.testing.assert_array_equal(ours, theirs, err_msg=what)


def both_ways(
    function: Any, arguments: Any, *, options: str = "--target cpu", **_: Any
) -> agreement.Outcome:
    """What stands for `agreement.run_all_ways`: compiled for both, and called."""
    compiled = fe.compile(function, *examples(*arguments), options=options)
    return agreement.outcome(compiled, arguments)


@dataclass(frozen=True)
class Compiler:
    """What stands for `fe.compile`."""

    original: Callable[..., fe.Function]
    done: Done

    def __call__(
        self, function: Any, *examples: Any, options: Any = None, **named: Any
    ) -> fe.Function | OnGpu:
        cpu = self.original(function, *examples, options=options, **named)
        if not isinstance(options, str) or TARGET not in options:
            return cpu
        if "Pointer(" in str(cpu.signature):
            self.done.left_out["a parameter is a pointer to the CPU's memory"] += 1
            return cpu
        target = "--target cuda" if self.done.runs else f"--target cuda --gpu-arch {ARCH}"
        if "--fmad" not in options:
            target += " --fmad=false"  # as the CPU does by default
        wanted = options.replace(TARGET, target)
        try:
            gpu = self._for_gpu(function, examples, wanted, named)
        except (fe.CompileError, NotImplementedError) as error:
            first = str(error).splitlines()[0]
            self.done.left_out[first] += 1
            return cpu
        why = differs(gpu) or ("fast_math contracts on the CPU" if contracts(cpu) else "")
        if why:
            self.done.left_out[why] += 1
            return cpu
        self.done.functions += 1
        return OnGpu(cpu, gpu, self.done)

    def _for_gpu(
        self, function: Any, examples: Any, options: str, named: dict[str, Any]
    ) -> fe.Function:
        """Compiled with examples that are on the GPU, where there is one."""
        if not self.done.runs:
            return self._compiled(function, examples, options, named)
        with on_device((examples, named)) as (moved, renamed):
            return self._compiled(function, moved, options, renamed)

    def _compiled(
        self, function: Any, examples: Any, options: str, named: dict[str, Any]
    ) -> fe.Function:
        try:
            return self.original(function, *examples, options=options, **named)
        except fe.CompileError as first:
            try:
                alone = one_thread(getattr(function, "function", function))
                return self.original(alone, *examples, options=options, **named)
            except (fe.CompileError, TypeError):
                raise first from None


def differs(function: fe.Function) -> str:
    """Why a function need not do what it does on a CPU; empty where it should."""
    try:
        ptx = str(function.inspect_ptx())
    except StageError:
        return "no kernel"
    if ".approx" in ptx:
        return "approximations, which a CPU does not have"
    return ""


def contracts(function: fe.Function) -> bool:
    """Whether LLVM may make one operation of a product and a sum, as `fast_math` says: what it does
    is another thing on each target, unlike `--fmad`."""
    try:
        return ".contract" in str(function.inspect_ir())
    except StageError:
        return False


_numbers = itertools.count()


def one_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """A host function with the same parameters that launches the function as a kernel."""
    given = inspect.signature(function).parameters
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in given.values()]
    body = f"on_gpu_kernel({', '.join(given)}).launch(grid=1, block=1)"
    source = f"def {function.__name__}{inspect.Signature(plain)}:\n    {body}\n"
    file = f"<one thread {next(_numbers)}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    scope = {**function.__globals__, "on_gpu_kernel": fe.kernel(function)}
    exec(compile(source, file, "exec"), scope)
    host: Callable[..., Any] = scope[function.__name__]
    # Not in the source, where a number's type might be written as what is none.
    host.__annotations__ = {
        name: each for name, each in function.__annotations__.items() if name in given
    }
    return host


# ---- the plugin ----

_DONE = pytest.StashKey[Done]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--on-gpu", choices=("run", "compare", "compile"), default="run")


def pytest_configure(config: pytest.Config) -> None:
    way = config.getoption("--on-gpu")
    done = config.stash[_DONE] = Done(way != "compile")
    if way == "compare":
        agreement.run_all_ways = both_ways
    if done.runs:
        # Tensors that functions make are on the GPU too, where no framework's come with the call.
        fe.cuda.use_as_allocator()
    fe.compile = Compiler(fe.compile, done)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    terminalreporter.write_line(config.stash[_DONE].line())

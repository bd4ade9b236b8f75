"""Times and checks of compiled functions, `fe.testing`: CuTe DSL's `cutlass.cute.testing`.

A time is that of the processor's clock around calls that are waited for, in microseconds.
"""

from __future__ import annotations

import inspect
import statistics
import time
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from ferrule.cutlass import names
from ferrule.language.decorators import JitFunction
from ferrule.runtime.devices import cuda_devices

_LEAST_BYTES = 128 << 20
"""What a series of workspaces must have, so that none of them is in a cache at its next turn."""


class CantImplementError(Exception):
    """A configuration cannot be compiled or run: `tune` leaves it out."""


class JitArguments:
    """The arguments of a call, and objects that live as long as it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs
        self.references: list[Any] = []

    def add_to_scope(self, references: Sequence[Any]) -> None:
        """Keeps these objects: memory that the arguments point to."""
        self.references.extend(references)


def benchmark(
    callable: Callable[..., Any],
    *,
    warmup_iterations: int = 10,
    iterations: int = 100,
    stream: Any = None,
    kernel_arguments: JitArguments | None = None,
    workspace_generator: Callable[[], JitArguments] | None = None,
    workspace_count: int = 1,
    use_cuda_graphs: bool = False,
) -> float:
    """The mean time of a call in microseconds.

    Each call has the next of `workspace_count` arguments, which `workspace_generator` makes, or
    `kernel_arguments`.  Work on a GPU is waited for at the beginning and at the end.  `stream` is
    the one that the calls use, if they have one of their own.
    """
    if use_cuda_graphs:
        raise ValueError(
            "benchmark: CUDA graphs are not supported; time the calls with use_cuda_graphs=False"
        )
    if iterations < 1 or warmup_iterations < 0 or workspace_count < 1:
        raise ValueError(
            "benchmark: iterations and workspace_count must be at least 1, warmup_iterations at "
            f"least 0, but got {iterations}, {workspace_count} and {warmup_iterations}"
        )
    if kernel_arguments is not None and workspace_generator is not None:
        raise ValueError("benchmark: give kernel_arguments or workspace_generator, not both")
    make = workspace_generator or (lambda: kernel_arguments or JitArguments())
    spaces = [make() for _ in range(workspace_count)]
    _run(callable, spaces, warmup_iterations)
    begin = time.perf_counter()
    _run(callable, spaces, iterations)
    return (time.perf_counter() - begin) / iterations * 1e6


def _run(call: Callable[..., Any], spaces: Sequence[JitArguments], count: int) -> None:
    """Calls in turn, until all work is done."""
    for number in range(count):
        space = spaces[number % len(spaces)]
        call(*space.args, **space.kwargs)
    _wait()


def _wait() -> None:
    """Waits for the GPUs of this process, if it has one."""
    if cuda_devices():
        from ferrule.runtime import cuda

        cuda.synchronize()


def convert(src: Any, dst: Any) -> None:
    """Converts the elements of one tensor of `from_dlpack` into the memory of another one.

    What is too large for a float of 8 bits becomes the largest one, as GPUs convert.
    """
    import numpy as np

    from ferrule.cutlass.torch import memory_of

    if isinstance(src.tensor, np.ndarray) and isinstance(dst.tensor, np.ndarray):
        np.copyto(dst.tensor, src.tensor, casting="unsafe")
        return
    given, into = memory_of(src), memory_of(dst)
    if given.shape != into.shape:
        raise ValueError(f"convert: shapes {tuple(given.shape)} and {tuple(into.shape)}")
    values = given.float() if given.dtype.itemsize == 1 else given
    if into.dtype.itemsize == 1 and into.dtype.is_floating_point:
        import torch

        limits = torch.finfo(into.dtype)
        values = values.clamp(limits.min, limits.max)
    into.copy_(values)


def get_workspace_count(one_workspace_bytes: int, warmup_iterations: int, iterations: int) -> int:
    """How many workspaces of this size no cache holds; at most one for each call."""
    if one_workspace_bytes < 1:
        raise ValueError(f"a workspace has at least 1 byte, but got {one_workspace_bytes}")
    wanted = -(-_LEAST_BYTES // one_workspace_bytes)
    return max(1, min(wanted, warmup_iterations + iterations))


def tune(
    func: Callable[..., Callable[[], Any]],
    params_dict: dict[str, list[Any]] | None = None,
    kernel_arguments: JitArguments | None = None,
    warmup_iterations: int = 10,
    iterations: int = 100,
    stream: Any = None,
) -> dict[str, Any]:
    """The parameters of the fastest configuration.

    `func(*args, **parameters)` gives a function without arguments, whose calls are timed; a
    configuration for which it raises `CantImplementError` or a ValueError is left out.  Of equal
    times the first one wins.  Raises ValueError if no configuration is left.
    """
    given = kernel_arguments or JitArguments()
    options = params_dict or {}
    times: dict[int, float] = {}
    refused: Exception | None = None
    choices = [dict(zip(options, values, strict=True)) for values in product(*options.values())]
    for number, choice in enumerate(choices):
        try:
            call = func(*given.args, **given.kwargs, **choice)
            times[number] = _middle(call, warmup_iterations, iterations)
        except (CantImplementError, ValueError) as error:
            refused = error
    if not times:
        raise ValueError("tune: no configuration could be run") from refused
    return choices[min(times, key=lambda number: times[number])]


def _middle(call: Callable[[], Any], warmup: int, iterations: int) -> float:
    """The median of several times: one disturbance does not decide."""
    rounds = [
        benchmark(call, warmup_iterations=warmup, iterations=max(1, iterations // 5))
        for _ in range(5)
    ]
    return statistics.median(rounds)


class _Tuned(JitFunction):
    """A `jit` function that chooses some of its parameters by their times."""

    def __init__(
        self,
        function: JitFunction,
        options: dict[str, list[Any]],
        watched: Sequence[str],
        counts: tuple[int, int],
    ) -> None:
        super().__init__(function.function)
        self._options = options
        self._watched = tuple(watched)
        self._counts = counts
        self._chosen: dict[tuple[Any, ...], dict[str, Any]] = {}

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        given = inspect.signature(self.function).bind_partial(*args, **kwargs)
        given.apply_defaults()
        key = tuple(given.arguments.get(name) for name in self._watched)
        if key not in self._chosen:
            self._chosen[key] = self._tuned(args, kwargs)
        return super().__call__(*args, **{**kwargs, **self._chosen[key]})

    def _tuned(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        call = super().__call__

        def configured(**choice: Any) -> Callable[[], Any]:
            return lambda: call(*args, **{**kwargs, **choice})

        warmup, iterations = self._counts
        return tune(configured, self._options, warmup_iterations=warmup, iterations=iterations)


def autotune_jit(
    params_dict: dict[str, list[Any]] | None = None,
    update_on_change: list[str] | None = None,
    warmup_iterations: int = 10,
    iterations: int = 100,
) -> Callable[[JitFunction], JitFunction]:
    """A decorator above `@jit`: the parameters of `params_dict` are chosen by the times of calls.

    The first call chooses, and each with new values of the parameters in `update_on_change`; it
    runs the function many times with its arguments, so that these must allow it.
    """

    def decorate(function: JitFunction) -> JitFunction:
        if not isinstance(function, JitFunction):
            raise TypeError(f"autotune_jit is written above @jit, but got {function!r}")
        names_ = inspect.signature(function.function).parameters
        unknown = {*(params_dict or ()), *(update_on_change or ())} - set(names_)
        if unknown:
            raise TypeError(f"{function.function.__name__} has no parameter {min(unknown)!r}")
        counts = (warmup_iterations, iterations)
        return _Tuned(function, params_dict or {}, update_on_change or (), counts)

    return decorate


def assert_(cond: Any, msg: str | None = None) -> None:
    """`assert`: while compiling where the condition is known, else in each call."""
    if msg is None:
        assert cond
    else:
        assert cond, msg


__getattr__ = names.resolver("cutlass.testing")

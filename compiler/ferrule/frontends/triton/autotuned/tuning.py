"""`tune` finds the fastest configuration of an autotuned kernel by measurements on a GPU."""

from __future__ import annotations

import contextlib
import ctypes
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from ferrule.compiler import workers
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.progress import progress
from ferrule.frontends.triton.autotuned.configs import versions_of
from ferrule.frontends.triton.autotuned.pruning import kept
from ferrule.frontends.triton.compiling import arguments_for, compile
from ferrule.frontends.triton.installed import Kernel, kernel_of
from ferrule.frontends.triton.offline import warm

if TYPE_CHECKING:
    from ferrule.runtime import Function

Key = tuple[int, ...]
_WARM_UP: Final = 5
_BATCHES: Final = 7
_BATCH: Final = 20


def tune(
    kernel: Any,
    calls: Mapping[Key, Sequence[Any]],
    *,
    timer: Callable[[Callable[[], Any]], float] | None = None,
    **how: Any,
) -> dict[Key | None, int]:
    """The fastest of a kernel's configurations for each key, in the form that `compile` takes as
    `config`.

    `calls` contains the arguments of a call for each key; a key consists of the values of the
    parameters in the autotuner's `key`.  Configurations that the autotuner's `prune_configs_by`
    removes for a call are not measured for it.  The entry under None is for calls with other keys:
    the configuration that was the best most often.  `timer` measures a call, in any unit; by
    default it runs the call many times on the current GPU and waits for it.  The contents of the
    tensors are undefined afterwards.  `how` are arguments of `compile`.

    The configurations are compiled at once, in a process for each processor, where this process can
    fork.  A configuration that cannot be compiled or launched, or that ends the process which
    compiles it, is skipped; CompileError if none is left.
    """
    found, measure = kernel_of(kernel), timer or synchronised_time
    _check_calls(found, calls)
    arguments = arguments_for(kernel, how)
    measured = {key: kept(found, arguments, call) for key, call in calls.items()}
    numbers = sorted({number for numbers in measured.values() for number in numbers})
    functions: dict[int, Function] = {}
    failures: list[str] = []
    for number, result in _compiled(kernel, numbers, how):
        if isinstance(result, Exception):
            reason = result.diagnostic.message if isinstance(result, CompileError) else str(result)
            failures.append(f"#{number}, {found.configs[number]}: {reason}")
        else:
            functions[number] = result
    best: dict[Key | None, int] = {}
    for key, call in calls.items():
        tried = {number: functions[number] for number in measured[key] if number in functions}
        best[key] = _fastest(found.name, tried, call, measure, list(failures))
    best[None] = Counter(best.values()).most_common(1)[0][0]
    return best


def _compiled(
    kernel: Any, numbers: Sequence[int], how: Mapping[str, Any]
) -> Iterator[tuple[int, Function | Exception]]:
    """The function of each configuration, or why there is none."""
    died = _prepared(kernel, numbers, how)
    for number in numbers:
        if number in died:
            yield number, died[number]
            continue
        try:
            yield number, compile(kernel, config=number, **how)
        except CompileError as error:
            yield number, error


def _prepared(
    kernel: Any, numbers: Sequence[int], how: Mapping[str, Any]
) -> dict[int, workers.WorkerDied]:
    """Fill Triton's cache and ours in other processes; the configurations that ended theirs."""
    count = min(workers.cores(), len(numbers))
    if count < 2 or not workers.forks():
        return {}

    def work(payload: bytes) -> None:
        with contextlib.suppress(Exception):  # this process meets it again, and tells of it
            compile(kernel, config=int(payload), **how)

    warm()
    died, payloads = {}, [str(number).encode() for number in numbers]
    with progress("compiling configurations", len(numbers)) as tell:
        for position, result in workers.run(work, payloads, count):
            number = numbers[position]
            if isinstance(result, workers.WorkerDied):
                died[number] = result
            tell(f"#{number}")
    return died


def _check_calls(kernel: Kernel, calls: object) -> None:
    if not kernel.configs:
        raise CompileError(
            f"{kernel.name} has no configs to choose from: triton.autotune gives a kernel some"
        )
    if not isinstance(calls, Mapping) or not calls:
        raise CompileError(
            Diagnostic(
                f"{kernel.name}: tune needs a call for one key at least, but got {calls!r}",
                expected="the arguments of a call by key, such as {(4096,): (x, y)}",
            )
        )
    versions_of(kernel, dict.fromkeys(calls, 0))
    for key, call in calls.items():
        if not isinstance(call, Sequence) or isinstance(call, str):
            raise CompileError(
                f"{kernel.name}: the call for {key} is a tuple of its arguments, but got {call!r}"
            )


def _fastest(
    name: str,
    functions: Mapping[int, Function],
    arguments: Sequence[Any],
    measure: Callable[[Callable[[], Any]], float],
    failures: list[str],
) -> int:
    times: dict[int, float] = {}
    for number, function in functions.items():
        try:
            times[number] = measure(function.bind(*arguments))
        except RuntimeError as error:
            failures.append(f"#{number}: {error}")
    if not times:
        raise CompileError(
            Diagnostic(f"{name}: none of its configs can be launched", notes=tuple(failures))
        )
    return min(times, key=lambda number: times[number])


def synchronised_time(call: Callable[[], Any]) -> float:
    """The time of a call on the current GPU in seconds: the median of several batches, after each
    of which the host waits.

    Raises RuntimeError if there is no GPU, or if the work on it failed.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise RuntimeError(f"there is no GPU to measure on: {error}") from None
    times = []
    for batch in range(_BATCHES + 1):
        start = time.perf_counter()
        for _ in range(_BATCH if batch else _WARM_UP):
            call()
        code = driver.cuCtxSynchronize()
        if code:
            raise RuntimeError(f"cuCtxSynchronize gave {code}: what was measured has failed")
        if batch:
            times.append((time.perf_counter() - start) / _BATCH)
    return median(times)

"""`tune`: which configuration of an autotuned kernel is the fastest, measured once on a GPU."""

from __future__ import annotations

import ctypes
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.triton.compiling import compile
from ferrule.frontends.triton.configs import versions_of
from ferrule.frontends.triton.installed import kernel_of

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
    """The fastest of a kernel's configurations for each key, as `compile` takes it for `config`.

    `calls` has the arguments of a call for each key: the values of the parameters that the
    autotuner's `key` names.  What is under None is for calls with other keys: the configuration
    that was the best most often.  `timer` measures a call, in any unit; by default it runs on the
    current GPU, many times, and waits for it; what is in the tensors afterwards is of no use.
    `how` is what `compile` takes.

    A configuration that cannot be compiled or launched is left out; CompileError where none can.
    """
    found, measure = kernel_of(kernel), timer or synchronised_time
    if not calls:
        raise CompileError(f"{found.name}: tune needs a call for one key at least")
    versions_of(found, dict.fromkeys(calls, 0))
    functions: dict[int, Function] = {}
    failures: list[str] = []
    for number, config in enumerate(found.configs):
        try:
            functions[number] = compile(kernel, config=number, **how)
        except CompileError as error:
            failures.append(f"#{number}, {config}: {error.diagnostic.message}")
    best: dict[Key | None, int] = {}
    for key, arguments in calls.items():
        best[key] = _fastest(found.name, functions, arguments, measure, list(failures))
    best[None] = Counter(best.values()).most_common(1)[0][0]
    return best


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
    """Seconds of a call on the current GPU: the median of some batches, each waited for.

    Raises RuntimeError where there is no GPU, or what it ran has failed.
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

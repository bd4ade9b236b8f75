"""Random host functions: a call of the compiled recordings launches what the host function does.

Only where it is asked for, `--campaign recordings`: it needs Triton and PyTorch.  A call is right,
or refused; what is launched is read from a stand-in of the driver, and compared with a recording of
that very call: kernels, grids, numbers, and which memory each tensor is.
"""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import as_strided

import ferrule as fe
from fuzz.campaigns import Case, Failure

UNIT: Final = "calls of recorded host functions"
RECORDED: Final = 3
TRIED: Final = 9
CALLED: Final = 8
KERNELS: Final = ("moved", "summed", "chosen", "applied")
REFUSED: Final = (ValueError, TypeError, fe.LaunchError)


def run(seed: int) -> Iterator[int | Failure]:
    """One host function: it is recorded, compiled with and without `general`, and called."""
    case = drawn(seed)
    counted, problem = outcome(case)
    yield Failure(case, problem) if problem else counted


def replay(case: Case) -> str | None:
    """What a call launches otherwise."""
    return outcome(case)[1]


def drawn(seed: int) -> Case:
    """The host function of a seed, and its arguments."""
    from random_hosts import FORMS, KINDS, arguments_of, host_of

    rng = random.Random(seed)
    rank = rng.choice((1, 2, 2, 3, 3, 4))
    form = rng.choice((*FORMS, None, None))
    source = host_of(rng, rank)
    kind, vector = rng.choice(KINDS), rng.choice(("last", "last", "first", "4", "any"))
    tried = [arguments_of(rng, rank, form, kind, vector) for _ in range(TRIED)]
    for each in tried[1:]:
        if rng.random() < 0.6:
            each[2:] = tried[0][2:]
    recorded = tried[:RECORDED] if rng.random() < 0.2 else _alike(source, tried)
    called = [
        *recorded,
        *(_another(rng, rank, form, kind, vector) for _ in range(CALLED)),
    ]
    for each in called[len(recorded) :]:
        if rng.random() < 0.7:
            each[2:] = rng.choice(recorded)[2:]
    return {"source": source, "recorded": recorded, "called": called}


def _another(rng: random.Random, rank: int, form: str | None, kind: str, vector: str) -> list[str]:
    """The arguments of a call, which need not have in common what those of the recordings have."""
    from random_hosts import arguments_of

    other = rng.choice((kind, "any", "near", "near"))
    length = vector if rng.random() < 0.6 else "any"
    return arguments_of(rng, rank, rng.choice((form, None)), other, length)


def _alike(source: str, tried: Sequence[list[str]]) -> list[list[str]]:
    """The first calls of those that go most often one way: of others, few recordings compile."""
    host = _host(source)
    ways: dict[Any, list[list[str]]] = {}
    for each in tried:
        recording = _recorded(host, _values(each))
        if _is_whole(recording):
            kernels = [launch.bound().kernel.name for launch in recording]
            decided = [
                (one.op, one.left, one.right, one.outcome)
                for one in recording._reading.log.compared
            ]
            ways.setdefault((*kernels, *decided), []).append(each)
    most = max(ways.values(), key=len, default=[*tried])
    return most[:RECORDED] if len(most) > 1 else [*tried[:RECORDED]]


def outcome(case: Case) -> tuple[int, str | None]:
    """How many calls were right or refused, and what is wrong."""
    host, counted = _host(case["source"]), 0
    recordings = [_recorded(host, _values(each)) for each in case["recorded"]]
    if not all(map(_is_whole, recordings)):
        return 0, None
    first, *others = recordings
    count = len(recordings)
    for general in (False, True):
        how: Any = {"target": "sm_90a", "specialize": [{}], "general": general}
        try:
            function = first.compile(*others, **how)
        except (fe.CompileError, TypeError):
            continue
        for number, each in enumerate(case["called"]):
            wrong = _call(host, function, _values(each), is_recorded=number < count)
            if wrong is not None:
                signature = function.signature.text()
                said = f"general={general}, {each}:\n{wrong}\n{signature}\n{case['source']}"
                return counted, said
            counted += 1
    return counted, None


def _is_whole(recording: Any) -> bool:
    return not isinstance(recording, Exception)


def _host(source: str) -> Any:
    import random_host_kernels
    import torch
    import triton

    names: dict[str, Any] = {"torch": torch, "triton": triton, "math": math}
    names |= {"kernels": random_host_kernels, "__name__": "random_host"}
    exec(compile(source, "random_host.py", "exec"), names)
    return names["host"]


def _values(expressions: Sequence[str]) -> list[Any]:
    import torch

    return [eval(each, {"torch": torch}) for each in expressions]


def _recorded(host: Any, arguments: Sequence[Any]) -> Any:
    """A recording of a call, or the error of the host function."""
    from ferrule.frontends import triton as frontend

    _settle()
    with frontend.recording() as launches:
        try:
            launches.call(host, *arguments)
        except Exception as error:  # of the host function, whatever it is
            return error
    return launches


@cache
def _settle() -> None:
    """Triton keeps what it compiles in a folder of these runs."""
    from triton import knobs

    knobs.cache.dir = str(Path(tempfile.gettempdir()) / "ferrule-fuzz-triton")


@cache
def _gpu() -> Any:
    """The stand-in of the driver."""
    from cuda_device import stand_in

    return stand_in()


def _call(host: Any, function: Any, arguments: list[Any], *, is_recorded: bool) -> str | None:
    """What is wrong with one call; None where it is refused, or right."""
    from host_memory import allocating

    gpu = _gpu()
    gpu.reset()
    gpu.set_current(0, primary=True)
    given = [_on_gpu(each) if hasattr(each, "stride") else each for each in arguments]
    names = [*function.signature.arguments]
    if len(names) != len(arguments):
        return f"takes {len(names)} arguments"
    with allocating() as memory:
        try:
            results = function(*(at if isinstance(at, int | float) else at[0] for at in given))
        except REFUSED as error:
            is_kept = isinstance(error, fe.LaunchError) or not is_recorded
            return None if is_kept else f"a recorded call is refused: {error}"
        wanted = _recorded(host, arguments)
        if isinstance(wanted, Exception):
            return f"is taken, and the host function raises {wanted!r}"
        wrong = _alone(wanted)
        if wrong is not None and "is changed by torch" in wrong and not _are_whole(arguments):
            return None  # a recording sees of which memory it is a part, a call does not
        if wrong is not None:
            return f"is taken, and its recording is no function: {wrong}"
        wrong = _compared(gpu.launches(), wanted, arguments, given, memory.given)
        return wrong or _results(results, wanted)


def _alone(recording: Any) -> str | None:
    """Why a recording of a call is no function, for another reason than its kernels: what PyTorch
    computes, or parts that are returned."""
    how: Any = SimpleNamespace(general=False, configs=None, name=None, target=None)
    how.specialize, how.prune, how.fixed = [{}], True, ()
    try:
        whole = recording._whole((), how)
        whole._check_computed()
        whole._read_inputs()
        whole._results()
    except fe.CompileError as error:
        return str(error)
    return None


def _are_whole(arguments: Sequence[Any]) -> bool:
    """Whether tensors are all of their memory."""
    tensors = (each for each in arguments if hasattr(each, "stride"))
    return all(4 * each.numel() == each.untyped_storage().nbytes() for each in tensors)


def _on_gpu(tensor: Any) -> tuple[Any, int]:
    """The tensor on the stand-in, and its address."""
    from cuda_device import forged

    memory = np.zeros(tensor.untyped_storage().nbytes() // 4 + 1, np.float32)
    given = as_strided(memory, tuple(tensor.shape), [4 * step for step in tensor.stride()])
    return forged(given), memory.ctypes.data


def _compared(
    found: Sequence[Any], wanted: Any, arguments: Sequence[Any], given: Sequence[Any], sizes: Any
) -> str | None:
    """What launches differ in."""
    places = {
        each.untyped_storage().data_ptr(): at[1]
        for each, at in zip(arguments, given, strict=True)
        if hasattr(each, "stride") and each.numel()
    }
    owned = {each[1] for each in given if isinstance(each, tuple)}
    expected = [*_steps(wanted)]
    if len(found) != len(expected):
        return f"{len(found)} launches instead of {len(expected)}"
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        if isinstance(other, tuple) or one.kernel not in KERNELS:
            wrong = _fill(one, other, places)
            if wrong is not None:
                return f"launch {number}: {wrong}"
            continue
        grid = _grid(other)
        if (one.kernel, one.grid) != (other.bound().kernel.name, grid):
            return f"launch {number} is {one.kernel}{one.grid} instead of {grid}"
        wrong = _parameters(one.parameters, other, places, sizes, owned)
        wrong = wrong or _constants(one, other)
        if wrong is not None:
            return f"launch {number}: {wrong}"
    return None


def _steps(wanted: Any) -> Iterator[Any]:
    """The launches of a recording, and as a tuple what it fills before each, that are not empty."""
    memory = {each._cdata: each for each in wanted._kept}
    for number, launch in enumerate((*wanted, None)):
        filled = (memory[each.storage] for each in wanted._used_fills() if each.before == number)
        yield from ((each.data_ptr(), each.nbytes()) for each in filled if each.nbytes())
        if launch is not None and all(size > 0 for size in _grid(launch)):
            yield launch


def _fill(found: Any, wanted: Any, places: dict[int, int]) -> str | None:
    """What is wrong with a fill."""
    if found.kernel in KERNELS or not isinstance(wanted, tuple):
        return f"is {found.kernel} instead of {wanted}"
    at, count = (int.from_bytes(each, "little") for each in found.parameters[:2])
    address, size = wanted
    if places.setdefault(address, at) != at:
        return "other memory is filled"
    if size == 4:  # of 1, Triton makes a constant
        return None
    return None if 4 * count == size else f"{4 * count} bytes are filled instead of {size}"


def _grid(launch: Any) -> tuple[int, ...]:
    """The grid of a recorded launch; one that is a function was asked at the launch."""
    grid = launch.grid
    if callable(grid):
        (found,) = launch.early.values()
        grid = found.grid
    return (*map(int, grid), 1, 1)[:3]


def _constants(found: Any, wanted: Any) -> str | None:
    """What is otherwise in the threads of a block, which heuristics and the host function set."""
    bound = wanted.bound()
    rule = bound.kernel.heuristics.get("num_warps")
    warps = rule({**bound.given}) if rule else bound.options.get("num_warps", 4)
    return None if found.block[0] == 32 * warps else f"{found.block} instead of {warps} warps"


def _parameters(
    found: Sequence[bytes],
    wanted: Any,
    places: dict[int, int],
    sizes: dict[int, int],
    given: Collection[int],
) -> str | None:
    x, y, *numbers, factor = wanted.arguments[:6]
    for name, bytes_, tensor in zip("xy", found, (x, y), strict=False):
        at, storage = int.from_bytes(bytes_, "little"), tensor.untyped_storage()
        if not tensor.numel():
            continue
        before = 4 * tensor.storage_offset()
        known = places.setdefault(storage.data_ptr(), at - before)
        if at != known + before:
            return f"{name} is other memory"
        is_given = known in given
        if not is_given and known not in sizes:
            return f"{name} begins elsewhere than its memory"
        if not is_given and sizes[known] < storage.nbytes():
            return f"{name} has {sizes[known]} bytes instead of {storage.nbytes()}"
    told_numbers = [int.from_bytes(each, "little", signed=True) for each in found[2:5]]
    if told_numbers != [int(each) for each in numbers]:
        return f"the numbers are {told_numbers} instead of {[int(each) for each in numbers]}"
    told = np.frombuffer(found[5], np.float32)[0]
    if told.tobytes() != np.float32(float(factor)).tobytes():
        return f"the factor is {told} instead of {float(factor)}"
    return None


def _results(found: Any, wanted: Any) -> str | None:
    several = found if isinstance(found, tuple | list) else [] if found is None else [found]
    shapes = [tuple(map(int, each.shape)) for each in wanted._results or ()]
    ours = [tuple(each.shape) for each in several]
    return None if ours == shapes else f"the results have the sizes {ours} instead of {shapes}"

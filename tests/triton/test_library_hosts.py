"""Host functions as libraries write them: each call that a recording takes is the host function's.

Each is recorded twice, with other arguments and sizes, and compiled.  Every argument is then
changed: a call is refused, or makes the launches, with the numbers, that the host function makes.
"""

from __future__ import annotations

import inspect
import random
import struct
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda
from triton_launcher import tensor

import ferrule as fe
from ferrule.frontends import triton as frontend

pytestmark = [pytest.mark.needs_cc, pytest.mark.needs_torch]

NAMES = [
    "rms_norm", "rope", "swiglu", "cross_entropy", "layer_norm_backward", "linear_cross_entropy",
    "quantised", "dropout", "attention", "experts", "adam", "sampled",
]  # fmt: skip
CALLS = 40


@pytest.fixture
def library() -> ModuleType:
    """Host functions."""
    pytest.importorskip("torch")
    return pytest.importorskip("library_hosts")


def recorded(host: Any, shapes: Any, values: dict[str, Any]) -> Any:
    import torch

    with frontend.recording() as launches:
        result = launches.call(host, *(torch.zeros(each) for each in shapes), **values)
    return launches, result


Made = list[tuple[Any, ...]]


def made_by(launches: Any) -> Made:
    """What the host function launches: constants, options, the grid, and numbers."""
    found = []
    for each in launches:
        one = each.bound()
        constants = {name: one.given[name] for name in one.kernel.constexprs}
        grid = one.grid({**one.given}) if callable(one.grid) else one.grid
        numbers = [_bits(v) for v in one.given.values() if isinstance(v, float | int)]
        numbers = numbers[: len(numbers) - len(constants)]
        found.append((one.kernel.name, (*grid, 1, 1)[:3], constants, dict(one.options), numbers))
    return found


def _bits(value: Any) -> Any:
    if not isinstance(value, float):
        return int(value)
    with np.errstate(over="ignore"):
        single = float(np.float32(value))
    return "nan" if single != single else struct.pack("f", single)


def launched(gpu: FakeCuda, like: Made) -> Iterator[tuple[Any, ...]]:
    """What was launched; of constants and options, what was compiled in."""
    launches = [each for each in gpu.launches() if each.kernel != "fill"]
    assert len(launches) == len(like)
    for launch, (_, _, _, _, numbers) in zip(launches, like, strict=True):
        sizes = launch.parameters[-2 - len(numbers) : -2]
        found = []
        for each, number in zip(sizes, numbers, strict=True):
            if isinstance(number, int):
                found.append(int.from_bytes(each, "little", signed=True))
            else:
                (value,) = struct.unpack("f", each)
                found.append("nan" if value != value else each)
        yield launch.kernel, launch.grid, found


def changed(rng: random.Random, values: dict[str, Any], pool: dict[str, list[Any]]) -> Any:
    """One or two other arguments."""
    found = dict(values)
    for name in rng.sample([*pool], min(len(pool), rng.choice([1, 1, 2]))):
        found[name] = rng.choice(pool[name])
    return found


def drawn(rng: random.Random, pool: dict[str, list[Any]], base: dict[str, Any]) -> dict[str, Any]:
    """Arguments of the same kinds as `base`, some of them different."""
    found = dict(base)
    for name, several in pool.items():
        if type(base[name]) in (int, float) and rng.random() < 0.7:
            same = [each for each in several if type(each) is type(base[name])]
            found[name] = rng.choice(same)
    return found


def without_defaults(rng: random.Random, host: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Some of those that are defaults are left out."""
    defaults = {k: each.default for k, each in inspect.signature(host).parameters.items()}
    return {
        name: value
        for name, value in values.items()
        if repr(value) != repr(defaults[name]) or rng.random() < 0.3
    }


@pytest.mark.usefixtures("allocator")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("general", [False, True])
def test_a_call_is_what_the_host_function_does(
    gpu: FakeCuda, library: ModuleType, name: str, seed: int, general: bool
) -> None:
    host, shapes, pool = library.HOSTS[name]
    rng = random.Random(f"{name} {seed}")
    first = {key: rng.choice(several) for key, several in pool.items()}
    defaults = {name: inspect.signature(host).parameters[name].default for name in pool}
    first = {name: rng.choice([each, defaults[name]]) for name, each in first.items()}
    values = [first, drawn(rng, pool, first)]
    sizes = rng.sample(library.SIZES, 2)
    try:
        pairs = zip(sizes, values, strict=True)
        one, other = [
            recorded(host, shapes(*size), without_defaults(rng, host, each))[0]
            for size, each in pairs
        ]
        function = one.compile(other, target="sm_90a", specialize=[{}], general=general)
    except (fe.CompileError, ArithmeticError, AssertionError, RuntimeError, ValueError) as error:
        pytest.skip(f"nothing is compiled: {type(error).__name__} {str(error)[:150]!r}")
    bases = made_by(one)
    for _ in range(CALLS):
        size = rng.choice([*sizes, *library.SIZES, *library.OTHERS])
        given = changed(rng, rng.choice(values), pool)
        gpu.clear()
        arrays = [tensor(*each)[0] for each in shapes(*size)]
        try:
            found = function(*arrays, **without_defaults(rng, host, given))
        except (TypeError, ValueError, fe.LaunchError):
            continue
        try:
            launches, result = recorded(host, shapes(*size), given)
        except Exception as error:
            raise AssertionError(f"{given} {size}: the host function raises {error!r}") from None
        wanted = made_by(launches)
        for base, this, real in zip(bases, wanted, launched(gpu, wanted), strict=True):
            assert (base[2], base[3]) == (this[2], this[3]), (given, size)
            assert real == (this[0], this[1], this[4]), (given, size)
        results = result if isinstance(result, tuple) else (result,)
        several = found if isinstance(found, tuple) else (found,)
        for a, b in zip(several, results, strict=True):
            assert b is None or tuple(a.shape) == tuple(b.shape)

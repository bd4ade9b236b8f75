"""Numbers of which C code, or a function of PyTorch, makes something that no comparison tells.

Each host function gives a kernel a number that is the same in the recordings, and another one for
sizes between them: calls with these are refused, or get their own.
"""

from __future__ import annotations

import bisect
import ctypes
import functools
import itertools
import json
import math
import operator
import struct
from collections.abc import Callable
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda
from triton_launcher import tensor

from ferrule.frontends import triton as frontend

pytestmark = [pytest.mark.needs_cc, pytest.mark.needs_torch]

BLOCKS = [64, 128, 64, 128, 64, 128]
KNOWN = {40: 2, 104: 2}


@functools.lru_cache
def cached(n: int) -> int:
    return 2 if n % 64 == 40 else 4


def tried(n: int) -> int:
    try:
        return KNOWN[n]
    except KeyError:
        return 5


def matched(shape: Any) -> int:
    match shape:
        case (_, 40 | 104):
            return 1
    return 2


OF_PYTHON: dict[str, Callable[[Any], Any]] = {
    "a list": lambda n: BLOCKS[n // 16 % 4],
    "a slice of a list": lambda n: len(BLOCKS[: n % 64 // 8]),
    "a repeated list": lambda n: len([0] * (n % 64)),
    "a range": lambda n: sum(range(n % 64)),
    "a loop": lambda n: sum(1 for _ in itertools.islice(itertools.count(), n % 64)),
    "a dict": lambda n: KNOWN.get(n, 5),
    "a set": lambda n: 1 if n in {40, 104} else 2,
    "an exception": tried,
    "a cache": cached,
    "a text": lambda n: len(f"{n % 64}") + int(str(n % 64)[-1]),
    "a format": lambda n: int("%d" % (n % 64)),  # noqa: UP031
    "bits": lambda n: (n % 64).bit_count() + bin(n % 64).count("1"),
    "JSON": lambda n: json.loads(json.dumps({"n": int(n % 64)}))["n"],
    "a struct": lambda n: struct.unpack("i", struct.pack("i", n % 64))[0],
    "ctypes": lambda n: ctypes.c_int32(n % 64).value,
    "a fraction": lambda n: int(Fraction(n % 64, 40) * 40),
    "an index": lambda n: operator.index(n) % 64,
    "a hash": lambda n: hash(n) % 64,
    "a float": lambda n: int(n % 64 * 0.5),
    "a quotient": lambda n: int(n / 64 % 1 * 64),
    "a quotient as a key": lambda n: {0.625: 1}.get(n / 64 % 1, 2),
    "a root": lambda n: int(math.sqrt(n % 64) * 10),
    "logarithms": lambda n: int(math.log10(n % 64 + 1) * 10) + math.isqrt(n % 64),
    "a divisor": lambda n: math.gcd(n, 64),
    "NumPy's array": lambda n: int(np.array([n])[0] % 64),
    "NumPy's number": lambda n: int(np.int64(n) % 64),
    "NumPy's floor": lambda n: int(np.floor(n % 64 / 2)),
    "a rounded number": lambda n: round(n % 64, -1),
    "bits that are not": lambda n: -~(n % 64),
    "bisection": lambda n: bisect.bisect([16, 48, 60], n % 64),
    "a key of min": lambda n: min([16, 50, 64], key=lambda each: abs(each - n % 64)),
    "a choice": lambda n: n % 64 - 40 or 7,
    "divmod": lambda n: sum(divmod(n % 64, 7)) + sum(divmod(1000, n % 64 + 1)),
}


def parts(x: Any) -> Any:
    """The first columns, 40 of them in the recordings."""
    return x[:, : x.shape[1] % 64]


def made(x: Any, *more: int) -> Any:
    import torch

    return torch.empty(*more, x.shape[1] % 64)


def torch() -> Any:
    return pytest.importorskip("torch")


OF_TORCH: dict[str, Callable[[Any], Any]] = {
    "a new tensor": lambda x: made(x).shape[0] + made(x, 4).stride(0) + made(x).numel(),
    "a part": lambda x: parts(x).shape[1] + len(parts(x)[0]),
    "a part from the end": lambda x: x[:, -(x.shape[1] % 64) :].shape[1],
    "every second": lambda x: parts(x)[:, ::2].shape[1],
    "narrow": lambda x: x.narrow(1, 0, x.shape[1] % 64).shape[1],
    "expand": lambda x: x[0, :1].expand(x.shape[1] % 64).shape[0],
    "a view": lambda x: made(x, 8).view(-1, 8).shape[0] + made(x, 8).view(8, -1).stride(0),
    "unflatten": lambda x: made(x, 8).flatten().unflatten(0, (8, -1)).shape[1],
    "permute": lambda x: parts(x).permute(1, 0).shape[0] + parts(x).t().unsqueeze(0).shape[1],
    "arange": lambda x: torch().arange(x.shape[1] % 64).shape[0],
    "repeat": lambda x: torch().zeros(2).repeat(x.shape[1] % 64).shape[0],
    "cat": lambda x: torch().cat([torch().zeros(1), made(x)]).shape[0],
    "a product": lambda x: (made(x) * 2).shape[0] + made(x).half().shape[0],
    "like a part": lambda x: torch().empty_like(parts(x)).stride(0),
    "split": lambda x: x.split(x.shape[1] % 64, 1)[0].shape[1] if x.shape[1] % 64 else 7,
    "as_strided": lambda x: x.as_strided((x.shape[1] % 64,), (1,)).shape[0],
    "a key": lambda x: {(3, 40): 1, (5, 104): 1}.get(tuple(x.shape), 2),
    "a case": lambda x: matched(x.shape),
    "a text": lambda x: len(str(tuple(x.shape))) - len(str(x.shape[1])),
    "equality": lambda x: 1 if x.shape not in ((4, 50), (3, 104)) else 2,
}

ENDS = [(3, 40), (5, 104)]
SHAPES = [(m, n) for m in (1, 3, 4, 5) for n in (33, 40, 50, 64, 70, 104)]
CASES = {name: lambda x, of=of: of(x.shape[1]) for name, of in OF_PYTHON.items()}
CASES |= {f"PyTorch's {name}": of for name, of in OF_TORCH.items()}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("general", [False, True])
def test_a_call_gets_its_own_number(gpu: FakeCuda, name: str, general: bool) -> None:
    import torch

    hosts: ModuleType = pytest.importorskip("emulated_recordings")

    def host(x: Any, total: Any) -> None:
        number = 1000 + CASES[name](x)
        hosts.squares[(x.shape[0],)](x, total, number, x.shape[1], BLOCK=128)

    recordings = []
    for shape in ENDS:
        with frontend.recording() as launches:
            launches.call(host, torch.zeros(shape), torch.zeros(shape[0]))
        recordings.append(launches)
    one, other = recordings
    function = one.compile(other, target="sm_90a", specialize=[{}], general=general)
    taken = []
    for shape in SHAPES:
        gpu.clear()
        try:
            function(tensor(*shape)[0], tensor(shape[0])[0])
        except ValueError:
            continue
        taken.append(shape)
        (launch,) = gpu.launches()
        numbers = [int.from_bytes(each, "little") for each in launch.parameters[2:4]]
        assert (launch.grid[0], *numbers) == (
            shape[0],
            1000 + CASES[name](torch.zeros(shape)),
            shape[1],
        )
    assert {*ENDS} <= {*taken}

"""What a host function keeps of a recording is a number like any other afterwards."""

from __future__ import annotations

import functools
import gc
import math
import operator
import pickle
import struct
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import ferrule as fe
from ferrule.frontends import triton as frontend

pytestmark = [pytest.mark.needs_cc, pytest.mark.needs_torch]

PLAIN: dict[str, Any] = {
    "p": 2.1, "n": 50, "root": 1 / math.sqrt(50), "sum": 2.1 * 2 + 50, "ratio": 50 / 3,
    "logarithm": math.log2(50), "half": 25, "negative": -50,
}  # fmt: skip


@pytest.fixture
def hosts() -> ModuleType:
    """Kernels."""
    pytest.importorskip("torch")
    return pytest.importorskip("emulated_recordings")


def recorded(hosts: ModuleType, does: Callable[[int, float], Any], p: float = 2.1) -> Any:
    import torch

    def host(x: Any, p: float) -> None:
        does(x.shape[1], p)
        hosts.scaled[(3,)](x, x, x, x, 50, 50, 0.5, BLOCK=64)

    with frontend.recording() as launches:
        launches.call(host, torch.zeros(3, 50), p)
    return launches


@pytest.fixture
def kept(hosts: ModuleType) -> dict[str, Any]:
    """Numbers of a recording that has ended."""
    found: dict[str, Any] = {}

    def keeps(n: int, p: float) -> None:
        found.update(p=p, n=n, root=1 / math.sqrt(n), sum=p * 2 + n, ratio=n / 3)
        found.update(logarithm=math.log2(n), half=n // 2, negative=-n)

    recorded(hosts, keeps)
    return found


USES: dict[str, Callable[[Any], Any]] = {
    "repr": repr, "hash": hash, "float": float, "int": int, "round": round, "abs": abs,
    "neg": operator.neg, "pos": operator.pos, "ceil": math.ceil, "floor": math.floor,
    "trunc": math.trunc, "exp": lambda v: math.exp(v / 50), "format": lambda v: f"{v:.2f}",
    "pack": lambda v: struct.pack("f", v), "pickle": lambda v: pickle.loads(pickle.dumps(v)),
    "sum": lambda v: v + 1, "swapped sum": lambda v: 1 + v, "product": lambda v: v * 0.5,
    "quotient": lambda v: v / 7, "swapped quotient": lambda v: 7 / v, "floor division":
    lambda v: v // 2, "modulo": lambda v: v % 7, "power": lambda v: v**2, "divmod":
    lambda v: divmod(v, 7), "comparison": lambda v: v > 3, "max": lambda v: max(v, 1e9),
}  # fmt: skip


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", PLAIN)
def test_python_uses_it_as_a_plain_number(kept: dict[str, Any], name: str, use: str) -> None:
    found, wanted = USES[use](kept[name]), USES[use](PLAIN[name])
    assert found == wanted
    if use != "comparison":
        assert type(found) is type(wanted)


def test_pytorch_uses_it_as_a_plain_number(kept: dict[str, Any]) -> None:
    import torch

    n, p = kept["n"], kept["p"]
    assert torch.tensor(n).equal(torch.tensor(50)) and torch.zeros((n, 2)).shape == (50, 2)
    assert torch.tensor(n, dtype=torch.float64).equal(torch.tensor(50.0, dtype=torch.float64))
    assert (torch.ones(2) * p).equal(torch.ones(2) * 2.1)
    assert torch.full((n,), p, dtype=torch.float64)[3] == 2.1
    assert torch.tensor(p + 0).equal(torch.tensor(2.1))
    for value, plain in ((p, "float"), ([p], "float"), ([n], "int")):
        text = rf"number of a ferrule recording, of which {plain}\(\) gives a plain one"
        with pytest.raises(RuntimeError, match=text):
            torch.tensor(value)


@functools.lru_cache
def twice(p: float) -> float:
    return 2 * p


@functools.lru_cache
def pair(n: int, p: float) -> tuple[float, dict[str, float]]:
    return n * p, {"half": p / 2}


@functools.lru_cache
def untouched(n: int) -> list[int]:
    return [n]


def test_a_cache_of_functions_forgets_what_is_of_the_recording(hosts: ModuleType) -> None:
    first = untouched(3)
    recorded(hosts, lambda n, p: (twice(p), pair(n, p)))
    for found in (twice(2.1), pair(50, 2.1)[0], pair(50, 2.1)[1]["half"]):
        assert type(found) is float
    assert twice.cache_info().misses == 1
    assert untouched(3) is first


def test_a_cache_that_the_collector_does_not_list_forgets_it_too(hosts: ModuleType) -> None:
    gc.freeze()
    recorded(hosts, lambda n, p: twice(p + 1))
    assert type(twice(3.1)) is float


def test_what_is_done_between_recordings_is_no_part_of_them(hosts: ModuleType) -> None:
    found: dict[float, Any] = {}
    one = recorded(hosts, lambda n, p: found.setdefault(float(p), p))
    assert found[2.1] > 1 and {found[2.1]: 1} and f"{found[2.1]}"
    one.compile(target="sm_90a")


def test_a_number_that_another_recording_compares_is_still_refused(hosts: ModuleType) -> None:
    found: dict[str, Any] = {}

    def does(n: int, p: float) -> None:
        first = found.setdefault("p", p)
        found["large"] = 2 * first > 3

    one, other = recorded(hosts, does), recorded(hosts, does, 3.5)
    with pytest.raises(fe.CompileError, match="is compared after it, at test_numbers_kept.py"):
        one.compile(other, target="sm_90a")

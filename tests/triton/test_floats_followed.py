"""What a host function does with numbers that it is given holds for the calls of which it holds.

Each gives a kernel a float that it computes, and decides by floats and integers: a call gets the
very numbers that the host function would pass, or is refused.
"""

from __future__ import annotations

import copy
import functools
import json
import math
import pickle
import struct
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda
from triton_launcher import tensor

import ferrule as fe
from ferrule.frontends import triton as frontend

pytestmark = [pytest.mark.needs_cc, pytest.mark.needs_torch]

HOW: Any = {"target": "sm_90a", "specialize": [{}]}
ENDS = [(3, 40), (5, 104)]
SHAPES = [(3, 40), (4, 50), (5, 104), (4, 64)]
FLOATS = [0.5, 0.25, 0.1, 1.0, 3.0, 7.5, -0.5, -3.0, 0.0, -0.0, 1e-60, 1e300, math.inf, math.nan]


@pytest.fixture
def hosts() -> ModuleType:
    """Kernels."""
    pytest.importorskip("torch")
    return pytest.importorskip("emulated_recordings")


def zeros(*shape: int) -> Any:
    import torch

    return torch.zeros(shape)


def recorded(host: Any, *arguments: Any, **named: Any) -> frontend.Launches:
    with frontend.recording() as launches:
        launches.call(host, *arguments, **named)
    return launches


@functools.lru_cache
def cached(p: float) -> float:
    return p * 2


KNOWN = {0.5: 1.0, 0.25: 2.0}

COMPUTED: dict[str, Callable[[Any, int], Any]] = {
    "itself": lambda p, _: p,
    "twice": lambda p, _: 2 * p + 1,
    "a sum": lambda p, n: p + n - 0.1,
    "a difference": lambda p, n: n - p - 0.1 * p,
    "a quotient": lambda p, n: p / n,
    "of one": lambda p, n: 1.0 / n + p,
    "a divisor": lambda p, _: 1 / p,
    "a scale": lambda p, n: p / math.sqrt(n),
    "a root": lambda p, _: 1 / math.sqrt(p),
    "a root of two": lambda p, n: math.sqrt(p * p + n * n),
    "negative": lambda p, _: -p,
    "positive": lambda p, _: +p,
    "without sign": lambda p, _: abs(p),
    "at least": lambda p, _: max(p, 0.1),
    "at most": lambda p, _: min(1.0, p),
    "clipped": lambda p, _: max(0.0, min(p, 1.0)),
    "a default": lambda p, _: p or 2.0,
    "a decision": lambda p, _: p * 3 if p > 0.3 else 0.3,
    "a range": lambda p, _: 0.5 if 0 < p < 1 else 1.5,
    "an equality": lambda p, _: 4.0 if p == 0.5 else p,
    "one of several": lambda p, _: p if p in (0.5, 0.25) else 2.0,
    "by size": lambda p, n: p if p * 100 > n else 0.1,
    "by an integer": lambda p, n: 1.5 if n * 0.01 > p else 2.5,
    "a truth value": lambda p, _: 1.0 + bool(p),
    "a part of one": lambda p, n: (n / 7 + 1) * p,
    "a comparison of quotients": lambda p, n: p if n / 64 > 0.7 else 2 * p,
    "rounded": lambda p, _: round(p, 1) if abs(p) < 9 else 1.0,
    "whole": lambda p, _: float(int(p)) if abs(p) < 9 else 1.0,
    "a ceiling": lambda p, _: float(math.ceil(p)) if abs(p) < 9 else 1.0,
    "a power": lambda p, _: abs(p) ** 0.5,
    "a size's power": lambda p, n: p * n**-0.5,
    "a remainder": lambda p, _: p % 0.3 if abs(p) < 9 else 1.0,
    "a floor": lambda p, _: p // 0.3 if abs(p) < 9 else 1.0,
    "an exponential": lambda p, _: math.exp(min(p, 1.0)),
    "NumPy": lambda p, _: float(np.float32(p)),
    "NumPy's array": lambda p, _: float(np.array([p, 1.0])[0]),
    "a text": lambda p, _: float(f"{p:.1f}"),
    "JSON": lambda p, _: json.loads(json.dumps([float(p)]))[0],
    "a struct": lambda p, _: struct.unpack("f", struct.pack("f", min(p, 1.0)))[0],
    "a pickle": lambda p, _: pickle.loads(pickle.dumps(p)),
    "a copy": lambda p, _: copy.deepcopy(p) + 1,
    "a key": lambda p, _: KNOWN.get(p, 5.0),
    "a cache": lambda p, _: cached(p),
    "a number of Python": lambda p, _: float(p),
    "whole or not": lambda p, _: 1.0 if p.is_integer() else 2.0,
    "NaN": lambda p, _: 0.0 if math.isnan(p) else p,
    "unequal to itself": lambda p, _: 0.0 if p != p else p,
    "a sum of several": lambda p, n: sum([p, 1, n]),
    "divmod": lambda p, _: divmod(p, 0.3)[1] if abs(p) < 9 else 1.0,
}


def known(of: Callable[[Any, int], Any], p: float, n: int) -> float | None:
    """What the host function passes; None where it raises."""
    try:
        return float(of(p, n))
    except (ArithmeticError, ValueError):
        return None


def calls() -> Iterator[tuple[float, tuple[int, int]]]:
    for shape in SHAPES:
        for p in FLOATS:
            yield p, shape


def bits(number: float) -> bytes:
    """As the kernel gets it, a float32; every NaN is the same."""
    with np.errstate(over="ignore"):
        single = np.float32(number)
    return np.float32("nan").tobytes() if np.isnan(single) else single.tobytes()


@pytest.mark.parametrize("name", COMPUTED)
@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("values", [(0.5, 0.25), (7.5, -0.5)])
def test_a_call_gets_its_own_float(
    gpu: FakeCuda, hosts: ModuleType, name: str, general: bool, values: tuple[float, float]
) -> None:
    of = COMPUTED[name]

    def host(x: Any, p: float) -> None:
        rows, n = x.shape
        hosts.scaled[(rows,)](x, x, x, x, n, n, of(p, n), BLOCK=128)

    taken = []
    wanted = [known(of, p, shape[1]) for p, shape in zip(values, ENDS, strict=True)]
    if None in wanted:
        pytest.skip("raises for these numbers")
    pairs = zip(values, ENDS, strict=True)
    one, other = [recorded(host, zeros(*shape), p) for p, shape in pairs]
    try:
        function = one.compile(other, general=general, **HOW)
    except fe.CompileError:  # it went two ways, or is computed as nobody knows
        assert name not in FOLLOWED
        return
    for p, shape in calls():
        gpu.clear()
        try:
            function(tensor(*shape)[0], p)
        except ValueError:
            continue
        taken.append((p, shape))
        (launch,) = gpu.launches()
        right = known(of, p, shape[1])
        assert right is not None, (p, shape)
        found = struct.unpack("f", launch.parameters[6])[0]
        assert bits(found) == bits(right), (p, shape, found, right)
    assert {*zip(values, ENDS, strict=True)} <= {*taken}
    if name in FOLLOWED:
        assert len(taken) >= 12 * 3


FOLLOWED = [
    "itself", "twice", "a sum", "a difference", "a quotient", "of one", "a scale", "negative",
    "positive", "without sign", "a part of one",
]  # fmt: skip


def test_a_decision_is_that_of_the_double(gpu: FakeCuda, hosts: ModuleType) -> None:
    """In a float32, 1e-60 is 0."""

    def host(x: Any, p: float) -> None:
        warps = 2 if p > 0 else 4
        hosts.scaled[(3,)](x, x, x, x, 40, 40, p, BLOCK=128, num_warps=warps)

    one, other = [recorded(host, zeros(3, 40), p) for p in (0.5, 0.25)]
    function = one.compile(other, **HOW)
    x = tensor(3, 40)[0]
    for right in (1e-60, 7.0, math.inf):
        function(x, right)
    for wrong in (0.0, -0.0, -1.0, math.nan):
        text = r"host: expected p > 0\.0, but got p = .*: a recording has no other case: test_flo"
        with pytest.raises(ValueError, match=text):
            function(x, wrong)
    off, no = [recorded(host, zeros(3, 40), p) for p in (-0.5, -0.25)]
    for each in (off, no):
        with pytest.raises(fe.CompileError, match="the options is"):
            one.compile(each, **HOW)
    rest = off.compile(no, **HOW)
    rest(x, math.nan)
    with pytest.raises(ValueError, match=r"expected not \(p > 0\.0\), but got p = 1e-60"):
        rest(x, 1e-60)


def test_a_default_is_a_number_that_another_call_gives(gpu: FakeCuda, hosts: ModuleType) -> None:
    """What is decided by it is compared, too, where the recorded call left it out."""

    def host(x: Any, p: float = 0.5, k: int = 7) -> None:
        rows, n = x.shape
        number = n if p > 0.1 and k > 4 else 2 * n
        hosts.scaled[(rows,)](x, x, x, x, number, n, 1.0, BLOCK=128)

    def taken(first: tuple[Any, ...], second: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        one, other = recorded(host, zeros(3, 40), *first), recorded(host, zeros(5, 104), *second)
        function = one.compile(other, general=True, **HOW)
        found = []
        for given in ((0.5, 7), (0.0, 7), (0.25, 9), (0.25, 3), (-1.0, 3)):
            gpu.clear()
            try:
                function(tensor(4, 50)[0], *given)
            except ValueError:
                continue
            found.append(given)
            assert int.from_bytes(gpu.launches()[0].parameters[4], "little") == 50
        return found

    right = [(0.5, 7), (0.25, 9)]
    for first, second in (((), (0.25, 9)), ((0.25, 9), ()), ((0.25,), (0.5, 9))):
        assert taken(first, second) == right


def test_a_number_that_was_kept_is_none_of_the_call(gpu: FakeCuda, hosts: ModuleType) -> None:
    """It was made by the first recording, and the second one gets it."""

    def host(x: Any, p: float, kept: Any = {}) -> None:  # noqa: B006
        first = kept.setdefault("p", p)
        rows, n = x.shape
        hosts.scaled[(rows,)](x, x, x, x, n, n, 2 * first, BLOCK=128)

    def decides(x: Any, p: float, kept: Any = {}) -> None:  # noqa: B006
        first = kept.setdefault("p", p)
        rows, n = x.shape
        hosts.scaled[(rows,)](x, x, x, x, n if first > 0.3 else 2 * n, n, 1.0, BLOCK=128)

    one, other = [recorded(host, zeros(3, 40), p) for p in (0.5, 0.25)]
    function = one.compile(other, **HOW)
    with pytest.raises(ValueError, match="but got p = 0.125"):
        function(tensor(3, 40)[0], 0.125)
    one, other = [recorded(decides, zeros(3, 40), p) for p in (0.5, 0.25)]
    with pytest.raises(fe.CompileError, match="is compared after it, at test_floats_followed.py"):
        one.compile(other, **HOW)


INTEGERS: dict[str, Callable[[int, int], int]] = {
    "itself": lambda k, _: k,
    "a product": lambda k, n: k * n,
    "a quotient": lambda k, n: n // k,
    "at most": lambda k, n: min(k, n),
    "blocks": lambda k, n: -(-n // k) + k,
    "a decision": lambda k, n: n if k > 4 else k,
    "a key": lambda k, _: {7: 1, 9: 2}.get(k, 3),
    "a range": lambda k, _: sum(range(k)),
    "a float": lambda k, _: int(k * 0.5),
    "a bit": lambda k, _: 1 << (k & 3),
}


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("values", [(7, 9), (40, 104), (1, 64)])
def test_a_call_gets_its_own_integer(
    gpu: FakeCuda, hosts: ModuleType, name: str, general: bool, values: tuple[int, int]
) -> None:
    """Also where it was a size by chance."""
    of = INTEGERS[name]

    def host(x: Any, k: int) -> Any:
        rows, n = x.shape
        hosts.squares[(k % 3 + 1,)](x, x, 1000 + of(k, n), n, BLOCK=128)

    pairs = zip(values, ENDS, strict=True)
    one, other = [recorded(host, zeros(*shape), k) for k, shape in pairs]
    try:
        function = one.compile(other, general=general, **HOW)
    except fe.CompileError:
        assert name != "itself"
        return
    taken = []
    for shape in SHAPES:
        for k in (-5, 0, 1, 2, 5, 7, 8, 9, 40, 50, 64, 104, 1 << 40):
            gpu.clear()
            try:
                function(tensor(*shape)[0], k)
            except ValueError:
                continue
            taken.append((k, shape))
            (launch,) = gpu.launches()
            size = len(launch.parameters[2])
            number = int.from_bytes(launch.parameters[2], "little", signed=True)
            assert number == 1000 + of(k, shape[1]), (k, shape, size)
            assert launch.grid == (k % 3 + 1, 1, 1)
    assert {*zip(values, ENDS, strict=True)} <= {*taken}


def test_what_was_none_or_a_flag_is_joined(gpu: FakeCuda, hosts: ModuleType) -> None:
    """By `fe.overload`, with the defaults of the host function."""

    def host(x: Any, scale: float | None = None, flag: bool = False) -> None:
        rows, n = x.shape
        scale = 1 / math.sqrt(n) if scale is None else scale
        warps = 2 if flag else 4
        hosts.scaled[(rows,)](x, x, x, x, n, n, scale, BLOCK=128, num_warps=warps)

    def side(*values: Any, flag: bool) -> Any:
        sizes = zip(values, ENDS, strict=True)
        one, other = [recorded(host, zeros(*size), value, flag) for value, size in sizes]
        return one.compile(other, **HOW)

    sides = [side(*v, flag=f) for v in ((None, None), (0.5, 0.25)) for f in (True, False)]
    function = fe.overload(sides)
    x = tensor(4, 50)[0]
    for given, scale, warps in (
        ((), 1 / math.sqrt(50), 4),
        ((None, True), 1 / math.sqrt(50), 2),
        ((7.5,), 7.5, 4),
        ((0.125, True), 0.125, 2),
    ):
        gpu.clear()
        function(x, *given)
        (launch,) = gpu.launches()
        assert launch.parameters[6] == struct.pack("f", scale)
        assert launch.block[0] == 32 * warps


def test_a_part_whose_size_is_an_argument(gpu: FakeCuda, hosts: ModuleType) -> None:
    def host(x: Any, k: int) -> None:
        part = x[:, :k]
        hosts.squares[(part.shape[0],)](part, x, part.stride(0), part.shape[1], BLOCK=128)

    one, other = [recorded(host, zeros(*shape), k) for k, shape in ((7, ENDS[0]), (9, ENDS[1]))]
    function = one.compile(other, general=True, **HOW)
    for k in (7, 8, 50):
        gpu.clear()
        function(tensor(4, 50)[0], k)
        numbers = [int.from_bytes(each, "little") for each in gpu.launches()[0].parameters[2:4]]
        assert numbers == [50, k]
    for k in (51, -1):
        with pytest.raises(ValueError, match="has no other case"):
            function(tensor(4, 50)[0], k)


def test_the_memory_of_a_tensor_is_no_size(hosts: ModuleType) -> None:
    def host(x: Any) -> None:
        rows, n = x.shape
        size = x.untyped_storage().nbytes() // 4
        hosts.scaled[(rows,)](x, x, x, x, size, n, 0.5, BLOCK=128)

    with pytest.raises(fe.CompileError, match="reads the memory of x at test_floats_followed.py"):
        recorded(host, zeros(3, 40)).compile(**HOW)


def test_a_view_that_pytorch_refuses_is_refused(gpu: FakeCuda, hosts: ModuleType) -> None:
    def host(x: Any, y: Any) -> None:
        rows, n = x.view(y.shape).shape
        hosts.scaled[(rows,)](x, x, x, x, n, n, 0.5, BLOCK=128)

    pairs = (((3, 40), (6, 20)), ((5, 104), (10, 52)))
    one, other = [recorded(host, zeros(*a), zeros(*b)) for a, b in pairs]
    function = one.compile(other, general=True, **HOW)
    function(tensor(4, 50)[0], tensor(8, 25)[0])
    with pytest.raises(ValueError, match="has no other case: test_floats_followed"):
        function(tensor(4, 50)[0], tensor(8, 26)[0])


def test_results_that_are_no_tensors_are_named_and_not_printed(hosts: ModuleType) -> None:
    def host(x: Any) -> Any:
        hosts.scaled[(3,)](x, x, x, x, 40, 40, 0.5, BLOCK=64)
        return {"x": x}

    message = "a result of the recording is a dict\n  expected: a tensor, a number"
    with pytest.raises(fe.CompileError, match=message):
        recorded(host, zeros(3, 40)).compile(**HOW)


def test_a_division_by_a_size_is_one_by_another_number_than_zero(
    gpu: FakeCuda, hosts: ModuleType
) -> None:
    def host(x: Any, k: int) -> None:
        try:
            parts = 64 // k
        except ZeroDivisionError:
            parts = 1
        hosts.scaled[(3,)](x, x, x, x, 40, 40, 0.5, BLOCK=64, num_warps=4 if parts else 2)

    one, other = [recorded(host, zeros(3, 40), k) for k in (4, 9)]
    function = one.compile(other, general=True, **HOW)
    function(tensor(3, 40)[0], 7)
    with pytest.raises(ValueError, match="k != 0"):
        function(tensor(3, 40)[0], 0)


FILLS: dict[str, Callable[[Any, float], Any]] = {
    "full": lambda x, p: torch().full((x.shape[0],), 2 * p),
    "full by name": lambda x, p: torch().full(size=(x.shape[0],), fill_value=2 * p),
    "full_like": lambda x, p: torch().full_like(x[:, 0].contiguous(), 2 * p),
    "new_full": lambda x, p: x.new_full((x.shape[0],), 2 * p),
    "fill_": lambda x, p: torch().empty(x.shape[0]).fill_(2 * p),
    "of doubles": lambda x, p: torch().full((x.shape[0],), 2 * p, dtype=torch().float64),
}


def torch() -> Any:
    """PyTorch."""
    return pytest.importorskip("torch")


@pytest.mark.parametrize("name", FILLS)
def test_a_tensor_is_filled_with_a_number_of_the_call(
    gpu: FakeCuda, allocator: None, hosts: ModuleType, name: str
) -> None:
    """The kernel that fills gets the float64 that Python computes."""

    def host(x: Any, p: float) -> Any:
        total = FILLS[name](x, p)
        hosts.squares[(x.shape[0],)](x, total, x.stride(0), 40, BLOCK=64)
        return total

    with frontend.recording() as one:
        one.call(host, torch().zeros(3, 40), 0.5)
    with frontend.recording() as other:
        other.call(host, torch().zeros(5, 40), 0.25)
    function = one.compile(other, target="sm_90a", specialize=[{}])
    for p in (0.5, 0.1, float("-inf"), 1e-300):
        gpu.clear()
        function(tensor(4, 40)[0], p)
        filled, squares = gpu.launches()
        assert (filled.kernel, squares.kernel) == ("filled", "squares")
        assert filled.parameters[1] == (4).to_bytes(4, "little")
        assert np.frombuffer(filled.parameters[2], np.float64)[0] == 2 * p


LARGE = [65504.0, 65504.1, 70000.0, -7e4, 3.39e38, 3.4028234663852886e38, 3.4028235e38, -1e39]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_number_that_is_too_large_for_the_dtype_is_refused(
    gpu: FakeCuda, hosts: ModuleType, allocator: None, dtype: str
) -> None:
    """PyTorch raises; infinity and NaN are numbers of each dtype."""
    kind = getattr(torch(), dtype)

    def host(x: Any, p: float) -> Any:
        rows, n = x.shape
        y = torch().full((rows,), p, dtype=kind)
        hosts.squares[(rows,)](x, y, x.stride(0), n, BLOCK=128)

    one, *more = [recorded(host, torch().zeros(3, n), p) for n, p in ((40, 2.0), (70, 3.0))]
    function = one.compile(*more, **HOW)
    for p in (*LARGE, math.inf, -math.inf, math.nan, 1.0):
        x, _ = tensor(3, 50)
        try:
            torch().full((2,), p, dtype=kind)
        except RuntimeError:
            gpu.clear()
            with pytest.raises(ValueError, match=f"PyTorch raises for what fills .* {dtype}"):
                function(x, p)
            assert not gpu.launches()
        else:
            function(x, p)


def test_integers_are_filled_with_a_recorded_number(
    gpu: FakeCuda, allocator: None, hosts: ModuleType
) -> None:
    """What PyTorch makes of a float there is no float of the call."""

    def host(x: Any, p: float) -> Any:
        count = torch().full((x.shape[0],), p, dtype=torch().int32)
        hosts.squares[(x.shape[0],)](x, count, x.stride(0), 40, BLOCK=64)
        return count

    def compiled(*floats: float) -> Any:
        several = []
        for n, p in zip((3, 5), floats, strict=True):
            with frontend.recording() as launches:
                launches.call(host, torch().zeros(n, 40), p)
            several.append(launches)
        return several[0].compile(several[1], target="sm_90a", specialize=[{}])

    with pytest.raises(fe.CompileError, match="host: what fills .* is 2.0, 3.0 in the recordings"):
        compiled(2.0, 3.0)
    function = compiled(2.0, 2.0)
    function(tensor(4, 40)[0], 2.0)
    with pytest.raises(ValueError, match="expected "):
        function(tensor(4, 40)[0], 3.0)


def test_the_error_of_a_float_says_that_overloads_do_not_choose_by_it(
    gpu: FakeCuda, hosts: ModuleType
) -> None:
    def host(x: Any, p: float) -> None:
        hosts.scaled[(1,)](x, x, x, x, 5, 7, 1.0 if p > 0.5 else 2.0, BLOCK=128)

    sides = []
    for floats in ((0.75, 1.0), (0.25, 0.5)):
        several = []
        for n, p in zip((3, 5), floats, strict=True):
            with frontend.recording() as launches:
                launches.call(host, torch().zeros(n, 40), p)
            several.append(launches)
        sides.append(several[0].compile(several[1], target="sm_90a", specialize=[{}]))
    function = fe.overload(sides)
    function(tensor(4, 40)[0], 0.8)
    with pytest.raises(ValueError, match=r"p > 0.5.*: .*fe\.overload does not choose by a float"):
        function(tensor(4, 40)[0], 0.3)

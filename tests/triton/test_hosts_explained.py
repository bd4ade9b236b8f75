"""Host functions whose numbers a recording must not explain by what they were by chance: each call
that is taken gets what the host function gives."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from cuda_device import FakeCuda
from triton_launcher import tensor

import ferrule as fe
from ferrule.frontends import triton as frontend

pytestmark = [pytest.mark.needs_cc, pytest.mark.needs_torch]

HOW: Any = {"target": "sm_90a", "specialize": [{}], "general": True}
Call = tuple[tuple[int, int], tuple[int, ...]]
"""The sizes of a tensor and the integers of a call."""


@pytest.fixture
def hosts() -> ModuleType:
    """Kernels."""
    pytest.importorskip("torch")
    return pytest.importorskip("emulated_recordings")


def torch() -> Any:
    """PyTorch."""
    return pytest.importorskip("torch")


def attempted(of: Callable[[], int], other: int) -> int:
    """A number, or another one where PyTorch, or Python, raises."""
    try:
        return of()
    except (RuntimeError, ArithmeticError, ValueError, IndexError):
        return other


Of = Callable[..., Any]
OF: dict[str, tuple[Of, tuple[Call, Call], list[Call]]] = {
    "view, of -1 or a number": (
        lambda x, d: x.view(d, x.shape[1]).shape[0],
        (((6, 20), (-1,)), ((9, 35), (9,))),
        [((6, 20), (9,)), ((9, 35), (-1,)), ((7, 20), (-1,)), ((7, 20), (7,)), ((7, 20), (9,))],
    ),
    "bits of a negative number": (
        lambda x, d: 5 if d.bit_length() <= 1 else 6,
        (((6, 20), (0,)), ((6, 20), (1,))),
        [((6, 20), (-6,)), ((6, 20), (-1,)), ((6, 20), (1,)), ((6, 20), (7,))],
    ),
    "bits of a difference": (
        lambda x: 3 if (x.shape[0] - 5).bit_length() <= 2 else 4,
        (((7, 20), ()), ((6, 20), ())),
        [((n, 20), ()) for n in (1, 2, 4, 5, 6, 8, 9, 20)],
    ),
    "a shift by much": (
        lambda x: 3 if 1 << x.shape[0] > 100 else 4,
        (((7, 20), ()), ((9, 20), ())),
        [((n, 20), ()) for n in (1, 7, 8, 5000)],
    ),
    "a part of meshgrid": (
        lambda x: torch().meshgrid(x[0, :4], x[0, :2], indexing="ij")[0].shape[0],
        (((3, 4), ()), ((3, 2), ())),
        [((3, 6), ()), ((3, 3), ()), ((4, 4), ())],
    ),
    "the last part of split": (
        lambda x: torch().split(x, 8)[-1].shape[0],
        (((3, 4), ()), ((6, 4), ())),
        [((12, 4), ()), ((5, 4), ()), ((8, 4), ())],
    ),
    "the last part of split, by a number": (
        lambda x, k: torch().split(x, k, dim=0)[-1].shape[0],
        (((2, 4), (8, )), ((3, 4), (9,))),
        [((n, 4), (k,)) for n in (2, 3, 5) for k in (2, 8, 9)],
    ),
    "a sum that repeats a row": (
        lambda x: (x + torch().zeros(1, 4)).shape[0] + (x[:, :1] + x).shape[1],
        (((1, 4), ()), ((6, 4), ())),
        [((3, 4), ()), ((2, 4), ())],
    ),
    "one of two that is repeated": (
        lambda x: (x[0] + x[:, 0]).shape[0],
        (((1, 4), ()), ((1, 6), ())),
        [((1, 5), ()), ((5, 1), ()), ((3, 3), ())],
    ),
    "view_as": (
        lambda x, k: x.view_as(torch().zeros(k, 4)).shape[0],
        (((2, 4), (2,)), ((3, 4), (3,))),
        [((4, 2), (2,)), ((2, 6), (3,)), ((4, 4), (4,)), ((4, 4), (2,))],
    ),
    "expand_as": (
        lambda x, k: x[:1].expand_as(torch().zeros(k, x.shape[1])).shape[0],
        (((2, 4), (1,)), ((3, 6), (3,))),
        [((2, 5), (k,)) for k in (0, 1, 2, 3, 4)],
    ),
    "the stride of one row": (
        lambda x: x.t().contiguous().stride(0),
        (((2, 6), ()), ((4, 5), ())),
        [((3, 6), ()), ((2, 6), ()), ((1, 5), ()), ((4, 7), ())],
    ),
    "the stride of one column": (
        lambda x: x[:, : x.shape[0] // 9].t().contiguous().stride(0),
        (((9, 6), ()), ((11, 5), ())),
        [((17, 6), ()), ((18, 6), ()), ((20, 7), ())],
    ),
    "narrow by names": (
        lambda x, k: torch().narrow(x, dim=0, start=k, length=k).shape[0],
        (((12, 4), (3,)), ((8, 4), (4,))),
        [((2, 4), (3,)), ((7, 4), (3,)), ((5, 4), (3,)), ((8, 4), (3,)), ((7, 4), (4,))],
    ),
    "flatten by names": (
        lambda x, k: x.view(k, -1, x.shape[1]).flatten(end_dim=1).shape[0],
        (((4, 2), (1,)), ((6, 3), (1,))),
        [((n, 3), (k,)) for n in (4, 6, 9) for k in (1, 2, 3)],
    ),
    "unflatten by names": (
        lambda x, k: x.unflatten(sizes=(k, -1), dim=0).shape[1],
        (((4, 2), (2,)), ((6, 3), (3,))),
        [((n, 3), (k,)) for n in (4, 6, 9) for k in (1, 2, 3)],
    ),
    "an error of PyTorch": (
        lambda x, k: attempted(lambda: x.reshape(k, -1).shape[1], 7),
        (((6, 1), (4,)), ((9, 1), (2,))),
        [((n, 1), (k,)) for n in (6, 8, 9) for k in (1, 2, 4)],
    ),
    "an error of a size": (
        lambda x, k: attempted(lambda: torch().empty(k, 2).shape[0], 7),
        (((6, 1), (-4,)), ((9, 1), (-2,))),
        [((6, 1), (k,)) for k in (-3, -1, 0, 1, 2)],
    ),
    "an error of a shift": (
        lambda x, k: attempted(lambda: x.shape[0] << k, 7),
        (((6, 1), (-4,)), ((9, 1), (-2,))),
        [((6, 1), (k,)) for k in (-3, -1, 0, 1, 2)],
    ),
    "a quotient, or none": (
        lambda x, k: x.shape[0] // k if k else x.shape[0],
        (((6, 1), (0,)), ((9, 1), (1,))),
        [((n, 1), (k,)) for n in (6, 9) for k in (-3, -1, 1, 2)],
    ),
    "a decision by a quotient, or none": (
        lambda x, k: (5 if x.shape[0] // k > 2 else 6) if k else 5,
        (((6, 1), (0,)), ((9, 1), (3,))),
        [((n, 1), (k,)) for n in (6, 9) for k in (-3, -1, 1, 2)],
    ),
}  # fmt: skip


def recorded(host: Callable[..., None], call: Call) -> frontend.Launches:
    shape, more = call
    with frontend.recording() as launches:
        launches.call(host, torch().zeros(shape), *more)
    return launches


def number(gpu: FakeCuda) -> int:
    """The number that the kernel got."""
    (launch,) = gpu.launches()
    given = [each for each in launch.parameters[2:] if len(each) in (4, 8)]
    return int.from_bytes(given[0], "little", signed=True)


@pytest.mark.parametrize("name", OF)
@pytest.mark.parametrize("is_turned", [False, True])
def test_a_call_gets_what_the_host_function_gives(
    gpu: FakeCuda, hosts: ModuleType, name: str, is_turned: bool
) -> None:
    of, several, calls = OF[name]

    def host(x: Any, *more: int) -> None:
        hosts.squares[(1,)](x, x, of(x, *more), 40, BLOCK=64)

    first, other = (recorded(host, each) for each in (several[::-1] if is_turned else several))
    function = first.compile(other, **HOW)
    taken = set()
    for shape, more in itertools.chain(several, calls):
        gpu.clear()
        try:
            function(tensor(*shape)[0], *more)
        except ValueError:
            continue
        assert number(gpu) == of(torch().zeros(shape), *more), (shape, more)
        taken.add((shape, more))
    assert {*several} <= taken


@pytest.mark.parametrize("is_inside", [False, True])
def test_arguments_that_are_made_inside_of_the_recording_are_compared(
    gpu: FakeCuda, hosts: ModuleType, is_inside: bool
) -> None:
    """Of their sizes each recording has one, and a call another."""

    def host(x: Any) -> None:
        rows, n = x.shape
        hosts.squares[(rows,)](x, x, n, 40, BLOCK=64, num_warps=8 if n > 48 else 4)

    launches = []
    for rows, n in ((3, 20), (5, 30)):
        x = torch().zeros(rows, n)
        with frontend.recording() as found:
            host(torch().zeros(rows, n) if is_inside else x)
        launches.append(found[0])
    function = launches[0].compile(launches[1], **HOW)
    x, y = tensor(4, 48)[0], tensor(4, 49)[0]
    function(x, x)
    assert gpu.launches()[0].block[0] == 4 * 32
    with pytest.raises(ValueError, match="a recording has no other case"):
        function(y, y)


def scaled_by(hosts: ModuleType, x: Any, n: Any, factor: Any, **options: Any) -> None:
    hosts.scaled[(3,)](x, x, x, x, n, 7, factor, **{"BLOCK": 128, **options})


DIFFERENT: dict[str, Callable[[ModuleType, Any, float], Any]] = {
    "a sign": lambda hosts, x, p: scaled_by(hosts, x, 8, p if x.shape[0] > 4 else -p),
    "a kind of number": lambda hosts, x, p: scaled_by(hosts, x, 8, 1.0 if x.shape[0] > 4 else 2),
    "a number": lambda hosts, x, p: scaled_by(hosts, x, 9 if x.shape[1] > 50 else 70, p),
    "a block": lambda hosts, x, p: scaled_by(hosts, x, 8, p, BLOCK=64 if x.numel() > 150 else 32),
    "an option": lambda hosts, x, p: scaled_by(
        hosts, x, 8, p, num_warps=2 if x.shape[0] > 4 else 4
    ),
    "launches": lambda hosts, x, p: [
        scaled_by(hosts, x, 8, p) for _ in range(2 if x.is_contiguous() else 1)
    ],
    "a number that is taken": lambda hosts, x, p: scaled_by(hosts, x, {3: 9, 5: 20}[x.shape[0]], p),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_an_error_names_the_line_that_decides(hosts: ModuleType, name: str) -> None:
    def host(x: Any, p: float) -> None:
        DIFFERENT[name](hosts, x, p)

    recordings = []
    for x in (torch().zeros(3, 80)[:, :40], torch().zeros(5, 70)):
        with frontend.recording() as launches:
            launches.call(host, x, 0.5)
        recordings.append(launches)
    said = r"(go different ways|takes a number) at test_hosts_explained\.py:[0-9]+;"
    with pytest.raises(fe.CompileError, match=said) as error:
        recordings[0].compile(recordings[1], target="sm_90a")
    line = int(str(error.value).partition("test_hosts_explained.py:")[2].partition(";")[0])
    code = DIFFERENT[name].__code__
    lines = {at for _, _, at in code.co_lines() if at}
    inside = (each for each in code.co_consts if hasattr(each, "co_lines"))
    assert line in lines | {at for each in inside for _, _, at in each.co_lines()}

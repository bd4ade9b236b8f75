"""Strides that a kernel is told are those of the call, also in dims of size 1 and of what is empty.

The numbers of a launch are those that Triton would be given: what the tensor says in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda, forged
from numpy.lib.stride_tricks import as_strided

from ferrule.frontends import triton as frontend

pytestmark = [pytest.mark.needs_cc, pytest.mark.needs_torch]

HOW: Any = {"target": "sm_90a", "specialize": [{}]}
HEADS, WIDTH = 2, 8


@pytest.fixture
def hosts() -> ModuleType:
    """Kernels."""
    pytest.importorskip("torch")
    return pytest.importorskip("emulated_recordings")


def padded(batch: int, length: int, room: int) -> Any:
    """Queries in a larger tensor of all heads: those of one token are `room` heads apart."""
    import torch

    return torch.zeros(batch, length, room, WIDTH)[:, :, :HEADS]


def on_gpu(x: Any) -> Any:
    """The same tensor on the stand-in, with all of its strides."""
    memory = np.zeros(x.untyped_storage().nbytes() // 4 + 1, np.float32)
    steps = [4 * step for step in x.stride()]
    return forged(as_strided(memory, tuple(x.shape), steps))


def told(gpu: FakeCuda, function: Any, *given: Any) -> list[int] | None:
    """The grid's first size and the integers that a call hands over; None if it is refused."""
    gpu.clear()
    try:
        function(*given)
    except ValueError:
        return None
    launches = gpu.launches()
    if not launches:
        return []
    (launch,) = launches
    integers = launch.parameters[4:-3]  # between the addresses and eps; Triton adds two addresses
    numbers = [int.from_bytes(each, "little", signed=True) for each in integers]
    folded = [1] * (2 - len(numbers))
    return [launch.grid[0], *sorted([*numbers, *folded])]


def rows(hosts: ModuleType) -> Callable[[Any], None]:
    def host(q: Any) -> None:
        batch, length, _, _ = q.shape
        hosts.scaled[(batch * length,)](q, q, q, q, q.stride(1), q.stride(0), 0.5, BLOCK=128)

    return host


def recorded(host: Any, *several: tuple[Any, ...]) -> list[frontend.Launches]:
    found = []
    for given in several:
        with frontend.recording() as launches:
            launches.call(host, *given)
        found.append(launches)
    return found


CALLS = [(2, 3, 6), (5, 7, 9), (2, 1, 5), (3, 1, 4), (4, 1, 6), (1, 1, 4), (1, 3, 4), (1, 1, 2)]


def wanted(q: Any) -> list[int]:
    return [q.shape[0] * q.shape[1], *sorted((q.stride(1), q.stride(0)))]


def checked(gpu: FakeCuda, function: Any, *calls: Any) -> int:
    """How many calls are taken; each has the numbers of the host function."""
    taken = 0
    for q in calls:
        found = told(gpu, function, on_gpu(q))
        if found:
            assert [found[0], *sorted(found[1:])] == wanted(q), (q.shape, q.stride())
        taken += found is not None
    return taken


@pytest.mark.parametrize("direct", [False, True])
def test_a_step_of_length_1_has_the_stride_of_its_tensor(
    gpu: FakeCuda, hosts: ModuleType, direct: bool
) -> None:
    if direct:
        several = dict.fromkeys(("x", "total", "weight", "out"), "*fp32[b, s, 2, 8: s0, s1, 8, 1]")
        signature = {**several, "stride": "s1", "n": "s0", "eps": 0.5}
        grid: Any = lambda meta: (meta["x"].shape[0] * meta["x"].shape[1],)  # noqa: E731
        how = {"signature": signature, "constexprs": {"BLOCK": 128}, "grid": grid, **HOW}
        four = frontend.compile(hosts.scaled, **how)

        def function(q: Any) -> Any:
            return four(q, q, q, q)
    else:
        one, *more = recorded(rows(hosts), *((padded(*each),) for each in CALLS[:2]))
        function = one.compile(*more, general=True, **HOW)
    calls = [padded(*each) for each in CALLS]
    assert checked(gpu, function, *calls) == len(CALLS)


def test_empty_tensors_have_their_strides(gpu: FakeCuda, hosts: ModuleType) -> None:
    """A kernel that is launched for what is empty is told its strides."""

    def host(q: Any) -> None:
        hosts.scaled[(7,)](q, q, q, q, q.stride(1), q.stride(0), 0.5, BLOCK=128)

    one, *more = recorded(host, *((padded(*each),) for each in CALLS[:2]))
    function = one.compile(*more, general=True, **HOW)
    for each in ((0, 3, 6), (2, 0, 5), (0, 0, 4)):
        q = padded(*each)
        found = told(gpu, function, on_gpu(q))
        assert found == [7, *sorted((q.stride(1), q.stride(0)))] or found is None


def test_what_is_repeated_has_a_stride_of_0(gpu: FakeCuda, hosts: ModuleType) -> None:
    one, *more = recorded(rows(hosts), *((padded(*each),) for each in CALLS[:2]))
    function = one.compile(*more, general=True, **HOW)
    q = padded(1, 3, 4).expand(4, 3, 2, 8)
    assert checked(gpu, function, q, q[:1], q[:, :1]) == 3


def contiguous(hosts: ModuleType) -> Callable[[Any], None]:
    def host(x: Any) -> None:
        rows, columns = x.shape
        hosts.scaled[(rows,)](x, x, x, x, x.stride(0), x.stride(1), 0.5, BLOCK=128)

    return host


@pytest.mark.parametrize("general", [False, True])
def test_strides_that_were_those_of_a_compact_tensor(
    gpu: FakeCuda, hosts: ModuleType, general: bool
) -> None:
    """The row of a decode step, `x[:, -1]`, has another stride, and is no contiguous tensor of
    which the kernel could be told that it is one."""
    import torch

    sizes = [(1, 40), (5, 40), (9, 70)]
    one, *more = recorded(contiguous(hosts), *((torch.zeros(each),) for each in sizes))
    function = one.compile(*more, general=general, **HOW)
    for each in sizes:
        assert told(gpu, function, on_gpu(torch.zeros(each))) is not None
    for x in (
        torch.zeros(1, 6, 40)[:, -1],
        torch.zeros(40, 1).t(),
        torch.zeros(70, 1, 1)[:, 0].t(),
    ):
        found = told(gpu, function, on_gpu(x))
        assert found is None or sorted(found[1:]) == sorted(x.stride())


@pytest.mark.parametrize("whole", [False, True])
def test_one_recording_has_the_strides_of_its_call(
    gpu: FakeCuda, hosts: ModuleType, whole: bool
) -> None:
    (one,) = recorded(rows(hosts), (padded(3, 1, 4),))
    function = one.compile(**HOW) if whole else one[0].compile(**HOW)
    count = 1 if whole else 4
    for room in (4, 5):
        q = padded(3, 1, room)
        assert (told(gpu, function, *[on_gpu(q)] * count) is None) is (room == 5)


def test_a_launch_of_several_recordings(gpu: FakeCuda, hosts: ModuleType) -> None:
    one, *more = recorded(rows(hosts), *((padded(*each),) for each in CALLS[:2]))
    function = one[0].compile(*(each[0] for each in more), general=True, **HOW)
    for each in CALLS:
        q = padded(*each)
        found = told(gpu, function, *[on_gpu(q)] * 4)
        assert found is not None and [found[0], *sorted(found[1:])] == wanted(q)


def test_a_stride_by_name_is_that_of_the_tensor(gpu: FakeCuda, hosts: ModuleType) -> None:
    """`"x.strides[1]"` of a tensor whose stride is 1 in the signature: what the kernel is told."""
    names = {"stride": "x.stride(0)", "n": "x.stride(1)", "eps": 0.5}
    tensors = dict.fromkeys(("total", "weight", "out"), "*fp32")
    given = {"x": "*fp32[m, k: s, 1]", **tensors, **names}
    grid = lambda meta: (meta["x"].shape[0],)  # noqa: E731
    function = frontend.compile(
        hosts.scaled, signature=given, constexprs={"BLOCK": 128}, grid=grid, **HOW
    )
    import torch

    free = [forged(np.zeros(4, np.float32))] * 3
    assert "exact_strides=[0, 1]" in function.signature.text()
    assert told(gpu, function, on_gpu(torch.zeros(5, 1)), *free) is not None
    assert told(gpu, function, on_gpu(torch.zeros(1, 5).t()), *free) is None
    with pytest.raises(ValueError, match=r"x\.strides\[1\].*expected to be 1, but got 5"):
        function(on_gpu(torch.zeros(1, 5).t()), *free)


def test_a_comparison_of_strides_holds_in_dims_of_size_1(gpu: FakeCuda, hosts: ModuleType) -> None:
    def host(x: Any) -> None:
        rows, columns = x.shape
        wide = 3 if x.stride(0) > 50 else 4
        hosts.scaled[(rows,)](x, x, x, x, wide, 77, 0.5, BLOCK=128)

    import torch

    for sizes in ([(5, 40), (9, 48)], [(5, 60), (9, 70)]):
        one, *more = recorded(host, *((torch.zeros(each),) for each in sizes))
        function = one.compile(*more, general=True, **HOW)
        for x in (torch.zeros(1, 6, 40)[:, 1], torch.zeros(1, 40), torch.zeros(1, 60)):
            found = told(gpu, function, on_gpu(x))
            assert found is None or found[1:] == [3 if x.stride(0) > 50 else 4, 77]


def test_what_is_asked_for_elements_alone_is_no_number(gpu: FakeCuda, hosts: ModuleType) -> None:
    """`contiguous()` and `is_contiguous()` ask for no stride in a dim of size 1."""
    import torch

    def host(x: Any) -> None:
        assert x.is_contiguous()
        rows, columns = x.shape
        hosts.scaled[(rows,)](x, x, x, x, columns, 77, 0.5, BLOCK=128)

    one, *more = recorded(host, (torch.zeros(5, 40),), (torch.zeros(9, 70),), (torch.zeros(1, 50),))
    function = one.compile(*more, general=True, **HOW)
    assert told(gpu, function, on_gpu(torch.zeros(1, 6, 40)[:, -1])) == [1, 40, 77]
    assert "exact" not in function.signature.text()

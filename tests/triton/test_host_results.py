"""What a compiled host function takes and returns: what the recorded one does."""

from __future__ import annotations

import math
import struct
from types import ModuleType
from typing import Any

import pytest
from cuda_device import FakeCuda
from triton_launcher import tensor

import ferrule as fe
from ferrule.frontends import triton as frontend

pytestmark = [pytest.mark.needs_cc, pytest.mark.needs_torch]


@pytest.fixture
def hosts() -> ModuleType:
    """Kernels."""
    pytest.importorskip("torch")
    return pytest.importorskip("emulated_recordings")


def recorded(host: Any, *arguments: Any) -> frontend.Launches:
    with frontend.recording() as launches:
        launches.call(host, *arguments)
    return launches


def zeros(*shape: int) -> Any:
    import torch

    return torch.zeros(shape)


def rows(hosts: ModuleType, x: Any, total: Any, **more: Any) -> Any:
    hosts.squares[(x.shape[0],)](x, total, x.stride(0), x.shape[1], BLOCK=128, **more)
    return total


def empty(*shape: Any) -> Any:
    import torch

    return torch.empty(shape)


@pytest.mark.usefixtures("allocator")
def test_none_among_results_stays(gpu: FakeCuda, hosts: ModuleType) -> None:
    """At its place, as a caller takes the tuple apart."""

    def second(x: Any) -> Any:
        return None, rows(hosts, x, empty(x.shape[0]))

    def alone(x: Any) -> Any:
        rows(hosts, x, empty(x.shape[0]))

    def both(x: Any) -> Any:
        rows(hosts, x, empty(x.shape[0]))
        return None, None

    x = tensor(3, 40)[0]
    function = recorded(second, zeros(3, 40)).compile(target="sm_90a", specialize=[{}])
    nothing, total = function(x)
    assert nothing is None and tuple(total.shape) == (3,)
    assert "-> Tuple[None, Tensor([3], float32)]" in str(function)
    assert recorded(alone, zeros(3, 40)).compile(target="sm_90a", specialize=[{}])(x) is None
    found = recorded(both, zeros(3, 40)).compile(target="sm_90a", specialize=[{}])(x)
    assert tuple(found) == (None, None)


def test_all_recordings_return_the_same_kinds(hosts: ModuleType) -> None:
    import torch

    def optional(x: Any) -> Any:
        total = rows(hosts, x, empty(x.shape[0]))
        return (total, total.new_empty(3)) if x.shape[1] > 64 else total

    def none(x: Any) -> Any:
        total = rows(hosts, x, empty(x.shape[0]))
        return (total, None) if x.shape[1] > 64 else (None, total)

    def halves(x: Any) -> Any:
        rows(hosts, x, empty(x.shape[0]))
        return torch.zeros(3, dtype=torch.float16 if x.shape[1] > 64 else torch.float32)

    def ranks(x: Any) -> Any:
        rows(hosts, x, empty(x.shape[0]))
        return torch.zeros((3,) if x.shape[1] > 64 else (3, 4))

    for host in (optional, none, halves, ranks):
        one, other = recorded(host, zeros(3, 40)), recorded(host, zeros(5, 80))
        with pytest.raises(fe.CompileError, match="one recording returns .*, another "):
            one.compile(other, target="sm_90a")


@pytest.mark.usefixtures("allocator")
def test_a_view_is_returned_with_the_sizes_that_it_was_made_with(
    gpu: FakeCuda, hosts: ModuleType
) -> None:
    """Of 40 and 104 columns both have 40 results; of 50 it is 50."""

    def host(x: Any) -> Any:
        m, n = x.shape
        out = empty(m * (n % 64))
        rows(hosts, x, out)
        return out.view(m, -1)

    one, other = recorded(host, zeros(3, 40)), recorded(host, zeros(5, 104))
    function = one.compile(other, target="sm_90a", specialize=[{}])
    for n in (40, 50, 70, 104):
        assert tuple(function(tensor(4, n)[0]).shape) == (4, n % 64)


def test_a_tensor_is_one_in_all_recordings(hosts: ModuleType) -> None:
    def host(x: Any, bias: Any) -> None:
        rows(hosts, x, empty(x.shape[0]))

    one, other = recorded(host, zeros(3, 40), None), recorded(host, zeros(5, 80), zeros(2))
    for first, second in ((one, other), (other, one)):
        with pytest.raises(fe.CompileError, match="bias is a tensor in one recording, and none"):
            first.compile(second, target="sm_90a")


def test_a_number_that_differs_is_an_argument(gpu: FakeCuda, hosts: ModuleType) -> None:
    """The one that the host function got, or what it computes of it."""

    def launch(x: Any, total: Any, eps: float) -> None:
        hosts.scaled[(3,)](x, total, total, x, 40, 40, eps, BLOCK=64)

    def same(x: Any, total: Any, by: float) -> None:
        launch(x, total, by)
        launch(x, total, by)

    def other(x: Any, total: Any, by: float) -> None:
        launch(x, total, 2 * by)

    arguments = zeros(3, 40), zeros(40)
    one, two = [recorded(same, *arguments, by) for by in (0.5, 0.25)]
    function = one.compile(two, target="sm_90a", specialize=[{}])
    assert [each.name for each in function.signature.params] == ["x", "total", "by"]
    gpu.clear()
    function(tensor(3, 40)[0], tensor(40)[0], 0.75)
    assert len(gpu.launches()) == 2
    one, two = [recorded(other, *arguments, by) for by in (0.5, 0.25)]
    gpu.clear()
    one.compile(two, target="sm_90a")(tensor(3, 40)[0], tensor(40)[0], 0.75)
    assert struct.unpack("f", gpu.launches()[0].parameters[-3]) == (1.5,)

    def taken(x: Any, total: Any, by: float) -> None:
        launch(x, total, math.exp(by))

    one, two = [recorded(taken, *arguments, by) for by in (0.5, 0.25)]
    with pytest.raises(
        fe.CompileError, match=r"eps of scaled is 1\.6\d* in one recording and 1\.2"
    ):
        one.compile(two, target="sm_90a")


def test_a_grid_is_that_of_the_launch(gpu: FakeCuda, hosts: ModuleType) -> None:
    """Not that of variables which the host function changes after it."""
    import triton

    def loop(x: Any, total: Any) -> None:
        for count in (x.shape[0], x.shape[0] + 5):
            hosts.squares[lambda _: (count,)](x, total, 40, 40, BLOCK=64)  # noqa: B023

    def tuned(x: Any, total: Any) -> None:
        for count in (x.numel(), 1):
            grid = lambda meta: (triton.cdiv(count, meta["BLOCK"]),)  # noqa: B023, E731
            hosts.blocks[grid](x, total, 40)

    one, other = [recorded(loop, zeros(m, 40), zeros(m)) for m in (3, 7)]
    function = one.compile(other, target="sm_90a", specialize=[{}])
    function(tensor(4, 40)[0], tensor(4)[0])
    assert [each.grid[0] for each in gpu.launches()] == [4, 9]
    with pytest.raises(fe.CompileError, match=r"the grid was \(3,\) at the launch, and is another"):
        one[0].compile(target="sm_90a")

    one, other = [recorded(tuned, zeros(m, 40), zeros(m)) for m in (16, 32)]
    function = one.compile(other, target="sm_90a", specialize=[{}], configs={0: 1, 1: 1})
    gpu.clear()
    function(tensor(24, 40)[0], tensor(24)[0])
    assert [each.grid[0] for each in gpu.launches()] == [15, 1]
    own = {0: triton.Config({"BLOCK": 32}), 1: 1}
    with pytest.raises(fe.CompileError, match="it reads what was changed after the launch"):
        one.compile(other, target="sm_90a", configs=own)


def test_a_fill_is_of_all_elements(hosts: ModuleType) -> None:
    """A view that has as many elements as the memory may have one of them twice."""

    def host(x: Any, total: Any) -> Any:
        out = empty(4)
        out.as_strided((2, 2), (1, 1)).fill_(1)
        rows(hosts, x, out)
        return out

    launches = recorded(host, zeros(3, 40), zeros(3))
    with pytest.raises(fe.CompileError, match="is computed by torch's fill_"):
        launches.compile(target="sm_90a")


def test_memory_that_numpy_has_is_computed(hosts: ModuleType) -> None:
    """What NumPy writes to it, no function does."""
    import numpy as np
    import torch

    gives: dict[str, Any] = {
        "numpy": lambda t: t.numpy(),
        "__array__": np.asarray,
        "__dlpack__": np.from_dlpack,
    }
    for name, give in gives.items():

        def host(x: Any, give: Any = give) -> Any:
            total = torch.zeros(x.shape[0])
            give(total)[:] = 3
            return rows(hosts, x, total)

        launches = recorded(host, zeros(3, 40))
        with pytest.raises(fe.CompileError, match=f"is computed by torch's {name}, which is no"):
            launches.compile(target="sm_90a")

"""What a compiled host function takes and returns: what the recorded one does."""

from __future__ import annotations

import math
import struct
from types import ModuleType
from typing import Any

import pytest
from cuda_device import FakeCuda, data_ptr
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


def settings(n: int) -> tuple[int, int]:
    import triton

    block = triton.next_power_of_2(n)
    return block, 8 if block >= 256 else 4


MODES = {"llama": 0, "gemma": 1}


def norm(hosts: ModuleType, x: Any, w: Any, eps: float, mode: str = "llama") -> Any:
    """As a library's forward function, which gives its backward function what that needs."""
    shape = x.shape
    x = x.view(-1, shape[-1])
    rows, n = x.shape
    block, warps = settings(n)
    y, rstd = empty(rows, n), empty(rows)
    hosts.scaled[(rows,)](x, rstd, w, y, x.stride(0), n, eps, BLOCK=block, num_warps=warps)
    numbers = (block, warps, MODES[mode], mode, None, eps > 0, 2 * eps, rows, n // 2, 0.5)
    return (y.view(*shape), x, rstd, *numbers)


def shown(value: Any) -> Any:
    return tuple(value.shape) if hasattr(value, "shape") else value


@pytest.mark.usefixtures("allocator")
@pytest.mark.parametrize("general", [False, True])
def test_numbers_among_results(gpu: FakeCuda, hosts: ModuleType, general: bool) -> None:
    """Constants, and what is computed of sizes and floats of the call; each side of a comparison
    has its block."""

    def host(x: Any, w: Any, eps: float, mode: str = "llama") -> Any:
        return norm(hosts, x, w, eps, mode)

    sizes = ((2, 3, 70, 1e-6), (3, 5, 100, 1e-5), (2, 4, 170, 1e-6), (4, 5, 200, 1e-3))
    recordings = [recorded(host, zeros(a, b, n), zeros(n), eps) for a, b, n, eps in sizes]
    how: Any = {"target": "sm_90a", "specialize": [{}]}
    one = recordings[0].compile(**how)
    two = recordings[0].compile(recordings[1], general=general, **how)
    sides = recordings[0].compile(*recordings[1:], general=general, **how)
    for function, several in (
        (one, [sizes[0]]),
        (two, [*sizes[:2], (3, 4, 90, 0.5)]),
        (sides, [*sizes, (3, 4, 90, 0.5), (3, 4, 190, 0.25)]),
    ):
        for a, b, n, eps in several:
            x, of_x = tensor(a, b, n)
            at = of_x.data_ptr()
            found = function(x, tensor(n)[0], eps)
            with frontend.recording() as launches:
                wanted = launches.call(host, zeros(a, b, n), zeros(n), eps)
            assert [*map(shown, found)] == [*map(shown, wanted)]
            kinds = [type(each).__name__ for each in found[3:]]
            assert kinds == "int int int str NoneType bool float int int float".split()
            assert data_ptr(found[1]) == at != data_ptr(found[0])


@pytest.mark.usefixtures("allocator")
def test_tensors_of_the_caller_come_back(gpu: FakeCuda, hosts: ModuleType) -> None:
    """Themselves, a part of them, or in another shape: the same memory."""

    def host(x: Any, total: Any) -> Any:
        rows(hosts, x, total)
        q, r = x.shape[0] // 4 * 4, x.shape[0] % 4
        return total, x[r:], x.t(), x[:q].view(-1), x.unsqueeze(0)

    one, other = recorded(host, zeros(4, 40), zeros(4)), recorded(host, zeros(8, 50), zeros(8))
    function = one.compile(other, target="sm_90a", specialize=[{}])
    for m, n in ((4, 40), (8, 50), (5, 44), (7, 50)):
        (x, of_x), (total, of_total) = tensor(m, n), tensor(m)
        at = of_x.data_ptr()
        found = function(x, total)
        r, q = m % 4, m // 4 * 4
        assert [*map(shown, found)] == [(m,), (m - r, n), (n, m), (q * n,), (1, m, n)]
        where = [of_total.data_ptr(), at + 4 * r * n, at, at, at]
        assert [*map(data_ptr, found)] == where

    def elsewhere(x: Any) -> Any:
        rows(hosts, x, empty(x.shape[0]))
        return KEPT[0]

    KEPT = [zeros(4)]
    with pytest.raises(fe.CompileError, match="result 0 is a tensor that the caller has, and no"):
        recorded(elsewhere, zeros(4, 40)).compile(target="sm_90a")


@pytest.mark.usefixtures("allocator")
@pytest.mark.parametrize("general", [False, True])
def test_a_size_that_is_an_integer_of_the_call(
    gpu: FakeCuda, hosts: ModuleType, general: bool
) -> None:
    import torch

    def host(x: Any, k: int) -> Any:
        room, ones, total = empty(k), torch.ones(2 * k, 3), torch.full((k + 1,), 2.5)
        for each in (room, ones, total):
            rows(hosts, x, each)
        return ones, total

    one, other = recorded(host, zeros(3, 40), 4), recorded(host, zeros(5, 40), 7)
    function = one.compile(other, target="sm_90a", specialize=[{}], general=general)
    for k in (4, 5, 7):
        gpu.clear()
        found = function(tensor(4, 40)[0], k)
        assert [*map(shown, found)] == [(2 * k, 3), (k + 1,)]
        fills = [each.parameters[:2] for each in gpu.launches() if each.kernel == "fill"]
        assert [[int.from_bytes(each, "little") for each in one] for one in fills] == [
            [data_ptr(found[0]), 6 * k],
            [data_ptr(found[1]), k + 1],
        ]
    with pytest.raises(ValueError, match="k >= (0|4), but got k = -1"):
        function(tensor(4, 40)[0], -1)


def test_results_that_nobody_returns(hosts: ModuleType) -> None:
    import torch

    def host(x: Any, what: Any) -> Any:
        rows(hosts, x, empty(x.shape[0]))
        return {"dtype": x.dtype, "dict": {"n": 1}, "tuple": (1, (2, 3)), "differs": n[0]}[what]

    n = ["a"]
    for what, text in (
        ("dtype", "a result of the recording is a dtype\\n  expected: a tensor, a number"),
        ("dict", "a result of the recording is a dict"),
        ("tuple", "a result of the recording is a tuple"),
    ):
        with pytest.raises(fe.CompileError, match=text):
            recorded(host, torch.zeros(3, 40), what).compile(target="sm_90a")
    one = recorded(host, torch.zeros(3, 40), "differs")
    n[0] = "b"
    other = recorded(host, torch.zeros(5, 40), "differs")
    with pytest.raises(fe.CompileError, match="result 0 is 'a' in one recording and 'b' in"):
        one.compile(other, target="sm_90a")


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

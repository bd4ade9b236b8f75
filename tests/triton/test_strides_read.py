"""Strides that functions of a kernel's arguments read are those of the call, also in dims of size 1
and of what is empty: numbers, heuristics, constants, grids."""

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


@pytest.fixture
def hosts() -> ModuleType:
    """Kernels."""
    pytest.importorskip("torch")
    return pytest.importorskip("emulated_recordings")


def strided(shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    import torch

    return torch.as_strided(torch.zeros(999), shape, strides)


def calls() -> list[Any]:
    """Matrices that a compact one may stand for, and others."""
    several = (
        *(((4, 8), (8, 1)), ((12, 8), (8, 1)), ((1, 8), (8, 1)), ((1, 8), (16, 1))),
        *(((1, 8), (1, 1)), ((0, 8), (12, 1)), ((0, 8), (3, 3)), ((4, 1), (1, 5))),
        *(((1, 1), (4, 4)), ((4, 8), (10, 1)), ((4, 8), (1, 4))),
    )
    return [strided(*each) for each in several]


def launched(gpu: FakeCuda, function: Any, x: Any, count: int = 1) -> Any:
    """The launch of a call; None if it is refused."""
    memory = np.zeros(999, np.float32)
    steps = [4 * step for step in x.stride()]
    given = forged(as_strided(memory, tuple(x.shape), steps))
    gpu.clear()
    try:
        function(*[given] * count)
    except ValueError:
        return None
    (launch,) = gpu.launches()
    return launch


def warps(args: Any) -> int:
    """What a host function decides by strides, as a number of warps that a launch shows."""
    x = args["x"]
    return (4 if x.stride(0) == x.shape[-1] else 1) * (2 if x.stride(-1) == 1 else 1)


def direct(hosts: ModuleType, text: str = "*fp32[m, n]", **more: Any) -> Any:
    tensors = dict.fromkeys(("x", "total", "weight", "out"), text)
    signature = {**tensors, "stride": 3, "n": 3, "eps": 0.5, **more.pop("signature", {})}
    given = {"constexprs": {"BLOCK": 64}, "grid": frontend.fixed(3), **HOW, **more}
    return frontend.compile(hosts.scaled, signature=signature, **given)


def checked(gpu: FakeCuda, function: Any, wanted: Callable[[Any, Any], bool], count: int) -> int:
    """How many calls are taken, each of which is as it is wanted."""
    taken = 0
    for x in calls():
        launch = launched(gpu, function, x, count)
        if launch is not None:
            assert wanted(x, launch), (x.shape, x.stride())
            taken += 1
    return taken


def integers(launch: Any) -> list[int]:
    return [int.from_bytes(each, "little", signed=True) for each in launch.parameters[4:-3]]


@pytest.mark.parametrize(
    ("text", "least"), [("*fp32[m, n]", 3), ("*fp32[m, n: s, 1]", 6), ("*fp32[m, n: s, t]", 11)]
)
def test_functions_that_give_numbers(
    gpu: FakeCuda, hosts: ModuleType, text: str, least: int
) -> None:
    numbers = {
        "stride": lambda s: s["x"].strides[0] * 2 + 7,
        "n": lambda s: sum(s["x"].strides) + 7,
    }
    function = direct(hosts, text, signature=numbers)
    assert "exact_strides=[0, 1]" in function.signature.text()

    def wanted(x: Any, launch: Any) -> bool:
        return integers(launch) == [x.stride(0) * 2 + 7, sum(x.stride()) + 7]

    assert checked(gpu, function, wanted, 4) >= least


def test_only_strides_that_are_read_are_numbers(gpu: FakeCuda, hosts: ModuleType) -> None:
    function = direct(hosts, signature={"stride": lambda s: s["x"].strides[0] + 5})
    assert function.signature["x"].exact_strides == (0,)
    assert function.signature["total"].exact_strides == ()
    function = direct(hosts, signature={"stride": lambda s: s["x"].shape[0] + 5})
    assert function.signature["x"].exact_strides == ()


@pytest.mark.parametrize("text", ["*fp32[m, n]", "*fp32[m, n: s, 1]", "*fp32[m, n: s, t]"])
def test_options_and_heuristics(gpu: FakeCuda, hosts: ModuleType, text: str) -> None:
    function = direct(hosts, text, num_warps=warps)

    def wanted(x: Any, launch: Any) -> bool:
        return bool(launch.block[0] == 32 * warps({"x": x}))

    assert checked(gpu, function, wanted, 4) >= 3
    assert "exact_strides=[0, 1]" in function.signature.text()


@pytest.mark.parametrize("text", ["*fp32[m, n]", "*fp32[m, n: s, 1]"])
def test_grids(gpu: FakeCuda, hosts: ModuleType, text: str) -> None:
    function = direct(hosts, text, grid=lambda meta: (meta["x"].stride(0) * 2,))
    checked(gpu, function, lambda x, launch: launch.grid[0] == x.stride(0) * 2, 4)
    assert "exact_strides=[0]" in function.signature.text()


def test_configurations_by_a_stride(gpu: FakeCuda, hosts: ModuleType) -> None:
    triton = pytest.importorskip("triton")
    configs = {8: triton.Config({}, num_warps=1), 99: triton.Config({}, num_warps=2)}
    function = direct(hosts, choose=frontend.by_size("x.strides[0]", configs))

    def wanted(x: Any, launch: Any) -> bool:
        return bool(launch.block[0] == (32 if x.stride(0) <= 8 else 64))

    assert checked(gpu, function, wanted, 4) >= 3


def test_strides_as_a_whole(hosts: ModuleType) -> None:
    """However a function reads a tuple of strides."""
    readers: list[Callable[[Any], Any]] = [
        lambda x: x.stride() == (8, 1),
        lambda x: (0, *x.stride()),
        lambda x: (0,) + x.stride(),
        lambda x: 3 in x.stride(),
        lambda x: x.stride()[-1:] + x.stride()[:1],
    ]
    for reader in readers:
        function = direct(hosts, num_warps=lambda args, r=reader: 2 if r(args["x"]) else 1)
        assert function.signature["x"].exact_strides == (0, 1)


VIEWS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda x: x,
    "transposed": lambda x: x.t(),
    "with a dim": lambda x: x.unsqueeze(0),
    "every other": lambda x: x[:, ::2],
}
RECORDED = {
    "compact": [((3, 7), (7, 1)), ((13, 13), (13, 1))],
    "padded": [((3, 8), (10, 1)), ((13, 8), (17, 1))],
    "columns": [((3, 7), (1, 3)), ((13, 11), (1, 13))],
    "of one row": [((1, 7), (7, 1)), ((1, 13), (13, 1)), ((5, 9), (9, 1))],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("of", RECORDED)
def test_recorded_heuristics(gpu: FakeCuda, hosts: ModuleType, view: str, of: str) -> None:
    """A heuristic reads the argument of its launch, not the memory that it is a view of."""
    triton = pytest.importorskip("triton")
    kernel = triton.heuristics({"num_warps": warps})(hosts.scaled)

    def host(x: Any) -> None:
        y = VIEWS[view](x)
        kernel[(3,)](y, x, x, x, 3, 3, 0.5, BLOCK=64)

    found = []
    for each in RECORDED[of]:
        with frontend.recording() as launches:
            launches.call(host, strided(*each))
        found.append(launches)
    function = found[0].compile(*found[1:], general=True, **HOW)

    def wanted(x: Any, launch: Any) -> bool:
        return bool(launch.block[0] == 32 * warps({"x": VIEWS[view](x)}))

    assert checked(gpu, function, wanted, 1) >= 1


def test_general_is_a_bool_or_names(hosts: ModuleType) -> None:
    def host(x: Any) -> None:
        hosts.scaled[(3,)](x, x, x, x, 3, 3, 0.5, BLOCK=64)

    with frontend.recording() as launches:
        launches.call(host, strided((3, 7), (7, 1)))
    for general in (None, "x_0", 1, [0]):
        for one in (launches, launches[0]):
            with pytest.raises(TypeError, match=r"general must be True, False or a list of names"):
                one.compile(general=general, **HOW)

"""Recordings on both sides of what a host function decides by sizes: a call goes its own way."""

from __future__ import annotations

import struct
from types import ModuleType
from typing import Any

import pytest
from cuda_device import FakeCuda
from host_memory import allocating
from triton_launcher import tensor

import ferrule as fe
from ferrule.frontends import triton as frontend

pytestmark = [pytest.mark.needs_cc, pytest.mark.needs_torch]

HOW: Any = {"target": "sm_90a", "specialize": [{}]}
RECORDED = [(3, 40), (6, 64), (4, 128), (9, 200)]
CALLED = [(5, 50), (3, 64), (5, 100), (5, 101), (7, 150), (1, 40), (9, 128), (12, 300), (2, 30)]


@pytest.fixture
def hosts() -> ModuleType:
    """Kernels."""
    pytest.importorskip("torch")
    return pytest.importorskip("emulated_recordings")


def compiled(host: Any, shapes: Any, *more: Any, **how: Any) -> fe.Function:
    import torch

    recordings = []
    for at, shape in enumerate(shapes):
        with frontend.recording() as launches:
            launches.call(host, torch.zeros(shape), *(each[at] for each in more))
        recordings.append(launches)
    return recordings[0].compile(*recordings[1:], **HOW, **how)


def done(gpu: FakeCuda, function: Any, *given: Any) -> Any:
    """The kernels of a call, with grids; None if it is refused."""
    gpu.clear()
    with allocating():
        try:
            function(*given)
        except (ValueError, TypeError):  # the latter of several functions
            return None
        return [(each.kernel, each.grid[:2]) for each in gpu.launches()]


@pytest.mark.parametrize(("general", "wanted"), [(False, 8), (True, 12), (["x_0"], 9)])
def test_a_sum_is_split_where_rows_are_long(
    gpu: FakeCuda, hosts: ModuleType, general: Any, wanted: int
) -> None:
    import torch

    def host(x: Any) -> Any:
        rows, columns = x.shape
        out = torch.empty(rows)
        if columns > 100:
            part = torch.empty(4, rows)
            hosts.scaled[(rows, 4)](x, part, x, x, columns, 9, 0.5, BLOCK=64)
            hosts.squares[(rows,)](part, out, part.stride(0), 4, BLOCK=64)
        else:
            hosts.squares[(rows,)](x, out, x.stride(0), columns, BLOCK=128)
        return out

    function, taken = compiled(host, RECORDED, general=general), 0
    for rows, columns in (*RECORDED, *CALLED):
        found = done(gpu, function, tensor(rows, columns)[0])
        split = [("scaled", (rows, 4))] if columns > 100 else []
        assert found in (None, [*split, ("squares", (rows, 1))])
        taken += found is not None
    assert taken == wanted


def test_the_sign_of_a_number_is_that_of_the_side(gpu: FakeCuda, hosts: ModuleType) -> None:
    def host(x: Any, p: float) -> None:
        hosts.scaled[(3,)](x, x, x, x, 7, 9, p if x.shape[1] > 100 else -p, BLOCK=128)

    function = compiled(host, RECORDED, [0.5, 1.5, 2.5, 3.5], general=True)
    for rows, columns in (*RECORDED, *CALLED[:7]):
        assert done(gpu, function, tensor(rows, columns)[0], 4.5)
        (told,) = struct.unpack("<f", gpu.launches()[0].parameters[6])
        assert told == (4.5 if columns > 100 else -4.5)


THREE = [(3, 40), (4, 50), (5, 40), (7, 50), (9, 40), (12, 60)]


@pytest.mark.parametrize("general", [False, True, ["x_0"]])
def test_three_sides(gpu: FakeCuda, hosts: ModuleType, general: Any) -> None:
    """Other launches on each: nothing is common to them but the host function."""

    def host(x: Any) -> None:
        rows, columns = x.shape
        count = 1 if rows <= 4 else 2 if rows <= 8 else 3
        for _ in range(count):
            hosts.scaled[(rows,)](x, x, x, x, columns, 9, 0.5, BLOCK=128)

    function = compiled(host, THREE, general=general)
    for rows, columns in (*THREE, (6, 45), (11, 55)):
        count = 1 if rows <= 4 else 2 if rows <= 8 else 3
        wanted = [("scaled", (rows, 1))] * count
        assert done(gpu, function, tensor(rows, columns)[0]) == wanted
    assert done(gpu, function, tensor(30, 45)[0]) == (
        [("scaled", (30, 1))] * 3 if general else None
    )
    with pytest.raises(
        fe.CompileError, match="BLOCK is 64 .*\\n.*\\n.*give two recordings of each"
    ):
        compiled(lambda x: sided(hosts, x), [(3, 40), (4, 50), (3, 200)])


def sided(hosts: ModuleType, x: Any) -> None:
    block = 64 if x.shape[1] <= 64 else 256
    hosts.scaled[(x.shape[0],)](x, x, x, x, x.stride(0), 9, 0.5, BLOCK=block)


def test_an_error_names_the_tensor_of_the_host_function(hosts: ModuleType) -> None:
    """Not the kernel's parameter alone, whose name a size has, and says where was decided."""

    def host(x: Any) -> None:
        rows, columns = x.shape
        more = 8 if columns % 4 == 0 else rows
        hosts.scaled[(3,)](x, x, x, x, more, columns, 0.5, BLOCK=128)

    function = compiled(host, [(4, 40), (8, 61)], general=True)
    text = r"they decide at test_sides.py:\d+ \(n is x.shape\[1\]\)"
    with pytest.raises(ValueError, match=text):
        function(tensor(9, 41)[0])


def test_one_recording_of_a_side_is_too_little(hosts: ModuleType) -> None:
    def host(x: Any) -> None:
        for _ in range(2 if x.shape[1] > 100 else 1):
            hosts.scaled[(x.shape[0],)](x, x, x, x, x.shape[1], 9, 0.5, BLOCK=128)

    with pytest.raises(fe.CompileError, match="go different ways at test_sides.py.*two recordings"):
        compiled(host, RECORDED[:3])


def test_a_float_does_not_choose(hosts: ModuleType) -> None:
    def host(x: Any, p: float) -> None:
        for _ in range(2 if p > 0 else 1):
            hosts.scaled[(x.shape[0],)](x, x, x, x, x.shape[1], 9, p, BLOCK=128)

    with pytest.raises(fe.CompileError, match="go different ways at test_sides.py"):
        compiled(host, RECORDED, [0.5, -1.5, 2.5, -3.5])

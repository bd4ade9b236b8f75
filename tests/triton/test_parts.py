"""Parts of tensors that begin behind the first element, as of packed queries, keys and values: a
launch gets the address that PyTorch gives in the call."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda, forged
from numpy.lib.stride_tricks import as_strided

from ferrule.compiler.errors import CompileError
from ferrule.frontends import triton as frontend

pytestmark = [pytest.mark.needs_cc, pytest.mark.needs_torch]

HOW: Any = {"target": "sm_90a", "specialize": [{}], "general": True}
Layout = tuple[int, int, int, int]
"""Rows, columns, the distance of rows, and the place of the first element."""
RECORDED: list[Layout] = [(4, 12, 12, 0), (9, 48, 48, 0)]
PADDED: list[Layout] = [(4, 12, 17, 2), (9, 48, 50, 3)]
CALLED: list[Layout] = [
    (5, 24, 24, 0), (6, 30, 30, 0), (7, 31, 31, 0), (1, 24, 24, 0), (1, 24, 99, 0), (2, 12, 12, 0),
    (5, 3, 3, 0), (5, 2, 2, 0), (0, 12, 12, 0), (5, 24, 31, 7), (4, 12, 13, 1), (5, 1, 1, 0),
]  # fmt: skip


@pytest.fixture
def hosts() -> ModuleType:
    """Kernels."""
    pytest.importorskip("torch")
    return pytest.importorskip("emulated_recordings")


def matrix(layout: Layout) -> Any:
    import torch

    rows, columns, step, first = layout
    return torch.as_strided(torch.zeros(9999), (rows, columns), (step, 1), first)


def width(x: Any) -> Any:
    return x.shape[-1] // 3


PARTS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "slices": lambda x: (x[:, width(x) : 2 * width(x)], x[..., 2 * width(x) :]),
    "chunk": lambda x: x.chunk(3, -1)[1:],
    "chunk of rows": lambda x: (x.chunk(2)[1], x.chunk(2, dim=0)[0]),
    "split": lambda x: x.split(width(x), dim=-1)[1:3],
    "split by sizes": lambda x: x.split([1, x.shape[1] - 1], 1),
    "narrow": lambda x: (x.narrow(-1, width(x), width(x)), x.narrow(1, 1, 1)),
    "unbind": lambda x: x.view(x.shape[0], 3, -1).unbind(1)[1:],
    "rows": lambda x: (x[1:], x[-1]),
    "columns": lambda x: (x.T[1:], x.mT.select(0, -1)),
    "steps": lambda x: (x[1::2, 2:], x[:, 1::3]),
    "of a view": lambda x: (x.view(x.shape[0], 3, -1)[:, 1], x.unsqueeze(0)[0, 1:, 1:]),
}  # fmt: skip


def compiled(hosts: ModuleType, parts: Callable[[Any], Any], layouts: list[Layout]) -> Any:
    def host(x: Any) -> None:
        one, other = parts(x)
        hosts.scaled[(3,)](one, other, x, x, 7, 9, 0.5, BLOCK=128)

    recordings = []
    for layout in layouts:
        with frontend.recording() as launches:
            launches.call(host, matrix(layout))
        recordings.append(launches)
    return recordings[0].compile(*recordings[1:], **HOW)


def told(gpu: FakeCuda, function: Any, layout: Layout) -> list[int] | None:
    """Where the two parts begin in the memory of a call, in elements; None if it is refused."""
    gpu.clear()
    rows, columns, step, first = layout
    memory = np.zeros(9999, np.float32)
    given = as_strided(memory[first:], (rows, columns), (4 * step, 4))
    try:
        function(forged(given))
    except ValueError:
        return None
    (launch,) = gpu.launches()
    at = (int.from_bytes(each, "little") for each in launch.parameters[:2])
    return [(each - memory.ctypes.data) // 4 for each in at]


def wanted(parts: Callable[[Any], Any], layout: Layout) -> list[int] | None:
    """The same of the host function; None where it raises."""
    try:
        return [each.storage_offset() for each in parts(matrix(layout))]
    except (RuntimeError, IndexError, ValueError):
        return None


@pytest.mark.parametrize("layouts", [RECORDED, PADDED], ids=["compact", "padded"])
@pytest.mark.parametrize("name", PARTS)
def test_a_part_begins_where_it_does_in_the_call(
    gpu: FakeCuda, hosts: ModuleType, name: str, layouts: list[Layout]
) -> None:
    parts = PARTS[name]
    function = compiled(hosts, parts, layouts)
    taken = CALLED[0] if layouts is RECORDED else (5, 24, 31, 7)
    for layout in (*layouts, taken):
        assert told(gpu, function, layout) == wanted(parts, layout) is not None
    for layout in CALLED:
        assert told(gpu, function, layout) in (None, wanted(parts, layout)), layout


def test_temporaries_have_parts(gpu: FakeCuda, hosts: ModuleType) -> None:
    import torch
    from host_memory import allocating

    def host(x: Any) -> None:
        room = torch.empty(3, x.shape[0], x.shape[1])
        hosts.scaled[(3,)](room[1], room[2, 1:], x, room[0], 7, 9, 0.5, BLOCK=128)

    recordings = []
    for layout in RECORDED:
        with frontend.recording() as launches:
            launches.call(host, matrix(layout))
        recordings.append(launches)
    function = recordings[0].compile(*recordings[1:], **HOW)
    with allocating() as memory:
        gpu.clear()
        function(forged(np.zeros((5, 24), np.float32)))
        (launch,) = gpu.launches()
        one, other, _, first = (int.from_bytes(each, "little") for each in launch.parameters[:4])
        assert (one - first, other - first) == (4 * 120, 4 * (240 + 24))
        assert memory.sizes == [4 * 360]


def test_what_follows_from_no_size_is_refused(hosts: ModuleType) -> None:
    with pytest.raises(CompileError, match=r"x is a part of x that begins at element 12, which"):
        compiled(hosts, lambda x: (x.as_strided((3,), (1,), 12), x), RECORDED)


def test_a_copy_of_a_view_by_a_number_is_followed(gpu: FakeCuda, hosts: ModuleType) -> None:
    import torch

    def host(x: Any, heads: int) -> None:
        y = x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)
        y.contiguous()  # which says what y's strides are compared with
        hosts.scaled[(x.shape[0] * heads,)](x, x, x, x, y.stride(0), y.stride(1), 0.5, BLOCK=128)

    recordings = []
    for shape, heads in (((2, 3, 6), 2), ((5, 7, 36), 3), ((4, 6, 60), 5)):
        with frontend.recording() as launches:
            launches.call(host, torch.zeros(shape), heads)
        recordings.append(launches)
    function = recordings[0].compile(*recordings[1:], target="sm_90a", specialize=[{}])
    gpu.clear()
    function(forged(np.zeros((5, 7, 36), np.float32)), 3)
    (launch,) = gpu.launches()
    assert launch.grid == (15, 1, 1)
    strides = [int.from_bytes(each, "little") for each in launch.parameters[4:6]]
    assert strides == [7 * 36, 12]


EDGES: dict[str, Callable[[Any, int], Any]] = {
    "nothing at the beginning": lambda x, m: x[: m % 4],
    "nothing at the end": lambda x, m: x[m // 4 * 4 :],
    "a rest": lambda x, m: x[m - m % 4 :],
    "nothing inside": lambda x, m: x[m // 2 : m // 2 + m % 4],
    "from both ends": lambda x, m: x[m // 2 : -(m // 2)],
    "one of them": lambda x, m: x[m % 4][None],
    "selected": lambda x, m: x.select(0, m % 4)[None],
    "with a new dim": lambda x, m: x[None, m % 4 :][0],
}  # fmt: skip


@pytest.mark.parametrize("how", [{}, {"general": True}], ids=["recorded", "general"])
@pytest.mark.parametrize("name", EDGES)
def test_what_was_0_in_all_recordings_may_be_more(
    gpu: FakeCuda, hosts: ModuleType, name: str, how: dict[str, bool]
) -> None:
    import torch

    def host(x: Any) -> None:
        part = EDGES[name](x, x.shape[0])
        # Of 1 Triton makes a constant.
        hosts.scaled[(3,)](part, x, x, x, part.shape[0] + 5, 9, 0.5, BLOCK=128)

    recordings = []
    for size in (8, 12, 20):
        with frontend.recording() as launches:
            launches.call(host, torch.zeros(size))
        recordings.append(launches)
    function = recordings[0].compile(*recordings[1:], target="sm_90a", specialize=[{}], **how)
    for size in (8, 12, 20, 9, 10, 11, 13, 15, 19):
        memory, part = np.zeros(99, np.float32), EDGES[name](torch.zeros(size), size)
        gpu.clear()
        try:
            function(forged(memory[:size]))
        except ValueError:
            assert size not in (8, 12, 20)
            continue
        (launch,) = gpu.launches()
        first, count = (int.from_bytes(launch.parameters[at], "little") for at in (0, 4))
        at = (first - memory.ctypes.data) // 4
        assert (at, count - 5) == (part.storage_offset(), part.shape[0]), size


def test_a_size_of_a_view_that_was_1_in_all_recordings(gpu: FakeCuda, hosts: ModuleType) -> None:
    import torch

    def host(x: Any, k: int) -> None:
        y = x.view(x.numel() - k, -1)
        hosts.scaled[(3,)](y, y, y, y, y.shape[1], y.stride(0), 0.5, BLOCK=128)

    recordings = []
    for shape, k in (((1, 6), 5), ((5, 2), 9)):
        with frontend.recording() as launches:
            launches.call(host, torch.zeros(shape), k)
        recordings.append(launches)
    function = recordings[0].compile(*recordings[1:], **HOW)
    for shape, k in (((1, 6), 5), ((5, 2), 9), ((7, 2), 7), ((4, 2), 4)):
        gpu.clear()
        try:
            function(forged(np.zeros(shape, np.float32)), k)
        except ValueError:
            assert shape not in ((1, 6), (5, 2))
            continue
        (launch,) = gpu.launches()
        wanted = torch.zeros(shape).view(shape[0] * shape[1] - k, -1).shape[1]
        found = [int.from_bytes(each, "little") for each in launch.parameters[4:6]]
        assert found == [wanted, wanted]

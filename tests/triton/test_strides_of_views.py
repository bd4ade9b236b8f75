"""Strides of views and copies that a kernel is told are those that PyTorch would give in the call.

PyTorch computes the strides of a view anew, also in dims of size 1 and of what is empty, and some
functions make a copy only where a view is none.  A call is told the stride of its own, or refused.
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
Layout = tuple[tuple[int, ...], tuple[int, ...]]
FIRST = 1000
"""What is added to a stride, so that none is a 1, which Triton would compile in."""


@pytest.fixture
def hosts() -> ModuleType:
    """Kernels."""
    pytest.importorskip("torch")
    return pytest.importorskip("emulated_recordings")


def given(layout: Layout) -> Any:
    import torch

    return torch.as_strided(torch.zeros(9999), *layout)


def heads(x: Any) -> Any:
    return x.view(x.shape[0], x.shape[1], 2, 4)


def like(x: Any) -> Any:
    import torch

    return torch.empty_like(x)


HEADS: list[Layout] = [((3, 5, 8), (60, 12, 1)), ((11, 17, 8), (204, 12, 1))]
HEADS_CALLED: list[Layout] = [
    ((4, 6, 8), (72, 12, 1)),
    ((4, 1, 8), (12, 12, 1)),
    ((1, 6, 8), (72, 12, 1)),
    ((0, 6, 8), (72, 12, 1)),
    ((1, 1, 8), (12, 12, 1)),
]
ROWS: list[Layout] = [((3, 8), (8, 1)), ((11, 8), (8, 1))]
ROWS_CALLED: list[Layout] = [((5, 8), (8, 1)), ((0, 8), (12, 1)), ((1, 8), (12, 1))]
PADDED: list[Layout] = [((3, 8), (12, 1)), ((11, 8), (12, 1))]
PADDED_CALLED: list[Layout] = [((5, 8), (12, 1)), ((0, 8), (12, 1)), ((0, 8), (1, 5))]
PADDED_LIKE: list[Layout] = [
    ((5, 8), (12, 1)), ((1, 8), (12, 1)), ((0, 8), (12, 1)), ((5, 8), (1, 12)), ((5, 8), (8, 1)),
    ((5, 8), (4, 1)), ((5, 8), (0, 1)),
]  # fmt: skip
THICK: list[Layout] = [((3, 4, 8), (48, 12, 1)), ((7, 9, 8), (108, 12, 1))]
THICK_CALLED: list[Layout] = [
    ((4, 6, 8), (72, 12, 1)), ((1, 6, 8), (72, 12, 1)), ((4, 1, 8), (12, 12, 1)),
    ((4, 6, 8), (48, 8, 1)), ((4, 6, 8), (12, 48, 1)), ((1, 1, 8), (12, 12, 1)),
    ((0, 6, 8), (72, 12, 1)), ((4, 6, 8), (100, 12, 1)), ((1, 6, 8), (8, 12, 1)),
]  # fmt: skip
LAST: list[Layout] = [
    ((3, 3, 4), (12, 1, 3)),
    ((13, 11, 4), (44, 1, 11)),
    ((23, 19, 4), (4, 92, 1)),
]
LAST_CALLED: list[Layout] = [
    ((5, 7, 4), (28, 1, 7)),
    ((6, 3, 4), (20, 4, 1)),
    ((6, 8, 4), (44, 4, 1)),
]
TURNED: list[Layout] = [((3, 5, 8), (40, 8, 1)), ((11, 7, 8), (56, 8, 1))]
TURNED_CALLED: list[Layout] = [((4, 6, 8), (48, 8, 1)), ((1, 6, 8), (48, 8, 1))]
CASES: dict[str, tuple[Callable[[Any], int], list[Layout], list[Layout]]] = {
    "view": (lambda x: heads(x).stride(1), HEADS, HEADS_CALLED),
    "view, first dim": (lambda x: heads(x).stride(0), HEADS, HEADS_CALLED),
    "unflatten": (lambda x: x.unflatten(-1, (2, 4)).stride(1), HEADS, HEADS_CALLED),
    "reshape": (
        lambda x: x.reshape(x.shape[0], x.shape[1], 2, 4).stride(1),
        HEADS,
        HEADS_CALLED,
    ),
    "a turned view": (lambda x: heads(x).transpose(1, 2).stride(2), HEADS, HEADS_CALLED),
    "a part of a view": (lambda x: heads(x)[:, :, 0].stride(1), HEADS, HEADS_CALLED),
    "a size again": (
        lambda x: x.view(x.shape[0], 2, 2).stride(0),
        [((3, 4), (8, 1)), ((4, 4), (8, 1)), ((5, 4), (8, 1))],
        [((4, 4), (8, 1)), ((2, 4), (8, 1)), ((1, 4), (8, 1))],
    ),
    "the same shape": (lambda x: x.view(x.shape).stride(0), ROWS, ROWS_CALLED),
    "rows": (lambda x: x.view(-1, x.shape[-1]).stride(0), ROWS, ROWS_CALLED),
    "contiguous": (lambda x: x.contiguous().stride(0), PADDED, PADDED_CALLED),
    "contiguous, last dim": (lambda x: x.contiguous().stride(1), PADDED, PADDED_CALLED),
    "flatten": (lambda x: x.flatten(-2).stride(0), LAST, LAST_CALLED),
    "reshape of turned": (
        lambda x: x.mT.reshape(-1, x.shape[1]).stride(0),
        TURNED,
        TURNED_CALLED,
    ),
    "flatten is no view": (
        lambda x: 1 if x.flatten(-2).is_contiguous() else 2,
        LAST,
        LAST_CALLED,
    ),
    "ravel": (lambda x: x[:, 0].ravel().stride(0), PADDED, [*PADDED_CALLED, ((1, 8), (12, 1))]),
    "like, padded": (lambda x: like(x).stride(0), PADDED, PADDED_LIKE),
    "like, of padded rows": (lambda x: like(x.view(-1, 8)).stride(0), THICK, THICK_CALLED[:4]),
    "like, three dims": (
        lambda x: like(x).stride(0) + 1000 * like(x).stride(1),
        THICK,
        THICK_CALLED,
    ),
    "chunk": (
        lambda x: x.chunk(2, -1)[0].stride(0),
        [((1, 8), (8, 1)), ((3, 8), (8, 1))],
        [((1, 8), (8, 1)), ((1, 8), (12, 1))],
    ),
}


def compiled(hosts: ModuleType, number: Callable[[Any], int], several: Any, **how: Any) -> Any:
    def host(x: Any) -> None:
        hosts.scaled[(3,)](x, x, x, x, number(x) + FIRST, 77, 0.5, BLOCK=128)

    recordings = []
    for layout in several:
        with frontend.recording() as launches:
            launches.call(host, given(layout))
        recordings.append(launches)
    one, *more = recordings
    return one.compile(*more, **HOW, **how)


def told(gpu: FakeCuda, function: Any, layout: Layout) -> int | None:
    """The number that a call hands over, less what was added; None if it is refused."""
    gpu.clear()
    shape, strides = layout
    memory = np.zeros(9999, np.float32)
    try:
        function(forged(as_strided(memory, shape, [4 * step for step in strides])))
    except ValueError:
        return None
    (launch,) = gpu.launches()
    return int.from_bytes(launch.parameters[4], "little", signed=True) - FIRST


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_a_stride_of_a_view_is_that_of_the_call(
    gpu: FakeCuda, hosts: ModuleType, name: str, general: bool
) -> None:
    number, several, calls = CASES[name]
    function = compiled(hosts, number, several, general=general)
    assert told(gpu, function, calls[0]) == number(given(calls[0]))
    for layout in (*several, *calls):
        assert told(gpu, function, layout) in (None, number(given(layout)))
    assert all(told(gpu, function, layout) is not None for layout in several)


def test_a_batch_of_1_joins_its_rows(gpu: FakeCuda, hosts: ModuleType) -> None:
    """What is so with one row and with several is refused in neither."""
    function = compiled(hosts, lambda x: heads(x).stride(1), HEADS, general=True)
    assert told(gpu, function, ((1, 6, 8), (72, 12, 1))) == 12


def test_a_recording_of_what_is_empty_lets_it_in(gpu: FakeCuda, hosts: ModuleType) -> None:
    empty: Layout = ((0, 8), (8, 1))
    number = CASES["the same shape"][0]
    assert told(gpu, compiled(hosts, number, ROWS, general=True), empty) is None
    function = compiled(hosts, number, [empty, *ROWS])
    assert told(gpu, function, empty) == 8
    assert told(gpu, function, ROWS_CALLED[0]) == 8
    assert told(gpu, function, ((0, 8), (12, 1))) in (None, 12)


def test_what_reads_no_stride_takes_sizes_of_1(gpu: FakeCuda, hosts: ModuleType) -> None:
    function = compiled(hosts, lambda x: heads(x).shape[1], HEADS, general=True)
    for layout in HEADS_CALLED:
        assert told(gpu, function, layout) == layout[0][1]


@pytest.mark.parametrize("shape", [(4, 2, 2), (4, 2, 2, 1), (1, 4, 4), (4, 1, 2, 2), (2, 8), (16,)])
@pytest.mark.parametrize("strides", [(8, 1), (4, 1), (1, 4), (5, 2), (4, 0)])
def test_strides_are_those_of_torch(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    pytest.importorskip("torch")
    from ferrule.frontends.triton.recorded.forms import Form, form_of_made

    form = Form((4, 4), strides)
    found = form_of_made("reshape", lambda _: form, (None, shape), {})
    assert found is not None and found.strides == given(((4, 4), strides)).reshape(shape).stride()

"""Functions of PyTorch that give their tensor back, or a view of it, where it is contiguous.

A recording is not bound by them to its sizes; a call whose tensor is not contiguous, of which the
host function would make a copy, is refused.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda, forged
from numpy.lib.stride_tricks import as_strided

from ferrule.frontends import triton as frontend

pytestmark = [pytest.mark.needs_cc, pytest.mark.needs_torch]

HOW: Any = {"target": "sm_90a", "specialize": [{}], "general": True}


@pytest.fixture
def hosts() -> ModuleType:
    """Kernels."""
    pytest.importorskip("torch")
    return pytest.importorskip("emulated_recordings")


def zeros(*shape: int) -> Any:
    import torch

    return torch.zeros(shape)


def guarded(host: Callable[..., Any]) -> Callable[..., Any]:
    """As libraries guard their host functions: each tensor is made contiguous."""

    @functools.wraps(host)
    def function(*args: Any, **kwargs: Any) -> Any:
        return host(*(each.contiguous() for each in args), **kwargs)

    return function


def of_rest(host: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        return host(*(each.contiguous().float() for each in args))

    return function


GIVEN_BACK: dict[str, Callable[[Any], Any]] = {
    "contiguous": lambda x: x.contiguous(),
    "float": lambda x: x.float(),
    "to a dtype": lambda x: x.to(x.dtype),
    "to a dtype by name": lambda x: x.to(dtype=x.dtype),
    "to a tensor": lambda x: x.to(x),
    "type": lambda x: x.type(x.dtype),
    "type_as": lambda x: x.type_as(x),
    "reshape": lambda x: x.reshape(x.shape),
    "reshape of -1": lambda x: x.reshape(-1, x.shape[-1]),
    "view": lambda x: x.view(x.shape[0], -1),
    "flatten of one": lambda x: x.flatten(0, 0),
    "flatten": lambda x: x.flatten().view(x.shape),
    "ravel": lambda x: x.ravel().view(x.shape),
    "several": lambda x: x.float().contiguous().reshape(x.shape).to(x.dtype),
}


def scaled(hosts: ModuleType, change: Callable[[Any], Any]) -> Callable[[Any], None]:
    def host(x: Any) -> None:
        rows, columns = x.shape
        y = change(x)
        hosts.scaled[(rows,)](y, y, y, y, y.stride(0), columns, 0.5, BLOCK=128)

    return host


def compiled(host: Callable[[Any], Any], *several: Any) -> Any:
    recordings = []
    for x in several:
        with frontend.recording() as launches:
            launches.call(host, x)
        recordings.append(launches)
    one, *more = recordings
    return one.compile(*more, **HOW)


def takes(gpu: FakeCuda, function: Any, x: Any) -> list[int] | None:
    """The grid, the stride of a row, and its length, which a call hands over; None without one."""
    gpu.clear()
    memory = np.zeros(x.untyped_storage().nbytes() // 4 + 1, np.float32)
    given = as_strided(memory, tuple(x.shape), [4 * step for step in x.stride()])
    try:
        function(forged(given))
    except ValueError:
        return None
    (launch,) = gpu.launches()
    numbers = [int.from_bytes(each, "little", signed=True) for each in launch.parameters[4:-3]]
    return [launch.grid[0], *numbers]


@pytest.mark.parametrize("name", GIVEN_BACK)
def test_no_size_is_the_recorded_one(gpu: FakeCuda, hosts: ModuleType, name: str) -> None:
    host = scaled(hosts, GIVEN_BACK[name])
    function = compiled(host, zeros(3, 40), zeros(5, 70), zeros(7, 60))
    for rows, columns in ((2, 50), (9, 33), (1, 40), (100, 128)):
        assert takes(gpu, function, zeros(rows, columns)) == [rows, columns, columns]


@pytest.mark.parametrize("name", GIVEN_BACK)
def test_of_what_is_not_contiguous_a_copy_would_be_made(
    gpu: FakeCuda, hosts: ModuleType, name: str
) -> None:
    """One row is contiguous with any stride, and the recording has its stride; others are not."""
    host = scaled(hosts, GIVEN_BACK[name])
    function = compiled(host, zeros(9, 40)[::9], zeros(5, 70), zeros(7, 60))
    for x in (
        zeros(5, 90)[:, :50],
        zeros(3, 45)[:, 1:41],
        zeros(9, 40)[::3],
        zeros(2, 90)[:1, :50],
    ):
        found, wanted = takes(gpu, function, x), GIVEN_BACK[name](x)
        shares = wanted.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        if found is not None:
            assert shares and found == [x.shape[0], wanted.stride(0), x.shape[1]]


@pytest.mark.parametrize("guard", [guarded, of_rest])
def test_guarded_arguments(gpu: FakeCuda, hosts: ModuleType, guard: Callable[..., Any]) -> None:
    host = guard(scaled(hosts, lambda x: x))
    function = compiled(host, zeros(3, 40), zeros(5, 70), zeros(7, 60))
    for rows, columns in ((2, 50), (9, 33), (1, 40)):
        assert takes(gpu, function, zeros(rows, columns)) == [rows, columns, columns]
    assert takes(gpu, function, zeros(5, 90)[:, :50]) is None


def test_new_tensors_like_one_have_its_strides(
    gpu: FakeCuda, hosts: ModuleType, allocator: None
) -> None:
    """Also where a size is 1: PyTorch keeps the strides of what is dense."""
    import torch

    host = scaled(hosts, torch.empty_like)
    function = compiled(host, zeros(3, 40), zeros(5, 70), zeros(7, 60))
    for x in (zeros(4, 50), zeros(1, 50), zeros(1, 6, 40)[:, -1], zeros(50, 1).t()):
        found = takes(gpu, function, x)
        assert found in (None, [x.shape[0], torch.empty_like(x).stride(0), x.shape[1]])

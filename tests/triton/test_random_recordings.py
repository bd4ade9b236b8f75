"""Random host functions: calls of their recordings launch what the host functions do."""

from __future__ import annotations

import pytest
from cuda_device import FakeCuda

pytestmark = [pytest.mark.needs_cc, pytest.mark.needs_torch]

FOUND = {
    "source": "def host(x, w, k, p):\n"
    "    n0 = x.shape[0]\n"
    "    n1 = max(k, 8) if (3 if n0 > 3 else n0) == 2 else x.shape[0]\n"
    "    y = torch.empty((x.flatten()[None].shape[-1], 2 * x.flatten()[None].shape[0]))\n"
    "    kernels.moved[(w.numel(),)](x, y, min(n0, 16), w.stride(-1), x.stride(0), p, BLOCK=16)\n",
    "recorded": [
        ["torch.zeros(1, 4)", "torch.zeros(4)", "7", "2.0"],
        ["torch.zeros(1, 16)", "torch.zeros(32)[::2]", "1", "0.0"],
        ["torch.zeros(4, 3)", "torch.zeros(6)[::2]", "7", "2.0"],
    ],
    "called": [["torch.zeros(1, 4)", "torch.zeros(4)", "7", "2.0"]] * 3
    + [["torch.zeros(1, 1).expand(16, 1)", "torch.zeros(1)", "7", "2.0"]],
}
"""A host function that is told a stride, which a call may have in a dim of size 1."""


def test_a_stride_in_a_dim_of_size_1(gpu: FakeCuda) -> None:
    pytest.importorskip("torch")
    from fuzz import recordings

    assert recordings.replay(FOUND) is None


@pytest.mark.parametrize("seed", range(70, 80))
def test_calls_launch_what_the_host_function_does(gpu: FakeCuda, seed: int) -> None:
    pytest.importorskip("torch")
    from fuzz import recordings

    for found in recordings.run(seed):
        assert isinstance(found, int), found.problem


def test_an_error_of_a_grid_is_that_of_the_launch(gpu: FakeCuda) -> None:
    """As Triton's launch, which asks the grid, the recording raises it."""
    import torch
    from random_host_kernels import moved

    from ferrule.frontends import triton as frontend

    def host(x: object) -> None:
        moved[lambda meta: (7 // meta["n"],)](x, x, 1, 1, 0, 0.5, BLOCK=16)

    with frontend.recording() as launches, pytest.raises(ZeroDivisionError):
        launches.call(host, torch.zeros(3))


def test_another_number_is_found(gpu: FakeCuda) -> None:
    """Of a host function that does something else when it is called for the third time."""
    pytest.importorskip("torch")
    from fuzz import recordings

    given = ["torch.zeros(3, 4)", "torch.zeros(4)", "2", "0.5"]
    case = {
        "source": "seen = []\n"
        "def host(x, w, k, p):\n"
        "    seen.append(1)\n"
        "    number = 2 if len(seen) < 3 else 3\n"
        "    kernels.moved[(x.shape[0],)](x, w, x.stride(0), number, k, p, BLOCK=16)\n",
        "recorded": [given, given],
        "called": [given],
    }
    problem = recordings.replay(case)
    assert problem is not None and "the numbers are [4, 2, 2] instead of [4, 3, 2]" in problem

"""Random host functions: calls of their recordings launch what the host functions do."""

from __future__ import annotations

import pytest
from cuda_device import FakeCuda

pytestmark = [pytest.mark.needs_cc, pytest.mark.needs_torch]

FOUND = 1
"""A seed whose host function is told a stride that a call has in a dim of size 1."""


@pytest.mark.parametrize("seed", [FOUND, *range(70, 82)])
def test_calls_launch_what_the_host_function_does(gpu: FakeCuda, seed: int) -> None:
    pytest.importorskip("torch")
    from fuzz import recordings

    for found in recordings.run(seed):
        assert isinstance(found, int), found.problem


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

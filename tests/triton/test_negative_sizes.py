"""A number that is no size in another call, as -1, is a condition of the call."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from cuda_device import FakeCuda
from triton_launcher import tensor

from ferrule.frontends import triton as frontend

pytestmark = [pytest.mark.needs_cc, pytest.mark.needs_torch]

ENDS = [(6, 20), (9, 35)]
SHAPES = [*ENDS, (4, 60), (3, 7), (0, 60), (3, 0), (1, 60), (0, 0)]
NUMBERS = (-6, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 9, 20)


def empty(*sizes: Any) -> Any:
    import torch

    return torch.empty(*sizes)


OF: dict[str, tuple[Callable[[Any, int], int], tuple[int, int]]] = {
    "expand": (lambda x, d: x[:1].expand(d, -1).shape[0], (4, 5)),
    "expand by a size": (lambda x, d: x[:, :1].expand(-1, d).shape[1], (4, 5)),
    "view": (lambda x, d: x.view(-1, d).shape[0], (4, 5)),
    "view by a size": (lambda x, d: x.view(-1, x.shape[1]).shape[0], (4, 5)),
    "view of two": (lambda x, d: x.view(d, x.numel() // d).shape[0], (4, 5)),
    "reshape": (lambda x, d: x.reshape(d, -1).shape[1], (3, 5)),
    "unflatten": (lambda x, d: x.unflatten(1, (d, -1)).shape[2], (4, 5)),
    "narrow": (lambda x, d: x.narrow(0, 1, d).shape[0], (4, 5)),
    "slice": (lambda x, d: x[:, :d].shape[1], (4, 5)),
    "unsqueeze": (lambda x, d: x.unsqueeze(d).shape[0], (1, 2)),
    "empty": (lambda x, d: empty(d, 3).shape[0], (4, 5)),
    "new_empty": (lambda x, d: x.new_empty((3, d)).shape[1], (4, 5)),
    "as_strided": (lambda x, d: x.as_strided((d, 2), (1, 1)).shape[0], (4, 5)),
}


@pytest.mark.parametrize("name", OF)
def test_a_call_is_what_pytorch_makes_of_it_or_is_refused(gpu: FakeCuda, name: str) -> None:
    import torch

    hosts: ModuleType = pytest.importorskip("emulated_recordings")
    of, ends = OF[name]

    def host(x: Any, d: int) -> None:
        hosts.squares[(1,)](x, x, of(x, d), 40, BLOCK=64)

    recordings = []
    for shape, number in zip(ENDS, ends, strict=True):
        with frontend.recording() as launches:
            launches.call(host, torch.zeros(shape), number)
        recordings.append(launches)
    one, other = recordings
    function = one.compile(other, target="sm_90a", specialize=[{}], general=True)
    taken = []
    for shape in SHAPES:
        for d in NUMBERS:
            gpu.clear()
            try:
                function(tensor(*shape)[0], d)
            except ValueError:
                continue
            taken.append((shape, d))
            number = int.from_bytes(gpu.launches()[0].parameters[2], "little")
            assert number == of(torch.zeros(shape), d), (shape, d)
    assert {*zip(ENDS, ends, strict=True)} <= {*taken}

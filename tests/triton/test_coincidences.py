"""Numbers that are 0, 1, or equal in all recordings by chance: a call in which they are not is what
the host function does, or it is refused."""

from __future__ import annotations

from typing import Any

import pytest
from cuda_device import FakeCuda

pytestmark = [pytest.mark.needs_cc, pytest.mark.needs_torch]

LAUNCH = "    kernels.moved[(3,)]({x}, {y}, {numbers}, 0.5, BLOCK=16)\n"


def launch(x: str = "x", y: str = "x", numbers: str = "7, 8, 9") -> str:
    return LAUNCH.format(x=x, y=y, numbers=numbers)


HOSTS: dict[str, str] = {
    "a result that is a part": "    y = torch.empty(m, 3)\n" + launch(y="y")
    + "    return y[:q],\n",
    "a result that is turned": "    y = torch.empty(r + 1, r + 1)\n" + launch(y="y")
    + "    return y.t(),\n",
    "a result with columns left out": "    y = torch.empty(m, m)\n" + launch(y="y")
    + "    return y[:, :q],\n",
    "a result that begins later": "    y = torch.empty(m, 3)\n" + launch(y="y")
    + "    return y[r:],\n",
    "a part of the caller's is filled": "    x[:q].zero_()\n" + launch(),
    "a part of a filled one is filled": "    y = torch.ones(m)\n    y[:q].fill_(p)\n"
    + launch(y="y"),
    "all of it is filled": "    y = torch.ones(m, 3)\n    y.t().zero_()\n" + launch(y="y"),
    "memory like a part": "    y = torch.empty_like(x[r:])\n" + launch(y="y"),
    "where it begins": "    y = torch.empty(m)[r:]\n"
    + launch(y="y", numbers="7, 8, 8 if y.storage_offset() else 9"),
    "a part as another dtype": "    y = x.flatten().narrow(0, r, 4).view(torch.int16)\n"
    + launch(y="y"),
    "as another dtype of this size": "    y = x[r:].view(torch.int32)\n"
    + launch(y="y", numbers="7, 8, y.shape[0] + 9"),
    "a list": launch(numbers="7, 8, 9 + len(torch.zeros(r).tolist())"),
    "no rows": launch() + "    for row in x[:r]:\n    " + launch("row"),
    "no parts": launch() + "    for row in x[:r].unbind():\n    " + launch("row"),
    "parts of nothing": launch() + "    for part in x[:r].split(1):\n    "
    + launch("part", numbers="7, 8, part.shape[0]"),
    "parts of chosen sizes": launch() + "    for part in x.split([q, r]):\n    "
    + launch("part", numbers="7, 8, part.shape[0]"),
    "all dims turned": "    y = torch.empty(r + 2, 3, r + 2).T\n"
    + launch(y="y", numbers="y.shape[0], y.stride(0), y.stride(1)"),
    "as many elements": launch(numbers="7, 8, 8 if x.is_same_size(x[:q]) else 9"),
    "an order of dims": "    y = torch.empty(2, r + 1, r + 1, 1)\n"
    + launch(numbers="7, 8, 8 if y.is_contiguous(memory_format=torch.channels_last) else 9"),
    "a sum of nothing": "    y = torch.empty(r, 1) + torch.empty(r, 1)\n"
    + launch(numbers="7, 8, y.stride(0)"),
    "as wide as it is": "    y = x.view(x.shape).reshape(x.shape)\n"
    + launch(y="y", numbers="7, y.stride(0), y.shape[1]"),
}  # fmt: skip
"""Host functions of `m` rows, a multiple of 4 in all recordings: `r` is 0 and `q` is `m`."""


def case(lines: str) -> dict[str, Any]:
    def given(m: int) -> list[str]:
        return [f"torch.zeros({m}, 3)", "torch.zeros(3)", "2", "0.5"]

    head = "def host(x, w, k, p):\n    m = x.shape[0]\n    q, r = m // 4 * 4, m % 4\n"
    recorded = [given(m) for m in (8, 12, 20)]
    called = [*recorded, *(given(m) for m in (9, 10, 11, 13, 16, 19))]
    return {"source": head + lines, "recorded": recorded, "called": called}


@pytest.mark.parametrize("name", HOSTS)
def test_a_call_without_the_coincidence(gpu: FakeCuda, name: str) -> None:
    pytest.importorskip("torch")
    from fuzz import recordings

    counted, problem = recordings.outcome(case(HOSTS[name]))
    assert problem is None
    assert counted == 2 * 9  # both functions were compiled


TUPLES = {
    "a tuple": "(x.shape[0] % 4, 2)",
    "a list": "[x.shape[0] % 4, 2]",
    "a constant": "tl.constexpr(x.shape[0] % 4)",
}


@pytest.mark.parametrize("name", TUPLES)
def test_numbers_in_what_is_compiled_in(gpu: FakeCuda, name: str) -> None:
    torch = pytest.importorskip("torch")
    import triton.language as tl
    from cuda_device import forged
    from emulated_recordings import told

    from ferrule.frontends import triton as frontend

    def host(x: Any) -> None:
        told[(1,)](x, eval(TUPLES[name], {"x": x, "tl": tl}))

    recordings = []
    for rows in (8, 12):
        with frontend.recording() as launches:
            launches.call(host, torch.zeros(rows))
        recordings.append(launches)
    function = recordings[0].compile(recordings[1], target="sm_90a", specialize=[{}])
    assert function(forged(torch.zeros(8).numpy())) is None
    with pytest.raises(ValueError, match=r"x_0 % 4 == 0, but got x_0 = 9"):
        function(forged(torch.zeros(9).numpy()))

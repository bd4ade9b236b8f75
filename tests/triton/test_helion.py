"""Helion's kernels come through the same door: its host code launches into a recorder."""

from __future__ import annotations

from typing import Any

import pytest
from cuda_device import FakeCuda
from triton_launcher import tensor

from ferrule.frontends import triton as frontend

pytestmark = [pytest.mark.needs_cc, pytest.mark.needs_torch]


class Device:
    """What Triton asks of a driver while Helion generates code."""

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cpu")


@pytest.fixture
def recorded() -> frontend.RecordedLaunch:
    """The launch that Helion makes for vectors of 1000 elements."""
    pytest.importorskip("helion", reason="Helion is not installed")
    import torch
    from helion_kernels import CONFIG, doubled
    from triton.runtime import driver

    before = driver._active
    driver.set_active(Device())
    record = frontend.Recorder()
    try:
        x, y = torch.zeros(1000), torch.zeros(1000)
        doubled.bind((x, y)).compile_config(CONFIG)(x, y, _launcher=record)
    finally:
        driver.set_active(before)
    (launch,) = record.launches
    return launch


def test_a_kernel_of_helion(gpu: FakeCuda, recorded: frontend.RecordedLaunch) -> None:
    function = recorded.compile(target=["sm_80", "sm_90a"], name="doubled")
    assert [param.name for param in function.signature.params] == ["x", "y", "out"]
    pairs = [tensor(1000) for _ in range(3)]
    function(*(each for each, _ in pairs))
    (launch,) = gpu.launches()
    assert (launch.grid, launch.block) == ((8, 1, 1), (128, 1, 1))
    addresses = [int.from_bytes(each, "little") for each in launch.parameters[:3]]
    assert addresses == [at.address for _, at in pairs]


def test_other_sizes_than_the_recorded_are_refused(
    gpu: FakeCuda, recorded: frontend.RecordedLaunch
) -> None:
    function = recorded.compile(target="sm_90a", name="doubled")
    with pytest.raises(ValueError, match=r"Mismatched x.shape\[0\].*expected to be 1000"):
        function(*(tensor(999)[0] for _ in range(3)))

"""Constants that are compiled in, and the sizes of examples that they may have been made of."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from cuda_device import FakeCuda
from triton_launcher import tensor

import ferrule as fe
from ferrule.compiler import BuildWarning
from ferrule.frontends import triton as frontend

pytestmark = pytest.mark.needs_cc


@pytest.fixture
def kernels() -> ModuleType:
    """The kernels that are compiled here."""
    return pytest.importorskip("triton_kernels")


def compiled(kernel: Any, *examples: Any, **how: Any) -> fe.Function:
    return frontend.compile(
        kernel, *examples, **{"grid": frontend.fixed(1), "target": "sm_90a", **how}
    )


def vectors(size: int) -> list[Any]:
    return [tensor(size)[0] for _ in range(2)]


def test_a_constant_that_is_the_size_of_an_example_keeps_it(
    gpu: FakeCuda, kernels: ModuleType
) -> None:
    x, y = vectors(256)
    function = compiled(kernels.scale, x, y, 256, 2.0, BLOCK=x.shape[0])
    assert [param.shape for param in function.signature.params[:2]] == [(256,), (256,)]
    function(*vectors(256), 256, 2.0)
    with pytest.raises(ValueError, match=r"x.shape\[0\].*expected to be 256, but got 512"):
        function(*vectors(512), 512, 2.0)
    assert function.notes["triton"]["fixed"] == {"BLOCK": 256}
    assert "In every call: BLOCK = 256" in str(function.__doc__)


def test_a_constant_that_is_said_on_purpose_keeps_nothing(
    gpu: FakeCuda, kernels: ModuleType
) -> None:
    function = compiled(kernels.scale, *vectors(256), 256, 2.0, BLOCK=frontend.fixed(256))
    function(*vectors(512), 512, 2.0)
    assert "triton" not in function.notes


def test_a_constant_of_another_size_keeps_nothing(gpu: FakeCuda, kernels: ModuleType) -> None:
    function = compiled(kernels.scale, *vectors(1000), 1000, 2.0, BLOCK=128)
    function(*vectors(512), 512, 2.0)
    assert "triton" not in function.notes


def test_a_size_that_is_rounded_up_is_printed(gpu: FakeCuda, kernels: ModuleType) -> None:
    """It may have been computed so, and as well be chosen: such a call is not refused."""
    function = compiled(kernels.scale, *vectors(1000), 1000, 2.0, BLOCK=1024)
    function(*vectors(512), 512, 2.0)
    assert "In every call: BLOCK = 1024" in str(function.__doc__)


def test_fake_tensors_and_texts_say_their_sizes(gpu: FakeCuda, kernels: ModuleType) -> None:
    known = {"x": "*fp32[n]", "y": "*fp32[n]", "factor": "fp32"}
    function = compiled(kernels.scale, signature=known, constexprs={"BLOCK": 256})
    function(*vectors(512), 2.0)


@pytest.mark.parametrize(
    ("kernel", "said"), [("counted", "adds to"), ("summed", "reads before it writes to it")]
)
def test_a_result_that_is_read_first_is_remarked(
    kernels: ModuleType, kernel: str, said: str
) -> None:
    """By an atomic operation, or by a load of what nothing was stored to."""
    how: dict[str, Any] = {"signature": {"x": "*i32[n]"}, "constexprs": {"BLOCK": 128}}
    with pytest.warns(BuildWarning, match=f"to is a result that the function {said}"):
        function = compiled(getattr(kernels, kernel), to=frontend.like("x"), **how)
    assert len(function.notes["remarks"]) == 1
    filled = compiled(getattr(kernels, kernel), to=frontend.zeros(("n",), "int32"), **how)
    assert "remarks" not in filled.notes

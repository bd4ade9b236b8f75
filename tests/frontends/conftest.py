"""What the tests of frontends share: the stand-in of the driver, compilers of CUDA C++."""

from __future__ import annotations

from typing import Any

import pytest
from cuda_device import fake_cuda as fake_cuda

from ferrule.frontends.cuda.nvcc import find_nvcc
from ferrule.frontends.cuda.nvrtc import find_nvrtc


@pytest.fixture
def nvrtc() -> Any:
    """The module of NVRTC; the test is skipped where it is not installed."""
    found = find_nvrtc()
    if found is None:
        pytest.skip("cuda-bindings or NVRTC is not installed")
    return found


@pytest.fixture
def nvcc() -> str:
    """The path of nvcc; the test is skipped where it is not installed."""
    found = find_nvcc()
    if found is None:
        pytest.skip("there is no nvcc")
    return found


@pytest.fixture
def any_compiler() -> None:
    """A test that needs a compiler of CUDA C++, whichever it is."""
    if find_nvrtc() is None and find_nvcc() is None:
        pytest.skip("there is neither NVRTC nor nvcc")

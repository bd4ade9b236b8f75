"""Compiled functions that the tests of export share."""

from __future__ import annotations

import uuid

import pytest
from c_objects import c_object
from cuda_body import IMAGE
from each_convention import SOURCE, each_function
from exported import compiled_add_one, compiled_scale

import ferrule as fe
from ferrule.compiler.conventions import HostCode
from ferrule.runtime import Function


@pytest.fixture(scope="session")
def add_one() -> Function:
    """`add_one_host(a, b)`: b = a + 1."""
    return compiled_add_one()


@pytest.fixture(scope="session")
def scale() -> Function:
    """`scale_host(a, b, factor=2.0)`: b = factor * a."""
    return compiled_scale()


@pytest.fixture(scope="session")
def conventions() -> list[Function]:
    """A function of each calling convention on the host; it needs a C compiler."""
    return each_function(HostCode.from_object(c_object(SOURCE)))


@pytest.fixture
def ptx() -> fe.Module:
    """`first(a, b)` and `second(both)` as a module of kind `ferrule.ptx`.

    Each has an image of its own: tvm-ffi keeps what was loaded, and the stand-in of the driver
    forgets it.
    """
    image = IMAGE + f"// {uuid.uuid4().hex}\n".encode()
    kernels = ["first(a: Pointer(float32), b: float32)", "second(both: Tuple[int64, int32])"]
    return fe.Module.from_ptx(image, kernels)

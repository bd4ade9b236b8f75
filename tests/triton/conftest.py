"""What the tests of the Triton frontend share: the stand-in of the driver, an allocator."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from cuda_device import FakeCuda
from cuda_device import fake_cuda as fake_cuda
from host_memory import allocating

HERE = Path(__file__).parent
WITHOUT = ("test_grids.py", "test_types.py", "test_missing.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of this folder need Triton, but for those that are about ours alone."""
    if importlib.util.find_spec("triton") is None:
        for item in items:
            if item.path.parent == HERE and item.path.name not in WITHOUT:
                item.add_marker(pytest.mark.skip(reason="Triton is not installed"))


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing is found in Triton's cache that another version of a kernel left there."""
    if importlib.util.find_spec("triton") is None:
        yield
        return
    from triton import knobs

    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path_factory.mktemp("triton_cache"))
        yield


@pytest.fixture
def gpu(fake_cuda: FakeCuda) -> FakeCuda:
    """The stand-in with a context that is current, as in a process that uses its GPU."""
    fake_cuda.set_current(0, primary=True)
    return fake_cuda


@pytest.fixture
def allocator() -> Iterator[None]:
    """New tensors on a GPU are in the memory of the host."""
    with allocating():
        yield

"""All tests of this folder have the mark `gpu`; most need a GPU, and are skipped where there is
none.  `--compile-only` compiles for a GPU what else would run there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import ferrule as fe

HERE = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--compile-only", action="store_true", help="compile the tests of the language for a GPU"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gpu: about kernels that run on a real GPU")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == HERE:
            item.add_marker("gpu")


@pytest.fixture(autouse=True)
def tensors_of_calls(request: pytest.FixtureRequest) -> Iterator[None]:
    """What functions allocate is on the GPU, also where no tensor of PyTorch comes along."""
    if request.node.get_closest_marker("needs_cuda") is None:
        yield
        return
    fe.cuda.use_as_allocator()
    yield
    fe.runtime.use_allocator(None, None)

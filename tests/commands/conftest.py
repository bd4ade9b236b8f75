"""What the tests of commands share: files with kernels, and modules that are forgotten again."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kernel_files import KERNELS

Writer = Callable[..., Path]

_NUMBERS = itertools.count()


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Writer]:
    """Writes a Python file, whose module and folder are forgotten after the test."""
    modules, path = set(sys.modules), list(sys.path)

    def write(text: str = KERNELS) -> Path:
        file = tmp_path / f"kernels_of_test_{next(_NUMBERS)}.py"
        file.write_text(text)
        return file

    yield write
    for name in set(sys.modules) - modules:
        if name.startswith("kernels_of_test_"):
            del sys.modules[name]
    sys.path[:] = path

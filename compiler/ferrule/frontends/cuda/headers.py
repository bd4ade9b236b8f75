"""The location of CUDA's headers in a toolkit or in Python packages; NVRTC does not find them
itself."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_USUAL: Final = Path("/usr/local/cuda")


def header_paths() -> list[Path]:
    """The folders with headers: those of Python packages if they are installed, otherwise those of
    a toolkit.

    The package nvidia-cuda-runtime contains `cuda_fp16.h`, nvidia-cuda-cccl contains `cuda/std`.
    """
    for folder in _candidates():
        if (folder / "cuda_fp16.h").is_file():
            inner = folder / "cccl"
            return [folder, inner] if inner.is_dir() else [folder]
    return []


def _candidates() -> Iterator[Path]:
    spec = importlib.util.find_spec("nvidia")
    for folder in () if spec is None else spec.submodule_search_locations or ():
        yield from sorted(Path(folder).glob("*/include"), reverse=True)
    for home in filter(None, (os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH"))):
        yield Path(home) / "include"
    program = shutil.which("nvcc")
    if program is not None:
        yield Path(program).resolve().parents[1] / "include"
    yield _USUAL / "include"

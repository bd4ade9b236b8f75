"""What the benchmarks compile: host functions that do nothing, the quickstart's kernels, and
host functions with any number of tensors.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import ferrule as fe

OPTIONS: Final = "--target cpu"
GPU_OPTIONS: Final = "--target cuda --gpu-arch sm_90a"
QUICKSTART: Final = Path(__file__).resolve().parents[1] / "examples" / "quickstart.py"


@fe.jit
def nothing():
    pass


@fe.jit
def one_int(i: fe.Int64):
    pass


def load(path: Path) -> ModuleType:
    """A file as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def quickstart() -> ModuleType:
    """examples/quickstart.py."""
    return load(QUICKSTART)


def vector() -> Any:
    """A compact float32 vector of any length."""
    return fe.runtime.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))


def row_major(*shape: Any) -> Any:
    """A compact float32 tensor as C lays it out."""
    order = tuple(reversed(range(len(shape))))
    return fe.runtime.make_fake_compact_tensor(fe.Float32, shape, stride_order=order)


def write_empty_functions(folder: Path, counts: Sequence[int]) -> dict[int, Any]:
    """Host functions with an empty body, by their number of tensors.

    They are written to a file, because a function is compiled from its source.
    """
    path = folder / "empty_functions.py"
    path.write_text("import ferrule as fe\n" + "".join(map(_empty, counts)), encoding="utf-8")
    module = load(path)
    return {count: getattr(module, f"take{count}") for count in counts}


def _empty(count: int) -> str:
    params = ", ".join(f"t{i}: fe.Tensor" for i in range(count))
    return f"\n\n@fe.jit\ndef take{count}({params}):\n    pass\n"


def compile_empty(function: Any, count: int, rank: int) -> fe.Function:
    """One of these for float32 tensors that all have the same sizes, known at the call."""
    sizes = [fe.sym_int() for _ in range(rank)]
    return fe.compile(function, *[row_major(*sizes) for _ in range(count)], options=OPTIONS)

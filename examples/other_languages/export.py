"""Exports functions for programs in other languages, and loads one back.

    python export.py [folder]

writes the object, a shared library, headers for C and C++, and a stub. The programs beside this
file are linked with the object or load the library; their first lines say how.
"""

import sys
from pathlib import Path

import numpy as np

import ferrule as fe


@fe.kernel
def scale_kernel(a: fe.Tensor, b: fe.Tensor, factor: fe.Float32):
    i = fe.arch.block_idx()[0] * fe.arch.block_dim()[0] + fe.arch.thread_idx()[0]
    if i < a.shape[0]:
        b[i] = factor * a[i]


@fe.jit
def scale(a: fe.Tensor, b: fe.Tensor, factor: fe.Float32 = 2.0):
    """Writes `factor * a` to `b`."""
    grid = (fe.ceil_div(a.shape[0], 256), 1, 1)
    scale_kernel(a, b, factor).launch(grid=grid, block=(256, 1, 1))


@fe.jit
def double_matrix(a: fe.Tensor, b: fe.Tensor):
    """Writes `2 * a` to `b`, matrices in columns."""
    b[:, :] = a[:, :] + a[:, :]


def export(folder: Path) -> None:
    n, m = fe.sym_int(), fe.sym_int()
    a, b = (fe.make_fake_compact_tensor(fe.Float32, (n,)) for _ in range(2))
    compiled = fe.compile(scale, a, b, fe.Float32(2.0), options="--target cpu")
    compiled.export_to_c(folder / "scale.o")
    x, y = (fe.make_fake_compact_tensor(fe.Float32, (n, m)) for _ in range(2))
    matrices = fe.compile(double_matrix, x, y, options="--target cpu")
    fe.export_library(folder / "scale.so", [compiled, matrices])
    compiled.export_header(folder / "scale.h")
    compiled.export_header(folder / "scale.hpp")
    compiled.export_stub(folder / "scale.pyi")


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    export(folder)
    module = fe.runtime.load_module(folder / "scale.so")
    x = np.arange(4, dtype=np.float32)
    y = np.empty_like(x)
    module.scale(x, y, factor=3.0)
    print(module.scale)
    print(y)


if __name__ == "__main__":
    main()

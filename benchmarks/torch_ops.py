"""Compiled functions as operators of PyTorch, beside operators written in C++ and in Python.

    python benchmarks/torch_ops.py [--quick] [--json FILE]

All sides add two vectors of 64 floats. The C++ operator checks what the signature says: dims,
sizes, dtypes and that the tensors are compact. Its compilation takes half a minute.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import subjects
import torch
from harness import (
    FULL,
    NS,
    QUICK,
    Effort,
    Goal,
    Result,
    Row,
    Skipped,
    Table,
    arguments,
    call_side,
    finish,
    measure,
)

import ferrule as fe

OURS: Final = "fe.torch_op"
CPP: Final = "C++ TORCH_LIBRARY"
SPACE: Final = "ferrule_benchmark"

_CPP: Final = """
#include <ATen/ATen.h>
#include <torch/library.h>
static void check(const at::Tensor& x) {
  TORCH_CHECK(x.dim() == 1 && x.scalar_type() == at::kFloat && x.is_contiguous());
}
static void add(const at::Tensor& x, const at::Tensor& y, at::Tensor& z) {
  check(x); check(y); check(z);
  TORCH_CHECK(x.size(0) == y.size(0) && x.size(0) == z.size(0));
  const float *a = x.const_data_ptr<float>(), *b = y.const_data_ptr<float>();
  float *c = z.mutable_data_ptr<float>();
  for (int64_t i = 0, n = x.size(0); i < n; ++i) c[i] = a[i] + b[i];
}
static at::Tensor made(const at::Tensor& x, const at::Tensor& y) {
  at::Tensor z = at::empty_like(x);
  add(x, y, z);
  return z;
}
TORCH_LIBRARY(ferrule_benchmark_cpp, m) {
  m.def("add(Tensor x, Tensor y, Tensor(a!) z) -> ()");
  m.def("made(Tensor x, Tensor y) -> Tensor");
}
TORCH_LIBRARY_IMPL(ferrule_benchmark_cpp, CPU, m) {
  m.impl("add", add);
  m.impl("made", made);
}
"""


@fe.jit
def add(x: fe.Tensor, y: fe.Tensor, z: fe.Tensor):
    for i in range(x.shape[0]):
        z[i] = x[i] + y[i]


@fe.jit
def passed_on(grad: fe.Tensor, grad_x: fe.Tensor, grad_y: fe.Tensor):
    for i in range(grad.shape[0]):
        grad_x[i] = grad[i]
        grad_y[i] = grad[i]


def compiled(function: Callable[..., Any], count: int) -> fe.Function:
    """A function of vectors of one size."""
    vector = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))
    return fe.compile(function, *[vector] * count, options=subjects.OPTIONS).prepare()


def why_no_cpp(effort: Effort) -> str | None:
    """Why there is no operator in C++; None if it can be compiled."""
    if effort is QUICK:
        return "its compilation takes half a minute"
    return None if shutil.which("g++") else "no g++"


@contextmanager
def cpp_operators(effort: Effort) -> Iterator[Any]:
    """The operators in C++; None where they cannot be made."""
    if why_no_cpp(effort) is not None:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "add.cpp", Path(folder) / "add.so"
        source.write_text(_CPP, encoding="utf-8")
        subprocess.run(_command(source, library), check=True)
        torch.ops.load_library(str(library))
        yield torch.ops.ferrule_benchmark_cpp


def _command(source: Path, library: Path) -> list[str]:
    root = Path(torch.__file__).parent
    includes = [root / "include", root / "include/torch/csrc/api/include"]
    words = [f"-I{each}" for each in (*includes, sysconfig.get_path("include"))]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"
    options = shlex.split("-O2 -std=c++20 -shared -fPIC")
    link = [f"-L{root / 'lib'}", "-ltorch_cpu", "-lc10"]
    return ["g++", *options, abi, *words, str(source), "-o", str(library), *link]


def rows(effort: Effort, cpp: Any) -> tuple[Row, ...]:
    """An operator that writes an argument, and one that makes its result."""
    direct, backward = compiled(add, 3), compiled(passed_on, 3)
    x, y, z = (torch.ones(64) for _ in range(3))
    written = fe.torch_op(direct, f"{SPACE}::add")
    made = fe.torch_op(direct, f"{SPACE}::made", out=["z"])
    differentiable = fe.torch_op(direct, f"{SPACE}::differentiable", out=["z"], backward=backward)
    custom = torch.library.custom_op(f"{SPACE}::custom", _plain(direct), mutates_args=("z",))
    writing = [
        (OURS, written.default, (x, y, z)),
        *([] if cpp is None else [(CPP, cpp.add.default, (x, y, z))]),
        ("torch.library.custom_op", custom, (x, y, z)),
        ("the function itself", direct, (x, y, z)),
    ]
    making = [
        (OURS, made.default, (x, y)),
        *([] if cpp is None else [(CPP, cpp.made.default, (x, y))]),
        ("torch.add", torch.add, (x, y)),
        ("fe.torch_op with a backward", differentiable.default, (x, y)),
    ]
    named = (("writes an argument", writing), ("makes its result", making))
    return tuple(
        measure(name, [call_side(side, f, given, effort) for side, f, given in sides], effort)
        for name, sides in named
    )


def _plain(direct: fe.Function) -> Callable[..., None]:
    def custom(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> None:
        direct(x, y, z)

    # The decorator reads types, not their names.
    custom.__annotations__ = {**dict.fromkeys("xyz", torch.Tensor), "return": None}
    return custom


def run(effort: Effort) -> Result:
    """Measure all of it."""
    with cpp_operators(effort) as cpp:
        table = Table("Operators of PyTorch", NS, rows(effort, cpp), (OURS, CPP))
    goals = tuple(Goal(row.name, 1.1, row.ratio(OURS, CPP), "times C++") for row in table.rows)
    why = why_no_cpp(effort)
    return Result((table,), goals, () if why is None else (Skipped(CPP, why),))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("Compiled functions as operators of PyTorch", argv)
    finish("torch_ops", run(QUICK if given.quick else FULL), given)


if __name__ == "__main__":
    main()

"""Other ways from Python to compiled code, each with functions that do nothing.

Each maker builds what it needs in a folder and gives functions by the name of a row, or raises
`Missing` with the reason. The functions take 2-D float32 arrays where they take any.
"""

from __future__ import annotations

import ctypes
import importlib.util
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import cute_peer
import numpy as np
import peers

NOTHING: Final = "no arguments"
ONE_INT: Final = "one int"


class Missing(Exception):
    """Why one of them cannot be had here."""


def arrays(count: int) -> str:
    """The name of the row with so many arrays of NumPy."""
    return f"{count} NumPy array{'s' if count > 1 else ''}"


def tensors(count: int) -> str:
    """The name of the row with so many tensors of PyTorch."""
    return f"{count} PyTorch tensor{'s' if count > 1 else ''}"


def ffi_tensors(count: int) -> str:
    """The name of the row with so many tensors of tvm-ffi."""
    return f"{count} tvm_ffi tensors"


Functions = Mapping[str, Callable[..., Any]]


def _require(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise Missing(f"{module} is not installed")


# ---- nanobind and pybind11 ----

_NANOBIND: Final = """
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
namespace nb = nanobind;
using A = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
NB_MODULE(nanobind_peer, m) {
  m.def("nothing", []() {});
  m.def("one_int", [](int64_t) {});
  m.def("take1", [](A) {});
  m.def("take3", [](A, A, A) {});
  m.def("take8", [](A, A, A, A, A, A, A, A) {});
}
"""

_PYBIND11: Final = """
#include <pybind11/pybind11.h>
#include <pybind11/numpy.h>
namespace py = pybind11;
using A = const py::array_t<float, py::array::c_style>&;
PYBIND11_MODULE(pybind11_peer, m) {
  m.def("nothing", []() {});
  m.def("one_int", [](int64_t) {});
  m.def("take1", [](A) {});
  m.def("take3", [](A, A, A) {});
  m.def("take8", [](A, A, A, A, A, A, A, A) {});
}
"""


def nanobind(folder: Path) -> Functions:
    """Functions of nanobind, which take arrays and tensors through DLPack."""
    module = nanobind_module("nanobind_peer", _NANOBIND, folder)
    return {**_taking(module, arrays), **_taking(module, tensors)}


def nanobind_module(name: str, text: str, folder: Path, more: Sequence[Path] = ()) -> Any:
    """A module of nanobind with this source, and `more` sources or objects."""
    _require("nanobind")
    import nanobind as package

    root = Path(package.source_dir()).parent
    sources = [root / "src" / "nb_combined.cpp", *more]
    includes = [root / "include", root / "ext" / "robin_map" / "include"]
    return _extension(name, text, folder, sources, includes)


def pybind11(folder: Path) -> Functions:
    """Functions of pybind11, which take arrays of NumPy."""
    _require("pybind11")
    import pybind11 as package

    includes = [Path(package.get_include())]
    return _taking(_extension("pybind11_peer", _PYBIND11, folder, [], includes), arrays)


def _taking(module: Any, row: Callable[[int], str]) -> dict[str, Callable[..., Any]]:
    taking = {row(count): getattr(module, f"take{count}") for count in peers.COUNTS}
    return {NOTHING: module.nothing, ONE_INT: module.one_int, **taking}


def _extension(
    name: str, text: str, folder: Path, sources: Sequence[Path], includes: Sequence[Path]
) -> Any:
    if (missing := peers.cpp_missing()) is not None:
        raise Missing(missing)
    folder.mkdir(parents=True, exist_ok=True)
    source, target = folder / f"{name}.cpp", folder / f"{name}.so"
    source.write_text(text, encoding="utf-8")
    paths = [f"-I{path}" for path in (*includes, sysconfig.get_path("include"))]
    options = shlex.split("-O3 -DNDEBUG -std=c++17 -fPIC -shared -fvisibility=hidden -w")
    command = ["c++", *options, *paths, str(source), *map(str, sources), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"{name} does not compile: {done.stderr.strip().splitlines()[0]}")
    spec = importlib.util.spec_from_file_location(name, target)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# ---- PyTorch's operators ----

_TORCH: Final = """
#include <torch/library.h>
#include <ATen/ATen.h>
using T = const at::Tensor&;
void nothing() {}
void one_int(int64_t) {}
void take1(T) {}
void take3(T, T, T) {}
void take8(T, T, T, T, T, T, T, T) {}
TORCH_LIBRARY(ferrule_peer, m) {
  m.def("nothing() -> ()", nothing);
  m.def("one_int(int i) -> ()", one_int);
  m.def("take1(Tensor a) -> ()", take1);
  m.def("take3(Tensor a, Tensor b, Tensor c) -> ()", take3);
  m.def("take8(Tensor a, Tensor b, Tensor c, Tensor d, Tensor e, Tensor f, Tensor g, Tensor h)"
        " -> ()", take8);
}
"""


def torch_ops(folder: Path) -> Functions:
    """Operators of `torch.ops` with a kernel in C++."""
    _require("torch")
    if (missing := peers.cpp_missing()) is not None:
        raise Missing(missing)
    import torch
    from torch.utils import cpp_extension

    folder.mkdir(parents=True, exist_ok=True)
    cpp_extension.load_inline(
        "torch_peer",
        _TORCH,
        build_directory=str(folder),
        is_python_module=False,
        no_implicit_headers=True,
    )
    return _taking(torch.ops.ferrule_peer, tensors)


# ---- Numba and ctypes ----


def numba(folder: Path) -> Functions:
    """Numba's dispatcher; every function is compiled by a first call."""
    _require("numba")
    import numba as package

    def take1(a): ...
    def take3(a, b, c): ...
    def take8(a, b, c, d, e, f, g, h): ...
    def nothing(): ...
    def one_int(i): ...

    compiled = {f.__name__: package.njit(f) for f in (take1, take3, take8, nothing, one_int)}
    compiled["nothing"]()
    compiled["one_int"](7)
    found = {NOTHING: compiled["nothing"], ONE_INT: compiled["one_int"]}
    for count in peers.COUNTS:
        compiled[f"take{count}"](*[np.zeros((2, 2), np.float32)] * count)
        found[arrays(count)] = compiled[f"take{count}"]
    return found


def with_ctypes(folder: Path) -> Functions:
    """A C function through ctypes; arrays as checked pointers, without their sizes."""
    text = "define void @__tvm_ffi_empty() {\n  ret void\n}\n"
    engine = peers.load_text(text, "empty")
    _KEPT.append(engine)
    array = np.ctypeslib.ndpointer(np.float32, ndim=2, flags="C_CONTIGUOUS")

    def taking(*kinds: Any) -> Callable[..., Any]:
        return ctypes.CFUNCTYPE(None, *kinds)(engine.address("__tvm_ffi_empty"))

    counted = {arrays(count): taking(*[array] * count) for count in peers.COUNTS}
    return {NOTHING: taking(), ONE_INT: taking(ctypes.c_int64), **counted}


_KEPT: Final[list[object]] = []

# ---- CuTe DSL ----


def cute(folder: Path) -> Functions:
    """What `cute.compile` gives."""
    return _by_row(_cute())


def cute_reloaded(folder: Path) -> Functions:
    """The same functions, written to object files and loaded again."""
    folder.mkdir(parents=True, exist_ok=True)
    return _by_row(cute_peer.reloaded(_cute(), folder))


def _cute() -> Functions:
    if cute_peer.is_missing():
        raise Missing("nvidia-cutlass-dsl is not installed")
    return cute_peer.compiled()


def _by_row(functions: Functions) -> Functions:
    found = {NOTHING: functions["nothing"], ONE_INT: functions["one_int"]}
    for count in peers.COUNTS:
        for row in (arrays, tensors, ffi_tensors):
            found[row(count)] = functions[f"take{count}"]
    return found


MAKERS: Final[Mapping[str, Callable[[Path], Functions]]] = MappingProxyType(
    {
        "nanobind": nanobind,
        "pybind11": pybind11,
        "torch.ops": torch_ops,
        "Numba": numba,
        "ctypes": with_ctypes,
        "CuTe DSL": cute,
        "CuTe DSL, reloaded": cute_reloaded,
    }
)

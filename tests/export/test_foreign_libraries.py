"""Libraries that others made stay open: what they registered and made outlives their functions."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import tvm_ffi
from exported import run_python

from ferrule.runtime import Function

pytestmark = [
    pytest.mark.needs_cc,
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler"),
]

SOURCE = r"""
#include <tvm/ffi/tvm_ffi.h>
#include <cstdlib>

namespace ffi = tvm::ffi;

class BoxObj : public ffi::Object {
 public:
  int64_t value;
  explicit BoxObj(int64_t v) : value(v) {}
  ~BoxObj() { value = 0; }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ferrule.test.KeptBox", BoxObj, ffi::Object);
};

struct Heap {
  void AllocData(DLTensor* t) { t->data = calloc(64, 8); }
  void FreeData(DLTensor* t) { free(t->data); }
};

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::ObjectDef<BoxObj>().def_ro("value", &BoxObj::value);
  refl::GlobalDef().def("ferrule.test.kept", [](ffi::String s) { return s + NAME; });
}

ffi::Tensor made(int64_t n) {
  return ffi::Tensor::FromNDAlloc(Heap(), ffi::Shape({n}), {kDLFloat, 32, 1}, {kDLCPU, 0});
}
ffi::ObjectRef box(int64_t v) { return ffi::ObjectRef(ffi::make_object<BoxObj>(v)); }
ffi::Function adder(int64_t by) {
  return ffi::Function::FromTyped([by](int64_t x) { return x + by; });
}
ffi::String said(ffi::Error e) { return e.message(); }
void fail() { TVM_FFI_THROW(ValueError) << "failed in " << NAME; }

TVM_FFI_DLL_EXPORT_TYPED_FUNC(made, made);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(box, box);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(adder, adder);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(fail, fail);
"""


def built(folder: Path, name: str = "one", *more: str) -> Path:
    """The library, whose texts have a name in them."""
    (folder / "k.cc").write_text(SOURCE)
    include = [f"-I{path}" for path in tvm_ffi.libinfo.include_paths()]
    flags = ["-O0", "-shared", "-fPIC", "-std=c++17", f'-DNAME="{name}"', *include]
    target = folder / f"{name}.so"
    command = ["g++", *flags, "-o", str(target), "k.cc", *more]
    subprocess.run(command, cwd=folder, check=True)
    return target


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("foreign"))


BEGIN = """
import gc, sys
import numpy as np
import tvm_ffi
from ferrule.runtime import load_module
path = sys.argv[1]
"""

OUTLIVING = """
tensor, box, add = (load_module(path)[name](3) for name in ("made", "box", "adder"))
try:
    load_module(path).fail()
except ValueError as e:
    error = e
gc.collect()
print(add(4), box.value, np.from_dlpack(tensor).tolist(), error)
del tensor, box, add, error
gc.collect()
print(tvm_ffi.get_global_func("ferrule.test.kept")("said by "))
"""


def test_what_a_library_made_and_registered_outlives_its_functions(library: Path) -> None:
    said = run_python(BEGIN + OUTLIVING, library)
    assert said == "7 3 [0.0, 0.0, 0.0] failed in one\nsaid by one\n"


AGAIN = """
import shutil
data = open(path, "rb").read()
shutil.copy(path, path + ".copy.so")
for file in (path, data, path, path + ".copy.so", data):
    print(load_module(file).adder(1)(1), end=" ")
    gc.collect()
print(tvm_ffi.load_module(path).adder(1)(1))
"""


def test_a_library_that_registers_is_loaded_any_number_of_times(library: Path) -> None:
    assert run_python(BEGIN + AGAIN, library) == "2 2 2 2 2 2\n"


REPLACED = """
import os
load_module(path)
os.replace(sys.argv[2], path)
try:
    load_module(path)
except ValueError as error:
    print(type(error).__name__, str(error).removeprefix(path))
"""


def test_another_library_in_the_place_of_one_that_registers_is_refused(tmp_path: Path) -> None:
    first, second = built(tmp_path), built(tmp_path, "two")
    said = run_python(BEGIN + REPLACED, first, second)
    assert said.startswith("ObjectFileError : the file was replaced since it was loaded")


LINKED = """
module = load_module(path)
print(module.made(2).shape[0], module.scale_host.__name__)
del module
gc.collect()
print(tvm_ffi.get_global_func("ferrule.test.kept")("said by "), load_module(path).adder(1)(1))
"""


def test_a_library_of_both_stays_open_too(scale: Function, tmp_path: Path) -> None:
    scale.export_to_c(tmp_path / "k.o")
    path = built(tmp_path, "both", "k.o")
    assert run_python(BEGIN + LINKED, path) == "2 scale_host\nsaid by both 2\n"

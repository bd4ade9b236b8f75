"""Code that calls functions of the modules that its own module imports: `fe.import_func`."""

from __future__ import annotations

import struct
import subprocess
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from cuda_device import FakeCuda, fake_cuda

import ferrule as fe
from ferrule.runtime import Function

__all__ = ["fake_cuda"]

first = fe.import_func("first")
twice = fe.import_func("tests.imports.twice", result=fe.Int32)


@fe.jit
def launches(address: fe.Int64, b: fe.Float32):
    first(address, b, 4, 2, 1, 32, 1, 1, 0)


@fe.jit
def asks(n: fe.Int32, a: fe.Tensor):
    a[0] = twice(n)


@pytest.fixture(scope="module")
def importing() -> list[Function]:
    """`launches(address, b)` and `asks(n, a)`, which look up their callees in imports."""
    one = fe.make_fake_tensor(fe.Int32, (1,), (1,))
    numbers = fe.compile(launches, fe.Int64(1), fe.Float32(1.0), options="--target cpu")
    return [numbers, fe.compile(asks, fe.Int32(1), one, options="--target cpu")]


@pytest.mark.needs_cc
@pytest.mark.parametrize("way", [".so", ".a", "tvm_ffi.so", "tvm_ffi.a", "system_lib", "here"])
def test_code_calls_what_its_module_imports(
    way: str, importing: list[Function], ptx: fe.Module, fake_cuda: FakeCuda, tmp_path: Path
) -> None:
    module: Any = fe.Module(importing, imports=[ptx])
    if way == "system_lib":
        module = module.system_lib(f"tests_{uuid.uuid4().hex}_")
    elif way != "here":
        path = tmp_path / f"k.{way.rpartition('.')[2]}"
        module.write_to_file(path)
        module = (tvm_ffi if way.startswith("tvm_ffi") else fe.runtime).load_module(path)
    module.launches(4096, 1.5)
    (launch,) = fake_cuda.launches()
    assert (launch.kernel, launch.grid, launch.block) == ("first", (4, 2, 1), (32, 1, 1))
    assert launch.parameters == (struct.pack("<Q", 4096), struct.pack("<f", 1.5))
    with pytest.raises(RuntimeError, match="Cannot find function tests.imports.twice in the impo"):
        module.asks(3, np.zeros(1, np.int32))


def test_a_registered_function_will_do(importing: list[Function], ptx: fe.Module) -> None:
    a = np.zeros(1, np.int32)
    fe.register_global_func("tests.imports.twice", lambda n: 2 * n)
    try:
        for function in (importing[1], fe.Module(importing, imports=[ptx]).asks):
            for n in (3, 4):
                function(n, a)
                assert a[0] == 2 * n
    finally:
        tvm_ffi.registry.remove_global_func("tests.imports.twice")


LINKED = """
#include <stdio.h>
#include <tvm/ffi/c_api.h>
int __tvm_ffi_launches(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);
int main(void) {
  TVMFFIAny args[2] = {{0}}, result = {0};
  TVMFFIObjectHandle error = NULL;
  args[0].type_index = kTVMFFIInt;
  args[1].type_index = kTVMFFIFloat;
  if (__tvm_ffi_launches(NULL, args, 2, &result) == 0) return 1;
  TVMFFIErrorMoveFromRaised(&error);
  TVMFFIErrorCell* cell = (TVMFFIErrorCell*)((char*)error + sizeof(TVMFFIObject));
  printf("%.*s\\n", (int)cell->message.size, cell->message.data);
  TVMFFIObjectDecRef(error);
  return 0;
}
"""


@pytest.mark.needs_cc
def test_a_program_that_it_is_linked_into_is_told_why(
    importing: list[Function], tmp_path: Path
) -> None:
    (library,) = fe.runtime.find_runtime_libraries()
    importing[0].export_to_c(tmp_path / "k.o")
    (tmp_path / "main.c").write_text(LINKED)
    include = [f"-I{path}" for path in tvm_ffi.libinfo.include_paths()]
    rpath = f"-Wl,-rpath,{Path(library).parent}"
    command = ["gcc", *include, "main.c", "k.o", library, rpath, "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(["./main"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.startswith(
        "the function `first` is looked up in the modules that this code's module imports, but it "
        "was not loaded as one: it is linked into a program"
    )


def test_the_name_of_an_imported_function_is_text() -> None:
    for name in ("", "a\0b", 3):
        with pytest.raises(ValueError, match="import_func takes the name of a function"):
            fe.import_func(name)  # type: ignore[arg-type]

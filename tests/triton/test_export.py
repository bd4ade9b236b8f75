"""Exported kernels: one library, which runs where neither ferrule nor Triton can be imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import cuda_device
import pytest
from cuda_device import FakeCuda
from triton_launcher import example
from tvm_ffi import libinfo

import ferrule as fe
from ferrule.frontends import triton as frontend
from ferrule.runtime import find_runtime_libraries

pytestmark = pytest.mark.needs_cc

ALONE = """
import ctypes, importlib.abc, json, sys

class Nothing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("ferrule", "triton", "llvmlite", "torch"):
            raise ImportError(f"{name} is not here")

sys.meta_path.insert(0, Nothing())
import numpy as np
import tvm_ffi
from cuda_device import FakeCuda, forged
from pathlib import Path

fake = FakeCuda(Path(sys.argv[1]))
fake.reset()
module = tvm_ffi.load_module(sys.argv[2])
x, y = (forged(np.zeros(1000, np.float32)) for _ in range(2))
module["scale"](x, y, 2.0)
module["copied"](x, y)
half = [forged(np.zeros((64, 64), np.float16)) for _ in range(3)]
module["matmul"](*half)
try:
    module["scale"](x, forged(np.zeros(3, np.float32)), 2.0)
except ValueError as error:
    print(error)
print(json.dumps([[launch.kernel, launch.grid, launch.block] for launch in fake.launches()]))
"""

IN_C = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <tvm/ffi/c_api.h>

int __tvm_ffi_copied(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);

int main(int argc, char** argv) {
  void* fake = dlopen(argv[argc - 1], RTLD_NOW | RTLD_GLOBAL);
  void (*reset)(int) = (void (*)(int))dlsym(fake, "fake_reset");
  int (*calls)(void) = (int (*)(void))dlsym(fake, "fake_num_calls");
  const char* (*call)(int) = (const char* (*)(int))dlsym(fake, "fake_call");
  reset(1);
  _Alignas(64) static float data[1000];
  int64_t size = 1000, stride = 1;
  DLTensor x = {data, {kDLCUDA, 0}, 1, {kDLFloat, 32, 1}, &size, &stride, 0};
  TVMFFIAny arguments[2], result;
  memset(arguments, 0, sizeof arguments);
  memset(&result, 0, sizeof result);
  for (int i = 0; i < 2; i++) {
    arguments[i].type_index = kTVMFFIDLTensorPtr;
    arguments[i].v_ptr = &x;
  }
  if (__tvm_ffi_copied(NULL, arguments, 2, &result)) return 1;
  for (int i = 0; i < calls(); i++)
    if (strcmp(call(i), "cuLaunchKernelEx") == 0) puts(call(i) + 40);
  return 0;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many kernels, several specialisations, three architectures."""
    kernels = pytest.importorskip("triton_kernels")
    path = tmp_path_factory.mktemp("exported") / "kernels.so"
    fe.export_library(path, functions(kernels))
    return path


def functions(kernels: ModuleType) -> list[fe.Function]:
    archs = ["sm_80", "sm_90a", "sm_100a"]
    vectors = {"x": "*fp32[n]", "y": "*fp32[n]"}

    def in_blocks(meta: Any) -> tuple[Any]:
        return (frontend.ceil_div(meta["n"], meta["BLOCK"]),)

    return [
        frontend.compile(
            kernels.scale,
            signature={**vectors, "factor": "fp32"},
            constexprs={"BLOCK": 128},
            grid=in_blocks,
            target=archs,
            specialize="dispatch",
        ),
        frontend.compile(
            kernels.tuned,
            signature=vectors,
            config={(1000,): 2, None: 0},
            grid=in_blocks,
            target=archs,
            name="copied",
        ),
        example("matmul").compiled(archs),
    ]


def stand_in() -> Path:
    return Path(cuda_device._folder().name) / cuda_device.SONAME


def test_python_runs_it_without_ferrule_and_without_triton(
    fake_cuda: FakeCuda, library: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(stand_in()), str(library)],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(Path(cuda_device.__file__).parent)},
    )
    assert done.returncode == 0, done.stderr
    error, launches = done.stdout.splitlines()
    assert "Mismatched y.shape[0]" in error
    assert json.loads(launches) == [
        ["scale", [8, 1, 1], [128, 1, 1]],
        ["tuned", [1, 1, 1], [256, 1, 1]],
        ["matmul_kernel", [1, 1, 1], [256, 1, 1]],
    ]


def test_c_runs_it(fake_cuda: FakeCuda, library: Path, tmp_path: Path) -> None:
    include = [f"-I{path}" for path in libinfo.include_paths()]
    ffi = Path(find_runtime_libraries(enable_tvm_ffi=True)[0])
    (tmp_path / "main.c").write_text(IN_C)
    linked = [str(library), str(ffi), f"-Wl,-rpath,{ffi.parent}", "-ldl"]
    build = ["cc", *include, "main.c", *linked, "-o", "main"]
    done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ran = subprocess.run(
        ["./main", str(stand_in())], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "tuned\n"), ran.stderr


def test_a_module_that_is_loaded_again_says_its_configs(fake_cuda: FakeCuda, library: Path) -> None:
    copied = fe.runtime.load_module(library)["copied"]
    assert "Triton config for n = 1000: BLOCK=1024, num_warps=8" in copied.__doc__
    configs = copied.notes["triton"]["configs"]
    assert configs[0]["key"] == {"n": 1000}
    assert configs[0]["config"].startswith("BLOCK=1024, num_warps=8")
    assert str(copied.signature) == "copied(x: Tensor([n], float32), y: Tensor([n], float32))"

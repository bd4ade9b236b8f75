"""What was built for kernels of others, in files: loaded where ferrule cannot be imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import cuda_device
import pytest
from cuda_device import FakeCuda
from tvm_ffi import libinfo

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import CudaLaunch
from ferrule.runtime import find_runtime_libraries
from ferrule.specs import Scalar, Signature, Tensor, ceil_div

SOURCE = Path(__file__).with_name("launching.c")
PTX = """\
.version 7.8
.target sm_80
.address_size 64
.visible .entry scale_kernel(.param .u64 x, .param .u32 n, .param .f32 factor) { ret; }
"""


def scale(name: str = "scale") -> fe.Function:
    """x *= factor, by a kernel of this PTX."""
    n = specs.sym_int(symbol="n")
    signature = Signature(name, [Tensor("x", (n,), "float32"), Scalar("factor", "float32")])
    params = [signature["x"].data, n, signature["factor"]]
    code = fe.DeviceCode.from_ptx(PTX)
    return compiler.build(
        signature, CudaLaunch(code, "scale_kernel", params, ceil_div(n, 256), 256)
    )


@pytest.fixture
def stand_in(fake_cuda: FakeCuda) -> Path:
    """The folder of a libcuda.so.1 that a new process finds."""
    return Path(fake_cuda.library._name).parent


def run(command: list[str], stand_in: Path) -> list[str]:
    """The lines that a program prints that finds the stand-in as its driver."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(stand_in)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.needs_cc
def test_a_c_program_launches_what_is_in_its_object(stand_in: Path, tmp_path: Path) -> None:
    scale().export_to_c(tmp_path / "scale.o")
    library = Path(find_runtime_libraries(enable_tvm_ffi=True)[0])
    include = [f"-I{path}" for path in (*libinfo.include_paths(), cuda_device.SOURCES)]
    linked = [str(tmp_path / "scale.o"), str(library), f"-Wl,-rpath,{library.parent}", "-ldl"]
    program = str(tmp_path / "launching")
    compiler_of_c = os.environ.get("CC", "cc").split()
    subprocess.run([*compiler_of_c, *include, str(SOURCE), *linked, "-o", program], check=True)
    launch, error = run([program], stand_in)
    assert launch == "scale_kernel: grid 4, device 1, sizes 8 4 4, factor 2.5"
    assert error.startswith("ValueError: Mismatched Tensor on argument #0 when calling: `scale(x: ")


WITHOUT_FERRULE = """
import sys
sys.modules.update(ferrule=None, torch=None, llvmlite=None)
sys.path.insert(0, sys.argv[1])
import numpy, tvm_ffi
from pathlib import Path
from cuda_device import SONAME, FakeCuda, forged

cuda, module = FakeCuda(Path(SONAME)), tvm_ffi.load_module(sys.argv[2])
cuda.reset()
for name in ("scale", "again"):
    module.get_function(name)(forged(numpy.zeros(1000, "float32")), 2.5)
for launch in cuda.launches():
    print(launch.kernel, launch.grid, launch.parameters[2].hex())
"""


@pytest.mark.needs_cc
def test_a_library_of_two_launches_where_ferrule_cannot_be_imported(
    stand_in: Path, tmp_path: Path
) -> None:
    fe.export_library(tmp_path / "two.so", [scale(), scale("again")])
    support = str(Path(cuda_device.__file__).parent)
    command = [sys.executable, "-c", WITHOUT_FERRULE, support, str(tmp_path / "two.so")]
    launches = run(command, stand_in)
    assert launches == ["scale_kernel (4, 1, 1) 00002040"] * 2

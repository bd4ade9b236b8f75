"""One library under every apache-tvm-ffi: called through each version's own API, without ferrule.

The environment variable FERRULE_TVM_FFI_VENVS names a folder of virtual environments that have
NumPy and a version of apache-tvm-ffi each; without it the installed version alone is tried.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import cuda_device
import pytest
from cuda_device import FakeCuda
from cuda_device import fake_cuda as fake_cuda
from each_convention import WITH_OBJECT, K, N, X, built
from exported import WITHOUT_TORCH

import ferrule as fe
from ferrule.compiler.conventions import CudaLaunch
from ferrule.runtime import Function

PROGRAM = """
import sys
import numpy as np
import tvm_ffi
module = tvm_ffi.load_module(sys.argv[1])
a, b = np.arange(3, dtype=np.float32), np.zeros(3, np.float32)
module.add_one(a, b)
print(b.tolist())
for args in [(a,), (a, 1)]:
    try:
        module.add_one(*args)
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0])
try:
    metadata, doc = module.get_function_metadata("add_one"), module.get_function_doc("add_one")
except AttributeError:
    metadata, doc = None, None
if metadata is not None:
    assert metadata["ferrule"]["name"] == "add_one", metadata
    assert "ffi.Function" in metadata["type_schema"]
    assert doc.startswith("Adds one to each"), doc
"""
SIGNATURE = "add_one(a: Tensor([n0], float32), b: Tensor([n0], float32))"
SAID = f"""\
[1.0, 2.0, 3.0]
TypeError Expects 2 parameters when calling: `{SIGNATURE}`, but got 1
TypeError Mismatched type on argument #1 when calling: `{SIGNATURE}`, expected Tensor, but got int
"""
IMPORTED = "[42] [b'any bytes'] 1 library\n"

WITH_IMPORTS = """
import sys
import numpy as np
import tvm_ffi
seen = []
def load(data):
    seen.append(bytes(data))
    return tvm_ffi.system_lib(f"nothing_{len(seen)}_")
tvm_ffi.register_global_func("ffi.Module.load_from_bytes.tests.bytes", load)
tvm_ffi.register_global_func("tests.versions.twice", lambda n: 2 * n)
module = tvm_ffi.load_module(sys.argv[1])
a = np.zeros(1, np.int32)
module.asks(21, a)
print(a.tolist(), seen, len(module.imports), module.imports[0].kind)
"""

NAMES = (*(make.__name__ for make in WITH_OBJECT), "llvm_ir")
"""Of the functions of `each_function`."""
EACH = """
import sys
import numpy as np
import tvm_ffi
def shown(value):
    return np.from_dlpack(value).tolist() if hasattr(value, "shape") else value
module = tvm_ffi.load_module(sys.argv[1])
x = np.arange(3, dtype=np.float32)
for name in sys.argv[2:]:
    function = getattr(module, name)
    if name == "sized":  # all of it: for a part, tvm-ffi makes a view, which 0.1.0 has not
        print(name, shown(function(x + 3, 2.0)))
        continue
    result = function(x) if name in ("last", "dltensors") else function(x, 2.0)
    print(name, list(map(shown, result)) if name == "sequence" else shown(result))
for name, x, k in [("c_function", x, -1), ("safe_call", x, -1), ("sequence", x, -1),
                   ("sized", x, -1), ("first_of", np.ones(11, np.float32), 2), ("memref", 1, 2)]:
    try:
        getattr(module, name)(x, k)
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0])
"""
EACH_SAID = """\
c_function [0.0, 2.0, 4.0]
memref [0.0, 2.0, 4.0]
last 2.0
dltensors 3.0
safe_call 6.0
sequence [[0.0, 4.0, 8.0], 2]
first_of [0.0, 2.0, 4.0]
sized [3.0, 4.0, 5.0]
llvm_ir [2.0, 3.0, 4.0]
RuntimeError scale returned -1
ValueError k is below 0
ValueError k is below 0
RuntimeError above gave found = 4, expected from 0 to 3, the capacity of out
ValueError first_of has no code for these sizes: expected n <= 8; or n % 4 == 0
TypeError Mismatched type on argument #0 when calling: `memref(x: Tensor([n], float32), \
k: float32) -> Tensor([n], float32)`, expected Tensor, but got int
"""

LAUNCHING = """
import sys
from types import SimpleNamespace
sys.path.insert(0, sys.argv[2])
sys.modules["pytest"] = SimpleNamespace(fixture=lambda function: function)
import numpy, tvm_ffi
from pathlib import Path
from cuda_device import SONAME, FakeCuda, forged
cuda, module = FakeCuda(Path(SONAME)), tvm_ffi.load_module(sys.argv[1])
cuda.reset()
for size, k in [(1000, 2.5), (9, "k"), (7, 1)]:
    try:
        module.launched(forged(numpy.zeros(size, "float32")), k)
    except Exception as error:
        print(type(error).__name__, str(error).split(":")[0])
    cuda.fail("cuLaunchKernelEx", 1)
for launch in cuda.launches():
    print(launch.kernel, launch.grid, launch.parameters[2].hex())
"""
LAUNCHED = """\
TypeError Mismatched type on argument #1 when calling
RuntimeError cuLaunchKernelEx failed with CUDA_ERROR_INVALID_VALUE (1
scale_kernel (1000, 1, 1) 00002040
"""
PTX = """\
.version 7.8
.target sm_80
.address_size 64
.visible .entry scale_kernel(.param .u64 x, .param .u32 n, .param .f32 k) { ret; }
"""


def interpreters() -> dict[str, Path]:
    """The interpreter of each virtual environment, by the name of its folder."""
    folder = os.environ.get("FERRULE_TVM_FFI_VENVS")
    found = sorted(Path(folder).glob("*/bin/python")) if folder else []
    return {path.parents[1].name: path for path in found}


@pytest.fixture(scope="module")
def library(add_one: Function, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("library") / "k.so"
    add_one.export_library(path, function_name="add_one")
    return path


twice = fe.import_func("tests.versions.twice", result=fe.Int32)


@fe.jit
def asks(n: fe.Int32, a: fe.Tensor):
    a[0] = twice(n)


@pytest.fixture(scope="module")
def importing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that imports a module of a kind with a loader in Python, and looks up in it."""
    path = tmp_path_factory.mktemp("importing") / "k.so"
    one = fe.make_fake_tensor(fe.Int32, (1,), (1,))
    function = fe.compile(asks, fe.Int32(1), one, options="--target cpu")
    imported = fe.Module.from_bytes("tests.bytes", b"any bytes")
    fe.Module([function], imports=[imported]).write_to_file(path)
    return path


@pytest.fixture(scope="module")
def of_conventions(conventions: list[Function], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with a function of each calling convention."""
    path = tmp_path_factory.mktemp("conventions") / "k.so"
    fe.export_library(path, conventions)
    return path


@pytest.mark.needs_cc
def test_the_installed_version(library: Path, importing: Path, of_conventions: Path) -> None:
    check(Path(sys.executable), library, importing, of_conventions)


@pytest.fixture(scope="module", params=interpreters() or ["of FERRULE_TVM_FFI_VENVS"])
def another(request: pytest.FixtureRequest) -> Path:
    """The interpreter of another version, for each that there is."""
    if request.param not in interpreters():
        pytest.skip("FERRULE_TVM_FFI_VENVS names no folder of virtual environments")
    return interpreters()[request.param]


@pytest.mark.needs_cc
def test_another_version(
    another: Path, library: Path, importing: Path, of_conventions: Path
) -> None:
    check(another, library, importing, of_conventions)


@pytest.mark.needs_cc
def test_a_launch_under_another_version(another: Path, fake_cuda: FakeCuda, tmp_path: Path) -> None:
    launch = CudaLaunch(fe.DeviceCode.from_ptx(PTX), "scale_kernel", [X.data, N, K], N, 256)
    built("launched", launch).export_library(tmp_path / "k.so")
    support = str(Path(cuda_device.__file__).parent)
    folder = str(Path(fake_cuda.library._name).parent)
    found = {**os.environ, "LD_LIBRARY_PATH": folder}
    program = another, tmp_path / "k.so", LAUNCHING, support
    assert run(*program, environment=found) == LAUNCHED


def check(python: Path, library: Path, importing: Path, of_conventions: Path) -> None:
    assert run(python, library) == SAID
    assert run(python, importing, WITH_IMPORTS) == IMPORTED
    assert run(python, of_conventions, EACH, *NAMES) == EACH_SAID


def run(
    python: Path,
    library: Path,
    program: str = PROGRAM,
    *more: str,
    environment: dict[str, str] | None = None,
) -> str:
    # By itself: neither ferrule nor this environment's packages are on its path.
    command = [str(python), "-I", "-c", WITHOUT_TORCH + program, str(library), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.needs_cc
def test_ferrule_loads_what_it_exported(library: Path) -> None:
    assert str(fe.runtime.load_module(library).add_one.signature) == SIGNATURE

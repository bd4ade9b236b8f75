"""One library under every apache-tvm-ffi: called through each version's own API, without ferrule.

The environment variable FERRULE_TVM_FFI_VENVS names a folder of virtual environments that have
NumPy and a version of apache-tvm-ffi each; without it the installed version alone is tried.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from exported import WITHOUT_TORCH

import ferrule as fe
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


@pytest.mark.needs_cc
def test_the_installed_version(library: Path, importing: Path) -> None:
    assert run(Path(sys.executable), library) == SAID
    assert run(Path(sys.executable), importing, WITH_IMPORTS) == IMPORTED


@pytest.mark.needs_cc
@pytest.mark.parametrize("version", interpreters() or ["of FERRULE_TVM_FFI_VENVS"])
def test_another_version(version: str, library: Path, importing: Path) -> None:
    if version not in interpreters():
        pytest.skip("FERRULE_TVM_FFI_VENVS names no folder of virtual environments")
    assert run(interpreters()[version], library) == SAID
    assert run(interpreters()[version], importing, WITH_IMPORTS) == IMPORTED


def run(python: Path, library: Path, program: str = PROGRAM) -> str:
    # By itself: neither ferrule nor this environment's packages are on its path.
    command = [str(python), "-I", "-c", WITHOUT_TORCH + program, str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.needs_cc
def test_ferrule_loads_what_it_exported(library: Path) -> None:
    assert str(fe.runtime.load_module(library).add_one.signature) == SIGNATURE

"""Everything that a compilation reads is in its key, or is a part of what makes it.

A child compiles with an audit hook, which sees every file that Python opens, and with an
environment that notes what is asked of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import collections.abc
import os
import sys

sys.modules["torch"] = None  # tvm-ffi imports it where it is installed, which takes seconds

import numpy as np
import tvm_ffi
import ferrule as fe
from ferrule.compiler.cache.through import through
from kernels import add

n = fe.sym_int(symbol="n")
examples = [fe.make_fake_compact_tensor(fe.Float32, (n,)) for _ in range(2)]
opened, asked = set(), set()


def hook(event, arguments):
    if event in ("open", "os.listdir", "os.scandir", "subprocess.Popen", "os.system",
                 "socket.connect", "os.exec", "os.posix_spawn"):
        opened.add(f"{event} {arguments[0]}")


class Asked(dict):
    def __getitem__(self, name):
        asked.add(name)
        return super().__getitem__(name)

    def get(self, name, default=None):
        asked.add(name)
        return super().get(name, default)


class Environment(collections.abc.MutableMapping):
    def __init__(self, held): self.held = held
    def __getitem__(self, name):
        asked.add(name)
        return self.held[name]
    def __setitem__(self, name, value): self.held[name] = value
    def __delitem__(self, name): del self.held[name]
    def __iter__(self): return iter(self.held)
    def __len__(self): return len(self.held)


sys.addaudithook(hook)
os.environ = Environment(os.environ)
function = fe.compile(add, *examples, options=sys.argv[1])
print(function.origin)
print("\\n".join(sorted(opened)))
print("\\n".join(f"environment {name}" for name in sorted(asked)))
"""
KERNELS = """
import ferrule as fe


@fe.kernel
def kernel(a: fe.Tensor, b: fe.Tensor):
    i = fe.arch.block_idx()[0] * fe.arch.block_dim()[0] + fe.arch.thread_idx()[0]
    if i < a.shape[0]:
        b[i] = fe.math.exp(a[i]) + 1.0


@fe.jit
def add(a: fe.Tensor, b: fe.Tensor):
    kernel(a, b).launch(grid=(fe.ceil_div(a.shape[0], 256), 1, 1), block=(256, 1, 1))
"""

OF_THE_CACHE = {"FERRULE_CACHE", "FERRULE_CACHE_DIR", "FERRULE_CACHE_SIZE", "FERRULE_CACHE_REMOTE"}
RESOLVED = {"FERRULE_TARGET", "FERRULE_GPU_ARCH"}
"""What they choose is an option of the key."""
OF_TOOLS = {"FERRULE_MLIR", "CUDA_HOME", "CUDA_PATH", "PATH"}
"""What they choose is in the key where it is used; the same call again compares them all."""
OF_LLVM = {"LLVMLITE_ENABLE_IR_LAYER_TYPED_POINTERS"}
OF_PYTHON = {"PYTHONUSERBASE", "_PYTHON_PROJECT_BASE"}
"""What `sysconfig` asks where it is imported for the first time."""
UNIMPORTANT = {
    "FERRULE_JIT_INFO",
    "FERRULE_LOG",
    "FERRULE_NUM_THREADS",
    "HOME",
    "XDG_CACHE_HOME",
}
"""What they choose changes no byte of a compilation."""


HIT = """
import sys
sys.modules["torch"] = None
import ferrule as fe
from kernels import add

n = fe.sym_int(symbol="n")
examples = [fe.make_fake_compact_tensor(fe.Float32, (n,)) for _ in range(2)]
print(fe.compile(add, *examples, options="--target cpu").origin)
print("\\n".join(sys.modules))
"""
UNUSED = ("lowering", "codegen", "ir", "mathlib", "checks", "layouts")


def test_a_hit_imports_neither_front_end_nor_code_generator(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "program.py").write_text(HIT)
    command = [sys.executable, str(tmp_path / "program.py")]
    for wanted in ("compiled", "from the cache"):
        told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        origin, *modules = told.stdout.splitlines()
        assert origin == wanted
    assert "ferrule.language.cachekeys.walk" in modules
    assert [each for each in modules if each.startswith("ferrule.compiler.wrapper")] == []
    prefixes = tuple(f"ferrule.language.{name}." for name in UNUSED)
    assert [each for each in modules if each.startswith(prefixes)] == []


@pytest.mark.parametrize("options", ["--target cpu", "--target cuda --gpu-arch sm_80"])
def test_every_input_is_in_the_key(folder: Path, tmp_path: Path, options: str) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, str(tmp_path / "program.py"), options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    origin, *lines = done.stdout.splitlines()
    assert origin == "compiled"
    unknown = [line for line in lines if line and not is_known(line, folder, tmp_path)]
    assert unknown == []
    assert any("kernels.py" in line for line in lines)  # the hook works


def is_known(line: str, folder: Path, program: Path) -> bool:
    """Whether a file or variable is in the key, or what it says does not count."""
    event, _, what = line.partition(" ")
    if event == "environment":
        return what in OF_THE_CACHE | RESOLVED | UNIMPORTANT | OF_LLVM | OF_TOOLS | OF_PYTHON
    if event not in ("open", "os.listdir", "os.scandir"):
        return False  # no process is started, and no network is asked
    if what.isdecimal():
        return True  # a file that is open already
    path = Path(what)
    if path == program / "kernels.py" or path.is_relative_to(folder):
        return True
    if event == "os.listdir" and path == program:
        return True  # Python's own imports look for modules beside the program
    if str(path) == "/proc/cpuinfo":
        return True
    roots = [Path(sys.prefix), Path(sys.base_prefix), Path(os.__file__).parent]
    roots += [Path(each) for each in __import__("ferrule").__path__]
    roots += [Path(__import__(name).__file__).parent for name in ("llvmlite", "numpy", "tvm_ffi")]
    if path.parent.name.startswith(("apache_tvm_ffi-", "numpy-", "llvmlite-")):
        return True  # says where the package's files are
    return any(path.is_relative_to(root) for root in roots)

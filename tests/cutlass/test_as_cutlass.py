"""`import ferrule.as_cutlass`: programs that import `cutlass` run, in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

PROGRAM = """
import ferrule.as_cutlass

import cutlass
import cutlass.cute as cute
import cutlass.cute.testing as testing
import cutlass.pipeline
import cutlass.utils as utils
from cutlass import for_generate, yield_out
from cutlass._mlir.dialects import llvm
from cutlass.cute.arch.nvvm_wrappers import FULL_MASK
from cutlass.cute.nvgpu import cpasync
from cutlass.cute.runtime import from_dlpack, make_fake_compact_tensor
from cutlass.cute.typing import Boolean, Int, Int32
from cutlass.cutlass_dsl import T, dsl_user_op
from cutlass.utils.tensor_helpers import is_fp8_dtype
import numpy as np


@cute.kernel
def kernel(a: cute.Tensor, n: cutlass.Int32, k: cutlass.Constexpr):
    i = cute.arch.thread_idx()[0]
    if cutlass.dynamic_expr(i < n):
        a[i] = cute.exp2(a[i]) + cute.math.absf(cute.size_in_bytes(a.element_type, a.layout) * k)


@cute.jit
def host(a: cute.Tensor, n: cutlass.Int32, k: cutlass.Constexpr[int]):
    testing.assert_(n <= cute.size(a), "too many")
    kernel(a, n, k).launch(grid=1, block=n)


a = np.arange(4, dtype=np.float32)
host(from_dlpack(a), 3, 2)
assert a.tolist() == [33, 34, 36, 3], a
size = cute.sym_int()
assert isinstance(size, cute.SymInt) and isinstance(cutlass.Int32(3), cutlass.Integer)
compiled = cute.compile[cute.OptLevel(1)](
    host, make_fake_compact_tensor(cutlass.Float32, (size,)), 1, 2, options="--target cpu"
)
try:
    compiled(a, 5)
    raise SystemExit("no error")
except AssertionError as error:
    assert str(error) == "too many"

marked = from_dlpack(a)
assert marked.mark_layout_dynamic() is marked and isinstance(marked.shape[0], cute.SymInt)
assert marked.leading_dim == 0
assert utils.HardwareInfo().get_max_active_clusters(1 << 20) == 1
assert cutlass.Int8.is_same_kind(cutlass.Uint32) and not cutlass.Int8.is_same_kind(cutlass.Float16)


@dsl_user_op
def plus(x, y, *, loc=None, ip=None):
    return cutlass.Int32(x).ir_value(loc=loc, ip=ip) + y


@cute.jit
def generated(a: cute.Tensor, n: cutlass.Int32):
    for i in for_generate(1, n):
        a[i] = plus(i, 10)
        yield_out()


b = np.zeros(4, np.float32)
generated(from_dlpack(b), 3)
assert b.tolist() == [0, 11, 12, 0], b


def refused(statement, kind, text):
    try:
        exec(statement)
    except kind as error:
        assert type(error) is kind or kind is AttributeError, repr(error)
        assert str(error) == text, repr(error)
    else:
        raise SystemExit(statement)


LATER = "is not in ferrule, or not yet (docs/cute_names.md says what is)"
refused("from cutlass.cute import TypedTensor", ImportError, f"cutlass.cute.TypedTensor {LATER}")
refused("cute.TypedTensor", AttributeError, f"cutlass.cute.TypedTensor {LATER}")
refused("import cutlass.utils.blackwell_helpers", ModuleNotFoundError,
        f"cutlass.utils.blackwell_helpers {LATER}")
refused("from cutlass.cute.arch import add_cc", ImportError,
        "cutlass.cute.arch.add_cc is not in ferrule; instead: fe.Uint64 holds the carry of 32 "
        "bits (docs/cute_names.md)")
refused("cutlass._mlir.dialects.llvm.load", AttributeError, f"cutlass._mlir.load {LATER}")
assert cutlass._mlir.T.i32() is cutlass.Int32.mlir_type
assert "Float16" in dir(cutlass) and "exp" in dir(cute.math)
print("done")
"""
REAL = """
import sys, types
sys.modules["cutlass"] = types.ModuleType("cutlass")
import ferrule.as_cutlass
"""
STARS = """
import ferrule.as_cutlass
from cutlass import *
import cutlass
assert range is cutlass.range and Int32 is cutlass.Int32 and cute.jit and "compile" not in dir()
from cutlass.cute import *
from cutlass.cute.arch import *
from cutlass.cute.typing import *
assert kernel and compile and thread_idx and nvgpu and Float16 is cutlass.Float16
"""
NEVER = """
import sys
import ferrule as fe
fe.cutlass.cute.compile, fe.testing.benchmark
assert not any(name.partition(".")[0] == "cutlass" for name in sys.modules)
"""


def run(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "program.py"
    file.write_text(textwrap.dedent(text), encoding="utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "FERRULE_TARGET": "cpu",
    }
    return subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, check=False, env=environment
    )


def test_a_program_for_cute_dsl(tmp_path: Path) -> None:
    done = run(PROGRAM, tmp_path)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_stars_bring_the_names_of_cute_dsl(tmp_path: Path) -> None:
    done = run(STARS, tmp_path)
    assert done.returncode == 0, done.stderr


def test_it_refuses_beside_the_real_package(tmp_path: Path) -> None:
    done = run(REAL, tmp_path)
    assert done.returncode == 1
    assert "ImportError: ferrule.as_cutlass: the real package cutlass is imported" in done.stderr


def test_it_is_never_there_by_itself(tmp_path: Path) -> None:
    done = run(NEVER, tmp_path)
    assert done.returncode == 0, done.stderr

"""The tiny language of the guide: on the CPU for real, on a GPU as far as its driver is asked."""

from __future__ import annotations

import runpy
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_objects import c_compiler
from cuda_device import FakeCuda, data_ptr
from embedded import EXAMPLE, tiny_dsl
from exported import run_python
from gpu_functions import floats
from host_memory import Memory
from ptxas import assemble
from tvm_ffi import libinfo

import ferrule as fe
from ferrule.runtime import find_runtime_libraries

X = np.array([-2.5, -1, -0.0, 0, 0.1, 3, 1e38, np.inf, np.nan], np.float32)
Y = np.array([1, 2, 3, -4, 5, 6, 1e38, np.inf, 1], np.float32)


def guide() -> str:
    """The text of the page."""
    return (EXAMPLE.parents[1] / "docs" / "embedding.md").read_text(encoding="utf-8")


def axpy(alpha: float, x: Any, y: Any) -> Any:
    """alpha * x + y."""
    return alpha * x + y


def swapped(x: Any, y: Any) -> Any:
    return (1 - x) / (2.5 / y) - (0.1 + 3 * x)


def larger(x: Any, limit: float) -> Any:
    return x.maximum(limit).maximum(-1)


def constant(x: Any) -> Any:
    return 0.1


def awkward(n: Any, out: float, i: Any) -> Any:
    """Names that the code around the instructions uses too."""
    return n * out + i


def test_it_is_as_short_as_the_guide_says() -> None:
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) < 150


def test_elements_are_those_of_numpy() -> None:
    two, half = np.float32(2), np.float32(0.5)
    with np.errstate(all="ignore"):
        expected = (
            (axpy, (2.0, X, Y), two * X + Y),
            (swapped, (X, Y), swapped(X, Y)),
            (larger, (X, 0.5), np.fmax(np.fmax(X, half), -1)),
            (constant, (X,), np.full(X.shape, 0.1, np.float32)),
            (awkward, (X, 0.5, Y), X * half + Y),
        )
    for function, given, wanted in expected:
        found = np.from_dlpack(tiny_dsl().build(function)(*given))
        np.testing.assert_array_equal(found, wanted, function.__name__)


def test_a_function_says_what_it_takes_and_refuses_the_rest() -> None:
    function = tiny_dsl().build(axpy)
    assert function.__doc__ is not None and "alpha * x + y." in function.__doc__
    assert str(function.signature).endswith("y: Tensor([n0], float32)) -> Tensor([n0], float32)")
    assert np.from_dlpack(function(1, X[:0], Y[:0])).shape == (0,)
    with pytest.raises(ValueError, match=r"Mismatched y\.shape\[0\] on argument #2"):
        function(1, X, Y[1:])
    with pytest.raises(ValueError, match=r"argument #1 .*expected dtype=float32"):
        function(1, X.astype(np.float64), Y)


def test_a_gpu_is_asked_for_the_launch(fake_cuda: FakeCuda, memory: Memory) -> None:
    function = tiny_dsl().build(axpy, "cuda")
    x, y = (floats(1000) for _ in range(2))
    result = function(2.5, x, y)
    (launch,) = fake_cuda.launches()
    assert (launch.grid, launch.block, launch.smem) == ((4, 1, 1), (256, 1, 1), 0)
    out, n, alpha, *given = launch.parameters
    assert (n, alpha) == (struct.pack("<q", 1000), struct.pack("<f", 2.5))
    assert given == [struct.pack("<Q", data_ptr(each)) for each in (x, y)]
    assert out == struct.pack("<Q", data_ptr(result))
    assert (result.shape, str(result.device), memory.sizes) == ((1000,), "cuda:0", [4000])
    del result
    assert not memory.live


@pytest.mark.needs_ptxas
def test_ptxas_takes_its_kernels(tmp_path: Path) -> None:
    for function in (axpy, swapped, larger, constant, awkward):
        assemble(tiny_dsl().build(function, "cuda").inspect_ptx(), "sm_80", tmp_path)


WITHOUT_FERRULE = """
import sys
sys.modules["ferrule"] = None
import numpy, tvm_ffi
function = tvm_ffi.load_module(sys.argv[1]).axpy
x = numpy.arange(3, dtype="float32")
try:
    print(numpy.from_dlpack(function(2.0, x, x)).tolist())
    function(2.0, x, x[1:])
except ValueError as error:
    print(error)
"""


def test_a_library_of_it_runs_without_ferrule(tmp_path: Path) -> None:
    tiny_dsl().build(axpy).export_library(tmp_path / "axpy.so")
    found, error = run_python(WITHOUT_FERRULE, tmp_path / "axpy.so").splitlines()
    assert found == "[0.0, 3.0, 6.0]"
    assert error.startswith("Mismatched y.shape[0] on argument #2 when calling: `axpy(")


@pytest.mark.needs_cc
def test_the_program_in_c_of_the_guide_calls_it(tmp_path: Path) -> None:
    function, library = tiny_dsl().build(axpy), find_runtime_libraries(enable_tvm_ffi=True)[0]
    function.export_to_c(tmp_path / "axpy.o")
    function.export_header(tmp_path / "axpy.h")
    (tmp_path / "main.c").write_text(guide().split("```c\n")[1].split("```")[0])
    include = [f"-I{folder}" for folder in (tmp_path, *libinfo.include_paths())]
    linked = [*include, "main.c", "axpy.o", library, f"-Wl,-rpath,{Path(library).parent}"]
    subprocess.run([c_compiler(), *linked, "-o", "main"], check=True, cwd=tmp_path)
    assert subprocess.run([tmp_path / "main"], check=True, capture_output=True).stdout == b"9\n"


def test_it_runs_as_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("axpy(alpha: float32, x: Tensor([n0], float32)")
    assert said[1:] == ["[0. 1. 3. 5.]"]


def test_the_guide_shows_it_whole() -> None:
    """But for its first and last lines; what is shown runs with the other snippets."""
    section = guide().partition("## A language, step by step")[2].partition("\n## ")[0]
    shown = [part.partition("```")[0].strip() for part in section.split("```python\n")[1:]]
    left = EXAMPLE.read_text(encoding="utf-8")
    for part in shown:
        code = part.partition("\n\n\nfunction = ")[0]
        left = left.replace(code, "") if code in left else left
    lines = [line for line in left.partition("annotations")[2].splitlines() if line]
    assert lines[0] == 'if __name__ == "__main__":'


def test_compiled_code_and_an_overload_take_it_as_any_other() -> None:
    made = tiny_dsl().build(axpy)

    @fe.jit
    def twice(a: fe.Tensor, b: fe.Tensor):
        c = made(2.0, a, b)
        return made(2.0, c, b)

    vector = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int64(),))
    function = fe.compile(twice, vector, vector, options="--target cpu")
    ones = np.ones(2, np.float32)
    assert np.from_dlpack(function(ones, ones)).tolist() == [7, 7]
    either = fe.overload([function, made], name="either")
    assert np.from_dlpack(either(2.0, ones, ones)).tolist() == [3, 3]
    assert np.from_dlpack(either(ones, ones)).tolist() == [7, 7]

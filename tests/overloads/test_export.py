"""Overloads as files: exported, loaded again, described."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from cuda_device import FakeCuda, forged
from cuda_device import fake_cuda as fake_cuda
from tvm_ffi import libinfo

import ferrule as fe
from ferrule.runtime import load_module
from ferrule.runtime.binaries.objectfile import read_object
from ferrule.runtime.cfunctions import C_FUNCTIONS
from ferrule.specs import Overloads, parse_signature

N = fe.sym_int(symbol="n")


def vector(dtype: Any) -> Any:
    return fe.make_fake_compact_tensor(dtype, (N,))


@fe.kernel
def doubling_kernel(a: fe.Tensor, b: fe.Tensor):
    b[fe.arch.thread_idx()[0]] = a[fe.arch.thread_idx()[0]] * 2


@fe.jit
def doubled(a: fe.Tensor, b: fe.Tensor):
    """Twice a."""
    doubling_kernel(a, b).launch(grid=1, block=a.shape[0])


def number(k: fe.Int32):
    return k


def text(k: str):
    return k, 1


def compiled(function: Any, *examples: Any, target: str = "cpu") -> fe.Function:
    return fe.compile(function, *examples, options=f"--target {target}")


def free(target: str = "cpu") -> fe.Function:
    t = fe.sym_dtype(fe.Float32, fe.Int16)
    return compiled(doubled, vector(t), vector(t), target=target)


@pytest.fixture(scope="module")
def joined() -> fe.Function:
    return fe.overload([compiled(number, fe.Int32), compiled(text, "")], "joined")


def check(double: Any) -> None:
    for dtype in (np.float32, np.int16):
        a, b = np.arange(3).astype(dtype), np.zeros(3, dtype)
        double(a, b)
        assert b.tolist() == [0, 2, 4]


@pytest.mark.parametrize("name", ["doubled", "twice"])
def test_an_object_gives_the_same_function_back(tmp_path, name):
    made = free()
    made.export_to_c(tmp_path / "f.o", name)
    loaded = load_module(tmp_path / "f.o")[name]
    assert loaded.signature == made.signature.renamed(name)
    assert str(loaded.signature) == str(made.signature).replace("doubled", name)
    assert loaded.__doc__ == made.__doc__.replace("doubled", name)
    check(loaded)
    a = np.zeros(3, np.float32)
    loaded(b=a, a=a)
    with pytest.raises(ValueError, match="expected dtype=float32 or int16, but got dtype=int8"):
        loaded(a.astype(np.int8), a)


def test_what_comes_back_keeps_counts_and_containers(joined, tmp_path):
    joined.export_to_c(tmp_path / "f.o")
    loaded = load_module(tmp_path / "f.o")["joined"]
    assert [loaded(3), loaded("x"), loaded(k=4)] == [3, ("x", 1), 4]
    copied = pickle.loads(pickle.dumps(joined))
    assert copied("y") == ("y", 1) and copied.signature == joined.signature


@pytest.mark.needs_cc
def test_a_library_serves_tvm_ffi_alone(joined, tmp_path):
    fe.export_library(tmp_path / "f.so", [joined, free()])
    module = tvm_ffi.load_module(str(tmp_path / "f.so"))
    check(module.doubled)
    assert module.joined(7) == 7
    schema = json.loads(module.get_function_metadata("joined")["type_schema"])
    int_or_str = {"type": "Variant", "args": [{"type": "int"}, {"type": "ffi.String"}]}
    assert schema["args"][1] == int_or_str


def test_nothing_but_the_function_is_visible(tmp_path):
    free().export_to_c(tmp_path / "f.o")
    header = read_object((tmp_path / "f.o").read_bytes())
    assert sorted(header.defined) == [
        "__tvm_ffi__doc_doubled",
        "__tvm_ffi__metadata_doubled",
        "__tvm_ffi_doubled",
    ]
    assert set(header.undefined) <= C_FUNCTIONS.keys()


def test_the_same_functions_give_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        free().export_to_c(tmp_path / f"{name}.o", "f")
    assert (tmp_path / "a.o").read_bytes() == (tmp_path / "b.o").read_bytes()


def test_other_platforms_and_forms(joined, tmp_path):
    apart = compiled(number, fe.Int32, target="cpu --host-target aarch64-linux-gnu")
    fe.overload([apart, apart]).export_to_c(tmp_path / "f.o")
    assert (tmp_path / "f.o").read_bytes()[18] == 183
    joined.export_to_c(tmp_path / "f.ll")
    assert "define i32 @__tvm_ffi_joined(" in (tmp_path / "f.ll").read_text()
    assert joined.inspect_ir().count("program @") == 2
    assert "ferrule_refuse" in joined.inspect_llvm() and "joined.candidate1" in joined.inspect_asm()


def test_headers_and_stubs_tell_of_every_candidate(joined, tmp_path):
    joined.export_header(tmp_path / "f.h")
    header = (tmp_path / "f.h").read_text()
    assert "static inline int joined(TVMFFIAny k, TVMFFIAny* result) {" in header
    assert " * k: int32 | str\n" in header
    joined.export_stub(tmp_path / "f.pyi")
    stub = (tmp_path / "f.pyi").read_text()
    assert (
        'def joined(k: int | str) -> Any:\n    """joined(k: int32) -> int32 | joined(k: str)'
        in (stub)
    )


PROGRAM = """
#include <stdio.h>
#include "f.h"
int main(void) {
  float x[2] = {1, 2}, y[2];
  int16_t s[2] = {3, 4}, t[2];
  int64_t n = 2, one = 1;
  DLTensor a = {x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &n, &one, 0}, b = a, c = a, d;
  b.data = y;
  c.dtype.code = kDLInt; c.dtype.bits = 16; c.data = s;
  d = c; d.data = t;
  int good = doubled(&a, &b) | doubled(&c, &d);
  printf("%d %g %d %d\\n", good, y[1], t[1], doubled(&a, &d));
  return 0;
}
"""


@pytest.mark.needs_cc
def test_a_program_in_c_calls_it(tmp_path):
    free().export_to_c(tmp_path / "f.o")
    free().export_header(tmp_path / "f.h")
    (tmp_path / "main.c").write_text(PROGRAM)
    library = libinfo.find_libtvm_ffi()
    include = [f"-I{path}" for path in libinfo.include_paths()]
    compiler = next(filter(shutil.which, ("cc", "gcc", "clang")))
    folder = str(library).rsplit("/", 1)[0]
    command = [compiler, "main.c", "f.o", "-o", "main", library, f"-Wl,-rpath,{folder}", *include]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.check_output(["./main"], cwd=tmp_path, text=True) == "0 4 8 -1\n"


def test_on_a_gpu_the_kernel_of_the_dtype_is_launched(fake_cuda: FakeCuda):
    double = free("cuda --gpu-arch sm_90a")
    for dtype in (np.int16, np.float32):
        double(forged(np.zeros(4, dtype), 1), forged(np.zeros(4, dtype), 1))
    assert [launch.kernel for launch in fake_cuda.launches()] == ["doubling_kernel"] * 2


def test_one_function_for_the_cpu_and_for_a_gpu(fake_cuda: FakeCuda):
    examples = vector(fe.Float32), vector(fe.Float32)
    targets = ("cpu", "cuda --gpu-arch sm_90a")
    both = fe.overload([compiled(doubled, *examples, target=each) for each in targets])
    a, b = np.ones(4, np.float32), np.zeros(4, np.float32)
    both(a, b)
    assert (b == 2).all() and not fake_cuda.launches()
    both(forged(a), forged(b))
    assert len(fake_cuda.launches()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "f(k: int32)\nf(k: str) -> str",
        "# (a: Tensor([n], T)) where T: float16 | int8\n"
        "f(a: Tensor([n], float16, device=cpu)) where n: int32\n"
        "f(a: Tensor([n], int8, device=cpu, exact=True)) where n: int32",
    ],
)
def test_the_text_of_a_signature_can_be_read_back(text):
    signature = parse_signature(text)
    assert isinstance(signature, Overloads)
    assert signature.text() == text
    assert signature == parse_signature(signature.text())

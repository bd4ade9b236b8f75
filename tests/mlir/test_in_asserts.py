"""Assertions of MLIR functions, those of the module and those that are added, as errors."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlir_functions import needs_mlir

import ferrule as fe
from ferrule.compiler.errors import CompileError
from ferrule.frontends import mlir
from ferrule.specs import Signature, Tensor, sym_int

pytestmark = needs_mlir

MATMUL = """
func.func @matmul(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) {
  linalg.matmul ins(%a, %b : memref<?x?xf32>, memref<?x?xf32>) outs(%c : memref<?x?xf32>)
  return
}
"""
BY_AFFINE_VECTORS = (
    "builtin.module(func.func(convert-linalg-to-affine-loops,"
    "affine-super-vectorize{virtual-vector-size=8}),lower-affine,convert-vector-to-scf,"
    "convert-scf-to-cf,convert-vector-to-llvm,convert-ub-to-llvm,expand-strided-metadata,finalize-memref-to-llvm,"
    "convert-arith-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)"
)


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def failed(fn: fe.Function, *arguments: Any) -> str:
    """What the RuntimeError of a call says."""
    with pytest.raises(RuntimeError) as caught:
        fn(*arguments)
    return str(caught.value)


# ---- assertions of the module ----

CALLS = """
func.func private @half(%i: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %done = arith.cmpi eq, %i, %c0 : index
  %r = scf.if %done -> index {
    scf.yield %c0 : index
  } else {
    %even = arith.cmpi ne, %i, %c1 : index
    cf.assert %even, "100% {odd} \\22%s\\22"
    %c2 = arith.constant 2 : index
    %less = arith.subi %i, %c2 : index
    %inner = func.call @half(%less) : (index) -> index
    %more = arith.addi %inner, %c1 : index
    scf.yield %more : index
  }
  return %r : index
}
func.func @halves(%x: memref<?xi64>) -> (memref<?xi64>, i64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xi64>
  %all = memref.alloc(%n) : memref<?xi64>
  %zero = arith.constant 0 : i64
  CALLED
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%before = %zero) -> i64 {
    %v = memref.load %x[%i] : memref<?xi64>
    %given = arith.index_cast %v : i64 to index
    %half = CALL(%given) : (index) -> index
    %h = arith.index_cast %half : index to i64
    memref.store %h, %all[%i] : memref<?xi64>
    %after = arith.addi %before, %h : i64
    scf.yield %after : i64
  }
  return %all, %sum : memref<?xi64>, i64
}
"""


@pytest.mark.parametrize(
    ("called", "call"),
    [
        ("", "func.call @half"),
        ("%f = func.constant @half : (index) -> index", "func.call_indirect %f"),
    ],
)
def test_an_assertion_ends_the_call_from_any_depth(called: str, call: str) -> None:
    text = CALLS.replace("CALLED", called).replace("CALL(", f"{call}(")
    fn = mlir.compile(text)
    for _ in range(2):
        halves, total = fn(np.array([0, 2, 8]))
        assert np.from_dlpack(halves).tolist() == [0, 1, 4]
        assert total == 5
        assert failed(fn, np.array([2, 7, 4])) == 'halves: 100% {odd} "%s"'


def test_what_comes_before_an_assertion_is_done_and_what_comes_behind_is_not() -> None:
    fn = mlir.compile("""
        func.func @until(%x: memref<?xf32>, %end: index, %v: f32) {
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %n = memref.dim %x, %c0 : memref<?xf32>
          scf.parallel (%i) = (%c0) to (%n) step (%c1) {
            %ok = arith.cmpi ult, %i, %end : index
            cf.assert %ok, "beyond the end"
            memref.store %v, %x[%i] : memref<?xf32>
            scf.reduce
          }
          return
        }
    """)
    x = np.zeros(4, np.float32)
    assert failed(fn, x, 2, 1.5) == "until: beyond the end"
    assert x.tolist() == [1.5, 1.5, 0, 0]
    fn(x, 4, 2.5)
    assert x.tolist() == [2.5] * 4


@pytest.mark.parametrize("result", ["i1", "i64", "f32", "bf16"])
def test_a_number_is_not_given_back_where_an_assertion_fails(result: str) -> None:
    fn = mlir.compile(f"""
        func.func @same(%x: {result}, %fine: i1) -> {result} {{
          cf.assert %fine, "not fine"
          return %x : {result}
        }}
    """)
    assert fn(1, True) == 1
    assert failed(fn, 1, False) == "same: not fine"


def test_an_assertion_that_never_holds_leaves_no_result_to_return() -> None:
    fn = mlir.compile("""
        func.func @never() -> i64 {
          %no = arith.constant false
          cf.assert %no, "not at all"
          %x = arith.constant 3 : i64
          return %x : i64
        }
    """)
    assert failed(fn) == "never: not at all"


def test_an_assertion_can_be_in_what_linalg_does_for_each_element() -> None:
    """As in torch's embeddings, whose indices are asserted to be in range."""
    fn = mlir.compile("""
        #row = affine_map<(i, j) -> (i)>
        #all = affine_map<(i, j) -> (i, j)>
        func.func @rows(%table: tensor<50x8xf32>, %at: tensor<?xi64>) -> tensor<?x8xf32> {
          %c0 = arith.constant 0 : index
          %n = tensor.dim %at, %c0 : tensor<?xi64>
          %empty = tensor.empty(%n) : tensor<?x8xf32>
          %r = linalg.generic
            {indexing_maps = [#row, #all], iterator_types = ["parallel", "parallel"]}
            ins(%at : tensor<?xi64>) outs(%empty : tensor<?x8xf32>) {
          ^bb0(%index: i64, %old: f32):
            %end = arith.constant 50 : i64
            %inside = arith.cmpi ult, %index, %end : i64
            cf.assert %inside, "index must be smaller than dim size"
            %row = arith.index_cast %index : i64 to index
            %j = linalg.index 1 : index
            %v = tensor.extract %table[%row, %j] : tensor<50x8xf32>
            linalg.yield %v : f32
          } -> tensor<?x8xf32>
          return %r : tensor<?x8xf32>
        }
    """)
    table = np.arange(400, dtype=np.float32).reshape(50, 8)
    assert (np.from_dlpack(fn(table, np.array([3, 49]))) == table[[3, 49]]).all()
    for wrong in (50, -1, 10**12):
        assert failed(fn, table, np.array([3, wrong])).startswith("rows: index must be smaller")


OPEN_MP = (
    "builtin.module(convert-scf-to-openmp,expand-strided-metadata,finalize-memref-to-llvm,"
    "convert-scf-to-cf,convert-arith-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,"
    "convert-openmp-to-llvm,reconcile-unrealized-casts)"
)
IN_PARALLEL = """
func.func @all(%x: memref<?xf32>, %flags: memref<?xi1>, %v: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %fine = memref.load %flags[%i] : memref<?xi1>
    cf.assert %fine, "in parallel"
    memref.store %v, %x[%i] : memref<?xf32>
    scf.reduce
  }
  %first = memref.load %x[%c0] : memref<?xf32>
  return %first : f32
}
"""
ONE_THREAD = r"""
#include <stdarg.h>
#include <stdint.h>
struct ident;
int __kmpc_global_thread_num(struct ident *at) { return 0; }
void __kmpc_barrier(struct ident *at, int thread) {}
void __kmpc_for_static_fini(struct ident *at, int thread) {}
void __kmpc_for_static_init_8u(struct ident *at, int thread, int kind, int *last, uint64_t *low,
                               uint64_t *high, int64_t *stride, int64_t step, int64_t chunk) {
  *last = 1;
  *stride = *high - *low + 1;
}
void __kmpc_fork_call(struct ident *at, int count, void (*body)(int *, int *, void *), ...) {
  int thread = 0;
  va_list more;
  va_start(more, body);
  void *given = count ? va_arg(more, void *) : 0;
  va_end(more);
  body(&thread, &thread, given);
}
"""


def test_an_assertion_in_a_loop_of_openmp_ends_its_iteration_and_then_the_call(
    tmp_path: Path,
) -> None:
    """With a runtime of one thread, for LLVM's is not everywhere."""
    source, library = tmp_path / "one.c", tmp_path / "libone.so"
    source.write_text(ONE_THREAD)
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", library, source], check=True)
    fn = mlir.compile(IN_PARALLEL, pipeline=OPEN_MP, libraries=[str(library)])
    x = np.zeros(3, np.float32)
    assert fn(x, np.array([True, True, True]), 1.5) == 1.5
    assert failed(fn, x, np.array([True, False, True]), 2.5) == "all: in parallel"
    assert x[1] == 1.5
    assert fn(x, np.array([True, True, True]), 3.5) == 3.5


# ---- what was allocated until then ----

ROOM = 1 << 16
ALLOCATES = """
func.func private @filled(%n: index, %v: f32, %limit: f32) -> memref<?xf32> {
  %inner = memref.alloc(%n) : memref<?xf32>
  linalg.fill ins(%v : f32) outs(%inner : memref<?xf32>)
  %less = arith.cmpf olt, %v, %limit : f32
  cf.assert %less, "beyond the limit"
  return %inner : memref<?xf32>
}
func.func private @room(%n: index) -> memref<?xf32> {
  %made = memref.alloc(%n) : memref<?xf32>
  return %made : memref<?xf32>
}
func.func @last(%n: index, %limit: f32) -> (memref<?xf32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant 1.0 : f32
  %result = func.call @room(%n) : (index) -> memref<?xf32>
  %start = func.call @filled(%n, %one, %limit) : (index, f32, f32) -> memref<?xf32>
  %last = scf.for %i = %c0 to %c4 step %c1 iter_args(%old = %start) -> (memref<?xf32>) {
    %before = memref.load %old[%c0] : memref<?xf32>
    %more = arith.addf %before, %one : f32
    %own = memref.alloc(%n) : memref<?xf32>
    memref.store %more, %own[%c0] : memref<?xf32>
    %new = func.call @filled(%n, %more, %limit) : (index, f32, f32) -> memref<?xf32>
    memref.dealloc %own : memref<?xf32>
    memref.dealloc %old : memref<?xf32>
    scf.yield %new : memref<?xf32>
  }
  memref.copy %last, %result : memref<?xf32> to memref<?xf32>
  %v = memref.load %last[%c0] : memref<?xf32>
  memref.dealloc %last : memref<?xf32>
  return %result, %v : memref<?xf32>, f32
}
"""


class _Used(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks"),
            *("uordblks", "fordblks", "keepcost"),
        )
    ]


def allocated() -> int:
    """The bytes that malloc has given out."""
    try:
        said = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        pytest.skip("the C library has no mallinfo2")
    said.restype = _Used
    used = said()
    return int(used.uordblks + used.hblkhd)


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_what_was_allocated_until_an_assertion_failed_is_freed(limit: int) -> None:
    """At different depths, in a loop that hands its memory on, and in a function that is called."""
    fn = mlir.compile(ALLOCATES, "last")
    result, value = fn(ROOM, 100)
    assert value == 5 and (np.from_dlpack(result) == 5).all()
    assert failed(fn, ROOM, limit) == "last: beyond the limit"
    before = allocated()
    for _ in range(50):
        failed(fn, ROOM, limit)
    assert allocated() - before < ROOM
    for _ in range(50):
        fn(ROOM, 100)
    assert allocated() - before < ROOM


def test_small_memory_has_its_bytes_for_itself() -> None:
    """What finds an allocation again lies behind its bytes, whatever their number."""
    text = ALLOCATES.replace("xf32", "xi8").replace("f32", "i8").replace("1.0", "1")
    text = text.replace("arith.cmpf olt", "arith.cmpi ult").replace("addf", "addi")
    fn = mlir.compile(text, "last")
    for size in range(1, 10):
        result, value = fn(size, 100)
        assert value == 5 and np.from_dlpack(result).tolist() == [5] * size
        assert failed(fn, size, 3) == "last: beyond the limit"


def test_memory_of_a_parallel_loop_is_freed(tmp_path: Path) -> None:
    source, library = tmp_path / "one.c", tmp_path / "libone.so"
    source.write_text(ONE_THREAD)
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", library, source], check=True)
    text = IN_PARALLEL.replace(
        "%fine =",
        f"%room = memref.alloc() : memref<{ROOM}xf32>\n"
        f"    memref.store %v, %room[%i] : memref<{ROOM}xf32>\n    %fine =",
    ).replace("    scf.reduce", f"    memref.dealloc %room : memref<{ROOM}xf32>\n    scf.reduce")
    fn = mlir.compile(text, pipeline=OPEN_MP, libraries=[str(library)])
    x, flags = np.zeros(3, np.float32), np.array([True, False, False])
    failed(fn, x, flags, 1.5)
    before = allocated()
    for _ in range(20):
        assert failed(fn, x, flags, 2.5) == "all: in parallel"
        assert fn(x, ~flags | flags, 3.5) == 3.5
    assert allocated() - before < ROOM


def test_memory_that_a_library_is_handed_is_left_to_it(tmp_path: Path) -> None:
    """It may have freed it."""
    source, library = tmp_path / "eat.c", tmp_path / "libeat.so"
    source.write_text(
        "#include <stdlib.h>\n"
        "void eat(void *start, float *at, long offset, long n, long step) { free(start); }\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    text = """
    func.func private @eat(memref<?xf32>)
    func.func @eaten(%n: index, %fine: i1) {
      %room = memref.alloc(%n) : memref<?xf32>
      func.call @eat(%room) : (memref<?xf32>) -> ()
      %more = memref.alloc(%n) : memref<?xf32>
      cf.assert %fine, "not fine"
      memref.dealloc %more : memref<?xf32>
      return
    }
    """
    fn = mlir.compile(text, "eaten", libraries=[str(library)])
    for _ in range(3):
        fn(ROOM, True)
        assert failed(fn, ROOM, False) == "eaten: not fine"


ASSERTS = """
func.func @f(%flag: i1) -> i1 {
  cf.assert %flag, "no"
  return %flag : i1
}
"""


def test_assertions_can_be_left_out() -> None:
    fn = mlir.compile(ASSERTS, asserts=False)
    assert fn(False) is False


def test_nothing_of_what_upstream_does_is_left(tmp_path: Path) -> None:
    fn = mlir.compile(ASSERTS)
    assert failed(fn, False) == "f: no"
    fn.export_library(tmp_path / "f.so")
    shown = subprocess.run(
        ["nm", "-D", tmp_path / "f.so"], capture_output=True, text=True, check=True
    )
    assert "abort" not in shown.stdout and "puts" not in shown.stdout


CALLER = """
import sys, tvm_ffi
fn = tvm_ffi.load_module(sys.argv[1])["f"]
print(fn(True))
try:
    fn(False)
except RuntimeError as error:
    print(error)
"""


def test_what_is_exported_raises_too(tmp_path: Path) -> None:
    from exported import run_python

    mlir.compile(ASSERTS).export_library(tmp_path / "f.so")
    assert run_python(CALLER, tmp_path / "f.so") == "True\nf: no\n"


KERNEL = """
func.func @f(%x: memref<?xf32>, %flag: i1) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%a, %b, %c) in (%d = %c1, %e = %c1, %g = %c1)
             threads(%h, %i, %j) in (%k = %c1, %l = %c1, %m = %c1) {
    cf.assert %flag, "no"
    gpu.terminator
  }
  return
}
"""


def test_an_assertion_of_a_kernel_is_one_of_the_gpu() -> None:
    """`emulated_mlir` lets one fail."""
    assert "__assertfail" in str(mlir.compile(KERNEL, target="sm_90").inspect_ptx())
    with pytest.raises(CompileError, match="@f launches nothing"):
        mlir.compile(KERNEL, target="sm_90", asserts=False)


SIZED = """
func.func @f(%x: memref<?xf32>, %y: memref<?xf32>, %z: memref<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %most = arith.constant 2147483647 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %m = memref.dim %y, %c0 : memref<?xf32>
  %k = memref.dim %z, %c0 : memref<?x8xf32>
  %same = arith.cmpi eq, %n, %m : index
  cf.assert %same, "as many"
  %rest = arith.remui %n, %c4 : index
  %whole = arith.cmpi eq, %rest, %c0 : index
  cf.assert %whole, "fours"
  %fits = arith.cmpi ule, %m, %most : index
  cf.assert %fits, "32 bits"
  LAUNCH
  return
}
"""
"""Its sizes are asserted; `LAUNCH` is replaced."""
LAUNCHED = """
  %double = arith.muli %m, %c4 : index
  %related = arith.cmpi eq, %k, %double : index
  cf.assert %related, "four for each"
  gpu.launch blocks(%a, %b, %c) in (%d = %n, %e = %c1, %g = %c1)
             threads(%h, %i, %j) in (%o = %c1, %p = %c1, %q = %c1) {
    %v = memref.load %x[%a] : memref<?xf32>
    memref.store %v, %y[%a] : memref<?xf32>
    memref.store %v, %z[%a, %c1] : memref<?x8xf32>
    gpu.terminator
  }
"""


def test_asserted_sizes_are_symbols_of_the_signature() -> None:
    """On a CPU, and for a function that launches kernels, which runs no code between them."""
    for text, target, third in (
        (SIZED.replace("LAUNCH", ""), "cpu", "n1"),
        (SIZED.replace("LAUNCH", LAUNCHED), "sm_90", "n0 * 4"),
    ):
        found = mlir.compile(text, target=target)
        shapes = f"x: Tensor([n0], float32), y: Tensor([n0], float32), z: Tensor([{third}, 8]"
        assert str(found.signature).startswith(f"f({shapes}"), found.signature
        (symbol,) = found.signature.params[0].shape  # type: ignore[union-attr]
        assert (symbol.width, symbol.divisibility) == (32, 4)


@pytest.mark.parametrize(
    ("dims", "said"),
    [
        ((("n", 32, 4), ("m", 32, 4)), "x.shape[0] and y.shape[0] that its specs do not ensure"),
        ((("n", 32, 2), ("n", 32, 2)), "got n\n  expected: a multiple of 4"),
        ((("n", 64, 4), ("n", 64, 4)), "got n of 64 bits\n  expected: a size of 32 bits"),
        ((("n", 32, 4), ("n", 32, 4)), "z.shape[0] that its specs do not ensure: got k"),
    ],
)
def test_specs_must_ensure_what_a_launching_function_asserts(dims: Any, said: str) -> None:
    shapes = [(sym_int(width, divisibility=by, symbol=name),) for name, width, by in dims]
    specs = {
        **{name: Tensor(name, shape, "float32") for name, shape in zip("xy", shapes, strict=True)},
        "z": Tensor("z", (sym_int(symbol="k"), 8), "float32"),
    }
    text = SIZED.replace("LAUNCH", LAUNCHED)
    with pytest.raises(CompileError, match=re.escape(said)):
        mlir.compile(text, target="sm_90", signature=Signature("f", list(specs.values())))


def test_assertions_of_what_no_host_code_decides_are_refused() -> None:
    more = '%less = arith.cmpf ult, %f, %f : f32\ncf.assert %less, "no"\n'
    text = SIZED.replace("LAUNCH", more + LAUNCHED).replace("@f(", "@f(%f: f32, ")
    said = "(?s)asserts something that no host code decides.*note: arith.cmpf cannot be part"
    with pytest.raises(CompileError, match=said):
        mlir.compile(text, target="sm_90")


# ---- assertions that are added ----

COPY = """
func.func @copy(%x: memref<?xf32>, %y: memref<?xf32>, %really: i1) {
  scf.if %really {
    memref.copy %x, %y : memref<?xf32> to memref<?xf32>
  }
  return
}
"""


def test_sizes_that_an_operation_needs_are_checked_where_it_is_executed() -> None:
    fn = mlir.compile(COPY)
    fn(ones(6), np.zeros(2, np.float32), False)
    y = np.zeros(6, np.float32)[:2]
    said = failed(fn, ones(6), y, True)
    assert said.startswith("copy: memref.copy in line 4 of the module: size of 0-th source")
    assert y.base.tolist() == [0] * 6


def test_a_convolution_keeps_to_its_image() -> None:
    kind = "memref<?x?x?x?xf32>"
    fn = mlir.compile(f"""
        func.func @conv(%x: {kind}, %w: {kind}, %y: {kind}) {{
          linalg.conv_2d_nhwc_hwcf ins(%x, %w : {kind}, {kind}) outs(%y : {kind})
          return
        }}
    """)
    y = np.zeros((2, 6, 6, 5), np.float32)
    fn(ones(2, 8, 8, 3), ones(3, 3, 3, 5), y)
    assert (y == 27).all()
    assert "linalg.conv_2d_nhwc_hwcf in line 3" in failed(
        fn, ones(2, 8, 8, 3), ones(3, 3, 3, 5), np.zeros((2, 7, 6, 5), np.float32)
    )
    with pytest.raises(ValueError, match=r"expected to match x.shape\[3\] = 3, but got 4"):
        fn(ones(2, 8, 8, 3), ones(3, 3, 4, 5), y)


@pytest.mark.parametrize("sizes", [(0, 3, 4), (2, 0, 4), (2, 3, 0), (0, 0, 0)])
def test_empty_operands_fit(sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    c = ones(m, n)
    mlir.compile(MATMUL)(ones(m, k), ones(k, n), c)
    assert (c == 1 + k).all()


LOAD = """
func.func @at(%x: memref<?xf32>, %i: index) -> f32 {
  %v = memref.load %x[%i] : memref<?xf32>
  return %v : f32
}
"""


def test_loads_are_checked_where_that_is_asked_for() -> None:
    fn = mlir.compile(LOAD, checks=True)
    assert fn(ones(3), 2) == 1
    for wrong in (3, -1):
        assert failed(fn, ones(3), wrong) == (
            "at: memref.load in line 3 of the module: out-of-bounds access"
        )


def test_a_pipeline_of_the_user_can_be_checked_too() -> None:
    text = LOAD.replace("@at", "@through")
    passes = (
        "builtin.module(expand-strided-metadata,finalize-memref-to-llvm,convert-arith-to-llvm,"
        "convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)"
    )
    fn = mlir.compile(text, pipeline=passes, checks=True)
    assert fn(ones(3), 2) == 1
    assert "out-of-bounds" in failed(fn, ones(3), 3)
    c = np.zeros((2, 8), np.float32)
    mlir.compile(MATMUL, pipeline=BY_AFFINE_VECTORS, checks=True)(ones(2, 3), ones(3, 8), c)
    assert (c == 3).all()


VECTORS = {
    "vector.load": "%r = vector.load %x[%i] : memref<?xf32>, vector<8xf32>",
    "vector.store": "vector.store %w, %x[%i] : memref<?xf32>, vector<8xf32>",
    "vector.maskedload": "%r = vector.maskedload %x[%i], %k, %w : memref<?xf32>, vector<8xi1>, "
    "vector<8xf32> into vector<8xf32>",
    "vector.transfer_read": "%r = vector.transfer_read %x[%i], %v {in_bounds = [true]} : "
    "memref<?xf32>, vector<8xf32>",
    "affine.vector_load": "%r = affine.vector_load %x[%i] : memref<?xf32>, vector<8xf32>",
}


@pytest.mark.parametrize("name", VECTORS)
def test_vectors_whose_indices_nobody_checks_are_refused_with_checks(name: str) -> None:
    text = f"""
        func.func @f(%x: memref<?xf32>, %i: index, %v: f32) {{
          %w = vector.broadcast %v : f32 to vector<8xf32>
          %k = vector.create_mask %i : vector<8xi1>
          {VECTORS[name]}
          vector.store %w, %x[%i] : memref<?xf32>, vector<8xf32>
          return
        }}
    """
    known = name.replace("affine.vector_", "vector.")
    with pytest.raises(CompileError, match=rf"checks=True cannot check the indices of {known}"):
        mlir.compile(text, checks=True)
    with pytest.raises(CompileError, match=rf"checks=True cannot check the indices of {name}"):
        mlir.compile(text, checks=True, pipeline="builtin.module()")


def test_loads_and_stores_of_affine_are_checked() -> None:
    fn = mlir.compile(LOAD.replace("memref.load", "affine.load"), checks=True)
    assert fn(ones(3), 2) == 1
    assert "out-of-bounds access" in failed(fn, ones(3), 3)


# ---- what no call checks is not promised ----


@pytest.mark.parametrize("promise", ["llvm.align = 4096 : i64", "llvm.noalias, llvm.readonly"])
def test_what_the_module_says_of_addresses_is_no_promise(promise: str) -> None:
    fn = mlir.compile(f"""
        func.func @next(%x: memref<?xf32> {{{promise}}}, %i: i32 {{llvm.range =
            #llvm.constant_range<i32, 0, 5>}}) -> i1 {{
          %five = arith.constant 5 : i32
          %less = arith.cmpi slt, %i, %five : i32
          return %less : i1
        }}
    """)
    assert fn(ones(3), 4) is True
    assert fn(ones(3), 7) is False

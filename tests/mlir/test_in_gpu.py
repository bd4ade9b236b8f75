"""GPU modules of MLIR: outlined, lowered to PTX, launched by the wrapper of a call."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from cuda_device import FakeCuda, data_ptr
from cuda_device import fake_cuda as fake_cuda
from gpu_functions import floats
from mlir_functions import needs_mlir
from ptxas import assemble

from ferrule import specs
from ferrule.compiler.errors import CompileError
from ferrule.frontends import fixed, mlir

pytestmark = needs_mlir

SM_90A = "--gpu-arch sm_90a"
SCALE = """
func.func @scale(%x: memref<?xf32>, %y: memref<?x4xf32, strided<[?, 1], offset: ?>>,
                 %n: index, %by: f32, %flag: i1, %k: i32) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %grid = arith.ceildivsi %n, %c128 : index
  gpu.launch blocks(%bx, %by_, %bz) in (%gx = %grid, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %first = arith.muli %bx, %c128 : index
    %i = arith.addi %first, %tx : index
    %inside = arith.cmpi slt, %i, %n : index
    %both = arith.andi %inside, %flag : i1
    scf.if %both {
      %v = memref.load %x[%i] : memref<?xf32>
      %k32 = arith.sitofp %k : i32 to f32
      %w = arith.mulf %v, %by : f32
      %u = arith.addf %w, %k32 : f32
      memref.store %u, %y[%i, %c1] : memref<?x4xf32, strided<[?, 1], offset: ?>>
    }
    gpu.terminator
  }
  return
}
"""


def packed(text: str, *values: Any) -> list[bytes]:
    return [struct.pack(f"<{kind}", value) for kind, value in zip(text, values, strict=True)]


def body(*lines: str, arguments: str = "%x: memref<?xf32>, %n: index") -> str:
    return "\n".join([f"func.func @f({arguments}) {{", *lines, "return", "}"])


def launch(x: str = "%c1", block: str = "%c1", *, inside: str = "") -> str:
    return (
        f"gpu.launch blocks(%bx, %by, %bz) in (%gx = {x}, %gy = %c1, %gz = %c1) "
        f"threads(%tx, %ty, %tz) in (%sx = {block}, %sy = %c1, %sz = %c1) {{ {inside}\n"
        f"%z = arith.constant 0.0 : f32\nmemref.store %z, %x[%tx] : memref<?xf32>\n"
        f"gpu.terminator }}"
    )


def ptx_of(text: str) -> str:
    found = mlir.compile(text, options=SM_90A).inspect_ptx()
    assert isinstance(found, str)
    return found


ONE = "%c1 = arith.constant 1 : index"


def test_kernels_are_compiled_for_each_architecture_of_the_target() -> None:
    found = mlir.compile(SCALE, target=["sm_80", "sm_90a"]).inspect_ptx()
    assert isinstance(found, dict) and sorted(found) == ["sm_80", "sm_90a"]


def test_a_kernel_gets_descriptors_and_numbers(fake_cuda: FakeCuda) -> None:
    fn = mlir.compile(SCALE, target="sm_90a")
    x, y = floats(1000), floats(1000, 4)
    fn(x, y, 1000, 2.5, True, -3)
    (found,) = fake_cuda.launches()
    at, to = data_ptr(x), data_ptr(y)
    assert (found.kernel, found.grid, found.block) == ("scale_kernel", (8, 1, 1), (128, 1, 1))
    wanted = {
        *packed("qqq", 128, 1000, 1),
        *packed("fi", 2.5, -3),
        *packed("QQ", at, to),
        *packed("qqqqq", 0, 1000, 4, 1, 4),
        b"\1",
    }
    assert set(found.parameters) == wanted


@pytest.mark.needs_ptxas
def test_the_ptx_of_a_kernel_assembles(tmp_path: Path) -> None:
    assemble(ptx_of(SCALE), "sm_90a", tmp_path)


def test_what_gives_no_grid_launches_nothing(fake_cuda: FakeCuda) -> None:
    fn = mlir.compile(SCALE, options=SM_90A)
    fn(floats(0), floats(0, 4), 0, 1.0, False, 0)
    assert fake_cuda.launches() == []


def test_sizes_follow_from_arguments(fake_cuda: FakeCuda) -> None:
    text = body(
        ONE,
        "%c0 = arith.constant 0 : index",
        "%d = memref.dim %x, %c0 : memref<?xf32>",
        "%g = affine.apply affine_map<(a)[s] -> ((a + s * 2) ceildiv 32)>(%d)[%n]",
        "%b = affine.min affine_map<(a) -> (a, 64)>(%d)",
        launch("%g", "%b"),
    )
    fn = mlir.compile(text, options=SM_90A)
    fn(floats(100), 7)
    (found,) = fake_cuda.launches()
    assert (found.grid, found.block) == ((4, 1, 1), (64, 1, 1))


def test_launches_are_made_in_order(fake_cuda: FakeCuda) -> None:
    text = body(ONE, "%c2 = arith.constant 2 : index", launch("%c2"), launch("%n"))
    fn = mlir.compile(text, options=SM_90A)
    fn(floats(100), 7)
    first, second = fake_cuda.launches()
    assert (first.grid, second.grid) == ((2, 1, 1), (7, 1, 1))
    assert first.kernel != second.kernel


def test_a_gpu_module_is_taken_as_it_is(fake_cuda: FakeCuda) -> None:
    text = """
        gpu.module @kernels {
          gpu.func @first(%x: memref<?xf32>) kernel { gpu.return }
          gpu.func @second(%n: index, %v: f64) kernel { gpu.return }
        }
        func.func @both(%x: memref<?xf32>, %n: index) {
          %c1 = arith.constant 1 : index
          %smem = arith.constant 256 : i32
          %v = arith.constant 2.5 : f64
          gpu.launch_func @kernels::@second blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1)
              dynamic_shared_memory_size %smem args(%n : index, %v : f64)
          gpu.launch_func @kernels::@first blocks in (%c1, %n, %c1) threads in (%c1, %c1, %c1)
              args(%x : memref<?xf32>)
          return
        }
    """
    fn = mlir.compile("module attributes {gpu.container_module} {" + text + "}", options=SM_90A)
    fn(floats(10), 3)
    second, first = fake_cuda.launches()
    assert (second.kernel, second.grid, second.smem) == ("second", (3, 1, 1), 256)
    assert second.parameters == tuple(packed("qd", 3, 2.5))
    assert (first.kernel, first.grid, first.smem) == ("first", (1, 3, 1), 0)


def test_functions_of_libdevice_are_part_of_the_kernels() -> None:
    inside = (
        "%v = memref.load %x[%tx] : memref<?xf32>\n%e = math.exp %v : f32\n"
        "memref.store %e, %x[%n] : memref<?xf32>"
    )
    assert "ex2.approx" in ptx_of(body(ONE, launch(inside=inside)))


def refused(text: str, **more: Any) -> str:
    with pytest.raises(CompileError) as caught:
        mlir.compile(text, **{"options": SM_90A, **more})
    return str(caught.value)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["%v = memref.load %x[%c1] : memref<?xf32>", "memref.store %v, %x[%n] : memref<?xf32>"],
         "memref.load cannot"),
        (["func.call @g() : () -> ()"], "func.call cannot"),
        (["%k = scf.for %i = %c1 to %n step %c1 iter_args(%k = %n) -> (index) {",
          "%m = arith.muli %k, %k : index", launch("%k"), "scf.yield %m : index", "}"],
         "scf.for cannot be part of a function that launches kernels: it carries values"),
        (["%q = arith.cmpi ult, %n, %c1 : index", "scf.if %q {", launch(), "}"],
         "arith.cmpi cannot be part of a function that launches kernels: its operands may be neg"),
        (["%q = arith.cmpi slt, %n, %c1 : index", "%k = scf.if %q -> index {",
          "%v = memref.load %x[%c1] : memref<?xf32>", "memref.store %v, %x[%n] : memref<?xf32>",
          "scf.yield %n : index", "} else {", "scf.yield %c1 : index", "}", launch("%k")],
         "memref.load cannot"),
        (["scf.while : () -> () {", "%q = arith.cmpi slt, %n, %c1 : index", "scf.condition(%q)",
          "} do {", launch(), "scf.yield", "}"], "scf.while cannot"),
        (["%m = gpu.alloc () : memref<4xf32>", "gpu.dealloc %m : memref<4xf32>"],
         "give memory for what lies between launches as an argument"),
    ],
    ids=["load", "call", "carried", "negative", "result", "while", "memory"],
)  # fmt: skip
def test_other_code_between_launches_is_an_error(lines: list[str], said: str) -> None:
    declared = "\nfunc.func private @g()"
    found = refused(body(ONE, *lines, launch()) + declared)
    assert said in found and "cannot be part of a function that launches kernels" in found


def test_a_branch_decides_which_launch_is_made(fake_cuda: FakeCuda) -> None:
    text = body(
        ONE,
        "%q = arith.cmpi slt, %n, %c1 : index",
        "%no = arith.constant false",
        "%r = arith.ori %q, %no : i1",
        "scf.if %r {",
        *("} else {", "%f = arith.muli %n, %n : index", launch("%f"), "}"),
    )
    fn = mlir.compile(text, options=SM_90A)
    for n in (-1, 0, 3):
        fn(floats(16), n)
    assert [each.grid for each in fake_cuda.launches()] == [(9, 1, 1)]


def test_launches_of_functions_that_are_called_are_launches(fake_cuda: FakeCuda) -> None:
    called = body(ONE, launch("%n")).replace("@f(", "private @inner(")
    call = "func.call @inner(%x, %n) : (memref<?xf32>, index) -> ()"
    mlir.compile(f"{called}\n{body(call)}", options=SM_90A)(floats(4), 5)
    assert [each.grid for each in fake_cuda.launches()] == [(5, 1, 1)]


def test_launches_without_effect_are_none() -> None:
    empty = launch().split("{")[0] + "{ gpu.terminator }"
    assert refused(body(ONE, empty)).startswith("@f launches nothing: what its kernels do has no")


def test_a_division_that_may_be_of_negative_numbers_is_an_error() -> None:
    two = "%c2 = arith.constant 2 : index"
    found = refused(body(ONE, two, "%g = arith.divsi %n, %c2 : index", launch("%g")))
    assert "its operands may be negative" in found


def test_a_launch_of_no_kernel_is_an_error() -> None:
    text = "gpu.module @kernels { }\n" + body(
        ONE,
        "gpu.launch_func @elsewhere::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)",
    )
    assert "elsewhere" in refused(f"module attributes {{gpu.container_module}} {{ {text} }}")


def test_kernels_are_for_no_cpu() -> None:
    said = "@scale launches kernels, but its target is 'cpu'"
    assert said in refused(SCALE, options="--target cpu")
    assert said in refused(SCALE, target="cpu", options=None)


def test_a_pipeline_with_bare_pointers_is_seen(fake_cuda: FakeCuda) -> None:
    bare = (
        "builtin.module(gpu.module(convert-scf-to-cf,"
        "convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv=1},convert-to-llvm,"
        "reconcile-unrealized-casts))"
    )
    text = body(ONE, launch(), arguments="%x: memref<?xf32>").replace("?x", "8x")
    fn = mlir.compile(text, pipeline=bare, options=SM_90A)
    x = floats(8)
    fn(x)
    (found,) = fake_cuda.launches()
    assert packed("Q", data_ptr(x))[0] in found.parameters
    assert len(found.parameters) == 3, "the address and two constants"


KERNELS = """
gpu.module @kernels {
  gpu.func @axpy(%x: memref<?xf32>, %y: memref<?xf32>, %a: f32) workgroup(%own: memref<128xf32, 3>)
      kernel attributes {gpu.known_block_size = array<i32: 128, 1, 1>} {
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %size = gpu.block_dim x
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    %first = arith.muli %b, %size : index
    %i = arith.addi %first, %t : index
    %inside = arith.cmpi slt, %i, %n : index
    scf.if %inside {
      %v = memref.load %x[%i] : memref<?xf32>
      %p = arith.mulf %v, %a : f32
      memref.store %p, %own[%t] : memref<128xf32, 3>
      %q = memref.load %own[%t] : memref<128xf32, 3>
      memref.store %q, %y[%i] : memref<?xf32>
    }
    gpu.return
  }
  gpu.func @other(%x: memref<?xf32>) kernel { gpu.return }
}
func.func @unused() { return }
"""


def test_a_kernel_is_launched_with_the_sizes_of_the_caller(fake_cuda: FakeCuda) -> None:
    """`emulated_mlir` executes it."""

    def blocks(sig: specs.Signature) -> specs.Dim:
        return specs.ceil_div(sig["x"].shape[0], 128)

    fn = mlir.compile(KERNELS, "axpy", grid=blocks, smem=64, target="sm_90a")
    assert str(fn.signature).startswith("axpy(x: Tensor([n0], float32), y: Tensor([n1], float32)")
    fn(floats(300), floats(300), 2.0)
    n = specs.sym_int64()
    sized = {name: specs.Tensor(name, (n,), "float32") for name in "xy"}
    grid = (1, specs.ceil_div(n, 2))
    more = mlir.compile(
        KERNELS, "kernels::other", grid=grid, block=(n, 2), specs={"x": sized["x"]}, target="sm_90"
    )
    more(floats(8))
    first, second = fake_cuda.launches()
    assert (first.kernel, first.grid, first.block, first.smem) == (
        "axpy",
        (3, 1, 1),
        (128, 1, 1),
        64,
    )
    assert (second.kernel, second.grid, second.block) == ("other", (1, 4, 1), (8, 2, 1))
    with pytest.raises(CompileError, match="does not fit memref<"):
        mlir.compile(KERNELS, "axpy", grid=grid, specs={"x": specs.Tensor("x", (n,), "int8")})


@pytest.mark.parametrize(
    ("more", "error", "said"),
    [
        ({}, CompileError, "kernels::axpy is a kernel, which grid=… and block=… launch"),
        ({"grid": 1}, CompileError, "(?s)has 2 kernels.*there are kernels::axpy, kernels::other"),
        ({"grid": 1, "function": "none"}, CompileError, "has 0 kernels none"),
        ({"grid": 3, "function": "axpy"}, CompileError, "the grid is 3 in every call, but x.shape"),
        ({"grid": fixed(3), "function": "other"}, CompileError, "how many threads a block"),
        ({"grid": fixed(3), "block": 64, "function": "axpy"}, CompileError,
         r"axpy is compiled for a block of \(128, 1, 1\), as gpu.known_block_size says, but"),
        ({"block": 3}, TypeError, "block= is a size of a launch, which grid=… asks for"),
        ({"grid": fixed(3), "function": "axpy", "target": "cpu"}, CompileError, "launches kernels"),
    ],
)  # fmt: skip
def test_wrong_launches_of_a_kernel_are_errors(more: Any, error: type, said: str) -> None:
    rest = "" if "function" in more else "func.func private @f()"
    text = KERNELS.replace("func.func @unused() { return }", rest)
    with pytest.raises(error, match=said):
        mlir.compile(text, **{"target": "sm_90", **more})


def test_a_launch_of_another_size_than_the_kernel_is_for_is_an_error(fake_cuda: FakeCuda) -> None:
    """The kernel would compute with the number that its module says."""
    launching = body(
        ONE,
        "%c64 = arith.constant 64 : index",
        "%v = arith.constant 1.0 : f32",
        "gpu.launch_func @kernels::@axpy blocks in (%c1, %c1, %c1) threads in (SIZE, %c1, %c1) "
        "args(%x : memref<?xf32>, %x : memref<?xf32>, %v : f32)",
    )
    text = f"module attributes {{gpu.container_module}} {{ {KERNELS} {launching} }}"
    said = r"the block of @axpy must be \(128, 1, 1\), for which it is compiled"
    with pytest.raises(CompileError, match=said):
        mlir.compile(text.replace("SIZE", "%c64"), "f", target="sm_90")
    fn = mlir.compile(text.replace("SIZE", "%n"), "f", target="sm_90")
    fn(floats(3), 128)
    with pytest.raises(RuntimeError, match=f"f: {said}"):
        fn(floats(3), 127)
    assert len(fake_cuda.launches()) == 1


def test_tensors_are_no_arguments_of_launches() -> None:
    kernel = launch().replace("memref.store %z, %x[%tx] : memref<?xf32>", "")
    found = refused(body(ONE, kernel, arguments="%x: tensor<?xf32>"))
    assert "a function that launches kernels takes memrefs: bufferize it" in found


def test_what_lies_between_launches_is_shown() -> None:
    store = "memref.store %c1, %y[%c1] : memref<?xindex>"
    arguments = "%x: memref<?xf32>, %y: memref<?xindex>"
    found = refused(body(ONE, store, launch(), arguments=arguments))
    assert '  File "<mlir>", line 3, in module' in found
    assert "    3 | memref.store %c1, %y[%c1] : memref<?xindex>" in found

"""What the passes that are chosen where none are given lower, and how precisely."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlir_functions import needs_mlir

from ferrule.compiler.errors import CompileError
from ferrule.frontends import mlir
from ferrule.frontends.mlir.modules import read_module


def numbers(*shape: int) -> Any:
    return np.random.default_rng(2).standard_normal(shape).astype(np.float32)


def of_tensors(result: str, *lines: str, argument: str) -> Any:
    """A function of one tensor that ends in a value %r."""
    text = "\n".join([f"func.func @f(%x: {argument}) -> {result} {{", *lines])
    return mlir.compile(f"{text}\nreturn %r : {result} }}")


@needs_mlir
def test_softmax_is_taken_apart() -> None:
    kind = "tensor<4x9xf32>"
    fn = of_tensors(
        kind,
        f"%o = tensor.empty() : {kind}",
        f"%s = linalg.softmax dimension(0) ins(%x : {kind}) outs(%o : {kind}) -> {kind}",
        f"%r = linalg.softmax dimension(1) ins(%s : {kind}) outs(%o : {kind}) -> {kind}",
        argument=kind,
    )
    wanted = numbers(4, 9)
    given = wanted.copy()
    for axis in (0, 1):
        grown = np.exp(wanted)
        wanted = grown / grown.sum(axis, keepdims=True)
    np.testing.assert_allclose(np.from_dlpack(fn(given)), wanted, rtol=1e-5)


@needs_mlir
def test_matrices_are_packed_in_tiles_and_unpacked() -> None:
    plain, tiled = "tensor<8x12xf32>", "tensor<2x3x4x4xf32>"
    how = "inner_dims_pos = [0, 1] inner_tiles = [4, 4] into %o"
    x = numbers(8, 12)
    packed = of_tensors(
        tiled,
        f"%o = tensor.empty() : {tiled}",
        f"%r = linalg.pack %x {how} : {plain} -> {tiled}",
        argument=plain,
    )(x)
    wanted = x.reshape(2, 4, 3, 4).transpose(0, 2, 1, 3)
    np.testing.assert_array_equal(np.from_dlpack(packed), wanted)
    back = of_tensors(
        plain,
        f"%o = tensor.empty() : {plain}",
        f"%r = linalg.unpack %x {how} : {tiled} -> {plain}",
        argument=tiled,
    )(packed)
    np.testing.assert_array_equal(np.from_dlpack(back), x)


def elementwise(element: str, *lines: str) -> str:
    kind = f"memref<?x{element}>"
    body = "\n".join([*lines, f"linalg.yield %r : {element}"])
    return (
        f"func.func @f(%x: {kind}, %y: {kind}) {{\nlinalg.map ins(%x : {kind}) outs(%y : {kind}) "
        f"(%v: {element}, %o: {element}) {{\n{body} }}\nreturn }}"
    )


@needs_mlir
def test_functions_of_complex_numbers() -> None:
    kind = "complex<f64>"
    fn = mlir.compile(
        elementwise(kind, f"%s = complex.mul %v, %v : {kind}", f"%r = complex.exp %s : {kind}")
    )
    x = numbers(5) + 1j * numbers(5)
    y = np.zeros_like(x, np.complex128)
    fn(x.astype(np.complex128), y)
    np.testing.assert_allclose(y, np.exp(x.astype(np.complex128) ** 2), rtol=1e-13)


@needs_mlir
@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_narrow_floats_are_rounded_after_each_operation(element: str, tmp_path: Path) -> None:
    """As NumPy does it, and with nothing of a library that not every system has."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    square = f"%s = arith.mulf %v, %v : {element}"
    fn = mlir.compile(elementwise(element, square, f"%r = arith.addf %s, %v : {element}"))
    every = np.arange(1 << 16, dtype=np.uint16)
    x = every.view(np.float16 if element == "f16" else ml_dtypes.bfloat16)
    y = np.zeros_like(x)
    fn(x, y)
    with np.errstate(all="ignore"):
        wanted = x * x + x
    np.testing.assert_array_equal(y.astype(np.float32), wanted.astype(np.float32))
    fn.export_library(tmp_path / "f.so")
    shown = subprocess.run(
        ["nm", "-D", tmp_path / "f.so"], capture_output=True, text=True, check=True
    )
    assert "hf" not in shown.stdout and "bf2" not in shown.stdout


@needs_mlir
def test_a_result_may_begin_behind_its_memory() -> None:
    part = "memref<?xf32, strided<[2], offset: 1>>"
    fn = mlir.compile(f"""
        func.func @odd(%n: index, %v: f32) -> {part} {{
          %two = arith.constant 2 : index
          %all = memref.alloc(%n) : memref<?xf32>
          linalg.fill ins(%v : f32) outs(%all : memref<?xf32>)
          %half = arith.divui %n, %two : index
          %part = memref.subview %all[1] [%half] [2] : memref<?xf32> to {part}
          return %part : {part}
        }}
    """)
    assert np.from_dlpack(fn(10, 3.0)).tolist() == [3.0] * 5


@needs_mlir
def test_what_is_not_lowered_is_said_in_the_words_of_mlir() -> None:
    sparse = "tensor<4xf32, #sparse_tensor.encoding<{ map = (i) -> (i : compressed) }>>"
    with pytest.raises(CompileError) as caught:
        of_tensors(
            "tensor<4xf32>",
            f"%s = sparse_tensor.convert %x : tensor<4xf32> to {sparse}",
            f"%r = sparse_tensor.convert %s : {sparse} to tensor<4xf32>",
            argument="tensor<4xf32>",
        )
    said = str(caught.value).splitlines()
    assert said[0] == (
        "MLIR cannot run the passes of ferrule.frontends.mlir.pipelines: "
        "sparse_tensor ops must be bufferized with the sparsifier"
    )
    assert said[1] == '  File "<mlir>", line 2, in module'


# ---- float16 in LLVM IR, for which no MLIR is needed ----

CASTS = """
define void @convert(ptr %from, ptr %wide, ptr %back) {
  %x = load <4 x half>, ptr %from, align 2
  %d = fpext <4 x half> %x to <4 x double>
  store <4 x double> %d, ptr %wide, align 8
  %e = load double, ptr %wide, align 8
  %y = fptrunc double %e to half
  %f = fptrunc double %e to float
  %z = fpext half %y to float, !fpmath !0
  %s = fadd float %f, %z
  %r = fptrunc float %s to half
  store half %r, ptr %back, align 2
  ret void
}
!0 = !{float 2.5}
"""


def test_conversions_of_float16_are_code_of_the_module() -> None:
    import ctypes

    import llvmlite.binding as llvm

    from ferrule.frontends.mlir.float16 import with_conversions

    text = with_conversions(CASTS)
    assert "fptrunc double %e to float" in text
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    baseline = llvm.Target.from_default_triple().create_target_machine(cpu="x86-64")
    module = llvm.parse_assembly(text)
    module.verify()
    assert "hf" not in baseline.emit_assembly(module).replace("half", "").replace("hftr", "")
    native = llvm.Target.from_default_triple().create_target_machine()
    with llvm.create_mcjit_compiler(module, native) as engine:
        call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(
            engine.get_function_address("convert")
        )
        x = np.array([1.5, -0.1, 65504, 6e-8], np.float16)
        wide, back = np.zeros(4), np.zeros(1, np.float16)
        call(x.ctypes.data, wide.ctypes.data, back.ctypes.data)
    np.testing.assert_array_equal(wide, x.astype(np.float64))
    assert back[0] == 3.0


# ---- what strangers give ----


def test_bytecode_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "any.mlirbc"
    path.write_bytes(b"ML\xefR\r\n\xff")
    assert read_module(str(path)).source == read_module(path).source == path.read_bytes()


@needs_mlir
def test_operations_of_tosa_become_those_of_linalg() -> None:
    fn = mlir.compile("""
        func.func @f(%a: tensor<4x5xf32>) -> tensor<4x5xf32> {
          %b = tosa.abs %a : (tensor<4x5xf32>) -> tensor<4x5xf32>
          %s = tosa.reduce_sum %b {axis = 0 : i32} : (tensor<4x5xf32>) -> tensor<1x5xf32>
          %c = tosa.add %b, %s : (tensor<4x5xf32>, tensor<1x5xf32>) -> tensor<4x5xf32>
          return %c : tensor<4x5xf32>
        }
    """)
    a = np.random.default_rng(2).standard_normal((4, 5)).astype(np.float32)
    wanted = abs(a) + abs(a).sum(0)
    np.testing.assert_allclose(np.from_dlpack(fn(a)), wanted, rtol=1e-5)


@needs_mlir
def test_a_part_of_an_argument_comes_back_whatever_its_strides() -> None:
    part = "memref<2x3xf32, strided<[8, 1], offset: 9>>"
    fn = mlir.compile(f"""
        func.func @part(%a: memref<8x8xf32>) -> {part} {{
          %s = memref.subview %a[1, 1] [2, 3] [1, 1] : memref<8x8xf32> to {part}
          return %s : {part}
        }}
    """)
    a = np.arange(64, dtype=np.float32).reshape(8, 8)
    np.testing.assert_array_equal(np.from_dlpack(fn(a)), a[1:3, 1:4])


@needs_mlir
def test_a_function_whose_address_is_taken_keeps_its_type() -> None:
    part = "memref<4xf32, strided<[2], offset: 1>>"
    fn = mlir.compile(f"""
        func.func private @address() -> (() -> {part}) {{
          %f = func.constant @part : () -> {part}
          return %f : () -> {part}
        }}
        func.func @part() -> {part} {{
          %a = memref.alloc() : memref<9xf32>
          %one = arith.constant 1.0 : f32
          linalg.fill ins(%one : f32) outs(%a : memref<9xf32>)
          %s = memref.subview %a[1] [4] [2] : memref<9xf32> to {part}
          return %s : {part}
        }}
    """)
    np.testing.assert_array_equal(np.from_dlpack(fn()), 1)


@needs_mlir
def test_functions_call_each_other_and_themselves() -> None:
    fn = mlir.compile("""
        func.func private @less(%n: i64) -> i64 {
          %one = arith.constant 1 : i64
          %m = arith.subi %n, %one : i64
          return %m : i64
        }
        func.func @factorial(%n: i64) -> i64 {
          %one = arith.constant 1 : i64
          %last = arith.cmpi sle, %n, %one : i64
          %r = scf.if %last -> i64 {
            scf.yield %one : i64
          } else {
            %m = func.call @less(%n) : (i64) -> i64
            %k = func.call @factorial(%m) : (i64) -> i64
            %p = arith.muli %n, %k : i64
            scf.yield %p : i64
          }
          return %r : i64
        }
    """)
    assert fn(10) == 3_628_800


@needs_mlir
def test_globals_keep_what_is_written_to_them() -> None:
    fn = mlir.compile("""
        memref.global "private" @count : memref<1xi32> = dense<0>
        func.func @f() -> i32 {
          %at = memref.get_global @count : memref<1xi32>
          %c0 = arith.constant 0 : index
          %one = arith.constant 1 : i32
          %v = memref.load %at[%c0] : memref<1xi32>
          %w = arith.addi %v, %one : i32
          memref.store %w, %at[%c0] : memref<1xi32>
          return %w : i32
        }
    """)
    assert [fn(), fn()] == [1, 2]


@needs_mlir
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "module { module @inner { func.func @f() { return } } }",
            "note: @f of the module @inner within: give that module alone",
        ),
        (
            "llvm.func @f() { llvm.return }",
            "note: @f is of the dialect llvm, which conventions.CFunction calls",
        ),
        (
            "func.func @f() { %t = async.execute { async.yield }\n"
            "async.await %t : !async.token\nreturn }",
            "async.execute is left by the passes of ferrule.frontends.mlir.pipelines\n"
            '  File "<mlir>", line 1, in module',
        ),
        (
            "func.func @f(%x: memref<4xf32>, %y: memref<4xf32>) {\n"
            "gpu.memcpy %y, %x : memref<4xf32>, memref<4xf32>\nreturn }",
            "hint: only a function that launches kernels runs on a GPU, and it cannot copy",
        ),
        (
            "func.func @f(%x: f32) { vector.print %x : f32\nreturn }",
            "LLVM IR needs printF32, printNewline",
        ),
    ],
)
def test_what_cannot_be_called_is_an_error_that_says_what_to_do(text: str, said: str) -> None:
    with pytest.raises(CompileError) as caught:
        mlir.compile(text)
    assert said in str(caught.value)

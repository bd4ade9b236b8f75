"""The kernel IR as MLIR text, for which no package is needed; what there is no text of."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest
from lowered import matrix, vector

import ferrule as fe
from ferrule import arch
from ferrule.compiler.mlir import bindings
from ferrule.language import mlir
from ferrule.language.ir import ops
from ferrule.language.mlir.text import Text, decimal


@fe.kernel
def scale_kernel(x: fe.Tensor, y: fe.Tensor, factor: fe.Float32):
    i = arch.block_idx()[0] * 64 + arch.thread_idx()[0]
    if i < x.shape[0]:
        y[i] = factor * x[i]


@fe.jit
def scale(x: fe.Tensor, y: fe.Tensor, factor: fe.Float32):
    scale_kernel(x, y, factor).launch(grid=fe.ceil_div(x.shape[0], 64), block=64)


@fe.jit
def total(x: fe.Tensor, out: fe.Tensor):
    found = fe.Float32(0)
    for i in range(x.shape[0]):
        if x[i] < 0:
            raise ValueError(f"a negative number at {i}")
        found += fe.math.sqrt(x[i])
    out[0] = found


@fe.jit
def made(x: fe.Tensor):
    y = fe.empty_like(x)
    y[:] = x[:] * 2
    return y


@fe.jit
def copied(x: fe.Tensor, out: fe.Tensor):
    out[:] = x[:]


def text_of(function: Any, *examples: Any, options: str = "--target cpu") -> str:
    return fe.compile(function, *examples, options=options).inspect_mlir()


def test_a_kernel_and_its_launch(golden: Any) -> None:
    golden("scale.mlir", text_of(scale, vector(), vector(), fe.Float32(1)))


def test_a_loop_that_may_fail_asserts(golden: Any) -> None:
    golden("total.mlir", text_of(total, vector(), vector(symbol="m")))


def test_the_text_is_the_same_for_each_target() -> None:
    examples = (vector(), vector(), fe.Float32(1))
    on_gpu = text_of(scale, *examples, options="--target cuda --gpu-arch sm_80")
    assert on_gpu == text_of(scale, *examples)


def test_sizes_and_strides_stand_in_the_types_where_they_are_known() -> None:
    @fe.jit
    def negated(a: fe.Tensor, b: fe.Tensor):
        b[:] = -a[:]

    fixed = fe.make_fake_compact_tensor(fe.Float16, (4, 8), stride_order=(1, 0))
    text = text_of(negated, fixed, matrix(fe.Float16))
    assert "@negated(%a: memref<4x8xf16>, %b: memref<?x?xf16>)" in text
    columns = fe.make_fake_compact_tensor(fe.Float16, (4, 8), stride_order=(0, 1))
    free = fe.make_fake_tensor(fe.Float16, (4, 8), stride=(fe.sym_int(), 1))
    text = text_of(negated, columns, free)
    assert "%a: memref<4x8xf16, strided<[1, 4]>>, %b: memref<4x8xf16, strided<[?, 1]>>" in text


def test_what_is_asked_of_tvm_ffi_is_a_call_of_a_declared_function() -> None:
    def kept(x: fe.Tensor):
        y = fe.empty_like(x)
        fe.call("their.keep", y)
        return y

    text = text_of(kept, vector())
    assert "= memref.alloc(%n) {alignment = 64 : i64} : memref<?xf32>" in text
    kind = "(memref<?xf32, strided<[1], offset: ?>>) -> "
    assert f"  func.func private @ferrule.call{kind}" in text
    assert "@kept(%x: memref<?xf32>) -> memref<?xf32> {" in text


def test_what_is_only_returned_is_no_object() -> None:
    text = text_of(made, vector())
    assert "private" not in text and "return %empty_like : memref<?xf32>\n" in text


def test_it_is_folded() -> None:
    """A constant once, no conversion there and back, no op that nothing uses."""
    text = text_of(total, vector(), vector(symbol="m"))
    assert text.count("arith.constant 0 : index") == 1
    assert "scf.for %i = %c0 to %n step %c1" in text and "memref.load %x[%i]" in text
    assert "arith.index_cast" not in text and "arith.extsi" not in text


def test_ops_have_the_lines_of_the_source() -> None:
    text = text_of(scale, vector(), vector(), fe.Float32(1))
    line = scale_kernel.__wrapped__.__code__.co_firstlineno + 4
    assert re.search(rf"memref.store .* loc\(#line{line}\)\n", text)
    assert f'#line{line} = loc("test_out_text.py":{line}:0)\n' in text


def test_values_have_the_names_of_the_source() -> None:
    text = text_of(scale, vector(), vector(), fe.Float32(1))
    assert "gpu.func @scale_kernel(%x: memref<?xf32>, %y: memref<?xf32>, %factor: f32)" in text
    assert "args(%x : memref<?xf32>, %y : memref<?xf32>, %factor : f32)" in text


@pytest.mark.parametrize(
    ("bits", "type_", "shown"),
    [
        (0x3F800000, "f32", "1.000000e+00"),
        (0x80000000, "f32", "-0.000000e+00"),
        (0x3DCCCCCD, "f32", "1.000000e-01"),
        (0x3EAAAAAB, "f32", "3.333333433e-01"),
        (0x7FC00000, "f32", None),
        (0x3FB999999999999A, "f64", "1.000000e-01"),
        (0x3C00, "f16", "1.000000e+00"),
        (0x3FC0, "bf16", "1.500000e+00"),
        (0x3DCD, "bf16", "1.0009765625000000e-01"),
    ],
)
def test_a_float_is_decimal_where_the_decimal_is_exactly_it(
    bits: int, type_: str, shown: str | None
) -> None:
    assert decimal(bits, type_) == shown


def test_conversions_are_folded_only_where_no_bit_is_lost() -> None:
    t = Text()
    t.start()
    assert t.known(t.name("n"), "index") == "%n"
    low = t.cast("index_cast", "%n", "i32")
    assert t.cast("index_cast", t.cast("extsi", low, "i64"), "index") != "%n"
    assert t.cast("trunci", t.cast("index_cast", "%n", "i64"), "i32") == low
    assert t.folding is not None
    t.folding.small["%n"] = 32
    assert t.cast("index_cast", low, "index") == "%n" and "%n" in t.folding.relied
    assert t.cast("index_cast", t.cast("trunci", "%n", "i16"), "index") != "%n"


def test_a_call_says_whom_it_calls_with_what() -> None:
    def host(x: fe.Tensor, names: fe.Array[fe.Int64]):
        total = fe.call("their.sum", x, names[0], result=int)
        fe.call("their.log", "done", total)

    text = text_of(host, vector(), None)
    assert 'callee = "their.sum", arguments = "tensor int", wanted = "any"' in text
    assert '@ferrule.receive(!llvm.ptr) -> !llvm.ptr attributes {expected = "int64"}' in text
    assert 'callee = "their.log", arguments = "text int", wanted = "nothing"' in text
    assert "func.func private @ferrule.item(!llvm.ptr, i64) -> !llvm.ptr" in text


def test_each_op_of_the_kernel_ir_has_a_text() -> None:
    folder = Path(mlir.__file__).parent
    source = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))
    every = [op for op in vars(ops).values() if op in get_args(ops.Op)]
    groups = {op for group in (ops.Outgoing, ops.ObjectOp) for op in get_args(group)}
    missing = {op.__name__ for op in every if f"ops.{op.__name__}" not in source}
    assert every and not missing - {op.__name__ for op in groups}


def test_a_file_has_the_text(tmp_path: Path) -> None:
    function = fe.compile(scale, vector(), vector(), fe.Float32(1), options="--target cpu")
    function.export_to_c(tmp_path / "scale.mlir")
    assert (tmp_path / "scale.mlir").read_text(encoding="utf-8") == function.inspect_mlir()


def test_several_functions_in_one_have_no_text() -> None:
    free = fe.make_fake_compact_tensor([fe.Float32, fe.Float64], (fe.sym_int(),))
    function = fe.compile(copied, free, free, options="--target cpu")
    with pytest.raises(fe.runtime.StageError, match="only what was compiled from one Python"):
        function.inspect_mlir()


def test_a_pipeline_that_does_not_exist() -> None:
    with pytest.raises(fe.CompileError, match=r"--pipeline is 'gcc'\n  expected: llvm or mlir"):
        text_of(scale, vector(), vector(), fe.Float32(1), options="--pipeline gcc")
    with pytest.raises(fe.CompileError, match="the option pipeline is 'gcc'"):
        fe.Options(pipeline="gcc")  # type: ignore[arg-type]


def test_without_a_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(bindings.VARIABLE, "mlir_of_nobody")
    with pytest.raises(ImportError, match=r'pip install "ferrule\[mlir\]"'):
        text_of(scale, vector(), vector(), fe.Float32(1), options="--target cpu --pipeline mlir")


COROUTINE = """\
define ptr @thread_of_k(ptr %0, ptr %1) {
  %3 = icmp ne ptr %0, null
  br i1 %3, label %7, label %4

4:
  %5 = call i64 @ferrule.coroutine.size()
  %6 = inttoptr i64 %5 to ptr
  ret ptr %6

7:
  %8 = call ptr @ferrule.coroutine.begin(ptr %0)
  %9 = call i8 @ferrule.coroutine.suspend(i1 false)
  %10 = icmp eq i8 %9, 0
  br i1 %10, label %11, label %13

11:
  %12 = call i8 @ferrule.coroutine.suspend(i1 true)
  br label %13

13:
  call void @ferrule.coroutine.end(ptr %8)
  ret ptr %8
}

declare ptr @ferrule.coroutine.begin(ptr)
declare i64 @ferrule.coroutine.size()
declare i8 @ferrule.coroutine.suspend(i1)
declare void @ferrule.coroutine.end(ptr)
"""
"""A thread that waits once, as MLIR translates it."""


def test_a_thread_that_waits_gets_the_intrinsics_of_coroutines() -> None:
    from llvmlite import binding as llvm

    from ferrule.language.mlir.coroutines import completed

    with llvm.parse_assembly(completed(COROUTINE), llvm.create_context()) as module:
        module.verify()
        assert "presplitcoroutine" in str(module)
        called = {each.name for each in module.functions if each.is_declaration}
    kinds = ("id", "begin", "size.i64", "suspend", "end")
    assert called == {f"llvm.coro.{kind}" for kind in kinds}


@fe.jit
def eighths(x: fe.Tensor, y: fe.Tensor):
    for i in range(x.shape[0]):
        y[i] = fe.math.sqrt(x[i]).to(fe.Float8E4M3FN, saturate=True)


def test_conversions_to_floats_of_8_bits_are_written_out() -> None:
    text = fe.compile(eighths, vector(), vector(fe.Float8E4M3FN)).inspect_mlir()
    assert "memref<?xf8E4M3FN>" in text and "math.sqrt" in text
    assert not re.search(r"arith\.(truncf|extf) [^\n]*\bi8\b", text)

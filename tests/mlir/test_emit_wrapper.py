"""The wrapper as text: put into modules of LLVM and of MLIR, linked, loaded and called."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import pytest
from exported import run_python
from mlir_functions import merged, needs_mlir

from ferrule import compiler, specs
from ferrule.compiler import targets
from ferrule.compiler.conventions import CFunction, CudaLaunch, DLTensors, HostCode, Memref
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.emitting import emit_wrapper
from ferrule.compiler.errors import CompileError
from ferrule.compiler.mlir import jobs
from ferrule.compiler.mlir.child import in_child
from ferrule.compiler.mlir.dialect import to_dialect
from ferrule.compiler.support.library import CALLING, CHECKS, CUDA, THREADS, support_text
from ferrule.runtime.linking.linker import find_linker

N = specs.sym_int64(symbol="n")
SIGNATURE = specs.Signature(
    "scale",
    (
        specs.Tensor("x", (N,), "float32"),
        specs.Tensor("y", (N,), "float32"),
        specs.Scalar("by", "float32"),
    ),
)
UNDEFINED = HostCode.undefined()
KERNEL = """
define i32 @scale_kernel(ptr %x, ptr %y, i64 %n, float %by) {
entry:
  %odd = icmp eq i64 %n, 13
  br i1 %odd, label %refuse, label %head
refuse:
  ret i32 7
head:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %loop, label %done
loop:
  %from = getelementptr float, ptr %x, i64 %i
  %to = getelementptr float, ptr %y, i64 %i
  %v = load float, ptr %from
  %w = fmul float %v, %by
  store float %w, ptr %to
  %j = add i64 %i, 1
  br label %head
done:
  ret i32 0
}
"""
CALLED = """
import sys
for name in ("ferrule", "torch_mlir", "llvmlite"):
    sys.modules[name] = None
import numpy as np, tvm_ffi
fn = tvm_ffi.load_module(sys.argv[1])["scale"]
x, y = np.arange(3, dtype=np.float32), np.zeros(3, np.float32)
fn(x, y, 2.0)
print(y.tolist())
for x in (np.zeros(4, np.float32), np.zeros(13, np.float32), 5):
    try:
        fn(x, np.zeros(13, np.float32), 1.0)
    except Exception as error:
        print(type(error).__name__, str(error).split(",")[-1])
"""
PRINTED = """[0.0, 2.0, 4.0]
ValueError  but got 13
RuntimeError scale_kernel returned 7
TypeError  but got int
"""


def call(**more: Any) -> CFunction:
    arguments = [SIGNATURE["x"].data, SIGNATURE["y"].data, N, SIGNATURE["by"]]
    given = {"returns": "status", "code": UNDEFINED, **more}
    return CFunction("scale_kernel", arguments, **given)


def library(text: str, folder: Path, kernel: str = KERNEL) -> Path:
    """A shared library of a wrapper's module and the kernel."""
    machine = targets.machine(targets.baseline())
    context = llvm.create_context()
    with llvm.parse_assembly(text, context) as module:
        if kernel:
            module.link_in(llvm.parse_assembly(kernel, context))
        module.get_function("scale_kernel").linkage = "internal"
        module.triple = targets.host_triple()
        module.verify()
        data = bytes(machine.emit_object(module))
    source, target = folder / "scale.o", folder / "scale.so"
    source.write_bytes(data)
    find_linker(targets.architecture(targets.host_triple()), target).link([source], target)
    return target


def shown(text: str) -> list[str]:
    """The symbols that a module defines for others."""
    with llvm.parse_assembly(text, llvm.create_context()) as module:
        module.verify()
        return sorted(
            each.name
            for each in (*module.functions, *module.global_variables)
            if each.linkage == llvm.Linkage.external and not each.is_declaration
        )


def test_a_wrapper_shows_the_symbols_of_its_function_alone() -> None:
    text = emit_wrapper(SIGNATURE, call(), doc="Scales.")
    wanted = ["__tvm_ffi__doc_scale", "__tvm_ffi__metadata_scale", "__tvm_ffi_scale"]
    assert shown(text) == wanted
    assert re.search(r"^declare i32 @scale_kernel\(ptr, ptr, i64, float\)", text, re.M)
    assert "module asm" not in text


@pytest.mark.needs_cc
def test_a_wrapper_in_a_module_of_llvm_checks_and_calls(tmp_path: Path) -> None:
    path = library(emit_wrapper(SIGNATURE, call()), tmp_path)
    assert run_python(CALLED, path) == PRINTED


@needs_mlir
@pytest.mark.needs_cc
def test_a_wrapper_in_a_module_of_mlir_checks_and_calls(tmp_path: Path) -> None:
    text = emit_wrapper(SIGNATURE, call(), form="mlir")
    path = library(jobs.translated(text, "builtin.module()"), tmp_path)
    assert run_python(CALLED, path) == PRINTED


OWN = """
func.func @scale_kernel(%x: memref<?xf32>, %y: memref<?xf32>, %by: f32) -> i32
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    %w = arith.mulf %v, %by : f32
    memref.store %w, %y[%i] : memref<?xf32>
  }
  %c13 = arith.constant 13 : index
  %odd = arith.cmpi eq, %n, %c13 : index
  %c7 = arith.constant 7 : i32
  %ok = arith.constant 0 : i32
  %status = arith.select %odd, %c7, %ok : i32
  return %status : i32
}
"""
LOWERED = (
    "builtin.module(convert-scf-to-cf,finalize-memref-to-llvm,convert-arith-to-llvm,"
    "convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)"
)


@needs_mlir
@pytest.mark.needs_cc
def test_a_wrapper_and_a_module_of_mlir_become_one_module(tmp_path: Path) -> None:
    convention = Memref("scale_kernel", SIGNATURE.params, returns="status", code=UNDEFINED)
    wrapper = emit_wrapper(SIGNATURE, convention, form="mlir")
    text = in_child(merged, OWN, wrapper, LOWERED)
    said = PRINTED.replace("scale_kernel", "_mlir_ciface_scale_kernel")
    assert run_python(CALLED, library(text, tmp_path, kernel="")) == said


def test_wrappers_of_two_functions_go_into_one_module() -> None:
    texts = [emit_wrapper(each, call()) for each in (SIGNATURE, SIGNATURE.renamed("grow"))]
    first, second = (set(re.findall(r"^define .*?@([\w.]+)\(", text, re.M)) for text in texts)
    assert first and first.isdisjoint(second)


@needs_mlir
@pytest.mark.parametrize("kind", ["results", "dltensors", "memref", "many", "cuda"])
def test_every_convention_is_read_by_mlir(kind: str) -> None:
    x, y, by = SIGNATURE.params
    more: dict[str, Any] = {}
    signature = SIGNATURE
    match kind:
        case "results":
            signature, more = specs.Signature("f", (x, by)), {"results": [y]}
            convention: Any = CFunction("k", [x.data, y.data], code=UNDEFINED)
        case "dltensors":
            convention = DLTensors("k", [x, y, by], code=UNDEFINED)
        case "memref":
            convention = Memref("k", [x, y], code=UNDEFINED)
        case "cuda":
            ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }"
            convention = CudaLaunch(DeviceCode.from_ptx(ptx), "k", [], specs.ceil_div(N, 128), 128)
        case _:
            signature = specs.Signature(
                "f", (x, specs.params.String("s"), specs.params.AnyValue("v"))
            )
            convention = CFunction("k", [x.data], returns="float64", code=UNDEFINED)
    text = emit_wrapper(signature, convention, form="mlir", **more)
    llvm.parse_assembly(jobs.translated(text, "builtin.module()")).verify()


def test_another_form_is_an_error() -> None:
    with pytest.raises(ValueError, match="form is 'wasm', expected 'llvm' or 'mlir'"):
        emit_wrapper(SIGNATURE, call(), form="wasm")  # type: ignore[arg-type]


def test_a_function_with_an_undefined_callee_cannot_be_loaded() -> None:
    with pytest.raises(CompileError, match="scale_kernel is HostCode.undefined()"):
        compiler.build(SIGNATURE, call())


# ---- the dialect ----


@needs_mlir
def test_the_support_code_comes_back_from_mlir_with_its_instructions() -> None:
    def calls(text: str) -> dict[str, int]:
        with llvm.parse_assembly(text, llvm.create_context()) as module:
            module.verify()
            found = (i for f in module.functions for b in f.blocks for i in b.instructions)
            return Counter(i.opcode for i in found if i.opcode in ("call", "store", "br", "phi"))

    for each in (CUDA, THREADS, CALLING, CHECKS):
        text = support_text(each)
        assert calls(jobs.translated(to_dialect(text), "builtin.module()")) == calls(text)


def body(*lines: str, head: str = "define i32 @f(i32 %a, ptr %p)") -> str:
    text = "\n".join([f"{head} {{", *lines, "}"])
    found = to_dialect(text).splitlines()
    return "\n".join(line.strip() for line in found[2:-2])


def test_phis_are_arguments_of_blocks() -> None:
    assert body(
        "entry:", "br label %loop",
        "loop:", "%i = phi i32 [ 0, %entry ], [ %j, %loop ]", "%j = add nsw i32 %i, 1",
        "%c = icmp slt i32 %j, %a", "br i1 %c, label %loop, label %end",
        "end:", "ret i32 %j",
    ).splitlines() == [
        "%3 = llvm.mlir.constant(0 : i32) : i32",
        "llvm.br ^bb1(%3 : i32)",
        "^bb1(%0: i32):",
        "%4 = llvm.mlir.constant(1 : i32) : i32",
        "%1 = llvm.add %0, %4 : i32",
        '%2 = llvm.icmp "slt" %1, %arg0 : i32',
        "llvm.cond_br %2, ^bb1(%1 : i32), ^bb2",
        "^bb2:",
        "llvm.return %1 : i32",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("%v = load i32, ptr %p, align 4", "%0 = llvm.load %arg1 {alignment = 4 : i64} "
         ": !llvm.ptr -> i32"),
        ("%v = load atomic i32, ptr %p acquire, align 4",
         "%0 = llvm.load %arg1 atomic acquire {alignment = 4 : i64} : !llvm.ptr -> i32"),
        ("%v = zext i1 true to i32", "%1 = llvm.mlir.constant(true) : i1\n"
         "%0 = llvm.zext %1 : i1 to i32"),
        ("%v = fptosi float 1.5 to i32", "%1 = llvm.mlir.constant(0x3FC00000 : f32) : f32\n"
         "%0 = llvm.fptosi %1 : f32 to i32"),
        ("%q = getelementptr inbounds { i64, [2 x i32] }, ptr %p, i32 %a, i32 1",
         "%0 = llvm.getelementptr %arg1[%arg0, 1] : (!llvm.ptr, i32) -> !llvm.ptr, "
         "!llvm.struct<(i64, array<2 x i32>)>"),
        ("%v = call i32 %p(i32 signext %a)", "%0 = llvm.call %arg1(%arg0) : !llvm.ptr, "
         "(i32) -> i32"),
    ],
)  # fmt: skip
def test_instructions_are_operations(line: str, wanted: str) -> None:
    returned = "ret i32 0"
    assert body(line, returned).startswith(wanted)


def test_a_declaration_says_how_its_callee_is_passed_what_it_gets() -> None:
    head = "declare void @f(ptr sret([24 x i8]) align 8, ptr byval([16 x i8]) align 16, i8 signext)"
    wanted = (
        '@"f"(!llvm.ptr {llvm.sret = !llvm.array<24 x i8>, llvm.align = 8 : i64}, '
        "!llvm.ptr {llvm.byval = !llvm.array<16 x i8>, llvm.align = 16 : i64}, i8 {llvm.signext})"
    )
    assert wanted in to_dialect(head)


def test_an_instruction_that_is_not_written_is_an_error() -> None:
    with pytest.raises(CompileError, match="the LLVM dialect is not written for the instruction"):
        body("%v = va_arg ptr %p, i32", "ret i32 %v")


def test_layout_and_triple_are_attributes_of_the_module() -> None:
    text = emit_wrapper(SIGNATURE, call(), form="mlir")
    first = text.splitlines()[0]
    assert f"llvm.target_triple = {json.dumps(targets.host_triple())}" in first
    assert "llvm.data_layout = " in first

"""LLVM IR of kernels to PTX, in a process of its own.  Needs no MLIR."""

from __future__ import annotations

import pytest

from ferrule.compiler.errors import CompileError
from ferrule.compiler.mlir.ptx import to_ptx

KERNEL = """
declare float @{function}(float)
define ptx_kernel void @k(ptr %x) {{
  %v = load float, ptr %x
  %y = call float @{function}(float %v)
  store float %y, ptr %x
  ret void
}}
"""


def test_modules_together_become_one_text() -> None:
    first = "define ptx_kernel void @a() { ret void }"
    second = "define ptx_kernel void @b() { ret void }"
    text = to_ptx([first, second], ["sm_90"])["sm_90"]
    assert ".entry a" in text and ".entry b" in text and ".target sm_90" in text


def test_an_operation_that_ptx_lacks_is_an_error_and_ends_no_process() -> None:
    with pytest.raises(CompileError, match="LLVM cannot make PTX of the kernels for sm_90: its p"):
        to_ptx(KERNEL.format(function="llvm.exp.f32"), ["sm_90"])


def test_a_function_that_is_nowhere_is_an_error() -> None:
    with pytest.raises(CompileError, match="^the kernels call expf, which is nowhere$"):
        to_ptx(KERNEL.format(function="expf"), ["sm_90"])


def test_a_text_that_is_no_llvm_ir_is_an_error() -> None:
    with pytest.raises(
        CompileError, match="LLVM cannot read the kernels: (?s:.*)expected top-level"
    ):
        to_ptx("this is nothing", ["sm_90"])

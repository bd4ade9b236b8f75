"""What follows from the type of an MLIR function and from its launches.  Needs no MLIR."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda, data_ptr, forged
from cuda_device import fake_cuda as fake_cuda

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.errors import CompileError
from ferrule.frontends.mlir.expressions import (
    ArgumentValue,
    Expression,
    FloatConstant,
    Operation,
    SizeOf,
    is_positive,
)
from ferrule.frontends.mlir.kinds import DTYPES, Buffer, FunctionType, Number
from ferrule.frontends.mlir.launches import Launch, Operand
from ferrule.frontends.mlir.launching import launching, size
from ferrule.frontends.mlir.signatures import returns, signature_of
from ferrule.frontends.mlir.support import with_support

MATRIX = Buffer("memref<?x4xf32>", "f32", (None, 4), None)
STRIDED = Buffer("memref<?x4xf32, strided<[?, 1]>>", "f32", (None, 4), (None, 1))
VALUE = Buffer("tensor<?xi8>", "i8", (None,), None, is_value=True)


def signature(*kinds: Any, **given: Any) -> specs.Signature:
    names = tuple("abcdef"[: len(kinds)])
    return signature_of(FunctionType("f", names, kinds, ()), None, given, None)


def test_dynamic_sizes_are_symbols_of_64_bits() -> None:
    found = signature(MATRIX, STRIDED, Number("index"), Number("i1"), VALUE)
    assert str(found) == (
        "f(a: Tensor([n0, 4], float32), b: Tensor([n1, 4], float32), c: int64, d: bool, "
        "e: Tensor([n2], int8))"
    )
    assert all(symbol.width == 64 for symbol in found.symbols)
    assert found["b"].strides[1] == 1 and found["e"].read_only and not found["a"].read_only


@pytest.mark.parametrize("name", DTYPES.values())
def test_every_element_type_is_a_dtype(name: str) -> None:
    assert specs.as_dtype(name).name == name


def test_a_function_whose_name_is_no_identifier_needs_another() -> None:
    function = FunctionType("main.1", (), (), ())
    assert signature_of(function, "main", {}, None).name == "main"
    with pytest.raises(CompileError, match="@main.1 is no identifier: name="):
        signature_of(function, None, {}, None)


def test_a_signature_has_a_parameter_for_each_argument() -> None:
    function = FunctionType("f", ("a",), (Number("f32"),), ())
    with pytest.raises(CompileError, match="@f takes 1 arguments, but the signature has 0: g()"):
        signature_of(function, None, {}, specs.Signature("g", ()))


def test_results_are_numbers_and_tensors() -> None:
    assert returns(()) is None
    assert returns((Number("f64"),)) is fe.Float64
    first, second = returns((Number("i32"), MATRIX))  # type: ignore[misc]
    assert first is fe.Int32 and second.shape[1] == 4 and second.dtype is fe.Float32


def test_launch_sizes_are_expressions_over_the_parameters() -> None:
    sig = signature(MATRIX, Number("i32"))
    rows: Expression = SizeOf(0, 0)
    found = size(Operation("ceildiv", Operation("mul", rows, ArgumentValue(1)), 32), sig)
    value = specs.evaluate(found, {sig["a"].shape[0]: 10, sig["b"].value: 7})
    assert value == 3
    with pytest.raises(CompileError, match="a launch has the size 1.5, expected an integer"):
        size(FloatConstant(1.5), sig)


@pytest.mark.parametrize(
    ("found", "positive"),
    [
        (3, True),
        (-3, False),
        (SizeOf(0, 0), True),
        (ArgumentValue(0), False),
        (Operation("sub", SizeOf(0, 0), 1), False),
        (Operation("max", ArgumentValue(0), 0), True),
        (Operation("mul", SizeOf(0, 0), 4), True),
        (Operation("min", SizeOf(0, 0), ArgumentValue(0)), False),
    ],
)
def test_what_is_certainly_not_negative(found: Expression, positive: bool) -> None:
    assert is_positive(found) == positive


PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k({}) {{ ret; }}
"""


def test_a_launch_hands_over_descriptors_members_and_numbers(fake_cuda: FakeCuda) -> None:
    sig = signature(STRIDED, Number("i16"), Number("f64"))
    kinds = ("b64", "b64", "b64", "b64", "b64", "b64", "b64", "b16", "f64", "b32", "b16")
    code = DeviceCode.from_ptx(
        PTX.format(", ".join(f".param .{kind} p{i}" for i, kind in enumerate(kinds)))
    )
    operands = (
        Operand(ArgumentValue(0), STRIDED.text, 2),
        Operand(ArgumentValue(1), "i16"),
        Operand(ArgumentValue(2), "f64"),
        Operand(Operation("add", SizeOf(0, 0), 1), "i32"),
        Operand(FloatConstant(1.5), "f16"),
    )
    path, grid = ("kernels", "f"), (SizeOf(0, 0), 1, 1)
    launch = Launch(path, grid, (32, 1, 1), None, 16, operands, "k")
    fn = compiler.build(sig, launching([launch], code, sig))
    x = forged(np.zeros((5, 4), np.float32))
    fn(x, -7, 0.25)
    (found,) = fake_cuda.launches()
    assert (found.grid, found.block, found.smem) == ((5, 1, 1), (32, 1, 1), 16)
    assert b"".join(found.parameters) == struct.pack(
        "<QQqqqqqhdie", data_ptr(x), data_ptr(x), 0, 5, 4, 4, 1, -7, 0.25, 6, 1.5
    )


def test_a_kernel_with_as_many_parameters_as_operands_takes_bare_pointers(
    fake_cuda: FakeCuda,
) -> None:
    sig = signature(MATRIX)
    code = DeviceCode.from_ptx(PTX.format(".param .b64 x"))
    operands = (Operand(ArgumentValue(0), MATRIX.text, 2),)
    launch = Launch(("kernels", "f"), (1, 1, 1), (1, 1, 1), None, 0, operands, "k")
    x = forged(np.zeros((5, 4), np.float32))
    compiler.build(sig, launching([launch], code, sig))(x)
    (found,) = fake_cuda.launches()
    assert found.parameters == (struct.pack("<Q", data_ptr(x)),)


def test_the_copy_of_the_runtime_is_brought_along() -> None:
    import llvmlite.binding as llvm

    text = "declare void @memrefCopy(i64, ptr, ptr)\n"
    found = with_support(text)
    llvm.parse_assembly(found).verify()
    assert "define internal void @memrefCopy" in found
    assert with_support("declare void @other()") == "declare void @other()"

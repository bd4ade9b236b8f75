"""Parameters that have no form in C or in a kernel are refused when they are listed."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import (
    CFunction,
    CudaLaunch,
    DLTensors,
    Handle,
    HostCode,
    Memref,
    Reference,
    Struct,
    cast,
)
from ferrule.compiler.errors import CompileError
from ferrule.specs import Pointer, Scalar, Signature, Tensor
from ferrule.specs import params as kinds

CODE = fe.DeviceCode.from_ptx("""
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a) { ret; }
""")
INT = Scalar("i", "int32")
OBJECTS = [
    kinds.Function("p"),
    kinds.Module("p"),
    kinds.Object("p", "x.Y"),
    kinds.AnyValue("p"),
    kinds.Array("p", INT),
    kinds.List("p", INT),
    kinds.Map("p", INT, INT),
    kinds.Dict("p", INT, INT),
    kinds.Optional("p", kinds.Function("p")),
    kinds.Tuple("p", (INT, kinds.Function("1"))),
    kinds.Union("p", (INT, kinds.Function("p"))),
]
LISTED: list[Any] = [
    lambda given: CFunction("f", [given]),
    lambda given: CudaLaunch(CODE, "k", [given], 1, 1),
    lambda given: DLTensors("f", [given]),
    lambda given: Memref("f", [given]),
    lambda given: Struct([given]),
    lambda given: Reference(given),
]


@pytest.mark.parametrize("given", OBJECTS, ids=lambda each: type(each).__name__)
def test_objects_of_tvm_ffi_are_no_arguments(given: Any) -> None:
    for listed in LISTED:
        with pytest.raises(TypeError, match=r"tvm-ffi.*conventions.Handle"):
            listed(given)


def test_a_callback_is_told_how_it_goes() -> None:
    with pytest.raises(TypeError, match=r"Function 'p'.*ctypes.cast\(callback, ctypes.c_void_p\)"):
        CFunction("qsort", [kinds.Function("p")])


@pytest.mark.parametrize(
    "given", [kinds.Shape("p", (1,)), kinds.NoneValue("p"), kinds.Constant("p", 3)]
)
def test_what_becomes_no_value_is_no_argument(given: Any) -> None:
    for listed in LISTED:
        with pytest.raises(TypeError, match="of which nothing is handed over"):
            listed(given)


def test_plain_values_have_a_form_in_c() -> None:
    for each in (kinds.Device("p"), kinds.DataType("p"), kinds.Stream("p"), Pointer("p")):
        compiler.build(Signature("f", [each]), CFunction("abs", [each]))
    text = kinds.String("p")
    compiler.build(Signature("f", [text]), CFunction("abs", [text]))


@pytest.mark.parametrize(
    "given",
    [
        kinds.String("p"),
        kinds.Bytes("p"),
        kinds.Optional("p", kinds.String("p")),
        kinds.Tuple("p", (INT, kinds.String("1"))),
    ],
)
def test_texts_are_not_where_a_kernel_reads_them(given: Any) -> None:
    with pytest.raises(CompileError, match="the address of the text 'p'"):
        compiler.build(Signature("f", [given]), CudaLaunch(CODE, "k", [given], 1, 1))


def test_tensors_of_a_tuple_are_where_a_kernel_reads_them() -> None:
    there = Tensor("0", (1,), "float32", device="cpu")
    for given in (kinds.Tuple("p", (there,)), kinds.Optional("p", there)):
        with pytest.raises(CompileError, match="whose device is 'cpu'"):
            compiler.build(Signature("f", [given]), CudaLaunch(CODE, "k", [given], 1, 1))


def test_a_callee_of_the_api_of_tvm_ffi_gets_handles() -> None:
    text = """declare i32 @TVMFFIFunctionCall(ptr, ptr, i32, ptr)
    define i32 @twice(ptr %f) {
      %result = alloca [2 x i64]
      store [2 x i64] zeroinitializer, ptr %result
      %one = call i32 @TVMFFIFunctionCall(ptr %f, ptr null, i32 0, ptr %result)
      %two = call i32 @TVMFFIFunctionCall(ptr %f, ptr null, i32 0, ptr %result)
      ret i32 %two
    }"""
    f, called = kinds.Function("f"), []
    call = CFunction("twice", [Handle(f)], returns="status", code=HostCode.from_llvm(text))
    compiler.build(Signature("g", [f]), call)(lambda: called.append(1))
    assert called == [1, 1]
    with pytest.raises(TypeError, match="expected a parameter that is an object of tvm-ffi"):
        Handle(INT)


def test_a_callback_of_ctypes_is_an_address() -> None:
    n = specs.sym_int64(symbol="n")
    x, compare = Tensor("x", (n,), "int32"), Pointer("compare")
    arguments = [x.data, cast(n, "uint64"), cast(4, "uint64"), compare]
    sort = compiler.build(Signature("sort", [x, compare]), CFunction("qsort", arguments))
    kind = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.POINTER(ctypes.c_int32), ctypes.POINTER(ctypes.c_int32)
    )
    callback = kind(lambda a, b: a[0] - b[0])
    given = np.array([3, 1, 2], np.int32)
    with pytest.raises(TypeError, match=r"a function of ctypes.*ctypes.cast\(callback, ctypes"):
        sort(given, callback)
    sort(given, ctypes.cast(callback, ctypes.c_void_p))
    assert given.tolist() == [1, 2, 3]


def test_a_result_is_named_as_it_is_with_or_without_data() -> None:
    n = specs.sym_int64(symbol="n")
    x, out = Tensor("x", (n,), "float32"), Tensor("out", (n,), "float32")
    copy = CFunction("memcpy", [out, x, x.nbytes])
    found = compiler.build(Signature("copy", [x]), copy, results=[out])(np.ones(2, np.float32))
    assert np.from_dlpack(found).tolist() == [1, 1]


def test_another_tensor_of_the_same_name_is_told_from_the_one_that_is_there() -> None:
    n = specs.sym_int64(symbol="n")
    x, out = Tensor("x", (n,), "float32"), Tensor("out", (n,), "float32")
    for name, said in (("out", "a result or temporary"), ("x", "a parameter")):
        other = Tensor(name, (n,), "float32", read_only=True)
        call = CFunction("memcpy", [other.data, x.data, x.nbytes])
        with pytest.raises(ValueError, match=f"Tensor '{name}' is in no .*: {said} of this name"):
            compiler.build(Signature("copy", [x]), call, results=[out])

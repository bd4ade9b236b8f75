"""Calls of functions that take `DLTensor*`, and of those that tvm-ffi calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm_ffi
from c_objects import c_object

from ferrule import compiler, specs
from ferrule.compiler.conventions import DLTensors, HostCode, SafeCall, cast
from ferrule.specs import Signature
from ferrule.specs.params import Optional, Pointer, Scalar, String, Tensor

N, M = specs.sym_int(symbol="n"), specs.sym_int(symbol="m")
PITCH = specs.sym_int64(symbol="pitch")
X = Tensor("x", (N, M), "float32", strides=(PITCH, 1))
GIVEN = np.arange(12, dtype=np.float32).reshape(3, 4)[:, :2]

SOURCE = """
#include <tvm/ffi/c_api.h>
double sum(DLTensor* x, int32_t more) {
    double total = more + 1000 * x->device.device_type + 100 * x->ndim;
    if (x->dtype.code != kDLFloat || x->dtype.bits != 32 || x->byte_offset) return -1;
    for (int64_t i = 0; i < x->shape[0]; i++)
        for (int64_t j = 0; j < x->shape[1]; j++)
            total += ((float*)x->data)[i * x->strides[0] + j * x->strides[1]];
    return total;
}
int is_there(DLTensor* x) { return x != 0; }
int64_t apart(DLTensor* x, int64_t more) { return 1000 * more + x->strides[0]; }
int kinds(void* self, const TVMFFIAny* args, int32_t count, TVMFFIAny* result) {
    int64_t all = 0;
    for (int i = 0; i < count; i++) all = all * 10 + args[i].type_index;
    result->type_index = kTVMFFIInt;
    result->v_int64 = all;
    return self != 0;
}
int total(void* self, const TVMFFIAny* args, int32_t count, TVMFFIAny* result) {
    result->type_index = kTVMFFIFloat;
    result->v_float64 = ((DLTensor*)args[0].v_ptr)->shape[0] + args[1].v_int64 + args[2].v_float64;
    return 0;
}
int fails(void* self, const TVMFFIAny* args, int32_t count, TVMFFIAny* result) {
    if (args[0].v_int64 == -1) TVMFFIErrorSetRaisedFromCStr("KeyError", "not this one");
    return (int)args[0].v_int64;
}
int texts(void* self, const TVMFFIAny* args, int32_t count, TVMFFIAny* result) {
    TVMFFIByteArray text = {"a text that is long enough to be an object", 42};
    return TVMFFIStringFromByteArray(&text, result);
}
"""

pytestmark = pytest.mark.needs_cc


def code() -> HostCode:
    from tvm_ffi import libinfo

    folders = (libinfo.find_include_path(), libinfo.find_dlpack_include_path())
    flags = [f"-I{folder}" for folder in folders]
    return HostCode.from_object(c_object(SOURCE, *flags))


def safe(name: str, *params: Any, returns: str | None = None) -> Any:
    call = SafeCall(name, params, returns=returns, code=code())
    return compiler.build(Signature(name, params), call)


def test_a_tensor_is_lent_as_it_is() -> None:
    call = DLTensors("sum", [X, cast(5, "int32")], returns="float64", code=code())
    assert compiler.build(Signature("sum", [X]), call)(GIVEN) == 1205 + GIVEN.sum()


ROWS = [GIVEN[:1], np.zeros((1, 6), np.float32)[:, :2], np.zeros((5, 4), np.float32)[:0, :2]]


@pytest.mark.parametrize("told", [False, True])
def test_a_stride_is_that_of_the_call(told: bool) -> None:
    """Also of a single row, and of none: as a number, and in the DLTensor."""
    call = DLTensors(
        "apart", [X, PITCH if told else cast(0, "int64")], returns="int64", code=code()
    )
    fn = compiler.build(Signature("apart", [X]), call)
    assert [fn(row) for row in ROWS] == [step + 1000 * step * told for step in (4, 6, 4)]


def test_a_stride_of_a_dltensor_is_checked_where_it_finds_elements() -> None:
    """It is described with what is said of it; as a number, a call has that, too."""
    step = specs.sym_int64(symbol="step", divisibility=4)
    x = Tensor("x", (N, M), "float32", strides=(step, 1))
    described, told = (
        compiler.build(
            Signature("apart", [x]), DLTensors("apart", [x, each], returns="int64", code=code())
        )
        for each in (cast(0, "int64"), step)
    )
    assert described(ROWS[1]) == 4
    with pytest.raises(ValueError, match=r"strides\[0\].*divisible by 4, but got 6"):
        told(ROWS[1])


def test_an_optional_tensor_may_be_null() -> None:
    optional = Optional("o", Tensor("o", (4,), "float32"))
    call = DLTensors("is_there", [optional], returns="int32", code=code())
    fn = compiler.build(Signature("is_there", [optional]), call)
    assert [fn(np.zeros(4, np.float32)), fn(None)] == [1, 0]


def test_arguments_of_tvm_ffis_own_kind() -> None:
    kinds = ["int8", "uint32", "bool", "float16", "float64"]
    numbers = [Scalar(f"k{i}", kind) for i, kind in enumerate(kinds)]
    optional = Optional("o", Tensor("o", (4,), "float32"))
    params = [X, *numbers, Pointer("p"), optional]
    call = SafeCall("kinds", [*params, N * M], returns="int64", code=code())
    fn = compiler.build(Signature("kinds", params), call)
    assert fn(GIVEN, 1, 2, True, 0.5, 0.5, None, None) == 711233401
    assert fn(GIVEN, 1, 2, True, 0.5, 0.5, None, np.zeros(4, np.float32)) == 711233471


def test_values_of_tvm_ffis_own_kind() -> None:
    params = [X, Scalar("i", "int16"), Scalar("f", "float32")]
    assert safe("total", *params, returns="float64")(GIVEN, -7, 0.5) == 3 - 7 + 0.5


def test_the_error_that_a_function_has_set_is_that_of_the_call() -> None:
    fn = safe("fails", Scalar("code", "int32"))
    assert fn(0) is None
    with pytest.raises(KeyError, match="not this one"):
        fn(-1)
    with pytest.raises(RuntimeError, match="fails returned 3, which is no status"):
        fn(3)


def test_a_result_of_another_kind() -> None:
    for _ in range(3):
        assert safe("texts")() is None, "what nobody wants is released"
    with pytest.raises(TypeError, match=r"texts returned str, expected int64"):
        safe("texts", returns="int64")()


def test_a_function_of_tvm_ffi_by_its_address() -> None:
    seen = []
    function = tvm_ffi.convert(lambda *values: seen.append(values))
    assert function is not None
    with pytest.raises(TypeError, match="expected the address of a C function"):
        SafeCall(function)


def test_what_tvm_ffi_has_no_kind_for_here() -> None:
    with pytest.raises(TypeError, match="argument #0 of f must be a tensor, its .data, a number"):
        SafeCall("f", [String("s")])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="argument #0 of f does not fit 64 bits"):
        SafeCall("f", [1 << 64])
    with pytest.raises(ValueError, match="it returns int64, float64, bool or nothing"):
        SafeCall("f", returns="int8")

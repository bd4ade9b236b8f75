"""Dtypes: names, codes and what their instances hold."""

from __future__ import annotations

import math
import pickle
import sys
from typing import Any, Optional

import numpy as np
import pytest

from ferrule import specs
from ferrule.specs import (
    ALL_DTYPES,
    BY_DLPACK,
    BFloat16,
    Boolean,
    Complex64,
    DType,
    Float4E2M1FN,
    Float8E4M3FN,
    Float16,
    Float32,
    Int8,
    Int32,
    Numeric,
    TFloat32,
    Uint8,
    Uint64,
    as_dtype,
)


def test_names_and_codes_are_distinct() -> None:
    assert len({dtype.name for dtype in ALL_DTYPES}) == len(ALL_DTYPES)
    in_memory = [dtype for dtype in ALL_DTYPES if dtype is not TFloat32]
    assert len({dtype.dlpack for dtype in in_memory}) == len(in_memory)


def test_tfloat32_is_float32_in_memory() -> None:
    assert TFloat32.dlpack == Float32.dlpack
    assert BY_DLPACK[TFloat32.dlpack] is Float32
    assert as_dtype("tfloat32") is TFloat32


def test_dlpack_words_are_those_of_tvm_ffi() -> None:
    """The oracle is tvm-ffi's own parser of dtype names, which knows DLPack's codes."""
    import tvm_ffi

    for dtype in ALL_DTYPES:
        if dtype.kind == "complex" or dtype is TFloat32:  # tvm-ffi has no name for them
            continue
        theirs = tvm_ffi.dtype(dtype.name)
        word = theirs.type_code | theirs.bits << 8 | theirs.lanes << 16
        assert (dtype.name, hex(dtype.dlpack)) == (dtype.name, hex(word))


@pytest.mark.parametrize(
    ("dtype", "word"),
    [
        (Float32, 0x00012002),
        (Float16, 0x00011002),
        (BFloat16, 0x00011004),
        (Boolean, 0x00010806),
        (Uint8, 0x00010801),
        (Float8E4M3FN, 0x0001080A),
        (Complex64, 0x00014005),
    ],
)
def test_dlpack_words(dtype: DType, word: int) -> None:
    assert dtype.dlpack == word


def test_a_dtype_stands_where_a_type_can() -> None:
    assert isinstance(Float32, DType)
    assert isinstance(Float32(1), Float32)
    assert not isinstance(Float32(1), Int32)
    assert Optional[Float32] is not None  # noqa: UP045
    assert repr(Float32) == "Float32"
    assert pickle.loads(pickle.dumps(Float32)) is Float32


def test_instances_hold_a_value() -> None:
    assert Int32(3).value == 3
    assert Int32(True) == 1
    assert Float32(2).value == 2.0
    assert type(Float32(2).value) is float
    assert Boolean(1).value is True
    assert Int32(3) != Int8(3)
    assert Float32(Int32(3)).value == 3.0
    assert repr(Uint64(2**64 - 1)) == "Uint64(18446744073709551615)"
    assert Float32(10**400).value == float("inf")


@pytest.mark.parametrize(
    ("dtype", "value", "error", "match"),
    [
        (Int8, 128, OverflowError, r"128 is out of the range of int8, \[-128, 127\]"),
        (Uint8, -1, OverflowError, r"-1 is out of the range of uint8, \[0, 255\]"),
        (Int32, 1.5, TypeError, r"int32 takes an integer, but got 1\.5"),
        (Int32, "3", TypeError, "int32 takes an integer, but got '3'"),
        (Boolean, 2, TypeError, "bool takes True, False, 0 or 1, but got 2"),
        (Float32, "1", TypeError, "float32 takes a number, but got '1'"),
        (Float8E4M3FN, 465, OverflowError, r"465 is out of the range of .*fn, \[-448, 448\]"),
        (Float4E2M1FN, 7.0, OverflowError, r"7.0 is out of the range of float4_e2m1fn, \[-6, 6\]"),
        (Complex64, "1", TypeError, "complex64 takes a number, but got '1'"),
    ],
)
def test_wrong_values(dtype: Any, value: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        dtype(value)


def test_as_dtype() -> None:
    assert as_dtype("float32") is Float32
    assert as_dtype(Float32) is Float32
    with pytest.raises(ValueError, match="'float33' is no dtype; known are bool"):
        as_dtype("float33")
    with pytest.raises(TypeError, match="expected a dtype"):
        as_dtype(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected a dtype"):
        as_dtype(Numeric)


def test_dtypes_of_numpy() -> None:
    kinds = [np.bool_, np.int8, np.uint16, np.int32, np.intc, np.int64, np.float16, np.float32,
             np.float64, np.complex64]  # fmt: skip
    for kind in kinds:
        name = np.dtype(kind).name
        assert as_dtype(kind) is as_dtype(np.dtype(kind)) is as_dtype(name)
    for wrong in (np.generic, np.floating, np.float32(3), np.zeros(3), np.dtype("M8[s]"), np.str_,
                  np.dtype([("a", "f4")]), np):  # fmt: skip
        with pytest.raises(TypeError, match="expected a dtype"):
            as_dtype(wrong)
    with pytest.raises(ValueError, match="dtype.'>f4'. is in another byte order than this"):
        as_dtype(np.dtype(">f4") if sys.byteorder == "little" else np.dtype("<f4"))


def test_dtypes_of_ml_dtypes() -> None:
    other = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"):
        kind = getattr(other, name)
        assert as_dtype(kind) is as_dtype(np.dtype(kind)) is as_dtype(name)


@pytest.mark.needs_torch
def test_dtypes_of_torch() -> None:
    import torch

    for name in ("bool", "uint8", "int64", "float16", "bfloat16", "float32", "float8_e4m3fn"):
        assert as_dtype(getattr(torch, name)) is as_dtype(name)
    assert as_dtype(torch.half) is as_dtype("float16")
    for wrong in (torch.quint8, torch.strided, torch.dtype, torch.zeros(3)):
        with pytest.raises(TypeError, match="expected a dtype"):
            as_dtype(wrong)


def test_integer_ranges() -> None:
    assert Int8.range == (-128, 127)
    assert Uint8.range == (0, 255)
    with pytest.raises(TypeError, match="float32 is not an integer type"):
        _ = Float32.range
    assert specs.Int4.itemsize == 1
    assert specs.Complex128.itemsize == 16


def test_special_numbers_of_floats() -> None:
    assert specs.Float16.inf == math.inf and math.isnan(specs.BFloat16.nan)
    assert (specs.Float32.zero, specs.Int8.zero) == (0.0, 0)
    for dtype in (specs.Int32, specs.Float8E4M3FN):
        with pytest.raises(AttributeError, match=f"{dtype.name} has no attribute 'inf'"):
            _ = dtype.inf

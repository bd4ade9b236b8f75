"""Fake tensors, pointers and streams: what they stand for, and what cannot be written."""

from __future__ import annotations

import copy
import ctypes
import dataclasses
import pickle
from typing import Any

import pytest

from ferrule import specs
from ferrule.specs import (
    AddressSpace,
    Float16,
    Float32,
    make_fake_compact_tensor,
    make_fake_tensor,
    row_major,
    sym_int,
)


def spec(example: specs.SupportsSpec) -> specs.Param:
    assert isinstance(example, specs.SupportsSpec)
    return example.__ferrule_spec__("x")


def test_memspace_and_width() -> None:
    plain = make_fake_compact_tensor(Float32, (4,))
    for space in (AddressSpace.gmem, AddressSpace.generic):
        other = make_fake_compact_tensor(Float32, (4,), memspace=space, use_32bit_stride=True)
        assert other == plain
        assert make_fake_tensor(Float32, (4,), (1,), memspace=space) == plain
    assert spec(plain).device is None  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="must be gmem or generic: no argument of a call is in sm"):
        make_fake_tensor(Float32, (4,), (1,), memspace=AddressSpace.smem)
    with pytest.raises(TypeError, match="memspace must be an AddressSpace, but got 'gmem'"):
        make_fake_compact_tensor(Float32, (4,), memspace="gmem")  # type: ignore[arg-type]


def test_read_only() -> None:
    fake = make_fake_compact_tensor(Float32, (4,), read_only=True)
    assert spec(fake).read_only  # type: ignore[union-attr]
    assert not spec(make_fake_tensor(Float32, (4,), (1,))).read_only  # type: ignore[union-attr]


def test_packed() -> None:
    n = specs.sym_int(divisibility=2)
    fake = make_fake_compact_tensor("float4_e2m1fnx2", (3, n), stride_order=(1, 0))
    assert fake.element_type is specs.Float4E2M1FN
    assert (fake.shape, fake.stride, fake.assumed_align) == ((3, n), (n, 1), 1)
    assert spec(fake).packed  # type: ignore[union-attr]
    assert not spec(make_fake_compact_tensor(specs.Float4E2M1FN, (3,))).packed  # type: ignore
    for shape in ((3,), (specs.sym_int(),)):
        with pytest.raises(ValueError, match="must be even; give the symbol divisibility=2"):
            make_fake_compact_tensor("float4_e2m1fnx2", shape)
    with pytest.raises(ValueError, match="needs a dim of stride 1"):
        make_fake_tensor("float4_e2m1fnx2", (4,), (2,))


def test_pointers() -> None:
    pointer = specs.make_ptr(Float16, 4096, AddressSpace.gmem, assumed_align=32)
    assert spec(pointer) == specs.Pointer("x", Float16, AddressSpace.gmem, 32)
    assert pointer.__tvm_ffi_opaque_ptr__() == 4096
    assert spec(specs.make_ptr("float32", ctypes.c_void_p(4))) == specs.Pointer(
        "x", Float32, align=4
    )
    null = specs.nullptr(Float32)
    assert (null.value, null.address_space) == (0, AddressSpace.generic)
    assert specs.nullptr(Float32, AddressSpace.smem, assumed_align=16).assumed_align == 16
    assert specs.make_ptr(Float32, ctypes.c_void_p(None)) == null


@pytest.mark.parametrize(
    ("arguments", "options", "kind", "expected"),
    [
        ((Float32, 2), {}, ValueError, "the address 0x2 is no multiple of 4 bytes"),
        ((Float32, 8), {"assumed_align": 16}, ValueError, "0x8 is no multiple of 16 bytes"),
        ((Float32, 8), {"assumed_align": 3}, ValueError, "power of two"),
        ((Float32, -4), {}, ValueError, "an address must be from 0 to 2"),
        ((Float32, 1 << 63), {}, ValueError, "an address must be from 0 to 2"),
        ((Float32, 1.0), {}, TypeError, "must be an int or c_void_p, but got 1.0"),
        ((Float32, True), {}, TypeError, "must be an int or c_void_p, but got True"),
        ((Float32, 0, "gmem"), {}, TypeError, "mem_space must be an AddressSpace"),
        (("float", 0), {}, ValueError, "'float' is no dtype"),
    ],
)
def test_pointers_that_are_none(
    arguments: Any, options: Any, kind: type[Exception], expected: str
) -> None:
    with pytest.raises(kind, match=expected):
        specs.make_ptr(*arguments, **options)


def test_streams() -> None:
    assert spec(specs.make_fake_stream()) == specs.Stream("x")
    env = specs.make_fake_stream(use_tvm_ffi_env_stream=True)
    assert spec(env) == specs.EnvStream("x")
    there = specs.make_fake_stream(use_tvm_ffi_env_stream=True, device="cuda", device_id=1)
    assert spec(there) == specs.EnvStream("x", "cuda", 1)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"device": "cuda"}, "give use_tvm_ffi_env_stream=True too"),
        ({"device_id": 0}, "give use_tvm_ffi_env_stream=True too"),
        ({"use_tvm_ffi_env_stream": True, "device_id": 0}, "device_id needs a device"),
        ({"use_tvm_ffi_env_stream": True, "device": "gpu"}, "'gpu' is no device type"),
        (
            {"use_tvm_ffi_env_stream": True, "device": "cuda", "device_id": -1},
            "a device index must be an int of at least 0, but got -1",
        ),
    ],
)
def test_streams_that_are_none(options: Any, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        specs.make_fake_stream(**options)


@pytest.mark.parametrize(
    "example",
    [
        make_fake_compact_tensor(Float32, (4,)),
        specs.make_ptr(Float32, 4),
        specs.make_fake_stream(use_tvm_ffi_env_stream=True),
    ],
)
def test_examples_are_values(example: Any) -> None:
    assert copy.deepcopy(example) == example
    assert pickle.loads(pickle.dumps(example)) == example
    assert hash(example) == hash(copy.copy(example))
    with pytest.raises(AttributeError):
        setattr(example, dataclasses.fields(example)[0].name, None)


def test_the_facade_has_cutes_names() -> None:
    import ferrule as fe

    names = (
        "make_fake_tensor make_fake_compact_tensor make_fake_stream make_ptr nullptr "
        "from_dlpack AddressSpace"
    ).split()
    for name in names:
        assert getattr(fe, name) is getattr(fe.runtime, name)
        assert name in dir(fe)


def test_row_major_is_the_order_of_arrays() -> None:
    n = sym_int(symbol="n")
    for shape in ((), (3,), (2, 3, 4), (n, 8)):
        order = tuple(reversed(range(len(shape))))
        assert row_major(shape, "float16", device="cpu") == make_fake_compact_tensor(
            "float16", shape, stride_order=order, device="cpu"
        )
    with pytest.raises(TypeError, match="row_major: the order is row-major"):
        row_major((2,), "float32", stride_order=(0,))
    with pytest.raises(TypeError, match="expected a dtype"):
        row_major((2,), (2,))

"""Real tensors as examples: exact specs, layouts that vary, and adapters in a call."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tvm_ffi

from ferrule import specs
from ferrule.runtime import from_dlpack, tensor_spec
from ferrule.runtime.values.views import DLTensor
from ferrule.specs.text import kind_text

from .conftest import Maker


def text(spec: specs.Tensor) -> str:
    """The full form of a tensor's kind, with its symbols' names."""
    full = specs.Signature("f", (spec,)).text()
    return full.removeprefix("f(a: ")


def layout(tensor: Any) -> str:
    """`(8,?)(8,1)`, as CuTe's documentation shows it."""
    parts = []
    for dims in (tensor.shape, tensor.stride):
        parts.append(",".join("?" if isinstance(d, specs.Sym) else str(d) for d in dims))
    return f"({parts[0]}):({parts[1]})"


def strided(shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """An array with these sizes and strides, in elements."""
    reach = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    steps = tuple(4 * s for s in strides)
    return np.lib.stride_tricks.as_strided(np.zeros(reach, np.float32), shape, steps)


# (8,4,16,2):(2,16,64,1), (1,4,1,32,1):(1,1,1,4,1)
A = np.empty((16, 4, 8, 2), np.float32).transpose(2, 1, 0, 3)
B = strided((1, 4, 1, 32, 1), (1, 1, 1, 4, 1))


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.zeros((2, 3), np.float32), "Tensor([2, 3], float32, device=cpu))"),
        (
            np.zeros((2, 3), np.float32).T,
            "Tensor([3, 2], float32, strides=[1, 3], device=cpu))",
        ),
        (np.zeros((), np.int8), "Tensor([], int8, device=cpu))"),
        (np.zeros((3, 0), np.uint64), "Tensor([3, 0], uint64, device=cpu))"),
        (np.zeros(2, bool), "Tensor([2], bool, device=cpu))"),
        (np.zeros(2, np.complex64), "Tensor([2], complex64, device=cpu))"),
        (np.zeros(2, np.complex128), "Tensor([2], complex128, device=cpu))"),
        (np.zeros(4, np.float16)[::-2], "Tensor([2], float16, strides=[-2], device=cpu))"),
        (
            np.frombuffer(b"1234", np.uint8),
            "Tensor([4], uint8, device=cpu, read_only=True))",
        ),
        (tvm_ffi.from_dlpack(np.zeros(2, np.int32)), "Tensor([2], int32, device=cpu))"),
        (from_dlpack(np.zeros(2, np.int32)), "Tensor([2], int32, device=cpu))"),
    ],
)
def test_specs_of_real_tensors(array: Any, expected: str) -> None:
    assert text(tensor_spec("a", array)) == expected
    assert text(from_dlpack(array).__ferrule_spec__("a")) == expected


def test_layout_of_dltensor() -> None:
    """Pinned against what tvm-ffi shows of the same tensor."""
    array = np.zeros((2, 3), np.float32)
    tensor = tvm_ffi.from_dlpack(array)
    raw = DLTensor.from_address(tensor.__chandle__() + 24)
    assert (raw.device_type, raw.device_id, raw.ndim) == (1, 0, 2)
    assert raw.dtype == specs.Float32.dlpack
    assert raw.data + raw.byte_offset == array.ctypes.data
    assert tuple(raw.shape[:2]) == tensor.shape


@pytest.mark.parametrize(
    "value",
    [
        np.zeros(2, ">f4"),
        np.zeros(2, "M8[s]"),
        np.array(["text"]),
        3,
        "text",
        object(),
        specs.make_fake_compact_tensor("float32", (2,)),
    ],
)
def test_what_dlpack_does_not_give_out(value: Any) -> None:
    kind = type(value).__qualname__
    for take in (from_dlpack, lambda v: tensor_spec("a", v)):
        with pytest.raises(TypeError, match=f"^a {kind} that DLPack does not give out: "):
            take(value)


def test_alignment() -> None:
    bytes_ = np.zeros(64 + 5, np.uint8)
    start = -bytes_.ctypes.data % 64
    aligned, crooked = bytes_[start : start + 4], bytes_[start + 1 : start + 5]
    assert from_dlpack(aligned, assumed_align=64).__ferrule_spec__("a").align == 64
    assert from_dlpack(aligned).assumed_align == 1
    with pytest.raises(ValueError, match="which is no multiple of 16 bytes"):
        from_dlpack(crooked, assumed_align=16)
    with pytest.raises(ValueError, match="which is no multiple of 4 bytes"):
        tensor_spec("a", crooked.view(np.float32))
    with pytest.raises(ValueError, match="power of two"):
        from_dlpack(aligned, assumed_align=3)


@pytest.mark.parametrize(
    ("array", "leading", "expected"),
    [
        (A, None, "(?,?,?,?):(?,?,?,1)"),
        (A, 3, "(?,?,?,?):(?,?,?,1)"),
        (A, -1, "(?,?,?,?):(?,?,?,1)"),
        (B, None, "(?,?,?,?,?):(?,1,?,?,?)"),
        (B, 0, "(?,?,?,?,?):(1,?,?,?,?)"),
        (B, 2, "(?,?,?,?,?):(?,?,1,?,?)"),
        (strided((2, 2), (8, 2)), None, "(?,?):(?,?)"),
        (strided((3, 4, 2, 5), (5, 0, 0, 1)), None, "(?,?,?,?):(?,0,0,1)"),
        (np.zeros((), np.float32), None, "():()"),
        (np.zeros(7, np.float32), None, "(?):(1)"),
    ],
)
def test_layout_dynamic(array: Any, leading: int | None, expected: str) -> None:
    fixed = from_dlpack(array)
    marked = fixed.mark_layout_dynamic(leading_dim=leading)
    assert layout(marked) == expected
    assert "?" not in layout(fixed)
    symbols = [d for d in marked.shape if isinstance(d, specs.Sym)]
    assert len(set(symbols)) == len(symbols)
    assert {symbol.width for symbol in symbols} <= {32}
    spec = marked.__ferrule_spec__("a")
    assert (spec.shape, spec.strides) == (marked.shape, marked.stride)


@pytest.mark.parametrize(
    ("array", "leading", "expected"),
    [
        (A, 1, "strides[leading_dim] must be 1, but strides[1] of (2, 16, 64, 1) is 16"),
        (B, 3, "strides[leading_dim] must be 1, but strides[3] of (1, 1, 1, 4, 1) is 4"),
        (A, 4, "leading_dim must be in [-4, 4), but got 4"),
        (A, -5, "leading_dim must be in [-4, 4), but got -5"),
        (
            np.zeros((1, 1), np.float32),
            None,
            "the leading dim cannot be told from shape (1, 1) and strides (1, 1): give leading_dim",
        ),
        (strided((2, 2), (1, 1)), None, "the leading dim cannot be told from shape (2, 2)"),
    ],
)
def test_layout_dynamic_refuses(array: Any, leading: int | None, expected: str) -> None:
    with pytest.raises(ValueError, match=re.escape(expected)):
        from_dlpack(array).mark_layout_dynamic(leading)


def test_widths_of_strides() -> None:
    array = np.zeros((2, 3), np.float32)
    wide, narrow = (from_dlpack(array, use_32bit_stride=b).mark_layout_dynamic() for b in (0, 1))
    assert [marked.stride[0].width for marked in (wide, narrow)] == [64, 32]  # type: ignore
    huge = strided((2, 1 << 31), (0, 0))
    assert from_dlpack(huge).mark_layout_dynamic().shape[1].width == 64  # type: ignore
    far = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (2, 1), (1 << 34, 4))
    with pytest.raises(ValueError, match="can overflow 32 bits: leave use_32bit_stride out"):
        from_dlpack(far, use_32bit_stride=True).mark_layout_dynamic()
    with pytest.raises(ValueError, match="can overflow 32 bits"):
        from_dlpack(far, use_32bit_stride=True).mark_compact_shape_dynamic(0)


def test_compact_shape_dynamic() -> None:
    first = from_dlpack(A).mark_compact_shape_dynamic(mode=0, divisibility=2)
    assert layout(first) == "(?,4,16,2):(2,? * 2,? * 8,1)"
    second = from_dlpack(A).mark_compact_shape_dynamic(mode=1, divisibility=2)
    assert layout(second) == "(8,?,16,2):(2,16,? * 16,1)"
    both = second.mark_compact_shape_dynamic(mode=3, divisibility=2)
    assert layout(both) == "(8,?,16,?):(?,? * 8,? * 8 * ?,1)"
    assert text(both.__ferrule_spec__("a")) == (
        "Tensor([8, n0, 16, n1], float32, strides=[n1, n1 * 8, n1 * 8 * n0, 1], device=cpu)) "
        "where n0: int32 % 2, n1: int32 % 2"
    )
    assert layout(second) == "(8,?,16,2):(2,16,? * 16,1)"


@pytest.mark.parametrize(("order", "strides"), [((3, 0, 2, 4, 1), "4"), ((2, 3, 4, 0, 1), "128")])
def test_compact_shape_in_a_given_order(order: tuple[int, ...], strides: str) -> None:
    marked = from_dlpack(B).mark_compact_shape_dynamic(2, order)
    assert str(marked.stride[2]) == strides
    assert marked.order == order
    again = marked.mark_compact_shape_dynamic(1, divisibility=4)
    assert again.order == order
    with pytest.raises(ValueError, match=r"stride_order was \(.*\) before, but is \(4, 3,"):
        marked.mark_compact_shape_dynamic(1, (4, 3, 2, 1, 0))


@pytest.mark.parametrize(
    ("array", "arguments", "expected"),
    [
        (A, (3, (0, 1, 2, 3)), "is not compact in the order (0, 1, 2, 3), that is with strides"),
        (B, (0,), "the order of the dims cannot be told from shape (1, 4, 1, 32, 1) and strides"),
        (B, (30, (3, 0, 2, 4, 1)), "mode must be in [0, 5), but got 30"),
        (B, (-1, (3, 0, 2, 4, 1)), "mode must be in [0, 5), but got -1"),
        (B, (3, (2, 1, 2, 3, 4)), "must be a permutation of (0, 1, 2, 3, 4), but got (2, 1, 2"),
        (B, (3, (0, 1, 2, 3, 4, 5)), "must be a permutation of (0, 1, 2, 3, 4), but got (0, 1"),
        (B, (0, (3, 2, 4, 0, 1), 4), "the size 1 of mode 0 is not divisible by 4"),
        (B, (0, (2, 1, 3, 0, 4), 1), "is not compact in the order (2, 1, 3, 0, 4)"),
        (A, (0, None, 0), "divisibility must be at least 1"),
        (strided((2, 2), (4, 1)), (0,), "shape (2, 2) and strides (4, 1) is not compact"),
        (np.zeros((4, 1, 2), np.float32), (1,), "cannot be told from shape (4, 1, 2)"),
    ],
)
def test_compact_shape_refuses(array: Any, arguments: Any, expected: str) -> None:
    with pytest.raises(ValueError, match=re.escape(expected)):
        from_dlpack(array).mark_compact_shape_dynamic(*arguments)


def test_what_it_says() -> None:
    array = np.zeros((2, 3), np.float32)
    held = from_dlpack(array, enable_tvm_ffi=True)
    assert held.element_type is specs.Float32
    assert held.memspace is specs.AddressSpace.generic
    assert repr(held) == (
        f"<ferrule.runtime.DLPackTensor Tensor([2, 3], float32, device=cpu) "
        f"at {array.ctypes.data:#x}>"
    )
    assert "[?, ?]" in repr(held.mark_layout_dynamic())
    assert kind_text(held.__ferrule_spec__("a"), {}, full=False) == "Tensor([2, 3], float32)"


def test_force_tf32() -> None:
    held = from_dlpack(np.zeros((2, 3), np.float32), force_tf32=True)
    assert held.element_type is specs.TFloat32
    spec = held.mark_layout_dynamic(leading_dim=1).__ferrule_spec__("a")
    assert kind_text(spec, {}, full=False) == "Tensor([?, ?], tfloat32)"


def test_force_tf32_takes_float32_alone() -> None:
    with pytest.raises(ValueError, match="takes a float32 tensor, but the elements are float64"):
        from_dlpack(np.zeros(2), force_tf32=True)


def test_it_is_a_tensor_to_everybody(make: Maker) -> None:
    array = np.arange(4, dtype=np.float32)
    held = from_dlpack(array)
    np.testing.assert_array_equal(np.from_dlpack(held), array)
    np.testing.assert_array_equal(np.from_dlpack(tvm_ffi.from_dlpack(held)), array)
    generic = tvm_ffi.convert(lambda a: str(np.from_dlpack(a)))
    assert generic(held) == "[0. 1. 2. 3.]"
    del array
    assert np.from_dlpack(held)[3] == 3
    frozen = np.zeros(2, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(BufferError, match="cannot be written"):
        generic(from_dlpack(frozen))


@pytest.mark.needs_torch
def test_torch() -> None:
    import torch

    for dtype, name in [
        (torch.bfloat16, "bfloat16"),
        (torch.float8_e4m3fn, "float8_e4m3fn"),
        (torch.float8_e5m2, "float8_e5m2"),
        (torch.bool, "bool"),
        (torch.complex64, "complex64"),
    ]:
        expected = f"Tensor([2], {name}, device=cpu))"
        assert text(tensor_spec("a", torch.zeros(2, dtype=dtype))) == expected
    for tensor in (torch.zeros(2, requires_grad=True), torch.nn.Parameter(torch.zeros(2))):
        assert text(tensor_spec("a", tensor)) == "Tensor([2], float32, device=cpu))"
        assert layout(from_dlpack(tensor).mark_layout_dynamic()) == "(?):(1)"
    assert tensor_spec("a", torch.tensor(3.0)).shape == ()
    conjugate = torch.tensor([1 + 2j]).conj()
    for bad, words in [
        (torch.zeros(2, device="meta"), "got a tensor of the meta device, which has no elements"),
        (torch.zeros(2, 2).to_sparse(), "layout torch.sparse_coo: call to_dense"),
        (conjugate, "that torch conjugates lazily: call resolve_conj"),
        (conjugate.imag, "that torch negates lazily: call resolve_neg"),
    ]:
        with pytest.raises(TypeError, match=words):
            tensor_spec("a", bad)


@pytest.mark.needs_torch
def test_packed_tensors_have_logical_sizes() -> None:
    import torch

    if not hasattr(torch, "float4_e2m1fn_x2"):
        pytest.skip("this PyTorch has no float4_e2m1fn_x2")
    row = torch.zeros((4, 8), dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    expected = "Tensor([4, 16], float4_e2m1fnx2, device=cpu))"
    assert text(tensor_spec("a", row)) == expected
    assert layout(from_dlpack(row.T)) == "(16,4):(1,16)"
    dynamic = from_dlpack(row).mark_layout_dynamic()
    assert layout(dynamic) == "(?,?):(?,1)"
    assert text(dynamic.__ferrule_spec__("a")).endswith(
        "where n0: int32, n1: int32 % 2, s0: int64 % 2"
    )
    compact = from_dlpack(row).mark_compact_shape_dynamic(0)
    assert layout(compact) == "(?,16):(16,1)"
    assert layout(from_dlpack(row[:1]).mark_layout_dynamic()) == "(?,?):(?,1)"
    with pytest.raises(ValueError, match="must be even"):
        from_dlpack(row).mark_compact_shape_dynamic(1)
    with pytest.raises(ValueError, match="needs a dim of stride 1"):
        tensor_spec("a", row[:, ::2])

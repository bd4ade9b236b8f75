"""Parameters, signatures and fake tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ferrule import specs
from ferrule.specs import Float32, Int32, Scalar, Signature, Tensor, sym_int, sym_int64


def fake(*args: Any, **kwargs: Any) -> specs.FakeTensor:
    return specs.make_fake_compact_tensor(*args, **kwargs)


def test_stride_orders() -> None:
    assert fake(Float32, (2, 3, 4)).stride == (1, 2, 6)
    assert fake(Float32, (2, 3, 4), stride_order=(2, 1, 0)).stride == (12, 4, 1)
    assert fake(Float32, (2, 3, 4), stride_order=(1, 0, 2)).stride == (3, 1, 6)
    n, m = sym_int(symbol="n"), sym_int(symbol="m")
    assert fake(Float32, (n, m)).stride == (1, n)
    assert fake(Float32, (n, m, 2), stride_order=(2, 1, 0)).stride == (m * 2, 2, 1)
    assert fake(Float32, ()).stride == ()


@pytest.mark.parametrize("order", [(0, 0), (1, 2), (0,), (0, 1, 2), (0, -1)])
def test_a_stride_order_that_is_no_permutation(order: Any) -> None:
    with pytest.raises(ValueError, match=r"stride_order must be a permutation of \(0, 1\)"):
        fake(Float32, (2, 3), stride_order=order)


@pytest.mark.parametrize("align", [0, 3, -4, 8192])
def test_an_alignment_that_is_no_power_of_two(align: int) -> None:
    with pytest.raises(ValueError, match=f"power of two from 1 to 4096, but got {align}"):
        fake(Float32, (2,), assumed_align=align)


@pytest.mark.parametrize(
    ("shape", "error", "match"),
    [
        ((-1,), ValueError, r"shape\[0\] must not be negative, but got -1"),
        ((2, 1.5), TypeError, r"shape\[1\] must be an int or a symbolic int, but got 1.5"),
        ((True,), TypeError, r"shape\[0\] must be an int"),
        ((2**63,), ValueError, r"shape\[0\] must fit 64 bits"),
        ("ab", TypeError, "shape must be a tuple"),
        (3, TypeError, "shape must be a tuple"),
    ],
)
def test_shapes_that_no_tensor_has(shape: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        fake(Float32, shape)


def test_make_fake_tensor() -> None:
    n, s = sym_int(), sym_int64()
    tensor = specs.make_fake_tensor("float16", (n, 8), (s, 1), assumed_align=16, device="cpu")
    assert (tensor.dtype, tensor.ndim, tensor.assumed_align) == (specs.Float16, 2, 16)
    spec = tensor.__ferrule_spec__("x")
    assert spec == Tensor("x", (n, 8), "float16", strides=(s, 1), device="cpu", align=16)
    with pytest.raises(ValueError, match="as many entries as shape, 2, but got 1"):
        specs.make_fake_tensor(Float32, (n, 8), (1,))
    with pytest.raises(ValueError, match="'gpu' is no device type; known are cpu, cuda"):
        specs.make_fake_tensor(Float32, (8,), (1,), device="gpu")


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t[0],
        lambda t: t.__setitem__(0, 1.0),
        list,
        len,
        bool,
        np.asarray,
        np.from_dlpack,
        lambda t: t.data_ptr(),
    ],
)
def test_fake_tensors_have_no_data(use: Any) -> None:
    with pytest.raises(TypeError, match="a fake tensor has no data: it cannot be"):
        use(fake(Float32, (4,)))


def test_signature_text() -> None:
    n, m, named = sym_int(), sym_int(), sym_int(symbol="rows")
    signature = Signature(
        "f",
        (
            Tensor("a", (named, n, 8), "float32"),
            Tensor("b", (n, m * 2 + 1), Float32, strides=(sym_int64(), 1)),
            Tensor("c", (m,), Float32),
            Scalar("k", Int32, 3),
            Scalar("alpha", Float32),
        ),
    )
    assert str(signature) == (
        "f(a: Tensor([rows, n0, 8], float32), b: Tensor([n0, n1 * 2 + 1], float32), "
        "c: Tensor([n1], float32), k: int32 = 3, alpha: float32)"
    )
    assert list(signature.symbols.values()) == ["rows", "n0", "n1", "s0"]
    assert str(signature.renamed("g")).startswith("g(a: Tensor(")
    assert signature.index("k") == 3
    assert signature["a"].data == specs.Data(signature["a"])
    assert signature["b"].shape[0] == n
    with pytest.raises(KeyError, match="'z' is no parameter of f"):
        signature["z"]


def test_a_generated_name_does_not_take_a_users() -> None:
    signature = Signature("f", (Tensor("a", (sym_int(), sym_int(symbol="n0")), Float32),))
    assert str(signature) == "f(a: Tensor([n1, n0], float32))"


def test_signatures_that_no_call_could_fit() -> None:
    n = sym_int()
    with pytest.raises(ValueError, match="two parameters are named 'a'"):
        Signature("f", (Scalar("a", Int32), Scalar("a", Int32)))
    with pytest.raises(ValueError, match="stands only inside expressions"):
        Signature("f", (Tensor("a", (n % 3,), Float32),))
    with pytest.raises(ValueError, match="different widths or divisibilities"):
        one, other = sym_int(symbol="k"), sym_int(64, symbol="k")
        Signature("f", (Tensor("a", (one, other), Float32),))
    with pytest.raises(ValueError, match="must be an identifier, but got 'a b'"):
        Scalar("a b", Int32)
    with pytest.raises(ValueError, match="cannot be float8_e4m3fn: take a float32"):
        Scalar("a", "float8_e4m3fn")
    with pytest.raises(OverflowError, match="out of the range of int8"):
        Scalar("a", "int8", 300)


def test_specs_are_values() -> None:
    n = sym_int(symbol="n")
    assert Tensor("a", (n,), Float32) == Tensor("a", (n,), "float32", align=4)
    assert hash(Tensor("a", (n,), Float32)) == hash(Tensor("a", (n,), Float32))
    with pytest.raises(AttributeError):
        Tensor("a", (n,), Float32).name = "b"  # type: ignore[misc]

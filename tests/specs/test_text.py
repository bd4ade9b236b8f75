"""Signatures as text: the full form of any signature reads back as an equal one."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from oracle.signatures import signatures

from ferrule.specs import Float32, Scalar, Signature, Tensor, sym_int
from ferrule.specs.params import (
    AnyValue,
    Array,
    Constant,
    Device,
    EnvStream,
    NoneValue,
    Optional,
    Param,
    Pointer,
    Shape,
    String,
    Tuple,
    Union,
)
from ferrule.specs.text import parse_signature


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(signatures(whole=True))
def test_the_full_form_reads_back(signature: Signature) -> None:
    text = signature.text()
    again = parse_signature(text)
    assert again.text() == text
    assert again == signature
    assert hash(again) == hash(signature)
    assert str(again) == str(signature)
    assert list(again.symbols.values()) == list(signature.symbols.values())
    for ours, theirs in zip(signature.symbols, again.symbols, strict=True):
        assert (ours.width, ours.divisibility) == (theirs.width, theirs.divisibility)
    assert [type(param) for param in again.params] == [type(param) for param in signature.params]


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ((), "f()"),
        ((Optional("a", AnyValue("a")),), "f(a: Optional[Any])"),
        ((Tuple("t", ()),), "f(t: Tuple[()])"),
        ((Tuple("t", (NoneValue("0"),)),), "f(t: Tuple[None])"),
        ((Tuple("t", (Tuple("0", ()),)),), "f(t: Tuple[Tuple[()]])"),
        ((Array("a", AnyValue("a")),), "f(a: Array[Any])"),
        ((Constant("k", -(1 << 63)),), "f(k: Literal[-9223372036854775808])"),
        ((Constant("k", " where n: int32"),), "f(k: Literal[' where n: int32'])"),
        ((Constant("k", "a) where ("), String("s", "f(")),
         "f(k: Literal['a) where ('], s: str = 'f(')"),
        ((Scalar("k", Float32, float("-inf")),), "f(k: float32 = -inf)"),
        ((Shape("s", (sym_int(divisibility=4),), "Tile", (8,)),),
         "f(s: Tile([n0]) = (8,)) where n0: int32 % 4"),
        ((Device("d", "cuda:1"),), "f(d: Device = 'cuda:1')"),
        ((Pointer("p", nullable=False),), "f(p: Pointer(nullable=False))"),
        ((Union("u", (Scalar("u", "int32"), NoneValue("u"))),), "f(u: Union[int32, None])"),
        ((EnvStream("s", "cuda", 1),), "f(s: EnvStream(cuda, device_id=1))"),
        ((EnvStream("s", None, 1),), "f(s: EnvStream(device_id=1))"),
        ((EnvStream("s", "cuda"), Scalar("k", "bool")), "f(s: EnvStream(cuda), k: bool)"),
        ((Tensor("a", (sym_int(symbol="where"),), Float32),),
         "f(a: Tensor([where], float32)) where where: int32"),
    ],
)  # fmt: skip
def test_full_forms(params: tuple[Param, ...], text: str) -> None:
    assert Signature("f", params).text() == text
    assert parse_signature(text).text() == text


@pytest.mark.parametrize(
    "text",
    [
        "", "f", "f(", "f(a)", "f(a: Nonsense)", "f(a: Tensor([n], float32))", "f(a: float33)",
        "f(a: Tensor([1.5], float32))", "f(a: Tensor([2], float32, colour=3))", "f(a: Pointer(x))",
        "f(a: int32 = open('x'))", "f(a: Tensor([n], float32)) where n: float32", "f() + 1",
        "f(a: Optional[int32, int32])", "f(a: EnvStream(1))", "f(a: Pointer(address_space=moon))",
        "f(a: Tensor([n], float32)) where n: int32 % 0", "f(a: Tensor([True], float32))",
        "f(a: Tensor([2], float32, align=-2))", "f(*a: int32)", "f(**a: int32)",
        "f() -> int", "f(s: Stream) where *n: int32", "f(a: int32, a: int32)",
        "f(a: Literal[-'x'])", "f(a: Shape([1], [2]))", "f(a: Object(3))", "f(a: int32); f()",
        "f(a: Tensor([2], float32, **x))", "f(a: Stream = None) where", "f(a: Literal[1, ...])",
    ],
)  # fmt: skip
def test_what_is_no_signature(text: str) -> None:
    with pytest.raises(ValueError):
        parse_signature(text)


@pytest.mark.parametrize("name", ["class", "None", "a b", "", "1a"])
def test_names_that_no_text_could_hold(name: str) -> None:
    with pytest.raises(ValueError, match="must be an identifier"):
        Scalar(name, "int32")
    with pytest.raises(ValueError, match="must be an identifier"):
        sym_int(symbol=name)

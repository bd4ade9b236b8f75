"""Signatures as text: the full form of any signature reads back as an equal one."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, NamedTuple

import numpy as np
import pytest
from draws import hypothesised
from hypothesis import HealthCheck, given, settings
from oracle.signatures import signatures

from ferrule.specs import Float32, Int32, Scalar, Signature, Sym, Tensor, sym_int
from ferrule.specs.params import (
    AnyValue,
    Array,
    Constant,
    Device,
    Dict,
    EnvStream,
    List,
    Map,
    NoneValue,
    Optional,
    Param,
    Pointer,
    Shape,
    String,
    Tuple,
    Union,
)
from ferrule.specs.reading import parse_signature


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(hypothesised(signatures(whole=True)))
def test_the_full_form_reads_back(signature: Signature) -> None:
    text = signature.text()
    again = parse_signature(text)
    assert again.text() == text
    assert again == signature
    assert hash(again) == hash(signature)
    assert str(again) == str(signature)
    assert structure(again.params, again) == structure(signature.params, signature)
    assert list(again.symbols.values()) == list(signature.symbols.values())
    for ours, theirs in zip(signature.symbols, again.symbols, strict=True):
        assert (ours.width, ours.divisibility) == (theirs.width, theirs.divisibility)


def structure(value: Any, signature: Signature) -> Any:
    """All that a spec holds, with symbols by their names in text and floats by theirs."""
    match value:
        case Sym():
            return signature.symbols[value]
        case float():
            return repr(value)
        case tuple() | list():
            return [structure(item, signature) for item in value]
        case dict():
            return [(structure(k, signature), structure(v, signature)) for k, v in value.items()]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)]
        return type(value).__name__, [(name, structure(v, signature)) for name, v in fields]
    return value


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
        ((Tuple("t", (Scalar("x", "int32", 3), String("y")), True),),
         "f(t: Fields(x=Default(int32, 3), y=str))"),
        ((Tuple("t", (Tuple("x", (Scalar("y", Float32, 0.5),), True, (1.5,)),), True),),
         "f(t: Fields(x=Default(Fields(y=Default(float32, 0.5)), (1.5,))))"),
        ((AnyValue("a", {"k": (1, -2.5)}),), "f(a: Any = {'k': (1, -2.5)})"),
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
        "f(t: Fields(x=Default(int32)))", "f(t: Tuple[Default(int32, 3)])",
        "f(a: Default(int32, 3))",
        "f(t: Fields(x=int32, x=int32))", "f(a: Any = {**x})", "f(a: Any = {[]: 1})",
        "f(a: Tensor([2], float32, **x))", "f(a: Stream = None) where", "f(a: Literal[1, ...])",
    ],
)  # fmt: skip
def test_what_is_no_signature(text: str) -> None:
    with pytest.raises(ValueError):
        parse_signature(text)


class Mode(enum.IntEnum):
    FAST = 2


class Pair(NamedTuple):
    x: int = 1
    y: Any = np.float32(0.5)


@dataclasses.dataclass
class Config:
    size: int = 3
    kind: Any = Float32


@pytest.mark.parametrize(
    ("default", "text"),
    [
        (Mode.FAST, "2"),
        (np.float64(0.1), "0.1"),
        (np.int8(-3), "-3"),
        (Int32(7), "7"),
        (Float32, "'float32'"),
        (Pair(), "(1, 0.5)"),
        (Config(), "(3, 'float32')"),
        ([1, [2]], "(1, (2,))"),
        (print, "..."),
        (np.zeros(2), "..."),
    ],
)
def test_defaults_of_other_kinds_are_written_as_literals(default: Any, text: str) -> None:
    signature = Signature("f", (AnyValue("a", default),))
    assert signature.text() == str(signature) == f"f(a: Any = {text})"
    assert parse_signature(signature.text()).text() == signature.text()


NAMES = ["class", "None", "a b", "", "1a", "ﬁne"]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_no_text_could_hold(name: str) -> None:
    with pytest.raises(ValueError, match="must be an identifier"):
        Scalar(name, "int32")
    with pytest.raises(ValueError, match="must be an identifier"):
        sym_int(symbol=name)


@pytest.mark.parametrize("name", [*NAMES, "0", "<lambda>", "f.g", 3, None])
def test_names_that_no_function_has(name: Any) -> None:
    with pytest.raises(ValueError, match="a function's name must be an identifier, but got"):
        Signature(name, ())


def test_a_position_names_an_item_and_no_parameter() -> None:
    with pytest.raises(
        ValueError, match="f: a parameter's name must be an identifier, but got '0'"
    ):
        Signature("f", (Scalar("0", "int32"),))


@pytest.mark.parametrize("names", [("x", "x"), ("0", "1"), ("x", "0")])
def test_fields_have_names(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="t: fields have names of their own, but got"):
        Tuple("t", tuple(Scalar(name, "int32") for name in names), fields=True)


K = Scalar("k", "int32", 3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Tuple("t", (K,)),
        lambda: Optional("t", K),
        lambda: Union("t", (K, String("t"))),
        lambda: Array("t", K),
        lambda: List("t", K),
        lambda: Map("t", K),
        lambda: Dict("t", None, K),
    ],
)
def test_what_stands_inside_a_parameter_has_no_default(make: Any) -> None:
    with pytest.raises(ValueError, match="t: Scalar inside it has the default 3: only a parameter"):
        make()

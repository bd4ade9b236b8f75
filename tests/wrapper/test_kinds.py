"""One small signature of each kind: its text, and what the hot path accepts by itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import pytest
from llvm_text import verified
from oracle import wrapped
from oracle.arguments import (
    Argument,
    Big,
    Blob,
    Dev,
    Dtype,
    Handle,
    Items,
    Numbers,
    Opaque,
    Pairs,
    Text,
    View,
)
from oracle.judge import Accepted, judge
from oracle.wrapped import Wrapped

from ferrule.compiler.artefacts import Body
from ferrule.compiler.wrapper import accept
from ferrule.compiler.wrapper.builder import build_wrapper
from ferrule.compiler.wrapper.callee import BodyCall
from ferrule.compiler.wrapper.items import Item
from ferrule.specs import (
    BFloat16,
    Boolean,
    Float16,
    Float32,
    Int8,
    Int32,
    Int64,
    Signature,
    TFloat32,
    Uint8,
    Uint64,
    sym_int,
)
from ferrule.specs import params as kinds
from ferrule.specs.params import AnyOrTuple, Param

N, M, S = (sym_int(symbol=name) for name in "nms")
EVEN = sym_int(symbol="even", divisibility=12)


def vector(name: str, *shape: object, device: str = "cpu", **more: object) -> kinds.Tensor:
    return kinds.Tensor(name, shape or (N,), Float32, device=device, **more)


def view(*shape: int, **changes: object) -> View:
    strides, running = [], 1
    for size in reversed(shape):
        strides.append(running)
        running *= size
    return View(**{"shape": shape, "strides": tuple(reversed(strides)), **changes})


@dataclass(frozen=True)
class Kind:
    """Parameters, calls that the hot path accepts, and calls that it leaves to the checker."""

    name: str
    params: Sequence[Param]
    usual: Sequence[Sequence[Argument]] = ()
    unusual: Sequence[Sequence[Argument]] = ()


KINDS = [
    Kind("nothing", [], [[]]),
    Kind(
        "tensor",
        [vector("a", N, M, 4)],
        [[view(3, 5, 4)], [view(3, 5, 4, owned=True)], [view(3, 0, 4)]],
        [[view(3, 5, 4, strides=None)], [view(1, 5, 4, strides=(7, 4, 1))]],
    ),
    Kind("tensor_owning", [vector("a", owning=True)], [[view(3, owned=True)]]),
    Kind(
        "tensor_bytes",
        [kinds.Tensor("a", (N,), Uint8, device="cpu"), kinds.Tensor("b", (N,), Int8, device="cpu")],
        [[view(3, dtype=0x00010800), view(3, dtype=0x00010801)]],
    ),
    Kind(
        "tensor_strides",
        [vector("a", N, M, strides=(S, 1)), vector("b", N, M, strides=(S, 1))],
        [[View((3, 5), (8, 1)), View((3, 5), (8, 1))], [View((3, 5), (-8, 1))] * 2],
        [[View((1, 5), (8, 1)), View((1, 5), (8, 1))]],
    ),
    Kind(
        "tensor_gpu",
        [vector("a", device="cuda"), vector("b", device="cuda"), kinds.EnvStream("s")],
        [[view(3, device=(2, 1)), view(3, device=(2, 1))]],
    ),
    Kind(
        "tensor_device_id",
        [vector("a", device="cuda", device_id=1)],
        [[view(3, device=(2, 1))]],
    ),
    Kind(
        "tensor_packed",
        [kinds.Tensor("a", (N, EVEN), "float4_e2m1fnx2", device="cpu")],
        [[View((3, 6), (6, 1), dtype=0x00020411)]],
    ),
    Kind(
        "tensor_sizes",
        [vector("a", 2 * N + 1), vector("b", N // 2, EVEN)],
        [[view(13), view(3, 24)]],
    ),
    Kind(
        "tensor_same",
        [vector("a", N, M, 4), vector("b", N, M, 4), kinds.Optional("c", vector("c", N, M, 4))],
        [[view(3, 5, 4), view(3, 5, 4), view(3, 5, 4)], [view(3, 5, 4)] * 2 + [None]],
        [[view(3, 5, 4), view(3, 5, 4, strides=None), view(3, 5, 4)]],
    ),
    Kind(
        "tensor_ones",
        [vector("a", N, 1), vector("b", N, 1)],
        [[View((3, 1), (1, 7)), View((3, 1), (1, 9))]],
    ),
    Kind("scalar_int", [kinds.Scalar("k", Int32)], [[-5], [True]]),
    Kind("scalar_int64", [kinds.Scalar("k", Int64)], [[-(1 << 63)]]),
    Kind("scalar_uint64", [kinds.Scalar("k", Uint64)], [[5]], [[Big(1 << 63)]]),
    Kind("scalar_bool", [kinds.Scalar("k", Boolean)], [[True], [0]]),
    Kind("scalar_float", [kinds.Scalar("k", Float32)], [[0.1], [3], [True]]),
    Kind("scalar_float16", [kinds.Scalar("k", Float16)], [[0.1], [1e-7], [1e9], [-65520.0]]),
    Kind("scalar_bfloat16", [kinds.Scalar("k", BFloat16)], [[0.1], [1e-40], [3.4e38], [1]]),
    Kind(
        "scalar_tfloat32",
        [kinds.Scalar("k", TFloat32)],
        [[0.1], [1e-40], [3.4028e38], [1], [float("nan")]],
    ),
    Kind(
        "shape",
        [kinds.Shape("s", (N, 4, N * 2)), kinds.Shape("t", (M,), "Coord")],
        [[Numbers((3, 4, 6)), Numbers((-7,))]],
        [[Items((3, 4, 6)), Numbers((-7,))]],
    ),
    Kind(
        "pointer",
        [kinds.Pointer("p", Float32, align=16), kinds.Pointer("q", nullable=False)],
        [[Opaque(4096), Opaque(1)], [None, 4096]],
    ),
    Kind("stream", [kinds.Stream("s")], [[Opaque(4096)], [None], [7]]),
    Kind("env_stream", [kinds.EnvStream("s", "cuda", 2), kinds.Scalar("k", Int32)], [[1]]),
    Kind(
        "tuple",
        [kinds.Tuple("t", (vector("0"), kinds.Tuple("1", (kinds.Scalar("0", Int32),))))],
        [[Items((view(3), Items((4,), "list")))]],
    ),
    Kind(
        "optional",
        [kinds.Optional("a", vector("a")), kinds.Optional("b", vector("b"))],
        [[view(3), view(3)], [None, view(3)], [view(3), None], [None, None]],
    ),
    Kind(
        "union",
        [
            kinds.Union(
                "u", (kinds.Scalar("u", Int32), kinds.String("u"), vector("u", device="cuda"))
            ),
            kinds.EnvStream("s", "cpu"),
        ],
        [[4], [Text(b"abc", "small")], [view(3, device=(2, 3))]],
    ),
    Kind(
        "string",
        [kinds.String("s")],
        [[Text(b"abc", "small")], [Text(b"abcdefghi", "heap")]],
        [[Text(b"abc", "raw")]],
    ),
    Kind(
        "bytes",
        [kinds.Bytes("s")],
        [[Blob(b"abc", "small")], [Blob(b"abcdefghi", "heap")]],
        [[Blob(b"abc", "array")]],
    ),
    Kind("dtype", [kinds.DataType("d")], [[Dtype(0x00012002)]], [[Text(b"float32", "small")]]),
    Kind("device", [kinds.Device("d")], [[Dev(2, 1)]], [[Text(b"cuda:1", "small")]]),
    Kind("none", [kinds.NoneValue("x")], [[None]]),
    Kind("constant", [kinds.Constant("x", 2), kinds.Constant("y", 0.5)], [[2, 0.5]]),
    Kind(
        "constant_text",
        [kinds.Constant("x", "mean"), kinds.Constant("y", True)],
        [[Text(b"mean", "small"), True]],
        [[Text(b"mean", "heap"), True]],
    ),
    Kind("function", [kinds.Function("f")], [[Handle("ffi.Function")]]),
    Kind("array", [kinds.Array("x")], [[Items((1, 2))]]),
    Kind("list", [kinds.List("x")], [[Items((1, 2), "list")]]),
    Kind("map", [kinds.Map("x")], [[Pairs(((1, 2),))]]),
    Kind("dict", [kinds.Dict("x")], [[Pairs(((1, 2),), "dict")]]),
    Kind("module", [kinds.Module("m")], [[Handle("ffi.Module")]]),
    Kind("any", [kinds.AnyValue("x")], [[None], [4], [view(3)]]),
    Kind("object", [kinds.Object("x", "ffi.Function")], [], [[Handle("ffi.Function")]]),
    Kind("elements", [kinds.Array("x", kinds.Scalar("0", Int32))], [], [[Items((1, 2))]]),
]


def texts(of: Kind, hot: bool = True) -> str:
    signature = Signature("f", of.params)
    return build_wrapper(
        signature, BodyCall(Body("", "ferrule_body", tuple(signature.symbols))), hot=hot
    )


def named(of: Kind) -> str:
    return of.name


def test_every_kind_is_here() -> None:
    parameters = set(get_args(Param)) - {AnyOrTuple}  # which is of results alone
    assert {type(param) for kind in KINDS for param in kind.params} == parameters


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_text(kind: Kind, golden: Callable[[str, str], None]) -> None:
    """Unoptimised; the bytes of messages and programs are left out."""
    text = texts(kind)
    verified(text)
    golden(f"{kind.name}.ll", re.sub(r'\[\d+ x i8\] c"[^"]*"', '[… x i8] c"…"', text))


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_the_hot_path_makes_no_calls(kind: Kind) -> None:
    """But for the checker behind it, the body, and the stream that the caller has.

    Whether an object is of a type that is derived from the wanted one, and whether all elements of
    a container are as wanted, are calls too.
    """
    called = re.findall(r"call [^@]*@([\w.]+)\(", texts(kind))
    streams = sum(isinstance(param, kinds.EnvStream) for param in kind.params)
    wanted = {"ferrule_body", "ferrule_check"} | ({"TVMFFIEnvGetStream"} if streams else set())
    calls = {"object": "ferrule_is_instance", "elements": "ferrule_elements_fit"}
    wanted |= {calls[kind.name]} if kind.name in calls else set()
    assert {name for name in called if not name.startswith("llvm.")} == wanted
    assert called.count("ferrule_check") == called.count("ferrule_body") == 1


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_what_the_hot_path_accepts(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Usual calls need no checker, and the body sees what it should."""
    monkeypatch.setattr(wrapped, "build_wrapper", _without_checker)
    under_test = Wrapped(Signature("f", kind.params))
    for arguments in kind.usual:
        assert not _problem(under_test, arguments), arguments


@pytest.mark.parametrize("hot", [True, False])
@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_both_ways_give_the_body_the_same(kind: Kind, hot: bool) -> None:
    under_test = Wrapped(Signature("f", kind.params), hot)
    for arguments in (*kind.usual, *kind.unusual):
        assert not _problem(under_test, arguments), arguments


def _problem(under_test: Wrapped, arguments: Sequence[Argument]) -> str | None:
    wanted = judge(under_test.signature, arguments)
    assert isinstance(wanted, Accepted), wanted
    return under_test.disagreement(arguments, wanted)


def _without_checker(signature: Signature, convention: BodyCall) -> str:
    """A wrapper whose checker refuses every call."""
    text = build_wrapper(signature, convention)
    declared = re.search(r"declare i32 @ferrule_check\((.*)\) cold", text)
    assert declared is not None
    refusing = f"define internal i32 @refuse({declared[1]}) {{\n  ret i32 -1\n}}"
    return text.replace(declared[0], refusing).replace("@ferrule_check(", "@refuse(")


WRAPPED = (8 * ((1 << 31) - 1) ** 2 + (1 << 63)) % (1 << 64) - (1 << 63)
LARGE = (1 << 31) - 1


@pytest.mark.parametrize("hot", [True, False])
@pytest.mark.parametrize(
    ("params", "arguments"),
    [
        # A product of sizes that wraps to the stride which came.
        (
            [vector("a", *(sym_int() for _ in range(4)))],
            [View((2, LARGE, LARGE, 8), (WRAPPED, 8 * LARGE, 8, 1))],
        ),
        # 2**64 - 1 is a multiple of 3, as -1 is not.
        ([vector("a", 2, strides=(sym_int(64, divisibility=3),))], [View((2,), (-1,))]),
        ([vector("a", EVEN)], [view(6)]),
        ([vector("a", 2 * N)], [view(7)]),
        ([vector("a", 2, strides=(S,)), vector("b", 3, strides=(S,))], [view(2), View((3,), (2,))]),
        ([kinds.Optional("a", vector("a")), kinds.Optional("b", vector("b"))], [view(3), view(4)]),
        (
            [
                kinds.Optional("a", vector("a", device="cuda")),
                kinds.Tuple("b", (vector("0", M, device="cuda"),)),
            ],
            [view(3, device=(2, 1)), Items((view(3, device=(2, 0)),))],
        ),
        ([kinds.Shape("s", (N, N))], [Numbers((3, 4))]),
        ([kinds.Shape("s", (N,))], [Numbers((-3,))]),
        ([kinds.Union("u", (kinds.Scalar("u", Int8), kinds.String("u")))], [128]),
    ],
)
def test_what_looks_right_and_is_not(
    params: Sequence[Param], arguments: Sequence[Argument], hot: bool
) -> None:
    signature = Signature("f", params)
    wanted = judge(signature, arguments)
    assert not isinstance(wanted, Accepted)
    assert Wrapped(signature, hot).disagreement(arguments, wanted) is None


def test_a_kind_with_fields_needs_code_that_checks_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its traits do not say which values it takes: all of its types would pass."""
    monkeypatch.setattr(kinds.String, "literal_fields", classmethod(lambda cls: ("name",)))
    signature = Signature("f", [kinds.String("x")])
    with pytest.raises(TypeError, match=r"values\.py has no case for the kind String"):
        build_wrapper(signature, BodyCall(Body("", "ferrule_body", ())))


def test_a_new_kind_needs_a_case_in_the_hot_path() -> None:
    made = type("Mine", (kinds.Plain,), {"traits": kinds.DataType.traits})("x")
    nothing: Any = None
    with pytest.raises(TypeError, match=r"accept\.py has no case for the kind Mine"):
        accept._accept(nothing, nothing, Item(made, nothing, 0, 0))

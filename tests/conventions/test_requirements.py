"""Requirements of functions that are built: in signatures, in conventions, in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import CFunction, FirstOf, Give, Require, Sequence
from ferrule.specs import Scalar, Signature, Tensor, parse_signature, require

n, m = specs.sym_int(symbol="n", min=1, max=4096), specs.sym_int64(symbol="m")
k = Scalar("k", "int32")
x, y = Tensor("x", (n,), "float32"), Tensor("y", (m,), "float32")
COPY = CFunction("memmove", [y.data, x.data, n * 4])
SMALL = require(n * k.value <= 1 << 12, "the scratch is small")


def built(convention: Any, *requires: Any, name: str = "f", **more: Any) -> fe.Function:
    return compiler.build(Signature(name, [x, y, k], requires=requires), convention, **more)


def refusal(function: Any, *sizes: int, k: int = 1) -> str:
    arrays = [np.ones(size, np.float32) for size in sizes]
    with pytest.raises(ValueError) as refused:
        function(*arrays, k)
    return str(refused.value).partition("`, ")[2] or str(refused.value)


def test_a_step_of_a_sequence_is_a_requirement_of_the_signature() -> None:
    steps = [Require(SMALL.condition, SMALL.message), Sequence([Require(m >= n)]), COPY]
    by_steps, by_signature = built(Sequence(steps)), built(COPY, SMALL, m >= n)
    assert by_steps.signature == by_signature.signature
    assert by_steps.signature.text().endswith(
        "where n: int32 in 1..4096, m: int64 "
        "requires (n * k <= 4096, 'the scratch is small'), m >= n"
    )
    for function in (by_steps, by_signature):
        out = np.zeros(3, np.float32)
        function(np.ones(2, np.float32), out, 1)
        assert out.tolist() == [1, 1, 0]
        assert refusal(function, 9, 9, k=500) == (
            "expected n * k <= 4096, but got n = 9, k = 500: the scratch is small"
        )
        assert refusal(function, 3, 2) == "expected m >= n, but got m = 2, n = 3"


def test_a_requirement_is_checked_before_anything_is_called() -> None:
    out = np.zeros(2, np.float32)
    with pytest.raises(ValueError, match="expected m >= n"):
        built(Sequence([COPY, Require(m >= n)]))(np.ones(3, np.float32), out, 1)
    assert not out.any()


@pytest.mark.needs_wide_ints
def test_a_number_of_64_bits_without_a_sign_must_fit_those_with_one(tmp_path: Path) -> None:
    wide = Scalar("k", "uint64")
    sig = Signature("f", [x, wide], requires=[wide.value >= 3, n * wide.value <= 1 << 40])
    assert parse_signature(sig.text()) == sig
    made = compiler.build(sig, Give(wide))
    made.export_library(str(tmp_path / "f.so"))
    for function in (made, fe.runtime.load_module(tmp_path / "f.so").f):
        array = np.ones(2, np.float32)
        assert function(array, 1 << 39) == 1 << 39
        for number, said in (
            (2, "expected k >= 3, but got k = 2"),
            (
                1 << 63,
                "expected k >= 3, a part of which overflows .* but got k = 9223372036854775808",
            ),
            (2**64 - 1, "k >= 3, a part of which overflows .* but got k = 18446744073709551615"),
            (1 << 62, r"n \* k <= .*, a part of which overflows .* but got n = 2, k = 46116860184"),
            ((1 << 39) + 1, r"n \* k <= 1099511627776, but got n = 2, k = 549755813889"),
        ):
            with pytest.raises(ValueError, match=said):
                function(array, number)
    with pytest.raises(ValueError, match="overflows .* k = 9223372036854775809"):
        compiler.build(Signature("f", [x, wide]), Sequence([Require(wide.value > 0), Give(wide)]))(
            np.ones(1, np.float32), (1 << 63) + 1
        )


def test_what_is_no_requirement_of_every_call_is_checked_where_it_stands() -> None:
    aligned = specs.aligned(y.data, 64)
    choice = FirstOf(
        [
            Sequence([Require(specs.divisible(n, 4), "whole vectors"), COPY], when=n >= 16),
            Sequence([Require(m >= n, when=k.value > 0), COPY]),
        ]
    )
    function = built(Sequence([Require(aligned, "for the cache"), choice]))
    assert function.signature.requires == ()
    assert function.notes["assumes"] == [
        "y is 64-byte aligned",
        "n % 4 == 0",
        "m >= n where k > 0",
    ]
    lines = np.zeros(64, np.float32)
    start = -lines.ctypes.data % 64 // 4
    whole = lines[start : start + 17]
    function(np.ones(16, np.float32), whole, 1)
    function(np.ones(4, np.float32), whole[:3], 0)  # which is no call to learn from
    for given, text in (
        ((17, whole, 1), "f: expected n % 4 == 0, but got n = 17: whole vectors"),
        ((4, whole[:3], 1), "f: expected m >= n, but got m = 3, n = 4"),
        ((4, whole[1:9], 1), "f: expected y is 64-byte aligned: for the cache"),
    ):
        with pytest.raises(ValueError) as refused:
            function(np.ones(given[0], np.float32), *given[1:])
        assert str(refused.value) == text


def test_files_have_the_requirements(tmp_path: Path) -> None:
    function = built(COPY, SMALL, m >= n)
    library, header, stub = (tmp_path / f"f.{end}" for end in ("o", "h", "pyi"))
    function.export_to_c(library)
    function.export_header(header)
    function.export_stub(stub)
    loaded = fe.runtime.load_module(library).f
    assert loaded.signature == function.signature
    assert loaded.signature.requires[0] == SMALL
    assert refusal(loaded, 4097, 4097).startswith("expected to be at most 4096, but got 4097")
    assert refusal(loaded, 3, 2) == "expected m >= n, but got m = 2, n = 3"
    for text in (header.read_text(), stub.read_text()):
        assert "f(x: Tensor([n: 1..4096], float32), y: Tensor([m], float32), k: int32)" in text
        assert "requires: n * k <= 4096: the scratch is small\n" in text
        assert "requires: m >= n\n" in text


def test_a_renamed_function_keeps_them(tmp_path: Path) -> None:
    path = tmp_path / "g.o"
    built(COPY, m >= n).export_to_c(path, "g")
    assert refusal(fe.runtime.load_module(path).g, 3, 2).startswith("expected m >= n, but got")


def test_a_number_with_the_name_of_a_size() -> None:
    number = Scalar("n", "uint8")
    signature = Signature("f", [x, number], requires=[n <= number.value])
    text = "f(x: Tensor([n], float32), n: uint8) where n: int32 in 1..4096 requires n <= n.value"
    assert signature.requires[0].condition == (n <= number.value)
    assert signature.text() == text
    assert parse_signature(text) == signature


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: require(True), TypeError, r"condition over sizes, .* but got True \(== compares"),
        (lambda: require(n < 3, 4), TypeError, "message must be a str or None, but got 4"),
        (
            lambda: require(specs.aligned(x.data, 8)),
            ValueError,
            r"conventions\.Require takes every",
        ),
        (lambda: require(specs.equal(3, 4)), ValueError, "3 == 4 has no size of a call in it"),
        (lambda: built(COPY, "n < 3"), TypeError, "a condition over sizes"),
        (
            lambda: Signature("f", [x], requires=n < 3),
            TypeError,
            "requires must be a list, but got Comparison",
        ),
        (lambda: Signature("f", [x], requires=[m < 3]), ValueError, "m < 3: the symbol m is in no"),
        (
            lambda: Signature("f", [specs.Optional("x", x)], requires=[n < 3]),
            ValueError,
            "n < 3: the symbol n of x.* can be absent",
        ),
        (
            lambda: Signature("f", [x], requires=[k.value < 3]),
            ValueError,
            "k < 3: k is no integer parameter",
        ),
        (
            lambda: Signature("f", [x, Scalar("k", "float64")], requires=[k.value < 3]),
            ValueError,
            "k < 3: k is no integer parameter",
        ),
        (lambda: Require("n < 3"), TypeError, "a condition over sizes"),
        (lambda: Require(n < 3, 4), TypeError, "Require: message must be a str or None"),
        (lambda: built(Sequence([Require(specs.sym_int() < 3), COPY])), ValueError, "is in no par"),
    ],
)
def test_what_is_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_addresses_are_no_sizes_but_there_is_what_compares_them() -> None:
    x, y = (specs.Tensor(name, (specs.sym_int(symbol="n"),), "float32") for name in "xy")
    with pytest.raises(TypeError, match="but got the address of x: conventions.Apart.*aligned"):
        specs.equal(x.data, y.data)  # type: ignore[arg-type]

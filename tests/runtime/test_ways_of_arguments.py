"""Parameters that position alone or a name alone gives: `/` and `*`, on every way to a function."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import specs

CPU = "--target cpu"


@fe.jit
def named(a: fe.Int32, *, k: fe.Int32 = 3):
    return a * 10 + k


@fe.jit
def both(a: fe.Int32, /, b: fe.Int32, *, k: fe.Int32, j: fe.Int32 = 1):
    return a * 1000 + b * 100 + k * 10 + j


def compiled(tmp_path: Path, way: str) -> tuple[Any, Any]:
    """The two functions, as a way leads to them."""
    if way == "direct":
        return named, both
    made = fe.compile(named, 1, options=CPU), fe.compile(both, 1, 1, k=1, options=CPU)
    if way == "compiled":
        return made
    if way == "pickled":
        first, second = (pickle.loads(pickle.dumps(each)) for each in made)
        return first, second
    if way == "overload":
        first, second = (fe.overload([each]) for each in made)
        return first, second
    paths = [tmp_path / "named.o", tmp_path / "both.o"]
    for each, path in zip(made, paths, strict=True):
        each.export_to_c(path)
    first, second = (fe.runtime.load_module(path) for path in paths)
    return first.named, second.both


@pytest.mark.parametrize("way", ["direct", "compiled", "exported", "pickled", "overload"])
def test_calls_are_taken_and_refused_as_python_does(tmp_path: Path, way: str) -> None:
    first, second = compiled(tmp_path, way)
    assert [first(1), first(a=2), first(1, k=9), first(k=9, a=2)] == [13, 23, 19, 29]
    assert [second(1, 2, k=3), second(1, b=2, k=3, j=4)] == [1231, 1234]
    for call, text in (
        (lambda: first(1, 9), "named() takes 1 positional argument but 2 were given"),
        (lambda: first(k=1), "named() missing 1 required positional argument: 'a'"),
        (lambda: second(1, 2), "both() missing 1 required keyword-only argument: 'k'"),
        (lambda: second(1, 2, 3), "both() takes 2 positional arguments but 3 were given"),
        (
            lambda: second(1, 2, 3, k=1),
            "both() takes 2 positional arguments but 3 positional arguments "
            "(and 1 keyword-only argument) were given",
        ),
        (
            lambda: second(a=1, b=2, k=3),
            "both() got some positional-only arguments passed as keyword arguments: 'a'",
        ),
    ):
        with pytest.raises(TypeError) as raised:
            call()
        assert str(raised.value) == text


@pytest.mark.parametrize("way", ["compiled", "exported", "overload"])
def test_signatures_say_it(tmp_path: Path, way: str) -> None:
    first, second = compiled(tmp_path, way)
    assert str(inspect.signature(first)) == "(a: int32, *, k: int32 = 3) -> int32"
    assert str(inspect.signature(second)) == (
        "(a: int32, /, b: int32, *, k: int32, j: int32 = 1) -> int32"
    )
    assert "both(a: int32, /, b: int32, *, k: int32, j: int32 = 1)" in second.__doc__
    second.export_stub(tmp_path / "m.pyi")
    stub = (tmp_path / "m.pyi").read_text()
    assert "def both(a: int, /, b: int, *, k: int, j: int = 1) -> int:" in stub


def test_bind_and_calls_with_arguments_that_need_a_look() -> None:
    both_ = fe.compile(both, 1, 1, k=1, options=CPU)
    assert both_.bind(1, 2, k=3)() == 1231
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
        both_.bind(1, 2, 3)
    assert both_(np.int32(1), 2, k=np.int8(3)) == 1231
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
        both_(1, 2, np.int32(3))
    with pytest.raises(TypeError, match="argument #2 when calling: `both.a: int32, /, b: int32"):
        both_(1, 2, k="3")


def test_through_c_all_are_positional() -> None:
    import tvm_ffi

    function = fe.compile(both, 1, 1, k=1, options=CPU)
    assert tvm_ffi.convert(lambda g: g(1, 2, 3, 4))(function) is not None
    assert tvm_ffi.Function.__call__(function, 1, 2, 3, 4) == 1234


def test_calls_in_the_language() -> None:
    linked = fe.compile(both, 1, 1, k=1, options=CPU)

    @fe.jit
    def right(a: fe.Int32):
        return linked(a, b=2, k=3)

    @fe.jit
    def wrong(a: fe.Int32):
        return linked(a, 2, 3, 4)

    @fe.jit
    def wrong_name(a: fe.Int32):
        return linked(a=a, b=2, k=3)

    @fe.jit
    def wrong_helper(a: fe.Int32):
        return named(a, 4)

    assert fe.compile(right, 1, options=CPU)(1) == 1231
    for each in (wrong, wrong_name, wrong_helper):
        with pytest.raises(fe.CompileError, match="positional|missing"):
            fe.compile(each, 1, options=CPU)


def test_texts_come_back() -> None:
    for text in (
        "f(*, k: int32)",
        "f(a: int32, /)",
        "f(a: int32 = 1, /, b: int32 = 2, *, k: int32)",
        "f(a: int32 = 1, b: Tensor([n * 2], float32), *, c: str = ', / * (') where n: int32",
        "f(a: Literal['(,*, '], *, k: Literal['/, *'])",
    ):
        signature = specs.parse_signature(text)
        assert signature.text() == text
        assert specs.parse_signature(signature.text()) == signature
    assert specs.parse_signature("f(a: int32)") != specs.parse_signature("f(*, a: int32)")
    for wrong in ("f(a: int32, *)", "f(/, a: int32)", "f(*, a: int32, /)", "f(a: int32, *, *)"):
        with pytest.raises(ValueError, match="no signature|cannot be read|keyword"):
            specs.parse_signature(wrong)


def test_wrong_counts_are_refused() -> None:
    a = specs.Scalar("a", "int32")
    with pytest.raises(ValueError, match="together at most 1"):
        specs.Signature("f", [a], None, 1, 1)
    with pytest.raises(TypeError, match="positional_only must be an int"):
        specs.Signature("f", [a], None, "1")  # type: ignore[arg-type]


def test_candidates_agree() -> None:
    @fe.jit
    def plain(a: fe.Float32, k: fe.Int32 = 3):
        return k

    with pytest.raises(fe.CompileError, match="differ in which parameters"):
        fe.overload([fe.compile(named, 1, options=CPU), fe.compile(plain, fe.Float32, options=CPU)])


def test_free_dtypes_keep_it() -> None:
    @fe.jit
    def scale(a: fe.Tensor, *, by: fe.Int32):
        a[0] = a[0] * by

    free = fe.sym_dtype(fe.Float32, fe.Float64)
    function = fe.compile(
        scale, fe.make_fake_compact_tensor(free, (fe.sym_int(),)), by=1, options=CPU
    )
    a = np.ones(2)
    function(a, by=4)
    assert a[0] == 4
    assert "*, by: int32" in str(function.signature)
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        function(a, 4)

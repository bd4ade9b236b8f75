"""Containers that a function hands back are themselves; what it wrote as a tuple is a tuple."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tvm_ffi

import ferrule as fe
from ferrule import specs

CPU = "--target cpu"


def build(function: Any, *examples: Any) -> Any:
    return fe.compile(function, *examples, options=CPU)


@fe.jit
def echo(x):
    return x


def _direct(function: Any, *values: Any) -> Any:
    return function(*values)


def _bound(function: Any, *values: Any) -> Any:
    return function.bind(*values)()


@pytest.mark.parametrize("call", [_direct, _bound])
@pytest.mark.parametrize("spec", [specs.AnyValue("x"), None])
@pytest.mark.parametrize("made", [tvm_ffi.List, tvm_ffi.Array])
def test_what_was_given_comes_back(
    call: Callable[..., Any], spec: specs.Param | None, made: Any
) -> None:
    kind = specs.List("x") if made is tvm_ffi.List else specs.Array("x")
    function = build(echo, spec or kind)
    given = made([1, made([2, 3])])
    found = call(function, given)
    assert type(found) is made
    assert found.same_as(given)
    if made is tvm_ffi.List:
        found.append(4)
        assert list(given)[-1] == 4
    through_c = tvm_ffi.convert(lambda f, v: f(v))(function, given)
    assert through_c.same_as(given)


@dataclass
class Pair:
    left: Any
    right: Any


class Named(NamedTuple):
    left: Any
    right: Any


def test_what_is_written_as_a_tuple_is_one_and_what_is_made_stays() -> None:
    @fe.jit
    def made(n: fe.Int64, xs):
        return (
            (fe.List(n, 2), fe.Array(n, (1, 2))),
            Pair(n, Named(xs, n)),
            fe.Map([("k", fe.Array(n))]),
        )

    given = tvm_ffi.List([7])
    function = build(made, 1, specs.List("xs"))
    for call in (_direct, _bound):
        first, pair, table = call(function, 5, given)
        assert (type(first), type(pair), type(pair[1])) == (tuple, tuple, tuple)
        assert [type(each) for each in first] == [tvm_ffi.List, tvm_ffi.Array]
        assert (list(first[0]), pair[0], pair[1][1]) == ([5, 2], 5, 5)
        assert pair[1][0].same_as(given)
        assert type(table["k"]) is tvm_ffi.Array


def test_what_a_callback_gives_back() -> None:
    kept = tvm_ffi.List([1])

    @fe.jit
    def asked(f):
        return fe.call(f, result=fe.List[fe.Int64]), (fe.call(f, result=Any), 1)

    first, (second, _) = build(asked, specs.Function("f"))(lambda: kept)
    assert first.same_as(kept)
    assert second.same_as(kept)


@fe.jit
def ways(n: fe.Int32) -> Any:
    if n < 0:
        return "negative"
    if n == 0:
        return 1, (2, "x")
    return None


def test_tuples_among_other_results(tmp_path: Path) -> None:
    function = build(ways, 1)
    function.export_to_c(tmp_path / "f.o")
    loaded = fe.runtime.load_module(tmp_path / "f.o").ways
    for each in (function, loaded):
        assert [each(n) for n in (-1, 0, 1)] == ["negative", (1, (2, "x")), None]
        assert str(each.signature) == "ways(n: int32) -> Any"
        assert specs.parse_signature(each.signature.text()) == each.signature


def test_where_both_can_come_a_container_stays() -> None:
    @fe.jit
    def either(n: fe.Int32, x) -> Any:
        if n < 0:
            return x
        return n, 1

    given = tvm_ffi.Array([1])
    function = build(either, 1, specs.AnyValue("x"))
    assert function(-1, given).same_as(given)
    assert list(function(2, given)) == [2, 1]


def test_results_of_overloads() -> None:
    @fe.jit
    def two(n):
        return n, 1

    @fe.jit
    def three(n):
        return n, (1, 2), fe.List(3)

    @fe.jit
    def array(n):
        return fe.Array(n, 1)

    numbers, text = build(two, fe.Int32), specs.String("n")
    assert fe.overload([numbers, build(two, fe.Float32)])(1) == (1, 1)
    mixed = fe.overload([numbers, build(three, text)])
    assert mixed(1) == (1, 1)
    assert mixed("s")[:2] == ("s", (1, 2))
    assert type(mixed("s")[2]) is tvm_ffi.List
    arrays = fe.overload([build(array, text), build(echo, fe.Int32)])
    assert type(arrays("s")) is tvm_ffi.Array

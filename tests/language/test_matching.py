"""`match`, classes that are defined in a compiled function, and tags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import ferrule as fe

CPU = "--target cpu"


@dataclass
class Left:
    pass


@dataclass
class Right:
    pass


@dataclass(frozen=True)
class Point:
    x: fe.Float32
    y: fe.Int32


class Colour:
    RED = 1


def numbers(n: Any, out: Any) -> None:
    match n:
        case Colour.RED:
            out[0] = 9
        case 2 | 3:
            out[0] = 1
        case x if x > 10:
            out[0] = x
        case _:
            out[0] = -1
    match n, n + 1:
        case (1, m):
            out[1] = m
        case (j, _) if j == 2:
            out[1] = 10 * j
        case _:
            pass
    match Point(2.5, n):
        case Point(x, y=y):
            out[2] = y + (1 if x > 2 else 0)


def known(c: Any, out: Any) -> None:
    match c:
        case "a":
            out[3] = 1
        case ("b", q, *_):
            out[3] = q
        case None:
            out[3] = 3
        case int(z) if z > 4:
            out[3] = z
        case True:
            out[3] = 5


@fe.jit
def matches(out: fe.Tensor, n: fe.Int32, c: fe.Constexpr):
    for _ in range(1):
        numbers(n, out)
    known(c, out)


@pytest.mark.parametrize("c", ["a", ("b", 7, 8), None, 6, True, "z"])
def test_match_means_what_it_means_in_python(c: Any) -> None:
    f = fe.compile(matches, fe.row_major((4,), fe.Int32), 1, c, options=CPU)
    for n in (1, 2, 3, 7, 50):
        out, wanted = np.zeros(4, np.int32), np.zeros(4, np.int32)
        f(out, n)
        numbers(n, wanted)
        known(c, wanted)
        assert out.tolist() == wanted.tolist(), (c, n)


@fe.kernel
def tagged_kernel(out: fe.Tensor, tag: Left | Right):
    match tag:
        case Left():
            out[0] = 1
        case Right():
            out[0] = 2


@fe.jit
def tagged(out: fe.Tensor, tag: Left | Right):
    tagged_kernel(out, tag).launch(grid=1, block=1)


def test_a_tag_is_known_while_compiling() -> None:
    """A call has one of the same class: it would mean another function otherwise."""
    out = np.zeros(1, np.int32)
    for tag, other, wanted in ((Left(), Right(), 1), (Right(), Left(), 2)):
        f = fe.compile(tagged, fe.row_major((1,), fe.Int32), tag, options=CPU)
        f(out, tag)
        assert out[0] == wanted
        name = type(tag).__qualname__
        with pytest.raises(ValueError, match=f"argument #1.*expected '{name}', but got"):
            f(out, other)
        with pytest.raises(TypeError, match="argument #1.*expected str, but got int"):
            f(out, 3)
        out[0] = 0
        tagged(out, tag)
        assert out[0] == wanted


@dataclass
class Turn:
    by: fe.Int32
    to: Left | Right


@fe.jit
def turned(out: fe.Tensor, turn: Turn):
    if isinstance(turn.to, Left):
        out[0] = -turn.by
    else:
        out[0] = turn.by


def test_a_field_can_be_a_tag() -> None:
    out = np.zeros(1, np.int32)
    f = fe.compile(turned, fe.row_major((1,), fe.Int32), Turn(1, Left()), options=CPU)
    f(out, Turn(5, Left()))
    assert out[0] == -5
    with pytest.raises(ValueError, match=r"turn\[1\] in argument #1.*expected 'Left'"):
        f(out, Turn(5, Right()))
    for to, wanted in ((Left(), -7), (Right(), 7), (Left(), -7)):
        turned(out, Turn(7, to))
        assert out[0] == wanted


@fe.jit
def with_classes(out: fe.Tensor, n: fe.Int32):
    factor = 3

    class Scale:
        by = factor

        def __init__(self, shift: int) -> None:
            self.shift = shift

        def of(self, n: Any) -> Any:
            return n * self.by + self.shift

    @dataclass
    class Pair:
        a: fe.Int32
        b: fe.Int32

        def total(self) -> Any:
            return self.a + self.b

    out[0] = Scale(2).of(n)
    out[1] = Pair(n, 4).total()


def test_classes_inside_of_functions() -> None:
    out = np.zeros(2, np.int32)
    fe.compile(with_classes, fe.row_major((2,), fe.Int32), 1, options=CPU)(out, 5)
    assert out.tolist() == [17, 9]


WRONG = {
    "class C:\n        k = n": "the class C uses 'n', which is not known while compiling",
    "class C:\n        k = 1 / 0": "ZeroDivisionError at compile time: division by zero",
    "match n:\n        case {'k': 3}: pass": "a match with a mapping, or a name in an alternative",
    "match n:\n        case (a, *b): pass": "or behind a star, is not supported",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_refused(text: str) -> None:
    source = f"@fe.jit\ndef f(n: fe.Int32):\n    {text}\n"
    with pytest.raises(fe.CompileError, match=WRONG[text]):
        fe.compile(fe.from_source(source, {"fe": fe})["f"], 1, options=CPU)

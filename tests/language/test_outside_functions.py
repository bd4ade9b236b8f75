"""Functions as people have them: lambdas from anywhere, methods, objects that are called, partials,
generators, and Python's functions of functions.

Each program computes in Python, too, on the same array.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from lowered import lower, vector

import ferrule as fe

square = lambda v: v * v  # noqa: E731  (lambdas of a module are what it is about)
DOUBLE, TRIPLE = lambda v: 2 * v, lambda v: 3 * v
EPILOGUES = {"relu": lambda v: max(v, 0.0), "shift": lambda v, by=4: v + by}
PARTIAL = functools.partial(lambda k, v, *, by: k * v + by, 3, by=1)


class Scale:
    """An object with a number, methods, and a call."""

    def __init__(self, factor):
        self.factor, self.table = factor, [10, 20]

    def times(self, v):
        return v * self.factor

    def __call__(self, v):
        return self.times(v) + self.table[1]

    @fe.jit
    def go(self, a):
        a[0] = self.times(a[1]) + self.table[0]

    @fe.jit
    def marked(self: fe.Constexpr, a):
        self.go(a)

    @classmethod
    @fe.jit
    def of_class(cls, a):
        a[0] = a[1] + 1

    @staticmethod
    @fe.jit
    def alone(a):
        a[0] = a[1] + 2

    @fe.kernel
    def each(self, a):
        i = fe.arch.thread_idx()[0]
        a[i] = self.times(a[i])

    @fe.jit
    def launched(self, a):
        self.each(a).launch(grid=1, block=a.shape[0])


class Other(Scale):
    @fe.jit
    def go(self, a):
        super().go(a)
        a[0] = a[0] + 100


class Called:
    def __init__(self, by):
        self.by = by

    @fe.jit
    def __call__(self, a):
        a[0] = a[0] + self.by


def closed(function):
    def body(a):
        a[0] = function(a[1])

    return body


def globals_and_entries(a):
    a[0] = square(a[1]) + DOUBLE(a[2]) * TRIPLE(a[3]) + PARTIAL(a[1])
    a[1] = EPILOGUES["relu"](-a[1]) + EPILOGUES["shift"](a[2])


def evens(a, count):
    for i in fe.range_constexpr(count):
        if i % 2 == 0:
            yield a[i] * 2


def twice(a):
    yield from fe.range_constexpr(2)
    yield from (a[1], a[2])


def generators(a):
    total = 0.0
    for v in evens(a, 4):
        total += v
    a[0] = total + sum(each * k for k, each in enumerate(twice(a)))
    a[1] = len(list(evens(a, 0)))


def comprehended(a):
    items = (a[1], a[2], a[3])
    odd = [v + k for k, v in enumerate(items) if k != 1]
    named = {k: v * 2 for k, v in zip("xy", odd, strict=True)}
    a[0] = named["x"] + named["y"] + sum(v for v in items)


def made_inside(a):
    k = a[1]
    late = lambda v: v * k  # noqa: E731

    def through(v, *, add=late):
        return add(v) + k

    k = k + 10
    a[0] = through(a[2]) + nested(a[3])(1.0)


def nested(k):
    def inner(v):
        return v * k

    return inner


def higher(a):
    a[0] = sum(map(lambda v, w: v * w, (a[1], a[2]), [2, 3]))
    a[1] = functools.reduce(lambda p, q: p * q + 1, (a[1], a[2], a[3]), a[0])
    a[2] = len(list(filter(lambda v: v > 1, (1, 2, 3))))
    a[3] = sorted([3, 1, 2], key=lambda v: -v)[0] + sorted((a[1], 7), key=lambda v: 0)[1]


PROGRAMS = {
    "a lambda of a closure": closed(lambda v: v + 3),
    "over lines": closed(
        lambda v: v
        + 3 * v
    ),
    "a method": closed(Scale(3).times),
    "an object": closed(Scale(3)),
    "a partial": closed(functools.partial(Scale(3).times)),
    "a lambda of a lambda": closed((lambda k: lambda v: v * k)(5)),
    "of a list": closed([lambda v: v - 1, lambda v: v - 2][1]),
    "globals": globals_and_entries,
    "generators": generators,
    "comprehensions": comprehended,
    "nested": made_inside,
    "functions of functions": higher,
}  # fmt: skip


def numbers():
    return np.array([1, 2, 3, 5], np.float32)


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_computes_what_python_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program, found, wanted = PROGRAMS[name], numbers(), numbers()
    fe.jit(program)(found)
    monkeypatch.setattr(fe, "range_constexpr", range)
    program(wanted)
    assert found.tolist() == wanted.tolist()


@fe.kernel
def ended_kernel(a, first: fe.Constexpr, second: fe.Constexpr):
    i = fe.arch.thread_idx()[0]
    a[i] = second(first(a[i]))


@fe.jit
def ended(a, first: fe.Constexpr, second: fe.Constexpr = lambda v: v):
    ended_kernel(a, first, second).launch(grid=1, block=a.shape[0])


def test_epilogues_are_arguments() -> None:
    a = np.ones(2, np.float32)
    ended(a, lambda v: v + 1, lambda v: v * 7)
    assert a[0] == 14
    ended(
        a,
        lambda v: v - 4,
        lambda v: (
            v
            / 2
        ),
    )  # fmt: skip
    assert a[1] == 5
    compiled = fe.compile(ended, a, EPILOGUES["shift"], Scale(2), options="--target cpu")
    compiled(a)
    assert a.tolist() == [(5 + 4) * 2 + 20] * 2


def test_methods_have_their_object() -> None:
    a, three, four = numbers(), Scale(3), Scale(4)
    for scale, wanted in ((three, 16), (four, 18), (three, 16), (Other(1), 112)):
        scale.go(a)
        assert a[0] == wanted
    three.factor = 5
    three.go(a)
    assert a[0] == 20
    three.table[0] = 30
    three.marked(a)
    assert a[0] == 40
    three.of_class(a)
    assert a[0] == 3
    three.alone(a)
    assert a[0] == 4
    compiled = fe.compile(three.launched, a, options="--target cpu")
    compiled(a)
    assert a.tolist() == [20, 10, 15, 25]
    Called(2)(a)
    fe.compile(Called(3), a, options="--target cpu")(a)
    assert a[0] == 25
    assert Scale.go is Scale.__dict__["go"]


@dataclass
class Step:
    by: float
    to: fe.Tensor

    @fe.jit
    def run(self):
        self.to[0] = self.to[0] + self.by


def test_a_dataclass_of_numbers_and_tensors_is_an_argument_as_elsewhere() -> None:
    a = numbers()
    compiled = fe.compile(Step(1.0, a).run, options="--target cpu")
    for by in (1.0, 2.0):
        compiled(Step(by, a))
    Step(3.0, a).run()
    assert a[0] == 7


def test_the_arguments_of_a_method_are_counted_with_its_object() -> None:
    with pytest.raises(TypeError, match=r"go\(\) missing 1 required positional argument: 'a'"):
        Scale(1).go()
    with pytest.raises(fe.CompileError, match=r"one example for each parameter of go\(self, a\)"):
        fe.compile(Scale(1).go)


def yields_in_a_loop(a):
    for i in range(3):
        yield a[i]


def yields_and_writes(a):
    a[0] = 1.0
    yield a[1]


REFUSED = {
    "yield is under a run-time condition or in a run-time loop": (
        lambda a, n: sum(yields_in_a_loop(a))
    ),
    "the generator yields_and_writes writes": lambda a, n: sum(yields_and_writes(a)),
    "filter keeps items by a run-time condition": (
        lambda a, n: len(list(filter(lambda v: v > 0, (a[0], a[1]))))
    ),
    "sorted compares items at compile time, but got a run-time float32": lambda a, n: sorted(
        (a[0], a[1])
    ),
    "reduce of no values": lambda a, n: functools.reduce(lambda x, y: x + n, ()),
    "a run-time int32 cannot be the key of a dict": lambda a, n: {n + k: k for k in (1, 2)},
    "the arguments do not fit": lambda a, n: len(sorted((n, 1), default=2)),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_python_decides_at_run_time_is_refused(message: str) -> None:
    inner = REFUSED[message]

    def program(a: fe.Tensor, n: fe.Int32):
        inner(a, n)

    with pytest.raises(fe.CompileError) as caught:
        lower(program, vector(), 3)
    assert str(caught.value).startswith(message)
    assert "test_outside_functions.py" in str(caught.value)


def test_python_c_has_its_text_and_exec_gets_the_hint() -> None:
    text = """
import numpy as np, ferrule as fe
@fe.jit
def ends(a, epilogue: fe.Constexpr):
    a[0] = epilogue(a[0])
a = np.ones(1, np.float32)
ends(a, lambda v: v + 5); print(a[0])
names = {"fe": fe}
exec("\\n" * 2 + "@fe.jit\\ndef ends(a, epilogue):\\n    a[0] = 2", names)
names["ends"](a, 1)
"""
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout == "6.0\n"
    assert "the source of 'ends' cannot be found" in done.stderr

"""`fe.printf`: what appears on file descriptor 1, and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lowered import vector

import ferrule as fe
from ferrule.runtime.binaries.objectfile import read_object

CPU = "--target cpu"


@dataclass(frozen=True)
class Point:
    x: fe.Float32
    y: fe.Int32


def forms(a, n: fe.Int32, x: fe.Float32, u: fe.Uint64, k: fe.Int8):
    fe.printf("{} {} {} {}", n, x, u, n > 2)
    fe.printf("%d|%5d|%-5d|%05d|%x|%f|%.2e|%g|%u|%lld %%\n", n, n, n, n, k, x, x, n, u, n)
    fe.printf("{:5d}|{:<5}|{:+}|{:08.3f}|{:x}|{{}} 100%", n, n, n, x, u)
    fe.printf(n, x, "text", (n, (1.5, k)), [n], Point(x, n), None, a.ndim)
    fe.printf("no newline", end="; ")
    fe.printf("{} and {:.2f}", "known", 1.23456)
    fe.printf("%s is %d or %4.1f", "this", 7, 2.0)
    fe.printf()


FORMS = """\
5 2.5 18446744073709551615 True
5|    5|5    |00005|fe|2.500000|2.50e+00|5|18446744073709551615|5 %
    5|5    |+5|0002.500|ffffffffffffffff|{} 100%
5 2.5 text (5, (1.5, -2)) [5] (2.5, 5) None 1
no newline; known and 1.23
this is 7 or  2.0

"""


def test_forms(capfd: pytest.CaptureFixture[str]) -> None:
    examples = (vector(), fe.Int32(1), fe.Float32(1), fe.Uint64(1), fe.Int8(1))
    f = fe.compile(forms, *examples, options="--target cpu")
    f(np.zeros(2, np.float32), 5, 2.5, 2**64 - 1, -2)
    assert capfd.readouterr().out == FORMS


def f_strings(n: fe.Int32, u: fe.Uint8, x: fe.Float64, b: fe.Boolean, s: str):
    k, width = 7, 6
    fe.printf(f"{n} {n:5d}|{n:<5}|{u:02x}|{x:8.3f}|{x:+e}|{b}|{n=}|{x!r}|{n:{width}}")
    fe.printf(f"{s}|{s:4}|{s:>4}|{k:^9,}|{k!s:>4}|{{}} 100% %d|{(n, k)}", end="!\n")
    fe.printf(f"{k} known")


F_STRINGS = """\
3     3|3    |c8|   1.500|+1.500000e+00|True|n=3|1.5|     3
ab|ab  |  ab|    7    |   7|{} 100% %d|(3, 7)!
7 known
"""


def test_f_strings(capfd: pytest.CaptureFixture[str]) -> None:
    f = fe.compile(f_strings, fe.Int32(1), fe.Uint8(1), 1.0, fe.Boolean, str, options=CPU)
    f(3, 200, 1.5, True, "ab")
    assert capfd.readouterr().out == F_STRINGS


WRONG_F_STRINGS = {
    "{n:,}": "the field {:,} of printf is not supported",
    "{n:^5}": "the field {:^5} of printf is not supported",
    "{n:b}": "%b of printf cannot show a run-time int32",
    "{s!r}": "the field {!r} of printf is not supported",
    "{s:d}": "the string s is printed as %d",
    "{n:{n}}": "the text '?' was made while compiling, when the values in it were not known",
    "{n}', '{n}": "an f-string of printf has its values inside, but more are given",
}


@pytest.mark.parametrize("text", WRONG_F_STRINGS)
def test_f_strings_that_c_cannot_print(text: str) -> None:
    names = fe.from_source(f"def f(n: fe.Int32, s: str):\n    fe.printf(f'{text}')\n")
    with pytest.raises(fe.CompileError) as caught:
        fe.compile(names["f"], 1, str, options=CPU)
    assert str(caught.value).startswith(WRONG_F_STRINGS[text])


@fe.kernel
def speaking(a):
    i = fe.arch.thread_idx()[0]
    fe.printf("thread {}: {}", i, a[i])
    a[i] += 1


def in_order(a):
    fe.printf("before")
    for k in range(2):
        fe.printf("launch {}", k)
        speaking(a).launch(grid=1, block=2)
    if a[0] > 5:
        fe.printf("never")
    fe.printf("after")


def test_lines_come_in_order(capfd: pytest.CaptureFixture[str]) -> None:
    f = fe.compile(in_order, vector(), options="--target cpu")
    f(np.zeros(2, np.float32))
    assert capfd.readouterr().out.splitlines() == [
        "before",
        *("launch 0", "thread 0: 0", "thread 1: 0"),
        *("launch 1", "thread 0: 1", "thread 1: 1"),
        "after",
    ]


def test_print_shows_what_is_known_while_compiling(capsys: pytest.CaptureFixture[str]) -> None:
    def function(a):
        print("compiling for", a.element_type)

    f = fe.compile(function, vector(), options="--target cpu")
    assert capsys.readouterr().out == "compiling for Float32\n"
    f(np.zeros(1, np.float32))
    assert capsys.readouterr().out == ""


def test_an_object_that_prints_needs_one_more_function_of_libc(tmp_path: Path) -> None:
    def silent(a):
        a[0] = 1.0

    def printing(a):
        fe.printf("{}", a[0])

    def undefined(function: Any) -> set[str]:
        compiled = fe.compile(function, vector(), options="--target cpu")
        path = tmp_path / f"{function.__name__}.o"
        compiled.export_to_c(path)
        return set(read_object(path.read_bytes()).undefined)

    assert undefined(printing) - undefined(silent) == {"dprintf"}


def test_fields_with_numbers(capfd: pytest.CaptureFixture[str]) -> None:
    def shows(n: fe.Int32, m: fe.Int32):
        fe.printf("{1} {0} {1:4} {2}", n, m, "text")

    fe.compile(shows, fe.Int32, fe.Int32, options="--target cpu")(3, -4)
    assert capfd.readouterr().out == "-4 3   -4 text\n"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{0} {}", "has fields with a number and without one"),
        ("{0} {2}", "has a field {2}, but 2 values are given"),
        ("{0} {0}", "no field of printf's format is of value 1"),
        ("{:,} {}", "the field {:,} of printf is not supported"),
        ("{n} {}", "the field {n} of printf is not supported"),
        ("{!r} {}", "the field {!r} of printf is not supported"),
        ("{:.3d} {}", "the field {:.3d} of printf is not supported"),
        ("%hhd %d", "printf would cut a run-time int32 down to 8 bits"),
        ("%hx %d", "printf would cut a run-time int32 down to 16 bits"),
    ],
)
def test_fields_that_are_refused(template: str, message: str) -> None:
    def shows(n: fe.Int32):
        fe.printf(template, n, n)

    with pytest.raises(fe.CompileError) as caught:
        fe.compile(shows, fe.Int32, options="--target cpu")
    assert message in str(caught.value)


def test_tuples_are_printed_as_python_writes_them(capfd: pytest.CaptureFixture[str]) -> None:
    def shows(n: fe.Int32):
        fe.printf("{} {} %", ("a", n), (n,))

    fe.compile(shows, fe.Int32, options="--target cpu")(3)
    assert capfd.readouterr().out == f"{('a', 3)} {(3,)} %\n"


def test_short_lengths_of_c_take_short_numbers(capfd: pytest.CaptureFixture[str]) -> None:
    def shows(a: fe.Int8, b: fe.Uint16):
        fe.printf("%hhd %hu %hd", a, b, a)

    fe.compile(shows, fe.Int8, fe.Uint16, options="--target cpu")(-3, 65535)
    assert capfd.readouterr().out == "-3 65535 -3\n"

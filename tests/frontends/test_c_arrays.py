"""`T x[8]` in C: a tensor has at least so many elements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import specs
from ferrule.compiler.conventions import cast
from ferrule.frontends.arraysizes import declared_arrays

pytestmark = pytest.mark.needs_cc

N = specs.sym_int(symbol="n")
SOURCE = """
#define K 5
typedef double vec3[3];
enum { M = 6 };
double first(const double x[8]) { return x[7]; }
double rows(const double x[4][4]) { return x[3][3]; }
double least(const double x[restrict static M]) { return x[5]; }
double macro(const double x[const 2 * K]) { return x[9]; }
double hidden(const vec3 x) { return x[2]; }
static int uses(void) { double x[8] = {0}; return (int)first(x); }
double open(long n, const double x[n]) { return n ? x[n - 1] : uses(); }
double pointer(const double *x) { return x[0]; }
double declared(const double x[2]);
double declared(const double *x) { return x[0]; }
"""


def built(name: str, *shape: Any, **more: Any) -> fe.Function:
    x = specs.Tensor("x", shape, "float64", read_only=True)
    signature = specs.Signature(name, [x])
    return fe.frontends.c.compile(SOURCE, signature, returns="float64", **more)


SIZES = {"first": 8, "least": 6, "macro": 10, "hidden": 3, "declared": 2}


@pytest.mark.parametrize(("name", "count"), SIZES.items())
def test_fewer_elements_are_refused(name: str, count: int) -> None:
    data = np.arange(20, dtype=np.float64)
    last = 0 if name == "declared" else count - 1
    for fits in (count, count + 3):
        assert built(name, fits)(data[:fits]) == last
    with pytest.raises(fe.CompileError, match=f"of {count - 1} elements, but it takes const .* x"):
        built(name, count - 1)
    f = built(name, N)
    assert f.signature.requires and f(data[: count + 1]) == last
    with pytest.raises(ValueError, match=f"expected n >= {count}, but got n = 2|got n = 1"):
        f(data[: min(2, count - 1)])
    bounded = specs.sym_int(symbol="n", min=count)
    assert not built(name, bounded).signature.requires


def test_rows_and_how_many_there_are() -> None:
    data = np.arange(20, dtype=np.float64).reshape(5, 4)
    f = built("rows", N, 4)
    assert f(data) == 15
    with pytest.raises(ValueError, match=r"expected n \* 4 >= 16, but got n = 3: rows takes"):
        f(data[:3])
    with pytest.raises(fe.CompileError, match="of 12 elements, but it takes const double x"):
        built("rows", 3, 4)


def test_sizes_that_are_not_known_and_casts_are_taken() -> None:
    x = specs.Tensor("x", (N,), "float64", read_only=True)
    arguments = [cast(N, "int64"), x.data]
    f = fe.frontends.c.compile(
        SOURCE, specs.Signature("open", [x]), arguments=arguments, returns="float64"
    )
    assert f(np.arange(3, dtype=np.float64)) == 2 and not f.signature.requires
    assert not built("pointer", N).signature.requires
    f = fe.frontends.c.compile(
        SOURCE,
        specs.Signature("first", [x]),
        arguments=[cast(x.data, "const double*")],
        returns="float64",
    )
    assert not f.signature.requires


def test_of_cpp(tmp_path: Path) -> None:
    (tmp_path / "taken.cpp").write_text("""
    template <class T> static T last(const T (&x)[3]) { return x[2]; }
    extern "C" double taken(const double x[3]) {
      double y[3] = {x[0], x[1], x[2]}; return last(y);
    }
    """)
    x = specs.Tensor("x", (N,), "float64", read_only=True)
    signature = specs.Signature("taken", [x])
    f = fe.frontends.c.compile(tmp_path / "taken.cpp", signature, returns="float64")
    assert f(np.arange(3, dtype=np.float64)) == 2
    with pytest.raises(ValueError, match="expected n >= 3, but got n = 2"):
        f(np.zeros(2))


def test_a_text_without_the_function_asks_nothing() -> None:
    asked: list[Any] = []

    def shown(questions: Any) -> list[str]:
        asked.append(questions)
        return ["" for _ in questions]

    for text in (
        "int f;",
        "int g(int x[3]) { return f(x); }",
        'char* s = "int f(int x[3]);"',
        "f(",
    ):
        assert declared_arrays(text, "f", shown) == {}
    assert not asked

"""Programs of the kernel IR that are written op by op."""

from __future__ import annotations

import importlib.util
import operator
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bare_python import run_bare
from emulated_alone import run_alone

import ferrule as fe
from ferrule import specs
from ferrule.specs import Scalar, Tensor

N, M = (specs.sym_int64(symbol=name) for name in "nm")
EXAMPLES = Path(__file__).parents[2] / "examples"


def vectors(dtype: str, *names: str) -> list[Tensor]:
    return [Tensor(name, (N,), dtype) for name in names]


def rows() -> fe.ir.Writer:
    """Sums of exp of rows, where they are positive, with a sign that depends on them."""
    x, out = Tensor("x", (N, M), "float32"), Tensor("out", (N,), "float32")
    w = fe.ir.Writer("rows", [Scalar("alpha", "float32"), x, out], doc="Sums of exp.")
    with w.parallel(N) as (i,):
        with w.range(0, w["x"].shape[1], [w.constant(fe.Float32, 0)]) as loop:
            loop.next(loop.carried[0] + fe.ir.call("exp", w["x"][i, loop.index]))
        (total,) = loop.results
        with w.when(total > 0.0):
            w["out"][i] = (total < 5).where(total * w["alpha"], -total)
    return w


EMULATED = """
x, out = np.random.default_rng(0).random((5, 4), np.float32), np.zeros(5, np.float32)
here.rows().build("--target cpu")(2.0, x, out)
with fe.emulated_gpu("sm_80"):
    given = fe.cuda.array(x), fe.cuda.empty((5,))
    here.rows().build("--target cuda")(2.0, *given)
    np.testing.assert_array_equal(fe.cuda.to_numpy(given[1]), out)
"""


def test_one_program_is_a_function_of_the_cpu_and_of_a_gpu(tmp_path: Path) -> None:
    writer = rows()
    f = writer.build("--target cpu")
    assert str(f.signature) == (
        "rows(alpha: float32, x: Tensor([n, m], float32), out: Tensor([n], float32))"
    )
    assert (f.__doc__ or "").endswith("Sums of exp.")
    x = np.random.default_rng(0).random((5, 4), np.float32)
    out = np.zeros(5, np.float32)
    x.flags.writeable = False
    f(2.0, x, out)
    sums = np.exp(x).sum(axis=1)
    expected = np.where(sums < 5, sums * 2, -sums)
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    with pytest.raises(ValueError, match=r"Mismatched out.shape\[0\]"):
        f(2.0, x, out[:2])
    run_alone(__file__, EMULATED)
    f.export_library(tmp_path / "rows.so")
    code = "import numpy as np; o = np.zeros(1, 'f4'); "
    code += "module.rows(1.0, np.zeros((1, 2), 'f4'), o); print(o)"
    assert run_bare(tmp_path / "rows.so", code) == "[2.]\n"


@pytest.mark.parametrize(
    ("dtype", "names"),
    [
        ("int32", "add sub mul floordiv mod and_ or_ xor lt le gt ge eq ne"),
        ("float64", "add sub mul truediv lt ge eq ne"),
        ("float16", "add mul truediv"),
    ],
)
def test_operators_are_those_of_python(dtype: str, names: str) -> None:
    a, b = np.array([7, -7, 5, 3], dtype), np.array([2, 2, -3, 3], dtype)
    each = [getattr(operator, name) for name in names.split()]
    w = fe.ir.Writer("ops", [*vectors(dtype, "a", "b"), Tensor("out", (N, len(each) * 2), dtype)])
    with w.parallel(N) as (i,):
        for at, apply in enumerate(each):
            for also, number in enumerate((w["b"][i], 3)):
                made = apply(w["a"][i], number)
                assert isinstance(made, fe.ir.Number)
                w["out"][i, 2 * at + also] = made.cast(w["a"].dtype)
    out = np.empty((4, len(each) * 2), dtype)
    w.build("--target cpu")(a, b, out)
    for at, apply in enumerate(each):
        np.testing.assert_array_equal(out[:, 2 * at], apply(a, b).astype(dtype), str(apply))
        three = np.array(3, dtype)
        np.testing.assert_array_equal(out[:, 2 * at + 1], apply(a, three).astype(dtype), str(apply))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_functions_are_those_of_math_with_every_dtype_of_floats(dtype: str) -> None:
    kind = next(k for k in (fe.Float16, fe.BFloat16, fe.Float32, fe.Float64) if k.name == dtype)
    w = fe.ir.Writer("f", vectors("float64", "x", "out"))
    with w.parallel(N) as (i,):
        x = w["x"][i].cast(kind)
        value = 2 ** fe.ir.call("sin", x) + fe.ir.call("fma", x, x, 1.0) - fe.ir.call("sqrt", x)
        w["out"][i] = (~(x < 0.5)).where(value, fe.ir.call("max", -x, 0.1)).cast(fe.Float64)
    x, out = np.linspace(0, 2, 9), np.empty(9)
    w.build("--target cpu")(x, out)
    expected = np.where(x < 0.5, np.maximum(-x, 0.1), 2 ** np.sin(x) + x * x + 1 - np.sqrt(x))
    np.testing.assert_allclose(
        out, expected, rtol={"float16": 4e-3, "bfloat16": 4e-2}.get(dtype, 1e-6)
    )


def refused(write: Any) -> str:
    w = fe.ir.Writer("f", [*vectors("float32", "x", "out"), Scalar("k", "int32")])
    with pytest.raises(
        (TypeError, ValueError, OverflowError, KeyError, fe.CompileError, IndexError)
    ) as caught:
        write(w, w["x"], w["k"])
        w.build("--target cpu")
    return f"{type(caught.value).__name__}: {caught.value}"


def test_what_does_not_fit_is_refused_when_it_is_written() -> None:
    cases = {
        "TypeError: an operation of Float32 and Int32: convert": lambda w, x, k: x[0] + k,
        "TypeError: expected Int32, but got 1.5": lambda w, x, k: k + 1.5,
        "OverflowError: 4294967296 does not fit Int32": lambda w, x, k: k + 2**32,
        "TypeError: div takes numbers of the kind float, but got Int32": lambda w, x, k: k / 2,
        "TypeError: 'sinus' is no operation of 1": lambda w, x, k: fe.ir.call("sinus", x[0]),
        "TypeError: 'exp' is no operation of 2": lambda w, x, k: fe.ir.call("exp", x[0], x[0]),
        "TypeError: x has 1 dims, but got 2 indices": lambda w, x, k: x[0, 0],
        "TypeError: expected an integer as an index of x": lambda w, x, k: x[x[0]],
        "TypeError: out: its elements": lambda w, x, k: operator.setitem(w["out"], 0, k),
        "TypeError: a number of a program has no value yet": lambda w, x, k: 1 if k > 1 else 2,
        "TypeError: where: expected a Boolean": lambda w, x, k: k.where(x[0], 1),
        'KeyError: "f(x': lambda w, x, k: w["y"],
        "TypeError: expected a size": lambda w, x, k: w.size(1.5),
        "TypeError: cast: expected a dtype": lambda w, x, k: k.cast(3),
        "ValueError: 'float33' is no dtype": lambda w, x, k: k.cast("float33"),
        "IndexError: -1 is no index of x, whose size there is n: the last": lambda w, x, k: x[-1],
        "TypeError: range: a loop carries numbers of the program, but got 0.5": lambda w, x, k: (
            w.range(0, N, [0.5]).__enter__()
        ),
        "TypeError: expected Float32, but got array": lambda w, x, k: x[0] + np.ones(1),
        "CompileError: a loop that carries": lambda w, x, k: (
            w.range(0, N, [k]).__enter__()._yields()
        ),
    }
    for message, write in cases.items():
        assert refused(write).startswith(message), refused(write)


def test_numbers_outside_of_their_loop_and_loops_at_wrong_places() -> None:
    def outside(w: Any, x: Any, k: Any) -> None:
        with w.parallel(N) as (i,):
            pass
        w["out"][i] = 1.0

    def inside(w: Any, x: Any, k: Any) -> None:
        with w.parallel(N), w.parallel(N):
            pass

    def too_early(w: Any, x: Any, k: Any) -> None:
        with w.when(k > 0):
            w.build("--target cpu")

    assert refused(too_early).startswith("CompileError: f is asked for inside of a loop or branch")
    assert refused(outside).startswith("CompileError: the program f breaks a rule: ")
    assert refused(inside).startswith("CompileError: a parallel loop stands in the function's body")
    with pytest.raises(TypeError, match="s: expected a Tensor or a Scalar of ferrule.specs, but"):
        fe.ir.Writer("f", [specs.String("s")])
    other = fe.ir.Writer("g", vectors("float32", "x"))
    foreign = other["x"][0]
    assert refused(lambda w, x, k: x[0] + foreign).startswith("CompileError: the program f breaks")


def test_sizes_numbers_of_numpy_and_names_of_dtypes() -> None:
    w = fe.ir.Writer("f", [*vectors("int32", "x"), *vectors("float32", "out")])
    with pytest.raises(KeyError), w.parallel(N):
        raise KeyError
    # A loop that failed is none.
    with w.parallel(N) as (i,):
        away = abs(w["x"][i] - np.int32(3)).cast("float32")
        w["out"][i] = abs(-away) + w.constant("float32", 0.5)
    w["out"][N - 1] = w["out"][w.size(N) - 1] + (w.size(N) * N).cast("float32")
    out = np.zeros(4, np.float32)
    w.build("--target cpu")(np.array([1, 3, 5, -4], np.int32), out)
    assert out.tolist() == [2.5, 0.5, 2.5, 7.5 + 16]
    with pytest.raises(IndexError, match="4 is no index of y, whose size there is 4"):
        fe.ir.Writer("g", [Tensor("y", (4,), "int8")])["y"][4]


def test_the_example_of_sympy() -> None:
    file = EXAMPLES / "sympy_expressions.py"
    program = f"import runpy, sys; sys.modules['sympy'] = None; runpy.run_path({str(file)!r})"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == "this example needs SymPy: pip install sympy\n"
    sympy = pytest.importorskip("sympy")
    spec = importlib.util.spec_from_file_location("sympy_expressions", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x, y = sympy.symbols("x y")
    out = np.empty(3, np.float32)
    module.lambdify((x, y), sympy.exp(-x) * y**2 + 3)(np.ones(3, "f4"), np.full(3, 2, "f4"), out)
    np.testing.assert_allclose(out, 4 * np.exp(-1) + 3, rtol=1e-6)
    with pytest.raises(TypeError, match="there is no function gamma here"):
        module.lambdify((x,), sympy.gamma(x))

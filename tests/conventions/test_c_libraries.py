"""The blocks of `docs/conventions/c_libraries.md`, each where its library is installed."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import blocks_of

from ferrule import CompileError, compiler
from ferrule.compiler.conventions import HostCode
from ferrule.specs import Signature

PAGE = "conventions/c_libraries.md"
(BEGIN,) = blocks_of(PAGE, "python")
BLOCKS = {
    re.search(r"it needs (\w+);", each)[1]: each  # type: ignore[index]
    for each in blocks_of(PAGE, "python no-run")
}


def ran(name: str, **more: Any) -> dict[str, Any]:
    """The names of a block after it has run, with `more` in the place of what it imports."""
    for library in re.findall(r'from_library\("([^"]+)"\)', BLOCKS[name]):
        try:
            HostCode.from_library(library)
        except CompileError:
            pytest.skip(f"{name} is not installed: {library}")
    names: dict[str, Any] = {}
    exec(compile(BEGIN, str(Path(PAGE).name), "exec"), names)
    names |= more
    exec(compile(BLOCKS[name], str(Path(PAGE).name), "exec"), names)
    return names


def test_lapack() -> None:
    solve = ran("LAPACK")["solve"]
    rng = np.random.default_rng(0)
    a, b = rng.random((5, 5)), rng.random((3, 5))
    x = b.copy()
    pivots = np.from_dlpack(solve(a.copy(), x))
    np.testing.assert_allclose(x @ a, b, rtol=1e-9)
    assert pivots.min() >= 1 and pivots.max() <= 5
    with pytest.raises(RuntimeError, match="^dgesv_ left 1 in info$"):
        solve(np.zeros((2, 2)), np.ones((1, 2)))
    with pytest.raises(ValueError, match="expected to be at least 1, but got 0"):
        solve(np.zeros((0, 0)), np.ones((1, 0)))


def test_lapacke() -> None:
    eigen, a = ran("LAPACKE")["eigen"], np.random.default_rng(1).random((6, 6))
    symmetric = a + a.T
    wanted = np.linalg.eigvalsh(symmetric)
    np.testing.assert_allclose(np.from_dlpack(eigen(symmetric)), wanted, atol=1e-12)


def test_gsl() -> None:
    integrate = ran("GSL")["integrate"]

    def inner(x: float) -> float:
        return float(integrate(lambda y: x * y, 0, 1)[0])  # a call in a callback

    assert abs(integrate(inner, 0, 2)[0] - 1) < 1e-9
    with pytest.raises(RuntimeError, match="qng returned 14: failed to reach the specified tol"):
        integrate(lambda x: abs(x) ** -0.5 if x else 0.0, 0, 1)
    with pytest.raises(ZeroDivisionError):
        integrate(lambda x: 1 / x, -1, 1)


def test_nlopt() -> None:
    minimise, calls = ran("NLopt")["minimise"], []

    def fails(*given: object) -> float:
        calls.append(given)
        raise KeyError("no such point")

    with pytest.raises(KeyError, match="no such point"):
        minimise(fails, np.zeros(3))
    assert len(calls) == 1


def test_gmp() -> None:
    square = ran("GMP")["square"]
    assert [square(each) for each in ("0", "-12")] == ["0", "144"]
    with pytest.raises(ValueError, match="^no decimal number$"):
        square("12x")


def test_zstd() -> None:
    names = ran("zstd")
    numbers = np.random.default_rng(2).integers(0, 4, 9999, np.uint8)
    small = np.from_dlpack(names["compress"](numbers, 19))
    assert 2000 < small.size < 4000
    assert (np.from_dlpack(names["decompress"](small, 9999)) == numbers).all()
    with pytest.raises(RuntimeError, match="^ZSTD_decompress returned -70: Destination buffer is"):
        names["decompress"](small, 9998)
    with pytest.raises(RuntimeError, match="^ZSTD_decompress returned -10: Unknown frame"):
        names["decompress"](numbers, 1)
    with pytest.raises(ValueError, match="expected at least 0, but got -1"):
        names["decompress"](small, -1)


class Building:
    """`compiler.build`, which counts the functions of C that are called."""

    def __init__(self) -> None:
        self.called = 0

    def build(self, signature: Signature, step: Any, **more: Any) -> Any:
        """The function."""
        steps = getattr(step, "steps", [step])
        self.called += len(steps)
        return compiler.build(signature, step, **more)


@pytest.mark.parametrize("name", BLOCKS)
def test_a_function_has_at_most_eight_lines(name: str) -> None:
    """From the name of the library to the last function."""
    counted = Building()
    ran(name, compiler=counted)
    statements = ast.parse(BLOCKS[name]).body
    made = [at for at, each in enumerate(statements) if "compiler.build(" in ast.unparse(each)]
    assert 0 < _length(statements[: made[-1] + 1]) <= 8 * counted.called


def test_functions_of_sqlite_have_at_most_eight_lines_each() -> None:
    source = (Path(__file__).parents[2] / "examples" / "sqlite.py").read_text(encoding="utf-8")
    (cls,) = (each for each in ast.parse(source).body if isinstance(each, ast.ClassDef))
    methods = {each.name: each.body for each in cls.body if isinstance(each, ast.FunctionDef)}
    for name, calls in (("_open", 1), ("_execute", 1), ("_close", 1), ("_count_above", 4)):
        assert 0 < _length(methods[name]) <= 8 * calls, name


def _length(statements: list[ast.stmt]) -> int:
    """How many lines these have, without docstrings and checks."""
    meant = [
        each for each in statements if not (isinstance(each, ast.Assert) or _is_docstring(each))
    ]
    return sum((each.end_lineno or each.lineno) - each.lineno + 1 for each in meant)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def test_every_block_has_a_test() -> None:
    assert {f"test_{name.lower()}" for name in BLOCKS} <= set(globals())

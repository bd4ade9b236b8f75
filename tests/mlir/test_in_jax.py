"""Functions of JAX, as the page of MLIR's functions says that they are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mlir_functions import needs_mlir
from pages import DOCS

import ferrule as fe
from ferrule.compiler.errors import CompileError

pytestmark = needs_mlir
jax = pytest.importorskip("jax", reason="JAX is not installed")

HEAD = "# Not run: needs JAX."


def compiled(f: Callable[..., Any], *arguments: Any) -> fe.Function:
    """What the page's program makes of a function."""
    page = (DOCS / "mlir_in.md").read_text(encoding="utf-8")
    program = page.partition(HEAD)[2].partition("```")[0].replace("lower(x)", "lower(*x)")
    assert "fe.frontends.mlir.compile(module)" in program
    names = {"jax": jax, "fe": fe, "f": f, "x": arguments}
    exec(program, names)
    made: Any = names["fn"]
    return made


def matrix() -> Any:
    return np.random.default_rng(3).random((3, 4), np.float32)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "a product": lambda x: jax.numpy.tanh(x @ x.T).sum(axis=0),
    "a softmax": lambda x: jax.nn.softmax(x, axis=-1),
    "a running sum": lambda x: jax.numpy.cumsum(x, 1),
    "complex numbers": lambda x: jax.numpy.abs(x + 1j * x),
    "erf": jax.scipy.special.erf,
    "the place of the largest": lambda x: jax.numpy.argmax(x, 1),
}


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_function_of_jax_gives_what_jax_says(f: Callable[[Any], Any]) -> None:
    x = matrix()
    got = np.from_dlpack(compiled(f, x)(x))
    np.testing.assert_allclose(got, np.asarray(jax.jit(f)(x)), rtol=1e-5)


def test_jax_still_compiles_the_function_itself() -> None:
    """Its module is kept by JAX, which would meet what passes have made of it."""
    f = jax.jit(lambda x: x * 2 + 1)
    x = matrix()
    np.testing.assert_array_equal(np.from_dlpack(compiled(f, x)(x)), np.asarray(f(x)))


@pytest.mark.parametrize("f", [lambda x: jax.numpy.sort(x), lambda x: x.at[0].add(1.0)])
def test_what_stays_stablehlo_is_refused_with_what_to_do(f: Callable[[Any], Any]) -> None:
    with pytest.raises(CompileError, match="MLIR cannot read the module"):
        compiled(f, matrix())

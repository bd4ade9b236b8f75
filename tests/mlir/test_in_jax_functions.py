"""A sweep of functions of jax.numpy and jax.lax: what is compiled gives what JAX gives.

What is not compiled is in `REFUSED`, so that this file says what there is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mlir_functions import needs_mlir

import ferrule as fe
from ferrule.compiler.errors import CompileError

pytestmark = needs_mlir

_RNG = np.random.default_rng(0)
X = _RNG.random((3, 4), np.float32)
V = _RNG.random(8, np.float32)
I = np.array([3, 0, 2, 2], np.int32)  # noqa: E741
FAR = np.array([[0, 7], [5, 5], [-1, -9]], np.int32)
"""Indices, some of which are in no row."""
SQUARE = (_RNG.random((4, 4)) + np.eye(4) * 4).astype(np.float32)
IMAGE = _RNG.random((2, 3, 8, 8), np.float32)
FILTER = _RNG.random((5, 3, 3, 3), np.float32)

try:
    import jax
    import jax.numpy as jnp
    from jax import lax
except ImportError:
    pytest.skip("JAX is not installed", allow_module_level=True)

Case = tuple[Any, ...]
"""A function and its arguments."""

_WINDOWS = lax.ScatterDimensionNumbers((1, 2), (), (0, 1))


def _scattered(mode: str) -> Callable[[Any, Any, Any], Any]:
    return lambda x, at, u: lax.scatter_add(x, at, u, _WINDOWS, mode=mode)


_PLACES = np.array([[0, 0], [1, 2], [2, 0], [-1, 2], [1, 3]], np.int32)
_UPDATES = _RNG.random((5, 2, 2), np.float32)

SCATTERS: dict[str, Case] = {
    "set": (lambda x: x.at[1].set(0.0), X),
    "set of one": (lambda x: x.at[2, 3].set(7.0), X),
    "add": (lambda v, i: v.at[i].add(1.0), V, I),
    "min and max": (lambda v, i: v.at[i].min(0.5).at[i].max(0.2), V, I),
    "multiply": (lambda x, i: x.at[:, i].multiply(2.0), X, I),
    "apply": (lambda v, i: v.at[i].apply(jnp.sin), V, I),
    "parts": (lambda x: x.at[1:, ::2].add(1.0), X),
    "rows in a batch": (lambda x, i: jax.vmap(lambda a, j: a.at[j].add(9.0))(x, i), X, FAR),
    "dropped": (lambda x, i: x.at[i].set(9.0, mode="drop"), X, FAR),
    "windows that fit": (_scattered("fill"), X, _PLACES, _UPDATES),
    "windows that are moved": (_scattered("clip"), X, _PLACES, _UPDATES),
    "unsigned indices": (lambda x, i: x.at[i].add(1.0), X, np.array([0, 2**32 - 1], np.uint32)),
    "unsigned data": (lambda i, j: i.at[j].max(jnp.uint32(2**31)), np.arange(5, dtype="u4"), I),
    "bools": (lambda x: (x > 0.5).at[1].set(True), X),
    "complex numbers": (lambda x: jnp.abs((x + 1j).at[1].add(2j)), X),
    "in a loop": (lambda x: lax.fori_loop(0, 3, lambda k, a: a.at[k, k].add(a[0, 0]), x), X),
    "the argument as well": (lambda x: (x, x.at[0].set(0.0)), X),
    "of nothing": (lambda x: x.at[jnp.zeros((0,), jnp.int32)].set(1.0), X),
    "bincount": (lambda i: jnp.bincount(i, length=5), I),
    "histogram": (lambda v: jnp.histogram(v, bins=4)[0], V),
    "segment_sum": (lambda v, i: jax.ops.segment_sum(v[:4], i, 4), V, I),
    "unique": (lambda i: jnp.unique(i, size=4), I),
    "nonzero": (lambda v: jnp.nonzero(v > 0.5, size=8)[0], V),
    "gradient of a table": (lambda x, i: jax.grad(lambda w: (w[i] ** 3).sum())(x), X, I % 3),
    "gradient of a sort": (lambda v: jax.grad(lambda a: (jnp.sort(a) * V).sum())(v), V),
}
OTHERS: dict[str, Case] = {
    "cumulated": (lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1)), X),
    "argmax": (lambda x: (jnp.argmax(x, 1), jnp.argmin(x)), X),
    "lexsort": (lambda v, i: jnp.lexsort((i, v[:4])), V, I),
    "quantile": (lambda x: jnp.quantile(x, 0.3), X),
    "searchsorted": (lambda v: jnp.searchsorted(jnp.sort(v), v), V),
    "interp": (lambda v: jnp.interp(v, jnp.array([0.0, 1.0]), jnp.array([1.0, 2.0])), V),
    "take": (lambda v, i: (jnp.take(v, i), v.at[i * 3].get(mode="fill", fill_value=-1.0)), V, I),
    "take_along_axis": (lambda x, i: jnp.take_along_axis(x, i[None] % 4, 1), X, I),
    "moved": (lambda x: (jnp.roll(x, 2, 1), x[::-1], jnp.tile(x, (2, 1)), jnp.repeat(x, 2, 0)), X),
    "padded": (lambda x: (jnp.pad(x, 1, mode="reflect"), jnp.pad(x, ((1, 2), (0, 1)))), X),
    "joined": (lambda x: (jnp.concatenate([x, x], 1), jnp.stack([x, x]), *jnp.split(x, 2, 1)), X),
    "of matrices": (lambda s: (jnp.tril(s), jnp.triu(s, 1), jnp.diag(s), jnp.trace(s)), SQUARE),
    "products": (lambda x: (jnp.outer(x, x), jnp.kron(x, x), jnp.einsum("ij,kj->ik", x, x)), X),
    "products in a batch": (lambda a: a @ a, IMAGE),
    "convolution": (lambda a, b: lax.conv(a, b, (1, 1), "SAME"), IMAGE, FILTER),
    "convolution in groups": (
        lambda a: lax.conv_general_dilated(
            a, jnp.ones((3, 1, 3, 3)), (2, 2), [(1, 1), (0, 2)], feature_group_count=3
        ),
        IMAGE,
    ),
    "pooling": (
        lambda a: lax.reduce_window(
            a, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"
        ),
        IMAGE,
    ),
    "gradient": (lambda x: jax.grad(lambda a: jnp.tanh(a @ a.T).sum())(x), X),
    "hessian": (lambda v: jax.hessian(lambda a: (a**3).sum())(v), V),
    "attention": (lambda a: jax.nn.dot_product_attention(a, a, a), IMAGE),
    "activations": (lambda x: (jax.nn.gelu(x), jax.nn.silu(x), jax.nn.logsumexp(x)), X),
    "special functions": (
        lambda x: (
            lax.lgamma(x + 1), lax.digamma(x + 1), lax.erf_inv(x / 2),
            jax.scipy.special.gammainc(x + 1, x), jax.scipy.special.zeta(x + 2, 1.0),
        ),
        X,
    ),
    "trigonometry": (
        lambda x: (jnp.tan(x), jnp.arcsin(x), jnp.arctan2(x, x + 1), jnp.sinh(x), jnp.arctanh(x)),
        X,
    ),
    "powers": (lambda x: (jnp.expm1(x), jnp.log1p(x), jnp.cbrt(x), x**2.5, jnp.hypot(x, x)), X),
    "rounding": (lambda x: (jnp.round(x * 9 - 4), jnp.sign(x - 0.5), jnp.mod(x * 9 - 4, 1.7)), X),
    "bits": (lambda i: ((i << 2) | (i >> 1) & 3 ^ i, lax.population_count(i), lax.clz(i)), I),
    "bitcasts": (lambda x: (lax.bitcast_convert_type(x, jnp.int32), jnp.nextafter(x, 1.0)), X),
    "divisions": (lambda i: ((i - 2) // 3, (i - 2) % 3), I),
    "statistics": (lambda x: (jnp.std(x, 0), jnp.cov(x), jnp.median(x), jnp.ptp(x)), X),
    "complex roots": (lambda x: jnp.conj(x + 1j) / (x - 2j) * jnp.sqrt(x + 1j), X),
    "normal numbers": (lambda x: x + jax.random.normal(jax.random.key(1), (3, 4)), X),
    "permutation": (lambda v: jax.random.permutation(jax.random.key(1), v), V),
    "dynamic parts": (
        lambda x, i: (
            lax.dynamic_slice(x, (i[0], i[1]), (2, 2)),
            lax.dynamic_update_slice(x, jnp.ones((1, 2)), (i[0], i[1])),
        ),
        X,
        I,
    ),
    "associative scan": (lambda v: lax.associative_scan(jnp.multiply, v), V),
    "map": (lambda x: lax.map(lambda r: r.sum(), x), X),
    "select": (lambda i, v: lax.select_n(i % 3, v[:4], v[4:], v[2:6]), I, V),
}  # fmt: skip
REFUSED: dict[str, Case] = {
    "fft": (jnp.fft.fft, V),
    "cholesky": (jnp.linalg.cholesky, SQUARE),
    "solve": (lambda s: jnp.linalg.solve(s, s[0]), SQUARE),
    "qr": (jnp.linalg.qr, SQUARE),
    "svd": (jnp.linalg.svd, SQUARE),
    "eigh": (jnp.linalg.eigh, SQUARE),
}


@pytest.mark.parametrize("name", [*SCATTERS, *OTHERS])
def test_what_jax_gives(name: str) -> None:
    function, *arguments = {**SCATTERS, **OTHERS}[name]
    jitted = jax.jit(lambda *given: function(*given))
    compiled = fe.frontends.mlir.compile(jitted.lower(*arguments), name="f")
    before = [each.copy() for each in arguments]
    found = compiled(*arguments)
    wanted = jax.tree.leaves(jitted(*arguments))
    for one, other in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
        np.testing.assert_allclose(np.from_dlpack(one), np.asarray(other), rtol=2e-5, atol=1e-6)
    for one, other in zip(arguments, before, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    function, *arguments = REFUSED[name]
    with pytest.raises(CompileError, match="is left by the passes of jaxlib"):
        fe.frontends.mlir.compile(jax.jit(function).lower(*arguments))

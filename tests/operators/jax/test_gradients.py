"""Gradients of calls in JAX: compiled backward functions, Python ones, and what is refused."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import ferrule as fe

jax: Any = pytest.importorskip("jax")
jnp: Any = jax.numpy

VECTOR = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))
X = jnp.arange(4.0)
W = jnp.full(4, 3.0)


@fe.jit
def product(x: fe.Tensor, w: fe.Tensor, y: fe.Tensor, k: fe.Float32):
    for i in range(x.shape[0]):
        y[i] = x[i] * w[i] * k


@fe.jit
def product_backward(
    grad: fe.Tensor,
    x: fe.Tensor,
    w: fe.Tensor,
    k: fe.Float32,
    grad_x: fe.Tensor,
    grad_w: fe.Tensor,
):
    for i in range(x.shape[0]):
        grad_x[i] = grad[i] * w[i] * k
        grad_w[i] = grad[i] * x[i] * k


@fe.jit
def pair(x: fe.Tensor, y: fe.Tensor, z: fe.Tensor):
    for i in range(x.shape[0]):
        y[i] = x[i] * 2.0
        z[i] = x[i] * x[i]


@fe.jit
def pair_backward(grad_z: fe.Tensor, y: fe.Tensor, grad_y: fe.Tensor, grad_x: fe.Tensor):
    for i in range(y.shape[0]):
        grad_x[i] = grad_y[i] * 2.0 + grad_z[i] * y[i]


@cache
def forward() -> Any:
    return fe.compile(product, VECTOR, VECTOR, VECTOR, 2.0, options="--target cpu")


@cache
def backward() -> Any:
    examples = (VECTOR, VECTOR, VECTOR, 2.0, VECTOR, VECTOR)
    return fe.compile(product_backward, *examples, options="--target cpu")


@cache
def call() -> Any:
    return fe.jax_call(forward(), backward=backward(), save=["x", "w", "k"])


def loss(x: Any, w: Any) -> Any:
    return (call()(x, w, k=5.0) ** 2).sum()


def plain(x: Any, w: Any) -> Any:
    return ((x * w * 5.0) ** 2).sum()


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, jax.checkpoint])
def test_a_compiled_backward(wrap: Any) -> None:
    found = jax.grad(wrap(loss), (0, 1))(X, W)
    for ours, theirs in zip(found, jax.grad(plain, (0, 1))(X, W), strict=True):
        assert jnp.array_equal(ours, theirs)


def test_gradients_agree_with_differences() -> None:
    check = pytest.importorskip("jax.test_util").check_grads
    check(lambda x, w: call()(x, w, k=1.5), (X, W), order=1, modes=["rev"], atol=0.01, rtol=0.01)


def test_gradients_under_vmap_and_scan() -> None:
    rows = jnp.ones((2, 4))
    found = jax.vmap(jax.grad(lambda x: call()(x, W, k=2.0).sum()))(rows)
    assert jnp.array_equal(found, jnp.full((2, 4), 6.0))

    def chain(x: Any) -> Any:
        return jax.lax.scan(lambda c, _: (call()(c, W, k=0.5), None), x, None, length=3)[0].sum()

    assert jnp.array_equal(jax.jit(jax.grad(chain))(X), jnp.full(4, 1.5**3))


def test_outputs_have_gradients_by_name_and_are_saved() -> None:
    examples = (VECTOR, VECTOR, VECTOR)
    function = fe.compile(pair, *examples, options="--target cpu")
    gradient = fe.compile(pair_backward, *examples, VECTOR, options="--target cpu")
    both = fe.jax_call(function, backward=gradient, save=["y"])

    def total(x: Any) -> Any:
        y, z = both(x)
        return (3.0 * y + 5.0 * z).sum()

    assert jnp.array_equal(jax.grad(total)(X), 6.0 + 10.0 * X)
    assert jnp.array_equal(jax.grad(lambda x: both(x)[0].sum())(X), jnp.full(4, 2.0))


def test_a_backward_of_python() -> None:
    made = fe.jax_call(forward(), backward=lambda w, k, grad: (grad * w * k, None), save=["w", "k"])
    found = jax.grad(lambda x, w: made(x, w, k=7.0).sum(), (0, 1))(X, W)
    assert found[0].tolist() == [21.0] * 4
    assert found[1].tolist() == [0.0] * 4
    wrong = fe.jax_call(forward(), backward=lambda w, grad: grad, save=["w"])
    with pytest.raises(ValueError, match="returned 1 gradients, but the arrays of a call are x, w"):
        jax.grad(lambda x: wrong(x, W, k=7.0).sum())(X)


def test_the_handler_of_a_backward_has_a_name_for_exports() -> None:
    names = ["tests.product", "tests.product.backward"]
    named = fe.jax_call(forward(), name=names[0], backward=backward(), save=["x", "w", "k"])
    export: Any = pytest.importorskip("jax.export")
    checks = [export.DisabledSafetyCheck.custom_call(name) for name in names]
    run = jax.jit(jax.grad(lambda x, w: named(x, w, k=2.0).sum()))
    shape = jax.ShapeDtypeStruct((4,), jnp.float32)
    exported = export.export(run, disabled_checks=checks)(shape, shape)
    assert jnp.array_equal(exported.call(X, W), jnp.full(4, 6.0))


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"save": ["x"]}, ValueError, r"save=\['x'\] needs a backward"),
        ({"save": "x", "backward": len}, TypeError, "save is a list of names, but got 'x'"),
        ({"save": ["q"], "backward": len}, ValueError, "save has 'q', .*; these are x, w, k, y"),
        ({"backward": 3}, TypeError, "backward must be a compiled function"),
        ({"backward": len, "out": {}}, ValueError, "y of .* is given and written, .* name it in"),
    ],
)
def test_what_gives_no_gradients(
    options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        fe.jax_call(forward(), **options)


def test_parameters_of_a_backward_have_names_of_values() -> None:
    with pytest.raises(ValueError, match="nothing says what k: float32 of the backward function"):
        fe.jax_call(forward(), backward=backward(), save=["x", "w"])
    with pytest.raises(ValueError, match="writes no gradient; .* the names grad_x, grad_w"):
        fe.jax_call(forward(), backward=empty(), save=["x"])


def empty() -> Any:
    @fe.jit
    def nothing(x: fe.Tensor):
        pass

    return fe.compile(nothing, VECTOR, options="--target cpu")


def test_without_a_backward_jax_says_so() -> None:
    with pytest.raises(ValueError, match="cannot be differentiated"):
        jax.grad(lambda x: fe.jax_call(forward())(x, W, k=1.0).sum())(X)


def test_no_gradient_is_forgotten() -> None:
    """JAX takes what is missing as zero, and says nothing."""

    @fe.jit
    def half(grad: fe.Tensor, w: fe.Tensor, k: fe.Float32, grad_x: fe.Tensor):
        for i in range(w.shape[0]):
            grad_x[i] = grad[i] * w[i] * k

    one = fe.compile(half, VECTOR, VECTOR, 2.0, VECTOR, options="--target cpu")
    with pytest.raises(ValueError, match="writes no grad_w, so that the gradient of w would be ze"):
        fe.jax_call(forward(), backward=one, save=["w", "k"])
    made = fe.jax_call(one)
    known = fe.jax_call(
        forward(), backward=lambda w, k, grad: (made(grad, w, k), None), save=["w", "k"]
    )
    assert jax.grad(lambda x: known(x, W, k=2.0).sum())(X).tolist() == [6.0] * 4

    @fe.jit
    def without_z(grad_y: fe.Tensor, grad_x: fe.Tensor):
        for i in range(grad_y.shape[0]):
            grad_x[i] = grad_y[i] * 2.0

    both = fe.compile(pair, VECTOR, VECTOR, VECTOR, options="--target cpu")
    gradient = fe.compile(without_z, VECTOR, VECTOR, options="--target cpu")
    with pytest.raises(ValueError, match="takes no grad_z, so that what comes from z would be"):
        fe.jax_call(both, backward=gradient)


def test_a_backward_only_reads_what_it_is_given() -> None:
    @fe.jit
    def overwriting(grad: fe.Tensor, w: fe.Tensor, grad_x: fe.Tensor):
        for i in range(w.shape[0]):
            grad_x[i] = grad[i]
            w[i] = 0.0

    function = fe.compile(overwriting, VECTOR, VECTOR, VECTOR, options="--target cpu")
    with pytest.raises(ValueError, match="jax_call: the backward function writes to w: Tensor"):
        fe.jax_call(forward(), backward=function, save=["w"])


def test_a_python_backward_can_be_differentiated_again() -> None:
    @fe.jit
    def squares(x: fe.Tensor, y: fe.Tensor):
        for i in range(x.shape[0]):
            y[i] = x[i] * x[i]

    made = fe.compile(squares, VECTOR, VECTOR, options="--target cpu")
    call = fe.jax_call(made, backward=lambda x, grad: 2 * x * grad, save=["x"])
    first = jax.grad(lambda x: call(x).sum())
    assert first(X).tolist() == (2 * X).tolist()
    assert jax.grad(lambda x: first(x).sum())(X).tolist() == [2.0] * 4
    of_result = fe.jax_call(made, backward=lambda y, grad: 2 * y**0.5 * grad, save=["y"])
    second = jax.grad(lambda x: jax.grad(lambda x: of_result(x).sum())(x).sum())
    np.testing.assert_allclose(second(X + 1.0), [2.0] * 4, rtol=1e-5)

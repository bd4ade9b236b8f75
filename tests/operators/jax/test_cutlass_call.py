"""`cutlass.jax.cutlass_call`: programs for CuTe DSL in programs of JAX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.cutlass import jax as cjax
from ferrule.cutlass.jax_testing import create_tensor

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy


@fe.kernel
def combined_kernel(pair: Any, out: fe.Tensor, factor: fe.Constexpr):
    i, j = fe.arch.block_idx()[0], fe.arch.thread_idx()[0]
    out[i, j] = pair[0][i, j] + pair[1][i, j] * factor


@fe.jit
def combined(stream: Any, pair: Any, out: fe.Tensor, *, factor: fe.Constexpr):
    m, n = out.shape
    combined_kernel(pair, out, factor).launch(grid=m, block=n, stream=stream)


def struct(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, "float32")


def test_containers_modes_and_static_arguments() -> None:
    spec = cjax.TensorSpec(mode=(1, 0), divisibility=(2, 1), static=False)

    @jax.jit
    def program(a: Any, b: Any) -> Any:
        call = cjax.cutlass_call(
            combined,
            output_shape_dtype=struct(3, 4),
            input_spec=(None, spec),
            use_static_tensors=True,
            factor=10,
        )
        return call([a, b]) + 1

    a, b = np.random.default_rng(0).random((2, 3, 4), np.float32)
    found = program(a, np.ascontiguousarray(b.T))
    np.testing.assert_allclose(found, a + 10 * b + 1, rtol=1e-6)


@fe.jit
def updated(stream: Any, a: fe.Tensor, flags: Any):
    for i in range(a.shape[0]):
        flags[0][i] = a[i]
        a[i] = a[i] * 2


def test_aliases_and_outputs_in_containers() -> None:
    call = cjax.cutlass_call(
        lambda stream, a, flags: updated(stream, a, flags),
        output_shape_dtype=(struct(5), [struct(5), struct(2)]),
        input_output_aliases={0: 0},
    )
    a = jnp.arange(5.0)
    doubled, (old, untouched) = call(a)
    assert doubled.tolist() == [0, 2, 4, 6, 8]
    assert old.tolist() == a.tolist() == [0, 1, 2, 3, 4]
    assert untouched.shape == (2,)


def test_dtypes_and_wrong_calls() -> None:
    assert cjax.jax_to_cutlass_dtype("bfloat16") is fe.BFloat16
    assert cjax.cutlass_to_jax_dtype(fe.Boolean) is jnp.bool_
    numbers = create_tensor((50,), "int8", jax.random.key(0))
    assert set(numbers.tolist()) == {-2, -1, 0, 1}
    with pytest.raises(TypeError, match="JAX has no dtype for TFloat32"):
        cjax.cutlass_to_jax_dtype(fe.TFloat32)
    with pytest.raises(TypeError, match="'a b' is no name of a parameter"):
        cjax.cutlass_call(updated, output_shape_dtype=struct(1), **{"a b": 1})
    wrong = cjax.cutlass_call(updated, output_shape_dtype=struct(1), input_output_aliases={3: 0})
    with pytest.raises(ValueError, match="has 3: 0, but there are 1 inputs and 1 outputs"):
        wrong(jnp.zeros(1))
    wrong = cjax.cutlass_call(updated, output_shape_dtype=struct(1), input_spec=(None, None))
    with pytest.raises(ValueError, match="a TensorSpec or None for each of 1 arrays"):
        wrong(jnp.zeros(1))
    spec = cjax.TensorSpec(divisibility=(2, 2))
    wrong = cjax.cutlass_call(updated, output_shape_dtype=struct(1), input_spec=spec)
    with pytest.raises(ValueError, match="divisibility has 2 numbers for an array of 1 dims"):
        wrong(jnp.zeros(1))

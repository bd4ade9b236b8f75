"""What JAX does with a call: vmap, gradients, shapes alone, exports, sharding."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from jax_kernels import function

import ferrule as fe

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled"])
def test_vmap_calls_one_after_the_other(method: str) -> None:
    call = fe.jax_call(function("to_columns"), vmap_method=method)
    x = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    expected = x * 10 + np.arange(2, dtype=np.float32)[:, None]
    np.testing.assert_array_equal(jax.vmap(call)(x), expected)
    moved = jax.jit(jax.vmap(call, in_axes=1, out_axes=1))(np.moveaxis(x, 0, 1))
    np.testing.assert_array_equal(np.moveaxis(moved, 1, 0), expected)


def test_vmap_of_what_is_written() -> None:
    call = fe.jax_call(function("added"), {})
    x = jnp.zeros((2, 3))
    assert jax.vmap(lambda x: call(x, 2))(x).tolist() == [[2.0] * 3] * 2
    assert x.tolist() == [[0.0] * 3] * 2


def test_vmap_of_a_function_that_does_not_have_the_dim() -> None:
    call = fe.jax_call(function("doubled"), vmap_method="expand_dims")
    with pytest.raises(jax.errors.JaxRuntimeError, match="expected ndim=1, but got ndim=2"):
        jax.vmap(call)(jnp.ones((2, 3)))


def test_shapes_alone() -> None:
    call = fe.jax_call(function("returned"))
    x = jax.ShapeDtypeStruct((5,), "float32")
    shapes = jax.eval_shape(lambda x: call(x, 1), x)
    assert [each.shape for each in shapes] == [(5,), (), ()]


def test_gradients_are_the_users() -> None:
    scaled = fe.jax_call(function("scaled"))

    @jax.custom_vjp
    def twice(x: Any) -> Any:
        return scaled(x)

    twice.defvjp(lambda x: (scaled(x), None), lambda _, grad: (scaled(grad),))
    x = jnp.arange(3.0)
    assert jax.grad(lambda x: (twice(x) * x).sum())(x).tolist() == [0.0, 4.0, 8.0]
    with pytest.raises(ValueError, match="cannot be differentiated"):
        jax.grad(lambda x: scaled(x).sum())(x)


def test_an_export_with_symbolic_sizes() -> None:
    call = fe.jax_call(function("scaled"), name="tests.exported")
    export = pytest.importorskip("jax.export")
    allowed = [export.DisabledSafetyCheck.custom_call("tests.exported")]
    shape = jax.ShapeDtypeStruct(export.symbolic_shape("2 * b"), "float32")
    exported = export.export(jax.jit(call), disabled_checks=allowed)(shape)
    assert exported.call(jnp.arange(4.0)).tolist() == [0.0, 2.0, 4.0, 6.0]


def test_each_device_of_a_shard_map_calls_for_its_part() -> None:
    program = """
import os, sys
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P
sys.path.insert(0, sys.argv[1])
from jax_kernels import function
import ferrule as fe

try:
    from jax import shard_map
except ImportError:
    from jax.experimental.shard_map import shard_map
call = fe.jax_call(function("scaled"))
mesh = jax.make_mesh((2,), ("i",))
run = jax.jit(shard_map(call, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
y = run(jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P("i"))))
assert y.tolist() == [2.0 * i for i in range(8)], y
assert len(y.sharding.device_set) == 2
assert jax.pmap(call)(jnp.ones((2, 3))).tolist() == [[2.0] * 3] * 2

if hasattr(jax, "shard_map"):
    # What differs between devices is followed in types, and gradients are summed by them.
    from jax.sharding import Mesh
    import numpy as np
    mesh = Mesh(np.array(jax.devices()), ("i",))
    python = lambda x: 2 * x
    made = fe.jax_call(function("scaled"), backward=lambda grad: 2 * grad)

    def gradients(f):
        loss = lambda x, w: jax.lax.psum((f(x) * f(w) ** 2).sum(), "i")
        whole = jax.shard_map(loss, mesh=mesh, in_specs=(P("i"), P()), out_specs=P())
        return [each.tolist() for each in jax.grad(whole, argnums=(0, 1))(x, w)]

    x, w = jnp.arange(1.0, 5.0), jnp.arange(1.0, 3.0)
    assert gradients(made) == gradients(python), gradients(made)
    carried = lambda f: jax.shard_map(
        lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
        mesh=mesh, in_specs=P("i"), out_specs=P("i"),
    )(x).tolist()
    assert carried(call) == carried(python)
    for each in (call, made):
        try:
            jax.shard_map(each, mesh=mesh, in_specs=P("i"), out_specs=P())(x)
        except ValueError as error:
            assert "replication" in str(error)
        else:
            raise AssertionError("a part was taken for the whole")

import numpy as np
mesh = jax.make_mesh((2,), ("i",))
out = np.zeros(8, np.float32)
direct = function("scaled")
for place in (jax.devices()[1], jax.devices()[0]):
    direct(jax.device_put(jnp.arange(8.0), place), out, 1.0)
    assert out.tolist() == list(range(8))
for spec in (P("i"), P()):
    x = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, spec))
    try:
        direct(x, out, 1.0)
    except BufferError as error:
        assert "Mismatched x" in str(error) and "one of JAX on 2 devices" in str(error)
    else:
        raise AssertionError(spec)
print("right")
"""
    import jax_kernels

    folder = os.path.dirname(jax_kernels.__file__)
    done = subprocess.run(
        [sys.executable, "-c", program, folder],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("right\n", 0), done.stderr


def test_calls_in_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    call = jax.jit(fe.jax_call(function("scaled")), static_argnums=1)

    def run(i: int) -> bool:
        return bool((call(jnp.full(64, float(i)), 2.0) == 2.0 * i).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(200)))

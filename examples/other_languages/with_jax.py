"""The exported function in JAX, on the CPU, with jax-tvm-ffi.

python export.py
python with_jax.py
"""

import jax
import jax.numpy as jnp
import jax_tvm_ffi
import numpy as np

import ferrule as fe


def main() -> None:
    module = fe.runtime.load_module("./scale.so")
    jax_tvm_ffi.register_ffi_target(
        "scale", module.scale, ["args", "rets", "attrs.factor"], platform="cpu"
    )

    @jax.jit
    def scaled(x: jax.Array) -> jax.Array:
        made = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.ffi.ffi_call("scale", made)(x + 1, factor=2.5)

    print(scaled(jnp.arange(4, dtype=jnp.float32)))
    try:
        scaled(jnp.arange(4, dtype=jnp.int32)).block_until_ready()
    except Exception as error:
        print(str(error).split(": ", 1)[1].splitlines()[0])
    assert np.allclose(scaled(jnp.zeros(3, jnp.float32)), 2.5)


if __name__ == "__main__":
    main()

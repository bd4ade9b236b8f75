# %% [markdown]
# # A call in JAX
#
# A compiled function becomes an operation of JAX: under `jit`, `vmap` and `grad`. XLA calls its
# code itself, without Python. Here it is a scan that no operation of JAX writes well: a leaky sum.
#
# **Run it**: `python docs/gallery/jax_call.py`; it needs `pip install 'ferrule[jax]'`.

# %%
import jax
import jax.numpy as jnp
import numpy as np
import plots

import ferrule as fe


@fe.jit
def leaky(x: fe.Tensor, y: fe.Tensor, keep: fe.Float32 = 0.9):
    """y[i] = keep * y[i - 1] + x[i]."""
    state = fe.Float32(0)
    for i in range(x.shape[0]):
        state = keep * state + x[i]
        y[i] = state


@fe.jit
def leaky_backward(grad: fe.Tensor, keep: fe.Float32, grad_x: fe.Tensor):
    state = fe.Float32(0)
    n = grad.shape[0]
    for i in range(n):
        state = keep * state + grad[n - 1 - i]
        grad_x[n - 1 - i] = state


vector = fe.row_major((fe.sym_int(),), fe.Float32)
compiled = fe.compile(leaky, vector, vector, 0.9, options="--target cpu")
backward = fe.compile(leaky_backward, vector, 0.9, vector, options="--target cpu")
leak = fe.jax_call(compiled, backward=backward, save=["keep"])
compiled

# %%
x = jnp.zeros(40).at[jnp.array([2, 15, 18])].set(1.0)
y = jax.jit(lambda x: leak(x, 0.8))(x)


def draw(axes):
    axes.bar(range(40), np.asarray(x), color=plots.COLOURS[0], label="x")
    axes.plot(np.asarray(y), color=plots.COLOURS[1], label="leak(x, 0.8)")
    axes.legend(frameon=False)


plots.picture(draw, "a leaky sum", (7, 2.6))

# %% [markdown]
# ## Gradients and batches

# %%
print(jax.grad(lambda x: leak(x, 0.5).sum())(jnp.ones(4)))
print(jax.vmap(lambda x: leak(x, 0.5))(jnp.ones((2, 4))))

# %% [markdown]
# ## Beside a scan of JAX


# %%
@jax.jit
def scanned(x):
    def step(state, each):
        state = 0.9 * state + each
        return state, state

    return jax.lax.scan(step, jnp.float32(0), x)[1]


ours = jax.jit(leak)
data = jnp.asarray(np.random.default_rng(0).random(20_000, dtype=np.float32))
print(bool(jnp.allclose(ours(data), scanned(data), rtol=1e-5)))
samples = plots.measured(
    {
        "ferrule, in jit": lambda: ours(data).block_until_ready(),
        "jax.lax.scan": lambda: scanned(data).block_until_ready(),
    },
    rounds=9,
)
plots.times(samples, "a leaky sum of 20,000 floats")

# %% [markdown]
# **Next**: [with JAX](../jax.md): layouts, sharding, exports.

# %% [markdown]
# # Your first kernel
#
# A kernel is a Python function that many threads run, each with another number. This one computes
# `y = a * x + y`, each thread one element. At the end you know who writes what, what a call checks,
# and what a call costs.
#
# **Run it**: `python docs/gallery/first_kernel.py` in a checkout, or open this file as a notebook.

# %%
import numpy as np
import plots

import ferrule as fe


@fe.kernel
def saxpy_kernel(a: fe.Float32, x: fe.Tensor, y: fe.Tensor):
    i = fe.arch.block_idx()[0] * 128 + fe.arch.thread_idx()[0]
    if i < x.shape[0]:
        y[i] = a * x[i] + y[i]


@fe.jit
def saxpy(a: fe.Float32, x: fe.Tensor, y: fe.Tensor):
    """y = a * x + y."""
    blocks = fe.ceil_div(x.shape[0], 128)
    saxpy_kernel(a, x, y).launch(grid=(blocks, 1, 1), block=(128, 1, 1))


# %% [markdown]
# `fe.compile` takes an example for each parameter. `n` is a size that only the call knows. The
# function that comes back shows what a call checks.

# %%
n = fe.sym_int()
vector = fe.row_major((n,), fe.Float32)
compiled = fe.compile(saxpy, fe.Float32(0), vector, vector, options="--target cpu")
compiled

# %%
x = np.arange(8, dtype=np.float32)
y = np.ones(8, np.float32)
compiled(2.0, x, y)
print(y)

# %% [markdown]
# ## Who writes what
#
# Element `i` belongs to thread `i % 128` of block `i // 128`. With blocks of 8 threads, which fit a
# picture, 22 elements need three blocks, and two threads of the last one have nothing to do: that
# is what `if i < x.shape[0]` is for.


# %%
@fe.kernel
def owner_kernel(blocks: fe.Tensor, threads: fe.Tensor):
    block, thread = fe.arch.block_idx()[0], fe.arch.thread_idx()[0]
    i = block * 8 + thread
    if i < blocks.shape[0]:
        blocks[i], threads[i] = block, thread


@fe.jit
def owners(blocks: fe.Tensor, threads: fe.Tensor):
    owner_kernel(blocks, threads).launch(grid=(fe.ceil_div(blocks.shape[0], 8),), block=(8,))


blocks, threads = np.empty(22, np.int32), np.empty(22, np.int32)
owners(blocks, threads)
plots.grid(
    blocks,
    "22 elements: block (colour) and thread that write them",
    [f"b{b}\nt{t}" for b, t in zip(blocks, threads, strict=True)],
)

# %% [markdown]
# ## A wrong call
#
# Nothing runs, and the message says which parameter, what was wanted and what came.

# %%
try:
    compiled(2.0, x, y[:7])
except ValueError as error:
    print(error)

# %% [markdown]
# ## What it costs
#
# Beside NumPy, which needs two operations for the same. Both are measured in turns on the machine
# that built this page; on small arrays you see the cost of a call, on large ones the memory.

# %%
speeds: dict[str, dict[int, list[float]]] = {"ferrule": {}, "NumPy": {}}
for size in (100, 1000, 10_000, 100_000):
    x, y = np.ones(size, np.float32), np.ones(size, np.float32)
    found = plots.measured(
        {
            "ferrule": lambda x=x, y=y: compiled(0.5, x, y),
            "NumPy": lambda x=x, y=y: np.add(np.float32(0.5) * x, y, out=y),
        }
    )
    for name, samples in found.items():
        speeds[name][size] = samples
plots.curves(speeds, "saxpy: elements a second", "elements")

# %% [markdown]
# **Next**: [softmax, three ways](softmax.py), [the language](../language.md),
# [parameters](../parameters.md).

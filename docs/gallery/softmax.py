# %% [markdown]
# # Softmax, three ways
#
# `exp(x - max) / sum(exp(x - max))` of each row of a matrix: by one thread for a row, by the
# threads of a block together, and by loops without a kernel. All three are one function for the
# caller.
#
# **Run it**: `python docs/gallery/softmax.py`

# %%
import operator

import numpy as np
import plots

import ferrule as fe
from ferrule import arch

THREADS = 128

# %% [markdown]
# ## One thread for a row


# %%
@fe.kernel
def by_thread_kernel(x: fe.Tensor, y: fe.Tensor):
    row = arch.block_idx()[0] * THREADS + arch.thread_idx()[0]
    if row < x.shape[0]:
        largest, total = x[row, 0], fe.Float32(0)
        for j in range(1, x.shape[1]):
            largest = max(largest, x[row, j])
        for j in range(x.shape[1]):
            e = fe.math.exp(x[row, j] - largest)
            y[row, j] = e
            total += e
        for j in range(x.shape[1]):
            y[row, j] = y[row, j] / total


@fe.jit
def by_thread(x: fe.Tensor, y: fe.Tensor):
    by_thread_kernel(x, y).launch(grid=(fe.ceil_div(x.shape[0], THREADS),), block=(THREADS,))


# %% [markdown]
# ## One block for a row
#
# Thread t has the elements t, t + 128, t + 256 …, and `block_reduction` joins the results of all
# threads. On a GPU this is the fast way: neighbours read neighbours, and all threads work for long
# rows.


# %%
@fe.kernel
def by_block_kernel(x: fe.Tensor, y: fe.Tensor):
    row, thread = arch.block_idx()[0], arch.thread_idx()[0]
    largest, total = fe.Float32(-float("inf")), fe.Float32(0)
    for j in range(thread, x.shape[1], THREADS):
        largest = max(largest, x[row, j])
    largest = arch.block_reduction(largest, max)
    for j in range(thread, x.shape[1], THREADS):
        e = fe.math.exp(x[row, j] - largest)
        y[row, j] = e
        total += e
    total = arch.block_reduction(total, operator.add)
    for j in range(thread, x.shape[1], THREADS):
        y[row, j] = y[row, j] / total


@fe.jit
def by_block(x: fe.Tensor, y: fe.Tensor):
    by_block_kernel(x, y).launch(grid=(x.shape[0],), block=(THREADS,))


# %% [markdown]
# ## Loops over rows, without a kernel
#
# A `jit` function can have loops of its own. `reassociate=True` allows the sum in another order,
# which makes it a vector.


# %%
@fe.jit
def by_row(x: fe.Tensor, y: fe.Tensor):
    for row in range(x.shape[0]):
        largest, total = x[row, 0], fe.Float32(0)
        for j in range(1, x.shape[1]):
            largest = max(largest, x[row, j])
        for j in range(x.shape[1]):
            y[row, j] = fe.math.exp(x[row, j] - largest)
        for j in fe.range(x.shape[1], reassociate=True):
            total += y[row, j]
        for j in range(x.shape[1]):
            y[row, j] = y[row, j] / total


# %%
rows = fe.row_major((fe.sym_int(min=1), fe.sym_int(min=1)), fe.Float32)
ways = {
    "a thread for a row": fe.compile(by_thread, rows, rows, options="--target cpu"),
    "a block for a row": fe.compile(by_block, rows, rows, options="--target cpu"),
    "loops": fe.compile(by_row, rows, rows, options="--target cpu"),
}
x = np.random.default_rng(0).standard_normal((64, 500), dtype=np.float32) * 5


def with_numpy(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


for name, function in ways.items():
    y = np.empty_like(x)
    function(x, y)
    print(f"{name}: differs from NumPy by at most {abs(y - with_numpy(x)).max():.0e}")

# %% [markdown]
# ## Which thread reads what
#
# A matrix of 4 rows and 16 columns, and 4 threads: each thread has a colour, and what it reads has
# this colour. First a thread for a row, then a block for a row.

# %%
plots.grid(np.repeat(np.arange(4)[:, None], 16, axis=1), "a thread for a row")

# %%
plots.grid(
    np.tile(np.arange(16) % 4, (4, 1)),
    "a block for a row: block (b) and thread (t)",
    [[f"b{row}t{j % 4}" for j in range(16)] for row in range(4)],
)

# %% [markdown]
# ## What became of the loops
#
# The compiler says what became of each loop: how many elements a vector has, or why there is none.

# %%
ways["a thread for a row"].remarks

# %%
samples = plots.measured(
    {name: lambda f=f: f(x, y) for name, f in ways.items()} | {"NumPy": lambda: with_numpy(x)},
    rounds=9,
)
plots.times(samples, "softmax of 64 rows of 500")

# %% [markdown]
# **Next**: [a kernel that works together](together.py), [fast kernels on a CPU](../fast_cpu.md).

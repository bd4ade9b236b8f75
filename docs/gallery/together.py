# %% [markdown]
# # A kernel that works together
#
# The threads of a block add up 32 numbers in five steps, in memory that they share. Each step needs
# what the one before has left, so all threads wait for each other in between. You see who adds
# what, and what happens when somebody does not come.
#
# **Run it**: `python docs/gallery/together.py`

# %%
import operator

import numpy as np
import plots

import ferrule as fe
from ferrule import arch

N = 32


@fe.kernel
def tree_kernel(x: fe.Tensor, total: fe.Tensor, seen: fe.Tensor):
    t = arch.thread_idx()[0]
    shared = arch.alloc_smem(fe.Float32, N)
    shared[t] = x[t]
    arch.sync_threads()
    for step in fe.range_constexpr(5):
        half = N >> (step + 1)
        if t < half:
            shared[t] = shared[t] + shared[t + half]
        arch.sync_threads()
        seen[step, t] = shared[t]
    if t == 0:
        total[0] = shared[0]


@fe.jit
def tree(x: fe.Tensor, total: fe.Tensor, seen: fe.Tensor):
    tree_kernel(x, total, seen).launch(grid=(1,), block=(N,))


x = np.arange(N, dtype=np.float32)
total, seen = np.zeros(1, np.float32), np.zeros((5, N), np.float32)
tree(x, total, seen)
print(total[0], x.sum())

# %% [markdown]
# ## Who adds what
#
# Each row shows the numbers in shared memory after one step. The places that this step has written
# are coloured: thread `i` writes place `i`.

# %%
active = [[t if t < N >> (step + 1) else -1 for t in range(N)] for step in range(5)]
plots.grid(active, "shared memory behind each of five steps", seen.astype(int))

# %% [markdown]
# ## Somebody does not come
#
# Here the barrier stands in a branch that half of the threads do not take. A GPU would hang. On the
# CPU it is an error that says who is missing.


# %%
@fe.kernel
def half_kernel(x: fe.Tensor):
    t = arch.thread_idx()[0]
    if t < 16:
        arch.sync_threads()
    x[t] = x[t] + 1


@fe.jit
def half(x: fe.Tensor):
    half_kernel(x).launch(grid=(1,), block=(N,))


try:
    half(x)
except RuntimeError as error:
    print(error)

# %% [markdown]
# ## Without writing the tree
#
# `arch.block_reduction` is a tree of shuffles and shared memory, for any number of threads and any
# operation.


# %%
@fe.kernel
def sum_kernel(x: fe.Tensor, total: fe.Tensor):
    value = fe.Float32(0)
    for i in range(arch.thread_idx()[0], x.shape[0], 256):
        value += x[i]
    value = arch.block_reduction(value, operator.add)
    if arch.thread_idx()[0] == 0:
        total[0] = value


@fe.jit
def summed(x: fe.Tensor, total: fe.Tensor):
    sum_kernel(x, total).launch(grid=(1,), block=(256,))


vector, one = fe.row_major((fe.sym_int(),), fe.Float32), fe.row_major((1,), fe.Float32)
compiled = fe.compile(summed, vector, one, options="--target cpu")
x = np.random.default_rng(0).random(20_000, dtype=np.float32)
compiled(x, total)
print(total[0], x.sum(dtype=np.float64))

# %% [markdown]
# On the CPU a kernel is cut at its barriers, and each piece is a loop over the threads, which
# becomes vectors. The remarks say so:

# %%
compiled.remarks

# %% [markdown]
# **Next**: [find a race](find_race.py), [threads that work together](../threads.md).

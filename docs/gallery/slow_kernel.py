# %% [markdown]
# # Why is it slow?
#
# A kernel for the CPU that is many times slower than it could be. The remarks say why, a page about
# the compilation shows the lines beside their machine code, and a small change makes it fast.
#
# **Run it**: `python docs/gallery/slow_kernel.py`

# %%
import numpy as np
import plots

import ferrule as fe


@fe.jit
def scores(a: fe.Tensor, b: fe.Tensor, out: fe.Tensor):
    """out[j] = sum of a[i, j] * b[i]."""
    for j in range(a.shape[1]):
        total = fe.Float32(0)
        for i in range(a.shape[0]):
            total += a[i, j] * b[i]
        out[j] = total


m, n = fe.sym_int(), fe.sym_int()
matrix, column, row = (fe.row_major(shape, fe.Float32) for shape in ((m, n), (m,), (n,)))
slow = fe.compile(scores, matrix, column, row, options="--target cpu")
slow.remarks

# %% [markdown]
# There are two reasons: the numbers must be added in their order, and the inner loop goes down a
# column, so each step jumps over a whole row.
#
# ## What it reads, in which order
#
# The numbers are the order in which `scores` reads the first elements of `a`: neighbours in memory
# lie beside each other, and it jumps over all of them.

# %%
order = np.arange(4 * 12).reshape(12, 4).T
plots.grid(order // 4, "the order of reading: down the columns", order)

# %% [markdown]
# ## Along the rows
#
# The two loops are swapped. The numbers of each element of `out` are still added in the same order,
# so the result is the same to the last bit.


# %%
@fe.jit
def scores_by_rows(a: fe.Tensor, b: fe.Tensor, out: fe.Tensor):
    for j in range(a.shape[1]):
        out[j] = fe.Float32(0)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[j] += a[i, j] * b[i]


fast = fe.compile(scores_by_rows, matrix, column, row, options="--target cpu")
fast.remarks

# %%
rng = np.random.default_rng(0)
a, b = rng.random((400, 500), dtype=np.float32), rng.random(400, dtype=np.float32)
one, other = np.empty(500, np.float32), np.empty(500, np.float32)
slow(a, b, one)
fast(a, b, other)
print("the same bits:", bool((one == other).all()))

# %%
samples = plots.measured(
    {
        "down the columns": lambda: slow(a, b, one),
        "along the rows": lambda: fast(a, b, other),
        "NumPy, b @ a": lambda: b @ a,
    },
    rounds=9,
)
plots.times(samples, "scores of 400 × 500 floats")

# %% [markdown]
# ## The page about the compilation
#
# It shows source, kernel IR, LLVM IR and machine code side by side. Point at a line, and the lines
# that belong to it are highlighted. `fast.report("scores.html")` writes it as a file.

# %%
page = fast.report()
print(f"{len(page) // 1000} kB of HTML")
page

# %% [markdown]
# **Next**: [fast kernels on a CPU](../fast_cpu.md), [a page for a compilation](../reports.md).

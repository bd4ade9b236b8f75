# %% [markdown]
# # Find a race
#
# Threads of a block turn a row around through shared memory, and a barrier is missing. On a GPU the
# result is right most of the time. The emulated GPU looks at every access, and says which two
# threads are not ordered, in which lines, and what would order them.
#
# **Run it**: `python docs/gallery/find_race.py`

# %%
import textwrap

import numpy as np
import plots

import ferrule as fe
from ferrule import arch

N = 64


@fe.kernel
def turn_kernel(x: fe.Tensor, y: fe.Tensor, waits: fe.Constexpr):
    i = arch.thread_idx()[0]
    row = arch.alloc_smem(fe.Float32, N)
    row[i] = x[i]
    if fe.const_expr(waits):
        arch.sync_threads()
    y[i] = row[N - 1 - i]


@fe.jit
def turn(x: fe.Tensor, y: fe.Tensor, waits: fe.Constexpr):
    turn_kernel(x, y, waits).launch(grid=1, block=N)


vector = fe.row_major((N,), fe.Float32)
racy, right = (
    fe.compile(turn, vector, vector, waits, options="--target cuda --gpu-arch sm_90a")
    for waits in (False, True)
)

# %% [markdown]
# ## Who writes, who reads
#
# Each column is a place in shared memory. The upper row shows the warp that writes it, the lower
# row the warp that reads it: warp 0 reads what warp 1 writes.

# %%
writers = [i // 32 for i in range(0, N, 2)]
plots.grid([writers, writers[::-1]], "shared memory: writing and reading warp", cell=0.22)

# %% [markdown]
# ## The check

# %%
x = np.arange(N, dtype=np.float32)
with fe.emulated_gpu("sm_90a", checks="memory,sync,race"):
    given, turned = fe.cuda.array(x), fe.cuda.empty((N,), fe.Float32)
    try:
        racy(given, turned)
    except fe.CudaError as error:
        print(textwrap.fill(str(error)[str(error).index("race in") :], 100))

# %% [markdown]
# With the barrier the emulated GPU finds no race, and the result is right:

# %%
with fe.emulated_gpu("sm_90a", checks="memory,sync,race"):
    given, turned = fe.cuda.array(x), fe.cuda.empty((N,), fe.Float32)
    right(given, turned)
    print((fe.cuda.to_numpy(turned) == x[::-1]).all())

# %% [markdown]
# ## On the CPU
#
# `--enable-checks` finds the same without an emulated GPU, for kernels written in Python.

# %%
checked = fe.compile(turn, vector, vector, False, options="--target cpu --enable-checks")
try:
    checked(x, np.empty_like(x))
except RuntimeError as error:
    print(textwrap.fill(str(error), 100))

# %% [markdown]
# **Next**: [races, fresh memory and counts](../emulated_checks.md), [checks inside of
# kernels](../checks.md).

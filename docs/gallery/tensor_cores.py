# %% [markdown]
# # A tiled matmul on tensor cores
#
# `C = A @ B` of float16 matrices. A block brings a tile of A and B into shared memory, and each
# warp multiplies its part of it with one instruction for 16 × 8 × 16 products, `mma`. It runs on an
# emulated GPU, which also counts what the kernel does, so no GPU is needed.
#
# **Run it**: `python docs/gallery/tensor_cores.py`

# %%
import numpy as np
import plots

import ferrule as fe
from ferrule import arch

TILE = 32  # rows, columns and depth of a tile; four warps make 16 x 16 of it each
PITCH = TILE + 8  # elements of a row in shared memory: 8 rows begin in different banks


@fe.kernel
def matmul_kernel(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    t, lane, warp = arch.thread_idx()[0], arch.lane_idx(), arch.warp_idx()
    row, column = arch.block_idx()[1] * TILE, arch.block_idx()[0] * TILE
    layout = fe.make_layout((TILE, PITCH), stride=(PITCH, 1))
    left = fe.make_tensor(arch.alloc_smem(fe.Float16, TILE * PITCH), layout)
    right = fe.make_tensor(arch.alloc_smem(fe.Float16, TILE * PITCH), layout)
    down, across = warp // 2 * 16, warp % 2 * 16
    sums = fe.make_fragment((4, 2), fe.Float32)
    sums.fill(0.0)
    for k in range(0, a.shape[1], TILE):
        for i in range(t, TILE * TILE, 128):
            left[i // TILE, i % TILE] = a[row + i // TILE, k + i % TILE]
            right[i // TILE, i % TILE] = b[k + i // TILE, column + i % TILE]
        arch.sync_threads()
        for step in fe.range_constexpr(0, TILE, 16):
            place = (down + lane % 16) * PITCH + step + lane // 16 * 8
            of_a = arch.ldmatrix(left.iterator + place)
            for n in fe.range_constexpr(2):
                place = (step + lane % 16) * PITCH + across + n * 8
                of_b = arch.ldmatrix(right.iterator + place, num_matrices=2, transpose=True)
                part = sums[None, n]
                part.store(arch.mma(of_a, of_b, part.load()))
        arch.sync_threads()
    for n in fe.range_constexpr(2):
        for i in fe.range_constexpr(4):
            y, x = down + lane // 4 + i // 2 * 8, across + n * 8 + lane % 4 * 2 + i % 2
            c[row + y, column + x] = sums[i, n]


@fe.jit
def matmul(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    grid = (c.shape[1] // TILE, c.shape[0] // TILE)
    matmul_kernel(a, b, c).launch(grid=grid, block=128)


# %% [markdown]
# The kernel has no code for edges, so the sizes must be multiples of 32. That is said in the
# signature, and every call is checked for it.

# %%
m, n, k = (fe.sym_int(divisibility=TILE) for _ in range(3))
given = [fe.row_major(shape, fe.Float16) for shape in ((m, k), (k, n))]
given.append(fe.row_major((m, n), fe.Float32))
compiled = fe.compile(matmul, *given, options="--target cuda --gpu-arch sm_80")
compiled

# %% [markdown]
# ## Which warp makes what, and which lane has what
#
# First a tile of C: each of the four warps has a colour. Then the 16 × 8 results of one `mma`:
# which lane has each of them, and as which of its values.

# %%
plots.grid(
    [[y // 4 * 2 + x // 4 for x in range(8)] for y in range(8)],
    "a tile of C: the warps (each cell is 4 × 4 elements)",
)

# %%
accumulator = fe.make_layout(((4, 8), (2, 2)), stride=((32, 1), (16, 8)))
fe.draw(accumulator, (16, 8))

# %% [markdown]
# ## On an emulated GPU
#
# The processor executes the PTX, instruction by instruction, and checks each access.

# %%
rng = np.random.default_rng(0)
a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((64, 96), (96, 64)))
with fe.emulated_gpu("sm_80") as gpu:
    on_gpu = [fe.cuda.array(each) for each in (a, b, np.zeros((64, 64), np.float32))]
    with gpu.profile() as profile:
        compiled(*on_gpu)
    c = fe.cuda.to_numpy(on_gpu[2])
print("equals NumPy's result:", bool((c == a.astype("f4") @ b.astype("f4")).all()))

# %% [markdown]
# The profile counts. Wavefronts of shared memory above what would do are bank conflicts: try `PITCH
# = TILE`.

# %%
profile

# %% [markdown]
# **Next**: [a matmul with copies in the background](../arch.md#a-whole-matmul), [layouts you can
# see](layouts.py).

# %% [markdown]
# # Layouts you can see
#
# A layout says where the element at a coordinate is: `(8, 8):(8, 1)` is 8 rows of 8, one behind the
# other. In a notebook a layout shows itself as the grid of its indices. Here are four of them, and
# why the last one is worth its bits: shared memory has 32 banks, and threads that ask one bank at a
# time wait for each other.
#
# **Run it**: `python docs/gallery/layouts.py`

# %%
import plots

import ferrule as fe

rows = fe.make_layout((8, 8), stride=(8, 1))
rows

# %% [markdown]
# Here the numbers follow each other down the columns. Only the strides are different.

# %%
fe.make_layout((8, 8), stride=(1, 8))

# %% [markdown]
# ## Tiles
#
# `logical_divide` orders the coordinates by tiles: the first mode goes through a tile of 4 by 2,
# the second from tile to tile. The elements stay where they are.

# %%
tiled = fe.logical_divide(rows, (4, 2))
print(tiled)
fe.draw(fe.zipped_divide(rows, (4, 2)))

# %% [markdown]
# ## Threads and values
#
# A layout from (thread, value) to the place in a tile says who has what. This is the accumulator of
# `mma.m16n8k16` on NVIDIA's tensor cores: 32 threads, four values each.

# %%
accumulator = fe.make_layout(((4, 8), (2, 2)), stride=((32, 1), (16, 8)))
fe.draw(accumulator, (16, 8))

# %% [markdown]
# ## Banks
#
# 32 rows of 32 floats in shared memory. Threads that write a row ask 32 banks. Threads that read a
# column all ask the same one, and wait 32 times. With a *swizzle*, which changes places within
# rows, each column is in 32 banks, too, and no memory is wasted. `layout((row, column))` is the
# index; its last five bits are the bank.

# %%
plain = fe.make_layout((32, 32), stride=(32, 1))
swizzled = fe.make_composed_layout(fe.make_swizzle(5, 0, 5), 0, plain)


def banks(layout, size=32):
    return [[layout((row, column)) % 32 for column in range(size)] for row in range(size)]


for name, layout in (("plain", plain), ("swizzled", swizzled)):
    found = banks(layout)
    worst = max(32 - len({row[column] for row in found}) + 1 for column in range(32))
    print(f"{name}: a column is read in {worst} steps")

# %%
plots.grid([row[:16] for row in banks(plain)[:8]], "plain: the banks of 8 rows, 16 columns")

# %%
plots.grid([row[:16] for row in banks(swizzled)[:8]], "swizzled: the same places")

# %% [markdown]
# **Next**: [tiles on tensor cores](tensor_cores.py), [tensors, views and layouts](../layouts.md),
# [tiles](../tiles.md).

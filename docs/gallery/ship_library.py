# %% [markdown]
# # Ship a library
#
# Two functions become a shared library with headers: for Python, C, C++ and Rust, without ferrule
# and without Python inside. Every argument is still checked, by the library itself.
#
# **Run it**: `python docs/gallery/ship_library.py`

# %%
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import plots

import ferrule as fe

FOLDER = Path(tempfile.mkdtemp())
(FOLDER / "kernels.py").write_text('''
import ferrule as fe


@fe.jit
def scale(x: fe.Tensor, y: fe.Tensor, factor: fe.Float32 = 2.0):
    """Writes factor * x to y."""
    for i in range(x.shape[0]):
        y[i] = x[i] * factor


@fe.jit
def sum_of_squares(x: fe.Tensor) -> fe.Float32:
    """The sum of x * x."""
    total = fe.Float32(0)
    for i in fe.range(x.shape[0], reassociate=True):
        total += x[i] * x[i]
    return total


vector = fe.row_major((fe.sym_int(),), fe.Float32)
library = fe.Library(
    "vectors", [fe.Job(scale, [vector, vector, fe.Float32(2)]), fe.Job(sum_of_squares, [vector])]
)
''')

# %% [markdown]
# ## Build
#
# On a command line that is `ferrule build kernels.py -o dist`. `--format wheel` makes a wheel of
# it.


# %%
def ferrule(*arguments: object) -> str:
    command = [sys.executable, "-m", "ferrule", *map(str, arguments)]
    return subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=True).stdout


print(ferrule("build", "kernels.py", "-o", "dist"))

# %% [markdown]
# The header for C says what a call takes:

# %%
header = (FOLDER / "dist/vectors.h").read_text()
print(header[header.index("/* scale(x") :].partition(" {")[0])

# %% [markdown]
# ## What is in it
#
# `ferrule inspect` reads a library again, without its source. The picture has the bytes of each
# file.

# %%
print(ferrule("inspect", "dist/libvectors.so"))

# %%
sizes = {file.name: file.stat().st_size for file in sorted((FOLDER / "dist").iterdir())}
plots.timeline([(name, 0, size / 1000) for name, size in sizes.items()], "sizes", "kB")

# %% [markdown]
# ## Use it
#
# In Python through tvm-ffi alone: this process does not import ferrule. NumPy's arrays go in, and a
# wrong one is refused.

# %%
program = """
import sys
import numpy as np
import tvm_ffi

module = tvm_ffi.load_module("dist/libvectors.so")
x = tvm_ffi.from_dlpack(np.arange(4, dtype=np.float32))
y = np.zeros(4, np.float32)
module.scale(x, tvm_ffi.from_dlpack(y), 3.0)
print(y, module.sum_of_squares(x), "ferrule" in sys.modules)
try:
    module.scale(x, tvm_ffi.from_dlpack(y[:3]), 3.0)
except ValueError as error:
    print(error)
"""
command = [sys.executable, "-c", program]
print(subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=True).stdout)

# %% [markdown]
# With ferrule, `load_module` gives functions with names of parameters, defaults and fast calls:

# %%
vectors = fe.runtime.load_module(FOLDER / "dist/libvectors.so")
x = np.arange(4, dtype=np.float32)
y = np.empty_like(x)
vectors.scale(x, y)
print(y)
vectors.scale

# %% [markdown]
# **Next**: [libraries and wheels](../libraries.md), [export and load](../export.md) with programs
# in C, C++ and Rust.

# %% [markdown]
# # A Triton kernel without Triton
#
# Triton compiles a kernel here, for several GPUs at once and without one. The library that
# you ship runs without Triton, PyTorch and Python. It checks each call for what Triton assumed:
# sizes, strides, alignments.
#
# **Run it**: `python docs/gallery/triton_kernel.py`; it needs `pip install 'ferrule[triton]'` to
# compile, and nothing of it to run.

# %%
import subprocess
import sys
import tempfile
from pathlib import Path

import plots
import triton
import triton.language as tl

import ferrule as fe
from ferrule.frontends import triton as frontend


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


def compiled():
    return frontend.compile(
        add_kernel,
        signature={"x": "*fp32[n]:16", "y": "*fp32[n]:16", "out": "*fp32[n]:16"},
        constexprs={"BLOCK": 256},
        grid=lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),),
        name="add",
        target=["sm_80", "sm_90a"],
    )


add = compiled()
add

# %% [markdown]
# ## Which program reads what
#
# 1000 elements are four programs; the last one has a mask for 24 of its 256. Each cell is 16
# elements.

# %%
programs = [at // 256 for at in range(0, 1024, 16)]
plots.grid([programs[:32], programs[32:]], "1000 elements: programs", cell=0.22)

# %% [markdown]
# ## Without Triton
#
# A process in which neither Triton nor PyTorch can be imported loads the library and calls it. Here
# it is on an emulated GPU, so the library has the kernels as PTX; otherwise they are the machine
# code of both GPUs that Triton's assembler made.

# %%
folder = Path(tempfile.mkdtemp())
with fe.emulated_gpu("sm_80"):
    compiled().export_library(folder / "add.so")
program = """
import sys
sys.modules["triton"] = sys.modules["torch"] = None
import numpy as np
import ferrule as fe

add = fe.runtime.load_module("add.so").add
with fe.emulated_gpu("sm_80"):
    x, y = (fe.cuda.array(np.full(1000, value, np.float32)) for value in (1, 2))
    out = fe.cuda.empty_like(x)
    add(x, y, out)
    print(fe.cuda.to_numpy(out)[:4])
    try:
        add(x, y, fe.cuda.array(np.ones(999, np.float32)))
    except ValueError as error:
        print(error)
"""
command = [sys.executable, "-c", program]
print(subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout)

# %% [markdown]
# **Next**: [Triton](../frontends_triton.md), [ship a Triton library](../ship_triton_library.md).

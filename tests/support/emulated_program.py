"""The first program for an emulated GPU; tests run it in processes, and compile it for C."""

import numpy as np

import ferrule as fe


@fe.kernel
def add_one_kernel(x: fe.Tensor, y: fe.Tensor):
    i = fe.arch.block_idx()[0] * fe.arch.block_dim()[0] + fe.arch.thread_idx()[0]
    if i < x.shape[0]:
        y[i] = x[i] + 1.0


@fe.jit
def add_one(x: fe.Tensor, y: fe.Tensor):
    """y = x + 1."""
    add_one_kernel(x, y).launch(grid=fe.ceil_div(x.shape[0], 256), block=256)


fake = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))


def main() -> None:
    x = fe.cuda.array(np.arange(1000, dtype=np.float32))
    y = fe.cuda.empty_like(x)
    compiled = fe.compile(add_one, fake, fake, options="--target cuda")
    compiled(x, y)
    right = np.array_equal(fe.cuda.to_numpy(y), np.arange(1, 1001, dtype=np.float32))
    print(x.device, "right" if right else "wrong")

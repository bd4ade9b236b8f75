"""A kernel that waits for what nobody does: for tests of interrupts."""

import ferrule as fe


@fe.kernel
def waiting(flags: fe.Tensor):
    i = fe.arch.thread_idx()[0]
    flags[i] = 0.0
    looks = 0
    while flags[i] < 1.0:
        looks += 1


@fe.jit
def wait(flags: fe.Tensor):
    waiting(flags).launch(grid=1, block=32)

"""A compiled function that is dropped after its emulated GPU is gone leaves the next one alone."""

from __future__ import annotations

from typing import Any

import numpy as np

import ferrule as fe


def doubling() -> Any:
    @fe.jit
    def doubled(a: fe.Tensor, out: fe.Tensor):
        out[:] = a[:] * 2.0

    vector = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))
    return fe.compile(doubled, vector, vector, options="--target cuda --gpu-arch sm_90a")


def test_what_is_dropped_later_frees_nothing_of_the_next_one() -> None:
    ones = np.ones(6, np.float32)
    functions = [doubling(), doubling()]
    for function in functions:
        with fe.emulated_gpu("sm_90a"):
            function(fe.cuda.array(ones), fe.cuda.array(ones))
    with fe.emulated_gpu("sm_90a") as gpu:
        there, out = fe.cuda.array(ones), fe.cuda.array(ones)
        del function
        functions.clear()
        assert len(gpu.allocations()) == 2
        doubling()(there, out)
        assert fe.cuda.to_numpy(out).tolist() == [2.0] * 6

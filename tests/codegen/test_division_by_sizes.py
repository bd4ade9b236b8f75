"""Division by the size of a tensor on a GPU: Python's, without guards for negative divisors."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from emulated_alone import run_alone

import ferrule as fe


@fe.kernel
def divided_kernel(x: fe.Tensor, y: fe.Tensor, q: fe.Tensor, r: fe.Tensor):
    i = fe.arch.thread_idx()[0]
    q[i] = x[i] // y.shape[0]
    r[i] = x[i] % y.shape[0]


@fe.jit
def divided(x: fe.Tensor, y: fe.Tensor, q: fe.Tensor, r: fe.Tensor):
    divided_kernel(x, y, q, r).launch(grid=1, block=x.shape[0])


def test_it_is_pythons() -> None:
    run_alone(
        __file__, "for dtype in (fe.Int32, fe.Int64):\n  for n in (None, 1): here.check(dtype, n)"
    )


def check(dtype: Any, least: int | None) -> None:
    info = np.iinfo(dtype.name)
    x = np.array([info.min, info.min + 1, -7, -6, -1, 0, 1, 6, 7, info.max], dtype.name)
    like, sized = (
        fe.make_fake_compact_tensor(kind, (dim,))
        for kind, dim in ((dtype, fe.sym_int()), (fe.Int8, fe.sym_int(min=least)))
    )
    with fe.emulated_gpu("sm_80"):
        compiled = fe.compile(divided, like, sized, like, like, options="--target cuda")
        for size in (1, 2, 3, 7) if least else (0, 1, 2, 3, 7):
            arrays = [x, np.zeros(size, np.int8), np.zeros_like(x), np.zeros_like(x)]
            given = [fe.cuda.array(each) for each in arrays]
            compiled(*given)
            found = [fe.cuda.to_numpy(each).tolist() for each in given[2:]]
            wanted = [x // size, x % size] if size else [x * 0, x * 0]
            assert found == [each.tolist() for each in wanted]
    lowest = str(info.min)
    assert not re.search(rf"setp\.\S+\s.*{lowest};", compiled.inspect_ptx())

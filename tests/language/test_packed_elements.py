"""Elements of 4 and 6 bits, which share bytes: read one by one, written in groups."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferrule as fe

runs = pytest.importorskip("packed_element_runs", reason="the results are those of ml_dtypes")


@pytest.mark.parametrize("options", ["cpu", "cpu --enable-checks"])
def test_reads_and_pairs(options: str) -> None:
    runs.check(options)


def test_on_an_emulated_gpu() -> None:
    folder = str(Path(__file__).parents[1] / "support")
    path = os.pathsep.join([folder, *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-m", "packed_element_runs", "sm_80"],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": path, "FERRULE_GPU": ""},
    )
    assert done.stdout == "right\n", done.stderr


@fe.jit
def dot(w: fe.Tensor, x: fe.Tensor, out: fe.Tensor):
    total = fe.Float32(0)
    for i in range(x.shape[0]):
        total += w[i] * x[i]
    out[0] = total
    out[1] = fe.sum(w[:])


@pytest.mark.needs_torch
def test_a_parameter_of_pairs() -> None:
    import torch

    n = fe.sym_int(divisibility=2)
    w = fe.row_major((n,), "float4_e2m1fnx2")
    function = fe.compile(
        dot, w, fe.row_major((n,), "float32"), fe.row_major((2,), "float32"),
        options="--target cpu",
    )  # fmt: skip
    packed = torch.from_numpy(runs.BYTES.copy()).view(torch.float4_e2m1fn_x2)
    wide = runs.values(fe.Float4E2M1FN).astype(np.float32)
    x, out = (
        np.random.default_rng(1).integers(-4, 5, 512).astype(np.float32),
        np.zeros(2, np.float32),
    )
    function(packed, x, out)
    assert out.tolist() == [float(wide @ x), float(wide.sum())]


# ---- what is refused ----


@fe.jit
def single(w, n):
    w.recast(fe.Int4)[3] = 1


@fe.jit
def single_six(w, n):
    w.recast(fe.Float6E3M2FN)[3] = 1


@fe.jit
def not_whole(w, n):
    fe.make_tensor(w.recast(fe.Int4).iterator, (w.shape[0],))[:] = 1


@fe.jit
def in_place(w, n):
    q = w.recast(fe.Int4)
    q[:] = q[:] + 1


@fe.jit
def odd_part(w, n):
    fe.domain_offset((n,), w.recast(fe.Int4))


@fe.jit
def one_element(w, n):
    fe.zipped_divide(w.recast(fe.Int4), (1,))[None, 0].fill(1)


@fe.jit
def float_to_integers(w, n):
    fe.zipped_divide(w.recast(fe.Int4), (2,))[None, 0].fill(1.5)


@fe.jit
def large_constant(w, n):
    fe.zipped_divide(w.recast(fe.Int4), (2,))[None, 0].fill(8)


@fe.jit
def fragment(w, n):
    fe.make_fragment(4, fe.Float4E2M1FN)


@fe.jit
def converted(w, n):
    w[0] = n.to(fe.Int4)


REFUSED = [
    (single, "a single element of w cannot be written: elements of int4 share bytes"),
    (single_six, "a single element of w cannot be written: elements of float6_e3m2fn share bytes"),
    (not_whole, "all of w.iterator is written, whose rows may end in the middle of a byte: two"),
    (in_place, "w is written while the same memory is read in another layout"),
    (odd_part, "a part of w may begin in the middle of a byte"),
    (one_element, "its elements of int4 do not fill whole bytes"),
    (float_to_integers, "a float32 is stored to .*, whose elements are int4"),
    (large_constant, "the constant 8 does not fit int4"),
    (fragment, "single elements of float4_e2m1fn have no bytes"),
    (converted, "int4 is a storage type"),
]


@pytest.mark.parametrize(("function", "message"), REFUSED, ids=lambda each: str(each)[:30])
def test_refused(function: Any, message: str) -> None:
    with pytest.raises(fe.CompileError, match=message):
        fe.compile(function, runs.vector(fe.Uint8), fe.Int32, options="--target cpu")

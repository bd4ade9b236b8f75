"""Compiled functions that tests call from JAX."""

from __future__ import annotations

from functools import cache

import ferrule as fe


@fe.jit
def scaled(x: fe.Tensor, y: fe.Tensor, factor: fe.Float32 = 2.0):
    for i in range(x.shape[0]):
        y[i] = x[i] * factor


@fe.jit
def added(x: fe.Tensor, by: fe.Int32):
    for i in range(x.shape[0]):
        x[i] = x[i] + by


@fe.jit
def doubled(x: fe.Tensor, y: fe.Tensor):
    for i in range(x.shape[0]):
        y[i] = x[i] + x[i]


@fe.jit
def numbered(x: fe.Tensor, y: fe.Tensor):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * 10.0 + i


@fe.jit
def chosen(x: fe.Tensor, b: fe.Tensor | None, k: fe.Float32 | None, y: fe.Tensor):
    for i in range(x.shape[0]):
        r = x[i]
        if b is not None:
            r = r + b[i]
        if k is not None:
            r = r * k
        y[i] = r


@fe.jit
def returned(x: fe.Tensor, k: fe.Int32):
    y = fe.empty_like(x)
    for i in range(x.shape[0]):
        y[i] = x[i] + k
    return y, k + 1, x.shape[0] > 2


@fe.jit
def both(x: fe.Tensor, y: fe.Tensor, z: fe.Tensor):
    for i in range(x.shape[0]):
        y[i] = x[i] + 1.0
        z[i] = z[i] + x[i]


@fe.jit
def first(x: fe.Tensor, y: fe.Tensor):
    for i in range(y.shape[0]):
        y[i] = x[i]


@fe.jit
def refused(x: fe.Tensor, y: fe.Tensor):
    if x[0] < 0.0:
        fe.raise_error("RuntimeError", "the first one is negative")
    y[0] = x[0]


@fe.jit
def checked(x: fe.Tensor, flag: fe.Boolean):
    if flag:
        if x[0] < 0.0:
            fe.raise_error("ValueError", "the first one is negative")


def compiled(function: object, *examples: object) -> fe.Function:
    """The function for the CPU."""
    return fe.compile(function, *examples, options="--target cpu")


def vector(dtype: object = fe.Float32, size: object = None) -> object:
    """A fake vector of any size."""
    return fe.make_fake_compact_tensor(dtype, (fe.sym_int() if size is None else size,))


@cache
def function(name: str) -> fe.Function:
    """One of the functions above, of vectors of one size."""
    v, m = vector(), (fe.sym_int(), fe.sym_int())
    columns = fe.make_fake_compact_tensor(fe.Float32, m)
    rows = fe.make_fake_compact_tensor(fe.Float32, m, stride_order=(1, 0))
    either = vector(fe.sym_dtype(fe.Float32, fe.Int32))
    examples = {
        "scaled": (scaled, v, v, 2.0),
        "added": (added, v, 1),
        "doubled": (doubled, v, v),
        "either": (doubled, either, either),
        "to_columns": (numbered, rows, columns),
        "to_rows": (numbered, columns, rows),
        "chosen": (chosen, v, v, 1.0, v),
        "returned": (returned, v, 1),
        "both": (both, v, v, v),
        "first": (first, vector(), vector()),
        "refused": (refused, v, v),
        "checked": (checked, v, True),
    }
    return compiled(*examples[name])

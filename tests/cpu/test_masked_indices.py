"""Indices with masks, of which LLVM 22.1 makes accesses side by side: decision 74.

Each is computed by a loop and by threads, with a rest whose range LLVM knows.
"""

from __future__ import annotations

import linecache
from itertools import product
from typing import Any, Final

import numpy as np
import pytest

import ferrule as fe

MASKS: Final = (
    *("i & 3", "(i * 2) & 15", "15 - (i & 15)", "(i & 1) * 32 + (i >> 1)", "(i & 7) ^ 1"),
    *("i % 8", "(i + 3) % 16", "(i - 1) % 16", "(i // 2) % 8", "i % 12", "divmod(i, 8)[1]"),
    *("i - i // 4 * 4", "i - ((i >> 2) << 2)", "i ^ (i // 4 * 4)", "i // 4", "min(i, 5)"),
)
RESTS: Final = ("(h % 4) * 64", "h % 4", "(h & 3) << 6", "(h % 4) * 64 + 8", "g * 64")
SOURCE: Final = """
import ferrule as fe

@fe.jit
def loads(x: fe.Tensor, o: fe.Tensor, h: fe.Int32):
    g = 2
    rest = {rest}
    for i in range(100):
        o[i] = x[rest + 16 + ({mask})]

@fe.kernel
def threads(x, o, h):
    i, g = fe.arch.thread_idx()[0], fe.arch.block_idx()[0]
    rest = {rest}
    for z in range(i, 130, 100):
        o[1000 + g * 200 + z] = 1
    o[g * 100 + i] = x[rest + 16 + ({mask})]

@fe.jit
def launches(x: fe.Tensor, o: fe.Tensor, h: fe.Int32):
    threads(x, o, h).launch(grid=4, block=100)
"""


def functions(name: str, source: str) -> dict[str, Any]:
    """The names of a module with this text."""
    filename = f"<{name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    names: dict[str, Any] = {}
    exec(compile(source, filename, "exec"), names)
    return names


def compiled(function: Any) -> fe.Function:
    x, o = (fe.make_fake_compact_tensor(fe.Int32, (fe.sym_int(),)) for _ in range(2))
    return fe.compile(function, x, o, fe.Int32, options="--target cpu")


@pytest.mark.parametrize("mask", MASKS)
def test_elements_are_those_of_the_index(mask: str) -> None:
    x = np.arange(1, 1001, dtype=np.int32)
    for rest in RESTS:
        made = functions(f"{mask} {rest}", SOURCE.format(mask=mask, rest=rest))
        for name, blocks in (("loads", (2,)), ("launches", range(4))):
            o = np.zeros(2000, np.int32)
            compiled(made[name])(x, o, 2)
            expected = [
                x[eval(rest, {"h": 2, "g": g}) + 16 + eval(mask, {"i": i})]
                for g, i in product(blocks, range(100))
            ]
            assert o[: len(expected)].tolist() == expected, (name, rest)


STORES: Final = """
import ferrule as fe

@fe.kernel
def rotate(x, o):
    t, b = fe.arch.thread_idx()[0], fe.arch.block_idx()[0]
    for z in range(t, 259, 256):
        o[1100 + z] = 1
    o[b * 256 + (t + 3) % 256] = x[b * 256 + t]

@fe.kernel
def narrow(x, o):
    t, b = fe.arch.thread_idx()[0], fe.arch.block_idx()[0]
    for z in range(t, 259, 256):
        o[1100 + z] = 1
    o[b * 256 + fe.Int32(fe.Uint8(t + 3))] = x[b * 256 + t]

@fe.jit
def rotated(x: fe.Tensor, o: fe.Tensor, h: fe.Int32):
    rotate(x, o).launch(grid=4, block=256)

@fe.jit
def narrowed(x: fe.Tensor, o: fe.Tensor, h: fe.Int32):
    narrow(x, o).launch(grid=4, block=256)
"""


@pytest.mark.parametrize("name", ["rotated", "narrowed"])
def test_nothing_is_stored_elsewhere(name: str) -> None:
    x, o = np.arange(1, 1025, dtype=np.int32), np.zeros(2000, np.int32)
    compiled(functions("stores", STORES)[name])(x, o, 0)
    assert (o[:1024].reshape(4, 256) == np.roll(x.reshape(4, 256), 3, axis=1)).all()
    assert not o[1024:1100].any()


@fe.jit
def narrow_masks(x, k: fe.Tensor, o: fe.Tensor):
    for i in range(o.shape[0]):
        o[i] = x[fe.Int32(k[i] & 3) * 8 + fe.Int32((k[i] >> 1) & 7)]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int64", "uint64"])
def test_masks_of_narrow_integers(dtype: str) -> None:
    """A hidden mask of fewer than 32 bits is itself a conversion to fewer bits."""
    x, o = np.arange(32, dtype=np.int32), np.zeros(70, np.int32)
    k = np.arange(-5, 65).astype(dtype)
    fe.compile(narrow_masks, x, k, o, options="--target cpu")(x, k, o)
    assert (o == x[(k & 3).astype(int) * 8 + ((k >> 1) & 7).astype(int)]).all()

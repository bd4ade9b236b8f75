"""The work of each row of `kernels`: arguments, and what NumPy and PyTorch do with them.

Each function makes the arrays for one kernel of the examples.  A side gives its result, which is
`Work.out` where it could write there; kernels that work in place also read `out`.  PyTorch's part
is called with the module, because PyTorch may be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numba_kernels
import numpy as np
import subjects

import ferrule as fe

EXAMPLES: Final = Path(__file__).resolve().parents[1] / "examples"
EPS: Final = np.float32(1e-5)


@dataclass(frozen=True, slots=True)
class Work:
    """One kernel on one set of arrays.

    `args` are the arguments of ferrule's function, made by `compiled`, and of Numba's, `loops`.
    `numpy()` and `torch(module)()` do the same.  `limited` names what bounds a good version.
    """

    name: str
    limited: str
    compiled: Callable[[], fe.Function]
    loops: Callable[..., None]
    args: tuple[Any, ...]
    out: Any
    numpy: Callable[[], Any]
    torch: Callable[[Any], Callable[[], Any]]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the arrays are."""

    vector: int
    rows: tuple[int, int]
    tokens: int
    sequences: tuple[int, int]
    image: tuple[int, int, int]
    matrix: int


LARGE: Final = Sizes(8 << 20, (4096, 1024), 2048, (16, 512), (16, 96, 16), 256)
SMALL: Final = Sizes(1 << 10, (8, 100), 3, (2, 33), (2, 9, 3), 20)


def works(sizes: Sizes) -> Iterator[Work]:
    """All of them, one after the other, so that one set of arrays is alive."""
    yield saxpy(sizes.vector)
    yield swiglu(*sizes.rows)
    yield rotary(sizes.tokens)
    yield softmax(*sizes.rows)
    yield layer_norm(*sizes.rows)
    yield gather(*sizes.sequences)
    yield conv2d(*sizes.image)
    yield matmul(sizes.matrix)


def _example(name: str) -> Any:
    return subjects.load(EXAMPLES / f"{name}.py")


def _floats(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


def saxpy(n: int) -> Work:
    """y = alpha * x + y."""
    alpha, x, y = np.float32(1e-3), _floats(n), _floats(n)
    product = np.empty_like(x)

    def numpy() -> Any:
        np.multiply(x, alpha, out=product)
        return np.add(product, y, out=y)

    def torch(t: Any) -> Callable[[], Any]:
        a, b = t.from_numpy(x), t.from_numpy(y)
        return lambda: b.add_(a, alpha=float(alpha))

    example, loops = _example("saxpy"), numba_kernels.saxpy
    name = f"saxpy, {n} floats"
    return Work(name, "memory", example.compiled, loops, (alpha, x, y), y, numpy, torch)


def swiglu(m: int, n: int) -> Work:
    """silu of the left half times the right half."""
    x, y = _floats(m, 2 * n), np.empty((m, n), np.float32)
    gate, up = x[:, :n], x[:, n:]

    def numpy() -> Any:
        np.exp(-gate, out=y)
        np.divide(gate, y + np.float32(1), out=y)
        return np.multiply(y, up, out=y)

    def torch(t: Any) -> Callable[[], Any]:
        g, u, out = t.from_numpy(x)[:, :n], t.from_numpy(x)[:, n:], t.from_numpy(y)
        return lambda: t.mul(t.nn.functional.silu(g), u, out=out)

    example = _example("swiglu")
    name, loops = f"SwiGLU, {m} × {n}", numba_kernels.swiglu
    return Work(
        name, "memory", lambda: example.compiled(dtype=fe.Float32), loops, (x, y), y, numpy, torch
    )


def rotary(tokens: int) -> Work:
    """Rotary embedding of 16 heads of 128, in place."""
    example = _example("rotary")
    cos, sin = example.tables(4096)
    q = _floats(tokens, 16, example.HEAD)
    positions = np.random.default_rng(0).integers(0, 4096, tokens, dtype=np.int32)
    half = example.HEAD // 2

    def turn(q: Any, c: Any, s: Any) -> Any:
        first, second = q[:, :, :half], q[:, :, half:]
        turned = first * c - second * s
        second *= c
        second += first * s
        first[:] = turned
        return q

    def torch(t: Any) -> Callable[[], Any]:
        p, c, s, values = (t.from_numpy(a) for a in (positions, cos, sin, q))
        return lambda: turn(values, c[p][:, None, :], s[p][:, None, :])

    return Work(
        f"rotary embedding, {tokens} × 16 × {example.HEAD}",
        "memory",
        example.compiled,
        numba_kernels.rotary,
        (q, positions, cos, sin),
        q,
        lambda: turn(q, cos[positions][:, None, :], sin[positions][:, None, :]),
        torch,
    )


def softmax(m: int, n: int) -> Work:
    """Softmax of rows."""
    x, y = _floats(m, n), np.empty((m, n), np.float32)

    def numpy() -> Any:
        np.exp(x - x.max(axis=1, keepdims=True), out=y)
        return np.divide(y, y.sum(axis=1, keepdims=True), out=y)

    def torch(t: Any) -> Callable[[], Any]:
        a, out = t.from_numpy(x), t.from_numpy(y)
        return lambda: t.softmax(a, dim=1, out=out)

    example, loops = _example("softmax"), numba_kernels.softmax
    name = f"softmax, {m} × {n}"
    return Work(name, "arithmetic", example.compiled, loops, (x, y), y, numpy, torch)


def layer_norm(m: int, n: int) -> Work:
    """Layer norm of rows."""
    x, weight, bias, y = _floats(m, n), _floats(n), _floats(n + 1)[1:], np.empty((m, n), np.float32)

    def numpy() -> Any:
        np.subtract(x, x.mean(axis=1, keepdims=True), out=y)
        variance = np.mean(y * y, axis=1, keepdims=True)
        np.multiply(y, weight / np.sqrt(variance + EPS), out=y)
        return np.add(y, bias, out=y)

    def torch(t: Any) -> Callable[[], Any]:
        a, w, b = (t.from_numpy(v) for v in (x, weight, bias))
        return lambda: t.nn.functional.layer_norm(a, (n,), w, b, float(EPS))

    example, loops = _example("layer_norm"), numba_kernels.layer_norm
    args = (x, weight, bias, y, EPS)
    name = f"layer norm, {m} × {n}"
    return Work(name, "memory", example.compiled, loops, args, y, numpy, torch)


def gather(sequences: int, tokens: int) -> Work:
    """Tokens of 1024 floats from pages; the lengths are between half and all of the tokens."""
    example, rng = _example("paged_kv_gather"), np.random.default_rng(0)
    pages = -(-tokens // example.PAGE)
    cache = _floats(sequences * pages, example.PAGE, 1024)
    table = rng.permutation(sequences * pages).astype(np.int32).reshape(sequences, pages)
    lengths = rng.integers(tokens // 2, tokens + 1, sequences, dtype=np.int32)
    out = np.empty((sequences, tokens, 1024), np.float32)
    # The pages' tokens in order, of which the last ones may be past the end.
    room = np.empty((sequences, pages * example.PAGE, 1024), np.float32)

    def ended(gathered: Any) -> Any:
        for values, length in zip(gathered, lengths.tolist(), strict=True):
            values[length:] = 0
        return gathered[:, :tokens]

    def numpy() -> Any:
        whole = room.reshape(sequences, pages, example.PAGE, 1024)
        return ended(np.take(cache, table, axis=0, out=whole, mode="clip").reshape(room.shape))

    def torch(t: Any) -> Callable[[], Any]:
        flat, rows = t.from_numpy(cache).flatten(1), t.from_numpy(table).flatten()
        whole = t.from_numpy(room).view(sequences * pages, example.PAGE * 1024)

        def call() -> Any:
            t.index_select(flat, 0, rows, out=whole)
            return ended(whole.view(room.shape))

        return call

    args, loops = (cache, table, lengths, out), numba_kernels.gather
    name = f"paged gather, {sequences} × {tokens} × 1024"
    return Work(name, "memory", example.compiled, loops, args, out, numpy, torch)


def conv2d(channels: int, size: int, filters: int) -> Work:
    """A 3 × 3 convolution of one image."""
    example = _example("conv2d")
    x, weight = _floats(1, channels, size, size), _floats(filters, channels, 3, 3)
    bias, y = _floats(filters), np.empty((1, filters, size, size), np.float32)

    def torch(t: Any) -> Callable[[], Any]:
        a, w, b = (t.from_numpy(v) for v in (x, weight, bias))
        return lambda: t.nn.functional.conv2d(a, w, b, padding=1)

    return Work(
        f"conv2d 3 × 3, {channels} × {size} × {size} to {filters}",
        "arithmetic",
        example.compiled,
        numba_kernels.conv2d,
        (x, weight, bias, y),
        y,
        lambda: example.reference(x, weight, bias, 1, 1),
        torch,
    )


def matmul(n: int) -> Work:
    """The naive product of square matrices; the others call a library."""
    a, b, c = _floats(n, n), _floats(n, n), np.empty((n, n), np.float32)

    def torch(t: Any) -> Callable[[], Any]:
        x, y, out = (t.from_numpy(v) for v in (a, b, c))
        return lambda: t.mm(x, y, out=out)

    return Work(
        f"naive matmul, {n} × {n} × {n}",
        "arithmetic",
        _example("matmul").compiled,
        numba_kernels.matmul,
        (a, b, c),
        c,
        lambda: np.matmul(a, b, out=c),
        torch,
    )

"""Complex numbers in every place where they can stand, compared with NumPy, for `test_complex`.

`python -m complex_runs ARCH …` runs all of it on emulated GPUs.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import ferrule as fe
from ferrule.specs import DType

arch = fe.arch
DTYPES = (fe.Complex64, fe.Complex128)
SIZE = 64
TWIDDLES = np.exp(-2j * np.pi * np.arange(SIZE // 2) / SIZE).astype(np.complex64)
REVERSED = [int(f"{i:06b}"[::-1], 2) for i in range(SIZE)]
FACTORS = [1j, 2, -0.5]


@fe.kernel
def operators_kernel(a: fe.Tensor, b: fe.Tensor, o: fe.Tensor, sizes: fe.Tensor):
    i = arch.block_idx()[0] * 64 + arch.thread_idx()[0]
    if i < a.shape[0]:
        x, y = a[i], b[i]
        o[0, i] = x + y
        o[1, i] = x - y
        o[2, i] = x * y
        o[3, i] = x / y
        o[4, i] = -x
        o[5, i] = x.conj()
        o[6, i] = type(x)(x.real, y.imag)
        o[7, i] = 2 * x + 1j
        o[8, i] = 1.0 if x == y else 0.5 if x else 0
        o[9, i] = fe.where(x.real < y.real, x, 1)
        sizes[i] = abs(x)


@fe.jit
def operators(a: fe.Tensor, b: fe.Tensor, o: fe.Tensor, sizes: fe.Tensor):
    operators_kernel(a, b, o, sizes).launch(grid=(a.shape[0] + 63) // 64, block=64)


@fe.kernel
def fourier_kernel(x: fe.Tensor, y: fe.Tensor):
    row, t = arch.block_idx()[0], arch.thread_idx()[0]
    s = fe.make_tensor(arch.alloc_smem(fe.Complex64, SIZE), (SIZE,))
    for part in fe.range_constexpr(2):
        s[t + part * SIZE // 2] = x[row, REVERSED[t + part * SIZE // 2]]
    arch.sync_threads()
    for step in fe.range_constexpr(6):
        half = 1 << step
        i = (t // half) * 2 * half + t % half
        even, odd = s[i], s[i + half] * TWIDDLES[(t % half) * (SIZE // 2 // half)]
        arch.sync_threads()
        s[i], s[i + half] = even + odd, even - odd
        arch.sync_threads()
    y[row, t] = s[t]
    y[row, t + SIZE // 2] = s[t + SIZE // 2]


@fe.jit
def fourier(x: fe.Tensor, y: fe.Tensor):
    fourier_kernel(x, y).launch(grid=x.shape[0], block=SIZE // 2)


@dataclass(frozen=True)
class Pole:
    z: fe.Complex64
    order: fe.Int32


def halved(pole: Any) -> Any:
    return Pole(pole.z / 2, pole.order + 1)


@fe.kernel
def places_kernel(a: fe.Tensor, o: fe.Tensor, factor: fe.Complex64):
    t = arch.thread_idx()[0]
    shared = arch.alloc_smem(Pole, 64)
    shared[t] = halved(Pole(a[t], t))
    arch.sync_threads()
    pole = shared[63 - t]
    largest = arch.block_reduction((a[t], t), lambda x, y: x if abs(x[0]) > abs(y[0]) else y)
    own = fe.make_fragment((4,), fe.Complex64)
    own.fill(1j)
    own[1] = FACTORS[t % 3] * pole.z
    pair = fe.zipped_divide(a, (2,))[None, t // 2].load()
    o[0, t] = own[0] + own[1] * pole.order
    o[1, t] = largest[0] * factor
    o[2, t] = arch.shuffle_sync(a[t], 0)
    o[3, t] = fe.sum(pair * pair + 1) - pair[0].to(fe.Complex128)
    z, steps = 0, 0
    for k in range(t % 5):
        z = z * z + a[k]
        if z.imag > 1:
            break
        steps += 1
    o[4, t] = z if steps > 1 else 0.25
    o[5, t] = abs(z) * 1j


@fe.jit
def places(a: fe.Tensor, o: fe.Tensor, real: fe.Float32, imag: fe.Float32):
    places_kernel(a, o, fe.Complex64(real, imag)).launch(grid=1, block=64)


@fe.jit
def wholes(a: fe.Tensor, b: fe.Tensor, o: fe.Tensor, sizes: fe.Tensor, totals: fe.Tensor):
    o[:] = a[:] * b[:].conj() + 2j
    o[:] = o[:].conj() / 2
    sizes[:] = abs(a[:]) + b[:].real
    totals[:] = fe.sum(a[:] * a[:], axis=1)
    totals[0] = fe.prod(fe.where(b[:].real > 0, a[:], 1))


def fake(dtype: DType, rank: int = 1) -> Any:
    return fe.row_major(tuple(fe.sym_int() for _ in range(rank)), dtype)


@cache
def compiled(function: Any, dtype: DType, target: str) -> Any:
    """The function for arrays of the dtype."""
    vector, matrix = fake(dtype), fake(dtype, 2)
    examples = {
        operators: (vector, fake(dtype), matrix, fake(dtype.part)),
        fourier: (matrix, fake(dtype, 2)),
        places: (vector, matrix, 1.0, 1.0),
        wholes: (matrix, fake(dtype, 2), fake(dtype, 2), fake(dtype.part, 2), vector),
    }
    return fe.compile(function, *examples[function], options=f"--target {target}")


def call(function: Any, dtype: DType, target: str, *given: Any) -> list[Any]:
    """The arrays after a call, as a GPU has them too."""
    run = compiled(function, dtype, target)
    if not target.startswith("cuda"):
        run(*given)
        return list(given)
    moved = [fe.cuda.array(x) if isinstance(x, np.ndarray) else x for x in given]
    run(*moved)
    return [fe.cuda.to_numpy(x) if not isinstance(x, float) else x for x in moved]


def numbers(shape: Any, dtype: DType, seed: int = 0) -> Any:
    """Random complex numbers."""
    draw = np.random.default_rng(seed)
    found = draw.normal(size=shape) + 1j * draw.normal(size=shape)
    return found.astype(dtype.name)


def special(dtype: DType) -> tuple[Any, Any]:
    """All pairs of numbers of zeros, infinities, NaNs, huge and tiny parts."""
    info = np.finfo(dtype.part.name)
    parts = [0.0, -0.0, 1.5, -np.inf, np.nan, float(info.max) / 4, float(info.tiny) * 3]
    each = np.array([complex(x, y) for x in parts for y in parts], dtype.name)
    pairs = np.meshgrid(each, each)
    return pairs[0].ravel(), pairs[1].ravel()


def product(x: Any, y: Any) -> Any:
    """The product with each operation rounded; NumPy's own joins some of them on some CPUs."""
    real = x.real * y.real - x.imag * y.imag
    imag = x.real * y.imag + x.imag * y.real
    found = np.empty(x.shape, x.dtype)
    found.real, found.imag = real, imag
    return found


def check_operators(dtype: DType, target: str) -> None:
    """Every operator, in bits, but for what NaNs have."""
    normal = numbers(500, dtype), numbers(500, dtype, 1)
    normal[0][3], normal[1][4] = normal[1][3], 0
    for a, b in (normal, special(dtype)):
        outputs = np.zeros((10, len(a)), dtype.name), np.zeros(len(a), dtype.part.name)
        _, _, o, sizes = call(operators, dtype, target, a, b, *outputs)
        two, turn = a.dtype.type(2), a.dtype.type(1j)
        cases = [a + b, a - b, product(a, b), a / b, -a, a.conj()]
        cases.append((a.real + 0 * 1j).astype(a.dtype))
        cases[-1].imag = b.imag
        cases.append(product(np.full_like(a, two), a) + turn)
        cases.append(np.where(a == b, 1, np.where(a != 0, 0.5, 0)).astype(a.dtype))
        cases.append(np.where(a.real < b.real, a, a.dtype.type(1)))
        for found, wanted in zip(o, cases, strict=True):
            np.testing.assert_array_equal(found.real, wanted.real)
            np.testing.assert_array_equal(found.imag, wanted.imag)
        exact = np.hypot(a.real.astype(np.longdouble), a.imag.astype(np.longdouble))
        np.testing.assert_allclose(sizes, exact.astype(sizes.dtype), rtol=np.finfo(sizes.dtype).eps)


def check_places(target: str) -> None:
    """Shared memory, fragments, vectors, dataclasses, reductions, shuffles, tables, loops."""
    x = numbers((3, SIZE), fe.Complex64)
    found = call(fourier, fe.Complex64, target, x, np.zeros_like(x))[1]
    np.testing.assert_allclose(found, np.fft.fft(x), atol=1e-4)
    a, t = numbers(64, fe.Complex64), np.arange(64)
    o = call(places, fe.Complex64, target, a, np.zeros((6, 64), np.complex64), 0.5, 2.0)[1]
    squares = (a * a + 1).reshape(-1, 2)[t // 2]
    rounds = []
    for thread in t:
        z, steps = 0j, 0
        for k in range(thread % 5):
            z = z * z + a[k]
            if z.imag > 1:
                break
            steps += 1
        rounds.append((z, z if steps > 1 else 0.25))
    wanted = [
        1j + np.array(FACTORS)[t % 3] * a[63 - t] / 2 * (64 - t),
        np.full(64, a[np.argmax(abs(a))] * (0.5 + 2j)),
        a[t // 32 * 32],
        squares.sum(1) - a[t // 2 * 2],
        [kept for _, kept in rounds],
        [abs(z) * 1j for z, _ in rounds],
    ]
    np.testing.assert_allclose(o, np.array(wanted), rtol=1e-5, atol=1e-6)


def check_wholes(dtype: DType, target: str) -> None:
    """Whole-tensor expressions and reductions."""
    a, b = numbers((7, 5), dtype), numbers((7, 5), dtype, 1)
    o, sizes, totals = np.zeros_like(a), np.zeros((7, 5), dtype.part.name), np.zeros(7, dtype.name)
    *_, o, sizes, totals = call(wholes, dtype, target, a, b, o, sizes, totals)
    wanted = (a * a).sum(axis=1)
    wanted[0] = np.where(b.real > 0, a, 1).prod()
    close = {"rtol": 1e-5 if dtype is fe.Complex64 else 1e-13, "atol": 1e-6}
    np.testing.assert_allclose(o, (a * b.conj() + 2j).conj() / 2, **close)
    np.testing.assert_allclose(sizes, abs(a) + b.real, **close)
    np.testing.assert_allclose(totals, wanted, **close)


def check(target: str) -> None:
    """All of it."""
    with np.errstate(all="ignore"):
        for dtype in DTYPES:
            check_operators(dtype, target)
            check_wholes(dtype, target)
    check_places(target)


def main() -> None:
    """Everything, on the emulated GPUs that are named."""
    for name in sys.argv[1:]:
        with fe.emulated_gpu(name):
            check("cuda")
        compiled.cache_clear()
    print("right")


if __name__ == "__main__":
    main()

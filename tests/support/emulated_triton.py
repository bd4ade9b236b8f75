"""Kernels of Triton on an emulated GPU: `python emulated_triton.py sm_80` prints what was right."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import triton
import triton.language as tl

import ferrule as fe
from ferrule.frontends import triton as frontend


@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


@triton.jit
def softmax(out, x, rows, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    inside = tl.arange(0, BLOCK) < columns
    values = tl.load(x + at, mask=inside, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + at, powers / tl.sum(powers, axis=0), mask=inside)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        inside = (m[:, None] < M) & (k[None, :] < K)
        left = tl.load(a + m[:, None] * K + k[None, :], mask=inside, other=0.0)
        inside = (k[:, None] < K) & (n[None, :] < N)
        right = tl.load(b + k[:, None] * N + n[None, :], mask=inside, other=0.0)
        total = tl.dot(left, right, total)
    inside = (m[:, None] < M) & (n[None, :] < N)
    tl.store(c + m[:, None] * N + n[None, :], total.to(tl.float16), mask=inside)


@triton.jit
def count(x, bins, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(bins + tl.load(x + at, mask=at < n, other=0), 1, mask=at < n)


@triton.jit
def sums(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.cumsum(tl.load(x + at, mask=at < n, other=0), axis=0), mask=at < n)


@triton.jit
def product(a, b, c, PRECISION: tl.constexpr):
    i, j = tl.arange(0, 32)[:, None], tl.arange(0, 32)[None, :]
    at = i * 32 + j
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at), input_precision=PRECISION))


def cut(x: Any) -> Any:
    """Numbers as TF32 has them: without the last 13 bits."""
    return (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)


def check_product(arch: str, rng: Any) -> bool:
    """Float32 is multiplied as TF32 by default, and exactly where the kernel asks for it."""
    a, b = (rng.standard_normal((32, 32), dtype=np.float32) for _ in "ab")
    wanted = {"tf32": cut(a) @ cut(b), "ieee": a.astype(np.float64) @ b}
    right = abs(wanted["tf32"] - wanted["ieee"]).max() > 1e-3
    tensors = dict.fromkeys("abc", "*fp32[32, 32]")
    for precision, each in wanted.items():
        c = fe.cuda.empty((32, 32))
        how = {"PRECISION": precision}
        function = compiled(product, arch, fe.frontends.fixed(1), how, **tensors)
        function(fe.cuda.array(a), fe.cuda.array(b), c)
        right &= bool(abs(fe.cuda.to_numpy(c) - each).max() < 1e-5)
    return bool(right)


def check_column(arch: str, rng: Any) -> bool:
    """A kernel of Gluon with a descriptor for im2col: pixels moved down by 2 and right by 1."""
    from triton.experimental.gluon import language as gl
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptorIm2Col
    from triton_kernels import gluon_column

    images = rng.integers(-99, 99, (3, 7, 6, 64)).astype(np.float16)
    layout = gl.NVMMASharedLayout.get_default_for([32, 64], gl.float16)
    corners = {"pixel_box_lower_corner": [-1, -1], "pixel_box_upper_corner": [-1, -1]}
    source = TensorDescriptorIm2Col.from_tensor(Known(images), [32, 64], layout, **corners)
    examples = [source, "*fp16[r, 64]", *["i32"] * 6]
    how = {"grid": fe.frontends.fixed(1), "target": arch, "PIXELS": 32, "WIDE": 64}
    out = fe.cuda.zeros((32, 64), "float16")
    function = frontend.compile(gluon_column, *examples, **how)
    function(fe.cuda.array(images), out, 0, 4, 2, 0, 2, 1)
    wide = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    # The bounding box begins at -1, which is 0 in `wide`; pixels are moved from there.
    found = [wide[n, h + 2, w + 1] for n in range(3) for h in range(7) for w in range(6)]
    first = (4 + 1) * 6 + 2 + 1
    return bool((fe.cuda.to_numpy(out) == np.stack(found[first : first + 32])).all())


def compiled(kernel: Any, arch: str, grid: Any, constexprs: dict[str, Any], **more: Any) -> Any:
    signature = {name: each for name, each in more.items() if each.startswith("*")}
    sizes = {name: each for name, each in more.items() if not each.startswith("*")}
    options = {"signature": signature, "constexprs": constexprs, "target": arch, **sizes}
    return frontend.compile(kernel, grid=grid, **options)


def check_add(arch: str, rng: Any) -> bool:
    x, y = (rng.standard_normal(1000, dtype=np.float32) for _ in "xy")
    z = fe.cuda.empty(1000)
    vectors = {"x": "*fp32[n]", "y": "*fp32[n]", "z": "*fp32[n]", "n": "x.shape[0]"}
    blocks = lambda meta: (triton.cdiv(meta["n"], 256),)  # noqa: E731
    compiled(add, arch, blocks, {"BLOCK": 256}, **vectors)(fe.cuda.array(x), fe.cuda.array(y), z)
    return bool((fe.cuda.to_numpy(z) == x + y).all())


def check_softmax(arch: str, rng: Any) -> bool:
    x = rng.standard_normal((37, 300), dtype=np.float32)
    out = fe.cuda.empty(x.shape)
    more = {"out": "*fp32[m, n]", "x": "*fp32[m, n]"}
    more |= {"rows": "x.shape[0]", "columns": "x.shape[1]"}
    rows = lambda meta: (meta["rows"],)  # noqa: E731
    compiled(softmax, arch, rows, {"BLOCK": 512}, **more)(out, fe.cuda.array(x))
    powers = np.exp(x - x.max(1, keepdims=True))
    wanted = powers / powers.sum(1, keepdims=True)
    return bool(np.allclose(fe.cuda.to_numpy(out), wanted, rtol=1e-5, atol=1e-7))


def check_matmul(arch: str, rng: Any) -> bool:
    right = True
    tilings = ((100, 72, 200, (64, 32, 32)), (256, 128, 128, (128, 128, 64)))
    for m, n, k, (bm, bn, bk) in tilings:
        a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n)))
        c = fe.cuda.zeros((m, n), "float16")
        more = {"a": "*fp16[M, K]:16", "b": "*fp16[K, N]:16", "c": "*fp16[M, N]:16"}
        more |= {"M": "a.shape[0]", "N": "b.shape[1]", "K": "a.shape[1]"}
        tiles = lambda t: (triton.cdiv(t["M"], t["BM"]), triton.cdiv(t["N"], t["BN"]))  # noqa: E731
        function = compiled(matmul, arch, tiles, {"BM": bm, "BN": bn, "BK": bk}, **more)
        function(fe.cuda.array(a), fe.cuda.array(b), c)
        wanted = (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)
        right &= bool((fe.cuda.to_numpy(c) == wanted).all())
    return right


def check_count(arch: str, rng: Any) -> bool:
    x = rng.integers(0, 16, 1000).astype(np.int32)
    bins = fe.cuda.zeros(16, "int32")
    more = {"x": "*i32[n]", "bins": "*i32[16]", "n": "x.shape[0]"}
    blocks = lambda meta: (triton.cdiv(meta["n"], 128),)  # noqa: E731
    compiled(count, arch, blocks, {"BLOCK": 128}, **more)(fe.cuda.array(x), bins)
    return bool((fe.cuda.to_numpy(bins) == np.bincount(x, minlength=16)).all())


def check_sums(arch: str, rng: Any) -> bool:
    x = rng.integers(-9, 9, 200).astype(np.int32)
    y = fe.cuda.zeros(200, "int32")
    more = {"x": "*i32[n]", "y": "*i32[n]", "n": "x.shape[0]"}
    compiled(sums, arch, fe.frontends.fixed(1), {"BLOCK": 256}, **more)(fe.cuda.array(x), y)
    return bool((fe.cuda.to_numpy(y) == x.cumsum()).all())


@dataclass(frozen=True)
class Known:
    """An array as Triton wants the base of a descriptor: it asks for the address."""

    array: Any
    dtype: str = "fp16"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def stride(self) -> tuple[int, ...]:
        return tuple(each // self.array.itemsize for each in self.array.strides)

    def data_ptr(self) -> int:
        return 64

    def __dlpack__(self, **how: Any) -> Any:
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


CHECKS = {
    "add": check_add,
    "softmax": check_softmax,
    "matmul": check_matmul,
    "count": check_count,
    "sums": check_sums,
    "product": check_product,
    "column": check_column,
}


def has_columns(arch: str) -> bool:
    """Whether this GPU and this version of Triton have im2col."""
    hopper = importlib.import_module("triton.experimental.gluon.nvidia.hopper")
    return int(arch[3:].rstrip("a")) >= 90 and hasattr(hopper, "TensorDescriptorIm2Col")


def main(arch: str) -> None:
    with fe.emulated_gpu(arch):
        for name, check in CHECKS.items():
            if name == "column" and not has_columns(arch):
                continue
            try:
                said = "right" if check(arch, np.random.default_rng(0)) else "wrong"
            except (fe.CudaError, fe.CompileError) as error:
                said = str(error)
            print(f"{name}: {said}")


if __name__ == "__main__":
    main(sys.argv[1])

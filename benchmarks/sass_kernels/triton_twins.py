"""Twins of kernels of `sass.py` in Triton, as its tutorials write them.  Needs Triton, no GPU.

A program is compiled for tensors that are aligned to 16 bytes and for sizes that are multiples of
16, which Triton's launcher finds out at each call; ferrule's kernels and nvcc's are for all sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add_1d(a, b, c, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < n
    tl.store(c + at, tl.load(a + at, mask=inside) + tl.load(b + at, mask=inside), mask=inside)


@triton.jit
def saxpy(x, y, factor, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < n
    tl.store(
        y + at, factor * tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside
    )


@triton.jit
def block_softmax(x, y, n, block: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, block)
    values = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row * n + at, powers / tl.sum(powers, axis=0), mask=at < n)


@triton.jit
def block_layer_norm(x, weight, bias, y, eps, n, block: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, block)
    inside = at < n
    values = tl.load(x + row * n + at, mask=inside, other=0.0)
    centred = tl.where(inside, values - tl.sum(values, axis=0) / n, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / n + eps)
    result = centred * scale * tl.load(weight + at, mask=inside) + tl.load(bias + at, mask=inside)
    tl.store(y + row * n + at, result, mask=inside)


@triton.jit
def product(a, b, c, m, n, k, rows: tl.constexpr, columns: tl.constexpr, depth: tl.constexpr):
    across = tl.cdiv(n, columns)
    group = 8 * across
    first = tl.program_id(0) // group * 8
    height = min(tl.cdiv(m, rows) - first, 8)
    inner = tl.program_id(0) % group
    row = (first + inner % height) * rows + tl.arange(0, rows)
    column = inner // height * columns + tl.arange(0, columns)
    at = tl.arange(0, depth)
    of_a = a + row[:, None] % m * k + at[None, :]
    of_b = b + at[:, None] * n + column[None, :] % n
    total = tl.zeros((rows, columns), dtype=tl.float32)
    for done in range(tl.cdiv(k, depth)):
        left = tl.load(of_a, mask=at[None, :] < k - done * depth, other=0.0)
        right = tl.load(of_b, mask=at[:, None] < k - done * depth, other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
        of_a += depth
        of_b += depth * n
    inside = (row[:, None] < m) & (column[None, :] < n)
    tl.store(c + row[:, None] * n + column[None, :], total, mask=inside)


@dataclass(frozen=True, slots=True)
class Twin:
    """A program, the types of its arguments, its constants, and how it is compiled.

    `each`: the elements of a thread, where a program has no loop.
    """

    program: Any
    types: tuple[str, ...]
    constants: dict[str, int]
    options: dict[str, int]
    each: int = 1


PTX_VERSION: Final = 88
"""What the ptxas that comes with Triton reads, and later ones."""
_F, _H = "*fp32", "*bf16"
_TILES: Final = {"rows": 128, "columns": 256, "depth": 32}
TWINS: Final = {
    "add_1d": Twin(add_1d, (_F, _F, _F, "i32"), {"block": 1024}, {"num_warps": 4}, 8),
    "saxpy": Twin(saxpy, (_F, _F, "fp32", "i32"), {"block": 1024}, {"num_warps": 4}, 8),
    "block_softmax": Twin(block_softmax, (_F, _F, "i32"), {"block": 2048}, {"num_warps": 8}, 8),
    "block_layer_norm": Twin(
        block_layer_norm, (_F, _F, _F, _F, "fp32", "i32"), {"block": 2048}, {"num_warps": 8}, 8
    ),
    "sgemm_64": Twin(
        product,
        (_F, _F, _F, "i32", "i32", "i32"),
        {"rows": 64, "columns": 64, "depth": 16},
        {"num_warps": 8, "num_stages": 1},
    ),
    "tensor_core_matmul": Twin(
        product, (_H, _H, _F, "i32", "i32", "i32"), _TILES, {"num_warps": 8, "num_stages": 4}
    ),
}
"""By the name of nvcc's twin."""


def ptx(name: str, arch: str) -> str:
    """The PTX of a twin."""
    twin = TWINS[name]
    names = twin.program.arg_names
    signature = dict(zip(names, twin.types, strict=False)) | dict.fromkeys(
        twin.constants, "constexpr"
    )
    constants = {(names.index(each),): value for each, value in twin.constants.items()}
    attributes = {
        (place,): [["tt.divisibility", 16]]
        for place, type_ in enumerate(twin.types)
        if type_ != "fp32"
    }
    source = ASTSource(twin.program, signature, constants, attributes)
    capability = int("".join(filter(str.isdigit, arch)))
    options = {**twin.options, "ptx_version": PTX_VERSION, "enable_fp_fusion": True}
    return triton.compile(source, GPUTarget("cuda", capability, 32), options).asm["ptx"]

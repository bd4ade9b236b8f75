"""Where the elements of a matrix lie in shared memory for wgmma, as the figures of PTX's manual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Layout:
    """Where element (mn, k) lies: `start`, major-ness, bytes of the swizzle (0: none), offsets."""

    start: int
    trans: bool
    span: int
    leading: int
    stride: int

    def offset(self, mn: int, k: int, size: int) -> int:
        """As the manual's figures have it, before the swizzle."""
        if not self.trans:
            row, byte = mn % 8, k * size
            if not self.span:
                return (
                    self.start
                    + mn // 8 * self.stride
                    + byte // 16 * self.leading
                    + row * 16
                    + byte % 16
                )
            return self.start + mn // 8 * self.stride + row * self.span + byte
        byte = mn * size
        if not self.span:
            return (
                self.start
                + byte // 16 * self.stride
                + k // 8 * self.leading
                + k % 8 * 16
                + byte % 16
            )
        return (
            self.start + byte // self.span * self.leading + k // 8 * self.stride
            + k % 8 * self.span + byte % self.span
        )  # fmt: skip

    def place(self, mn: int, k: int, size: int) -> int:
        """Where it lies: a swizzle of S bytes exchanges lines of 16 bytes by the row of 128."""
        at = self.offset(mn, k, size)
        line = at // 16 ^ (at // 128 & (self.span // 16 - 1) if self.span else 0)
        return line * 16 + at % 16

    def put(self, memory: Array, matrix: Array) -> None:
        """Write a matrix [mn, k] of elements of whole bytes."""
        size = matrix.itemsize
        for mn in range(matrix.shape[0]):
            for k in range(matrix.shape[1]):
                there = self.place(mn, k, size)
                memory[there : there + size] = matrix[mn : mn + 1, k].view(np.uint8)

    @property
    def descriptor(self) -> int:
        mode = {0: 0, 128: 1, 64: 2, 32: 3}[self.span]
        return self.start >> 4 | self.leading >> 4 << 16 | self.stride >> 4 << 32 | mode << 62


def k_major(start: int, span: int, rows: int) -> Layout:
    if span:
        return Layout(start, False, span, 16, 8 * span)
    return Layout(start, False, 0, 128 * (rows // 8) + 256, 128)


def mn_major(start: int, span: int, rows: int) -> Layout:
    if span:
        groups = -(-rows * 2 // span)
        return Layout(start, True, span, 8 * span, groups * 8 * span)
    return Layout(start, True, 0, 128 * (rows // 8) + 128, 128)

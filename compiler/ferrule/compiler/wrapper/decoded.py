"""What a wrapper has decoded when it makes the call: the values behind each parameter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from llvmlite import ir

from ferrule.compiler.sizes import Sizes
from ferrule.specs import Scalar, Sym, Tensor


@dataclass(frozen=True, slots=True)
class DecodedTensor:
    """A tensor that was accepted: its DLTensor and the address of its first element."""

    spec: Tensor
    dl: ir.Value
    data: ir.Value


@dataclass(frozen=True, slots=True)
class DecodedScalar:
    """A number that was accepted: bool as i8, intN as iN, float32 as float, float64 as double."""

    spec: Scalar
    value: ir.Value


Decoded: TypeAlias = DecodedTensor | DecodedScalar


@dataclass(frozen=True, slots=True)
class DecodedCall:
    """All parameters by name, in their order; every symbol's value as i64.

    `sizes` lowers any expression over the symbols.  `values` is the buffer in which a callee
    leaves the numbers that the message of its fault shows.
    """

    params: Mapping[str, Decoded]
    symbols: Mapping[Sym, ir.Value]
    sizes: Sizes
    values: ir.Value

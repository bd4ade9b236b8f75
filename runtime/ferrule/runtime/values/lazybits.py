"""The position of torch's bits for lazy conjugation and negation of a tensor's elements.

DLPack cannot express these changes, so a tensor with a pending one must not be read. To call the
tensor's methods costs as much as to read it; two bits of its dispatch keys tell the same. This
module finds the bits by a search in live tensors, without assumptions. If the search fails, the
methods are called.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from ferrule.specs.deferred import dataclass

_OBJECT: Final = range(16, 64, 8)
_IMPL: Final = range(8, 192, 8)
"""Offsets to search: for the pointer to torch's C++ tensor in a Python tensor (`_OBJECT`), and for
the dispatch keys in the C++ tensor (`_IMPL`)."""


@dataclass(frozen=True, slots=True)
class LazyBits:
    """Where the bits are: `impl` is the offset of the C++ tensor's address in a Python tensor,
    `keys` the offset of a 64-bit word in the C++ tensor, `mask` the bits of a pending change."""

    impl: int
    keys: int
    mask: int

    def pending(self, tensor: Any) -> bool:
        """Whether this tensor has a pending conjugation or negation."""
        return bool(_word(_word(id(tensor) + self.impl) + self.keys) & self.mask)


def lazy_bits() -> LazyBits | None:
    """The bits in this process; None without torch, and if the search failed."""
    torch = sys.modules.get("torch")
    return None if not hasattr(torch, "Tensor") else _found(torch)


@cache
def _found(torch: Any) -> LazyBits | None:
    try:
        plain, negated, conjugated = _samples(torch)
        found = list(_candidates(plain, negated, conjugated))
        return found[0] if len(found) == 1 and _fits(found[0], torch) else None
    except Exception:  # another torch, without these functions or with a mode that is on
        return None


def _samples(torch: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Plain tensors, the same with a pending negation, and the complex ones with conjugation."""
    dtypes = (torch.complex64, torch.complex128, torch.float32, torch.int32, torch.float64)
    plain = [torch.zeros((2, i + 1), dtype=dtype, device="cpu") for i, dtype in enumerate(dtypes)]
    return plain, [torch._neg_view(each) for each in plain], [each.conj() for each in plain[:2]]


def _candidates(plain: list[Any], negated: list[Any], conjugated: list[Any]) -> Iterator[LazyBits]:
    everything = (*plain, *negated, *conjugated)
    for impl in _OBJECT:
        if any(_word(id(each) + impl) != each._cdata for each in everything):
            continue
        for keys in _IMPL:
            bits = [_difference(plain, others, keys) for others in (negated, conjugated)]
            if all(each.bit_count() == 1 for each in bits) and bits[0] != bits[1]:
                yield LazyBits(impl, keys, bits[0] | bits[1])


def _difference(plain: list[Any], others: list[Any], keys: int) -> int:
    """The bits in which the tensors of each pair differ; 0 if not all pairs differ alike."""
    found = {
        _word(one._cdata + keys) ^ _word(other._cdata + keys)
        for one, other in zip(plain, others, strict=False)
    }
    return found.pop() if len(found) == 1 else 0


def _fits(bits: LazyBits, torch: Any) -> bool:
    """Check the bits on tensors that are made in other ways: bits and methods must agree."""
    z = torch.zeros(3, dtype=torch.complex64, device="cpu")
    x = torch.zeros((3, 4), device="cpu")
    made = [z, z.conj(), z.conj().imag, z.imag, z.conj().conj(), z.conj().resolve_conj()]
    made += [x, x.t()[1:], x.clone().requires_grad_(), torch._neg_view(x)[1:], x.to(torch.bool)]
    made += [torch.nn.Parameter(x), torch._neg_view(torch._neg_view(x)), torch._neg_view(z).conj()]
    return all(bits.pending(each) == (each.is_neg() or each.is_conj()) for each in made)


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value

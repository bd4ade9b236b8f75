"""Where torch keeps what it does to a tensor's elements as it reads them: conjugation, negation.

DLPack cannot say either, so a tensor of which one is pending must not be read. To ask the tensor
costs as much as to read it; two bits of its dispatch keys tell the same. Where they lie is found
by looking at live tensors, and nothing is taken for granted: where it is not found, they are asked.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

_OBJECT: Final = range(16, 64, 8)
_IMPL: Final = range(8, 192, 8)
"""Where the pointer to torch's own tensor is looked for in one of Python, and in that the keys."""


@dataclass(frozen=True, slots=True)
class LazyBits:
    """A tensor has the address of torch's own at `impl`; in that `keys` are 64 bits, of which those
    of `mask` say that something is pending."""

    impl: int
    keys: int
    mask: int

    def pending(self, tensor: Any) -> bool:
        """Whether torch conjugates or negates what is in the memory of this tensor."""
        return bool(_word(_word(id(tensor) + self.impl) + self.keys) & self.mask)


def lazy_bits() -> LazyBits | None:
    """The bits in this process; None without torch, and where they were not found."""
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
    """Tensors with nothing pending, those negated, and the complex ones among them conjugated."""
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
    """In which bits all pairs differ alike; 0 where they do not."""
    found = {
        _word(one._cdata + keys) ^ _word(other._cdata + keys)
        for one, other in zip(plain, others, strict=False)
    }
    return found.pop() if len(found) == 1 else 0


def _fits(bits: LazyBits, torch: Any) -> bool:
    """Whether tensors that are made in other ways have the bits that they say."""
    z = torch.zeros(3, dtype=torch.complex64, device="cpu")
    x = torch.zeros((3, 4), device="cpu")
    made = [z, z.conj(), z.conj().imag, z.imag, z.conj().conj(), z.conj().resolve_conj()]
    made += [x, x.t()[1:], x.clone().requires_grad_(), torch._neg_view(x)[1:], x.to(torch.bool)]
    made += [torch.nn.Parameter(x), torch._neg_view(torch._neg_view(x)), torch._neg_view(z).conj()]
    return all(bits.pending(each) == (each.is_neg() or each.is_conj()) for each in made)


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value

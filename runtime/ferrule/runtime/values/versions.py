"""The versions of torch's tensors, which count how often each was written.

Autograd keeps tensors for the backward pass, and compares their versions then: a tensor that was
overwritten in between gives an error instead of wrong gradients. So a call counts each torch tensor
that it may write. torch's own function for it costs as much as several calls; the counter itself is
a word of memory. This module finds it by a search in live tensors, without assumptions. If the
search fails, torch's function is called.
"""

from __future__ import annotations

import ctypes
import dataclasses
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

from ferrule import specs
from ferrule.specs.deferred import dataclass

_OBJECT: Final = range(16, 64, 8)
_IMPL: Final = range(16, 128, 8)
_COUNTER: Final = range(8, 32, 4)
"""Offsets to search: for the pointer to torch's C++ tensor in a Python tensor (`_OBJECT`), for the
pointer to its counter (`_IMPL`), and for the number in the counter (`_COUNTER`)."""

# A word that has the right number once may do so by chance; it must follow several changes.
_ROUNDS: Final = 3


@dataclass(frozen=True, slots=True)
class VersionWords:
    """Where a tensor's version is: `impl` is the offset of the C++ tensor's address in a Python
    tensor, `counter` the offset of the counter's address in the C++ tensor, null for a tensor that
    has no version, `number` the offset of a 32-bit number in the counter."""

    impl: int
    counter: int
    number: int

    def of(self, tensor: Any) -> int | None:
        """The version of a tensor; None if it has none."""
        counter = _word(_word(id(tensor) + self.impl) + self.counter)
        return _number(counter + self.number) if counter else None


def version_words() -> VersionWords | None:
    """The words in this process; None without torch, and if the search failed."""
    torch = sys.modules.get("torch")
    return None if not hasattr(torch, "Tensor") else _found(torch)


def count_write(tensor: Any) -> None:
    """Count a write of a torch tensor; nothing for one without a version, as in inference mode."""
    # It is there, since one of its tensors is.
    torch = sys.modules["torch"]
    if not tensor.is_inference():
        torch.autograd.graph.increment_version(tensor)


def count_writes(params: Sequence[specs.Param], values: Sequence[Any]) -> None:
    """Count the torch tensors of a call that its function may write."""
    for tensor in written_tensors(params, values):
        count_write(tensor)


def written_tensors(params: Sequence[specs.Param], values: Sequence[Any]) -> Iterator[Any]:
    """The torch tensors among a call's values that its function may write, also inside of tuples
    and dataclasses; `params` are the parameters of the values."""
    torch = sys.modules.get("torch")
    kind = getattr(torch, "Tensor", None)
    if kind is not None:
        for param, value in zip(params, values, strict=False):
            yield from _written(kind, param, value)


def _written(kind: type[Any], param: specs.Param, value: Any) -> Iterator[Any]:
    match param:
        case specs.Tensor(read_only=False):
            if isinstance(value, kind):
                yield value
        case specs.Optional(item=item):
            yield from _written(kind, item, value)
        case specs.Union(members=members):
            found = (tensor for each in members for tensor in _written(kind, each, value))
            yield from {id(tensor): tensor for tensor in found}.values()
        case specs.Tuple(items=items):
            for item, part in zip(items, _parts(value, param), strict=False):
                yield from _written(kind, item, part)


def _parts(value: Any, param: specs.Tuple) -> Sequence[Any]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, each.name) for each in dataclasses.fields(value)]
    if isinstance(value, (tuple, list)):
        return value
    return [getattr(value, item.name, None) for item in param.items] if param.fields else ()


@cache
def _found(torch: Any) -> VersionWords | None:
    try:
        found = list(_candidates(torch))
        return found[0] if len(found) == 1 and _fits(found[0], torch) else None
    except Exception:  # another torch, without these functions or with a mode that is on
        return None


def _candidates(torch: Any) -> Iterator[VersionWords]:
    """Words that are the same for a tensor and its views, and another for its data; the number
    behind it is the version of each tensor, over several writes."""
    tensors = [torch.zeros(i + 2, device="cpu") for i in range(4)]
    for number, tensor in enumerate(tensors):
        for _ in range(number):
            tensor.add_(1)
    with torch.inference_mode():
        without = torch.zeros(3, device="cpu")
    places = [at for at in _OBJECT if all(_word(id(t) + at) == t._cdata for t in tensors)]
    shared = [at for at in _IMPL if all(_is_shared(t, at) for t in tensors)]
    for counter in shared:
        if _word(without._cdata + counter) != 0:
            continue
        for number in _COUNTER:
            if all(_number(_word(t._cdata + counter) + number) == t._version for t in tensors):
                yield from (VersionWords(impl, counter, number) for impl in places)


def _is_shared(tensor: Any, at: int) -> bool:
    """Whether the word is a pointer that a tensor has in common with its views, not its data."""
    word, view, data = (_word(each._cdata + at) for each in (tensor, tensor[:1], tensor.data))
    other = _word(tensor.detach()._cdata + at)
    # An address of the heap: what is read through it is there.
    return word > 0xFFFF and word % 8 == 0 and word == view == other != data and data > 0xFFFF


def _fits(words: VersionWords, torch: Any) -> bool:
    """Check the words on tensors that are made in other ways, before and after writes."""
    x = torch.zeros((3, 4), device="cpu")
    made = [x, x.t()[1:], x.clone().requires_grad_(), torch.nn.Parameter(x.clone()), x.to_sparse()]
    made += [torch.zeros(0), torch.zeros((), dtype=torch.complex64), x.expand(2, 3, 4)]
    for _ in range(_ROUNDS):
        if any(words.of(each) != each._version for each in made):
            return False
        for each in made:
            torch.autograd.graph.increment_version(each)
    with torch.inference_mode():
        return words.of(torch.zeros(2, device="cpu")) is None


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _number(address: int) -> int:
    return ctypes.c_uint32.from_address(address).value

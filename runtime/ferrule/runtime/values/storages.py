"""The storages of torch tensors, which own their memory; a tensor can exchange its storage.

A DLPack export of a torch tensor holds the tensor, not its memory. `t.data = other`, `t.set_(…)`
and `t.resize_(…)` give the tensor another storage or shape, and the address in the export may then
be freed memory. Therefore code that keeps a tensor between calls keeps an alias: another tensor
with its own shape and its own reference to the storage. If the storage itself is resized or moved,
its memory is freed even so; two words of the storage show this. Their offsets are found by a search
in live storages, without assumptions. If the search fails, there is no check.
"""

from __future__ import annotations

import ctypes
import dataclasses
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from ferrule.specs.deferred import dataclass

_WORDS: Final = range(8, 96, 8)
"""The offsets in a torch storage to search for its address and its size."""


@dataclass(frozen=True, slots=True)
class StorageWords:
    """The offsets, in a storage, of the address of its memory and of its size in bytes."""

    data: int
    size: int

    def of(self, storage: Any) -> tuple[int, int, int, int]:
        """The address and the current value of each of the two words."""
        data, size = (storage._cdata + offset for offset in (self.data, self.size))
        return data, _word(data), size, _word(size)


def storage_words() -> StorageWords | None:
    """The offsets in this process; None without torch, and if the search failed."""
    torch = sys.modules.get("torch")
    return None if not hasattr(torch, "UntypedStorage") else _found(torch)


def alias(value: Any) -> Any:
    """The same value, with each torch tensor replaced by an alias of the same memory.

    It looks into tuples, lists and dicts; values that are not tensors stay unchanged.
    """
    torch = sys.modules.get("torch")
    return value if not hasattr(torch, "Tensor") else _aliased(torch, value)


def storages_of(value: Any) -> list[Any]:
    """The storage of each torch tensor in a value, also inside containers."""
    torch = sys.modules.get("torch")
    if not hasattr(torch, "Tensor"):
        return []
    found = (_storage(tensor) for tensor in _tensors(torch, value))
    return [storage for storage in found if storage is not None]


def _aliased(torch: Any, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return _detached(torch, value)
    if type(value) in (tuple, list):
        return type(value)(_aliased(torch, item) for item in value)
    if type(value) is dict:
        return {key: _aliased(torch, item) for key, item in value.items()}
    return value


def _detached(torch: Any, tensor: Any) -> Any:
    """An alias of the tensor's memory; the tensor itself if a subclass returns something else."""
    # Otherwise a subclass could answer with something else than an alias.
    with torch._C.DisableTorchFunctionSubclass():
        found = tensor.detach()
    return found if isinstance(found, torch.Tensor) else tensor


def _tensors(torch: Any, value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
        return
    for item in _items(value):
        yield from _tensors(torch, item)


def _items(value: Any) -> Iterator[Any]:
    """The items of a container, or the fields of a dataclass."""
    if isinstance(value, (tuple, list)):
        yield from value
    elif isinstance(value, Mapping):
        yield from value.values()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from (getattr(value, field.name, None) for field in dataclasses.fields(value))


def _storage(tensor: Any) -> Any:
    """The storage of a tensor; None for a tensor without one, such as a sparse tensor."""
    try:
        return tensor.untyped_storage()
    except Exception:  # a subclass may raise anything; DLPack decides later about the tensor
        return None


@cache
def _found(torch: Any) -> StorageWords | None:
    try:
        storages = list(_samples(torch))
        data = [at for at in _WORDS if all(_is(each, at, each.data_ptr()) for each in storages)]
        size = [at for at in _WORDS if all(_is(each, at, each.nbytes()) for each in storages)]
        found = StorageWords(data[0], size[0]) if len(data) == len(size) == 1 else None
        return found if found is not None and _fits(found, torch) else None
    except Exception:  # another torch, without these functions or with a mode that is on
        return None


def _samples(torch: Any) -> Iterator[Any]:
    """Storages with memory of torch, and with foreign memory that a Python object owns."""
    for size in (24, 616, 8008):
        yield torch.zeros(size, dtype=torch.uint8, device="cpu").untyped_storage()
        yield torch.frombuffer(bytearray(size), dtype=torch.uint8).untyped_storage()


def _is(storage: Any, at: int, wanted: int) -> bool:
    return _word(storage._cdata + at) == wanted


def _fits(words: StorageWords, torch: Any) -> bool:
    """Whether the words change when a storage is resized."""
    storage = torch.zeros(5, dtype=torch.float64, device="cpu").untyped_storage()
    for size in (80, 0, 40):
        storage.resize_(size)
        if not (_is(storage, words.data, storage.data_ptr()) and _is(storage, words.size, size)):
            return False
    return True


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value

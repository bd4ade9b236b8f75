"""What keeps the memory of torch's tensors: their storages, which a tensor can lose or exchange.

torch gives out a tensor by DLPack as the tensor itself, not as its memory. `t.data = other`,
`t.set_(…)` and `t.resize_(…)` give the tensor another storage or shape, and whoever had it from
DLPack is left with an address that may be free. Whoever keeps a tensor between calls therefore
keeps an alias, which has a shape and a hold on the storage of its own. A storage that is itself
resized or moved loses its memory whoever holds it; the words that say so are found by looking at
live storages, and nothing is taken for granted: where they are not found, nobody looks.
"""

from __future__ import annotations

import ctypes
import dataclasses
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

_WORDS: Final = range(8, 96, 8)
"""Where in a storage of torch its address and its size are looked for."""


@dataclass(frozen=True, slots=True)
class StorageWords:
    """Where a storage keeps the address of its memory, and its size in bytes."""

    data: int
    size: int

    def of(self, storage: Any) -> tuple[int, int, int, int]:
        """The addresses of both words, each with what it holds now."""
        data, size = (storage._cdata + offset for offset in (self.data, self.size))
        return data, _word(data), size, _word(size)


def storage_words() -> StorageWords | None:
    """The words in this process; None without torch, and where they were not found."""
    torch = sys.modules.get("torch")
    return None if not hasattr(torch, "UntypedStorage") else _found(torch)


def alias(value: Any) -> Any:
    """The same value, in which each tensor of torch is one of its own over the same memory.

    Tuples, lists and dicts are walked; whatever is no tensor stays as it is.
    """
    torch = sys.modules.get("torch")
    return value if not hasattr(torch, "Tensor") else _aliased(torch, value)


def storages_of(value: Any) -> list[Any]:
    """The storage of each tensor of torch in a value, those inside of containers too."""
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
    """A tensor over the same memory, or the tensor where its own code gives something else."""
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
    """What is in a container or in the fields of a dataclass."""
    if isinstance(value, (tuple, list)):
        yield from value
    elif isinstance(value, Mapping):
        yield from value.values()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from (getattr(value, field.name, None) for field in dataclasses.fields(value))


def _storage(tensor: Any) -> Any:
    """That of a tensor; None for one that has none, such as a sparse one."""
    try:
        return tensor.untyped_storage()
    except Exception:  # whatever a subclass raises: DLPack judges the tensor
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
    """Storages of torch's own memory, and of another's, whose owner is not at its address."""
    for size in (24, 616, 8008):
        yield torch.zeros(size, dtype=torch.uint8, device="cpu").untyped_storage()
        yield torch.frombuffer(bytearray(size), dtype=torch.uint8).untyped_storage()


def _is(storage: Any, at: int, wanted: int) -> bool:
    return _word(storage._cdata + at) == wanted


def _fits(words: StorageWords, torch: Any) -> bool:
    """Whether a storage that is resized says so."""
    storage = torch.zeros(5, dtype=torch.float64, device="cpu").untyped_storage()
    for size in (80, 0, 40):
        storage.resize_(size)
        if not (_is(storage, words.data, storage.data_ptr()) and _is(storage, words.size, size)):
            return False
    return True


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value

"""The direct entries of this process: the first call that needs a key makes the entry for it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

import tvm_ffi

from ferrule.runtime.calls.heaptype import HeapType
from ferrule.runtime.entry.bound import BOUND_NAME, Binder, bound_text
from ferrule.runtime.entry.buffers import RELEASE_BUFFERS
from ferrule.runtime.entry.code import (
    ENTRY_NAME,
    GATE,
    entry_text,
)
from ferrule.runtime.entry.invoke import SET_ALLOCATOR, UNPACK
from ferrule.runtime.entry.key import EntryKey
from ferrule.runtime.entry.numbers import NUMBER
from ferrule.runtime.entry.objects import FIELDS, HANDLE, learned_symbol
from ferrule.runtime.entry.python import python_symbols
from ferrule.runtime.entry.readers import Key, Reader
from ferrule.runtime.entry.structs import instance_layout
from ferrule.runtime.entry.support import (
    BIND,
    BYTES,
    DROP_ERROR,
    FAIL,
    FAIL_FUNCTION,
    FINISH,
    RAISE,
    TAKE,
    TAKE_FUNCTION,
    TEXT,
    packed_text,
    support_text,
)
from ferrule.runtime.entry.surroundings import Surroundings, find_surroundings, torch_is_there
from ferrule.runtime.entry.tensors import READ_TENSOR
from ferrule.runtime.entry.values import FFI_ARRAY
from ferrule.runtime.forks import ForkLock
from ferrule.runtime.linking.engine import Engine, host_triple, libtvm_ffi
from ferrule.runtime.llvm.layouts import Layout
from ferrule.runtime.llvm.native import compile_native
from ferrule.runtime.values.learned import table

_SHARED: Final = (
    BIND,
    TEXT,
    BYTES,
    RAISE,
    FINISH,
    DROP_ERROR,
    READ_TENSOR,
    RELEASE_BUFFERS,
    NUMBER,
    FIELDS,
    HANDLE,
)


class Support:
    """The code that entries share; there is one for the process with torch and one without."""

    __slots__ = ("_engines", "_functions", "has_compact_ints", "symbols")

    def __init__(self, surroundings: Surroundings, instance: Layout) -> None:
        self.has_compact_ints: Final = surroundings.has_compact_ints
        packed = Engine.load(compile_native("packed", packed_text(host_triple()), optimize=False))
        self._functions = [_function(packed, name) for name in (TAKE, FAIL)]
        array = tvm_ffi.get_global_func("ffi.Array")
        self._functions.append(array)
        symbols = {**python_symbols(), **surroundings.symbols}
        symbols[TAKE_FUNCTION], symbols[FAIL_FUNCTION] = map(id, self._functions[:2])
        symbols[FFI_ARRAY] = array.__chandle__()
        if (allocator := _set_allocator()) is not None:
            symbols[SET_ALLOCATOR] = allocator
        text = support_text(host_triple(), surroundings, instance)
        shared = Engine.load(compile_native("support", text, optimize=False), symbols)
        self._engines = (packed, shared)
        symbols.update({name: shared.address(name) for name in _SHARED})
        self.symbols: Final[Mapping[str, int]] = symbols


def _function(engine: Engine, name: str) -> Any:
    function = tvm_ffi.Function.__from_extern_c__(engine.address(name), keep_alive_object=engine)
    function.release_gil = False
    return function


@cache
def _set_allocator() -> int | None:
    found = getattr(libtvm_ffi(), SET_ALLOCATOR, None)
    return None if found is None else ctypes.cast(found, ctypes.c_void_p).value


class Entries:
    """The entries for callables of one type; calls that they cannot make go to a gate.

    Entries live as long as this object, so a user of their addresses must hold it. An entry reads
    only tensors of packages that were imported before the entry was made; later entries read
    tensors of packages, such as torch, that were imported in the meantime.
    """

    def __init__(self, heap: HeapType, gates: Mapping[bool, int], unpack: int) -> None:
        self._heap: Final = heap
        self._instance: Final = instance_layout(heap)
        self._gates: Final = gates
        self._unpack: Final = unpack
        # A finaliser or a signal handler may ask for an entry while its own thread makes the same
        # one: the lock is re-entrant, and the entry that is stored first stays.
        self._lock: Final = ForkLock()
        self._supports: Final[dict[bool, tuple[Surroundings, Support]]] = {}
        self._binders: Final[dict[tuple[bool, bool], Binder]] = {}
        self._engines: Final[dict[tuple[bool, EntryKey], Engine]] = {}

    def address(self, key: EntryKey) -> int | None:
        """The entry for this key; None if it could read no argument at all of some parameter."""
        if key.readers is None:
            return None
        with self._lock:
            torch = torch_is_there()
            surroundings, support = self._support(torch)
            readers = _readable(key.readers, surroundings)
            if readers is None or (key.allocates and SET_ALLOCATOR not in support.symbols):
                return None
            known = replace(key, readers=readers)
            engine = self._engines.get((torch, known))
            if engine is None:
                made = self._load(readers, known, support)
                engine = self._engines.setdefault((torch, known), made)
            return engine.address(f"__tvm_ffi_{ENTRY_NAME}")

    def binder(self, *, unpacks: bool) -> Binder:
        """The binder for functions whose result is unpacked, or for the others."""
        with self._lock:
            torch = torch_is_there()
            surroundings, support = self._support(torch)
            key = (surroundings.has_torch and SET_ALLOCATOR in support.symbols, unpacks)
            if key not in self._binders:
                text = bound_text(host_triple(), torch=key[0], unpacks=unpacks)
                code = compile_native(BOUND_NAME, text, optimize=False)
                engine = Engine.load(code, {**support.symbols, UNPACK: self._unpack})
                address = engine.address(f"__tvm_ffi_{BOUND_NAME}")
                self._binders.setdefault(key, Binder(address, (engine, support)))
            return self._binders[key]

    def _support(self, torch: bool) -> tuple[Surroundings, Support]:
        if torch not in self._supports:
            found = find_surroundings(self._heap.type, self._heap.handle_offset)
            self._supports.setdefault(torch, (found, Support(found, self._instance)))
        return self._supports[torch]

    def _load(self, readers: Sequence[Reader], key: EntryKey, support: Support) -> Engine:
        text = entry_text(
            readers, key, self._instance, host_triple(), compact_ints=support.has_compact_ints
        )
        own = {GATE: self._gates[key.unpacks], UNPACK: self._unpack}
        code = compile_native(ENTRY_NAME, text, optimize=False)
        tables = {learned_symbol(key): table(key).address for key in _learned(readers)}
        return Engine.load(code, {**support.symbols, **tables, **own})


def _learned(readers: Sequence[Reader]) -> Iterator[Key]:
    for reader in readers:
        if reader.learned:
            yield reader.learned
        yield from _learned(reader.items)


def _readable(readers: tuple[Reader, ...], surroundings: Surroundings) -> tuple[Reader, ...] | None:
    """The readers without forms that this process cannot read; None if one has no form left."""
    found: list[Reader] = []
    for reader in readers:
        items = _readable(reader.items, surroundings)
        forms = tuple(form for form in reader.forms if form in surroundings.forms)
        if items is None or not forms:
            return None
        found.append(replace(reader, forms=forms, items=items))
    return tuple(found)

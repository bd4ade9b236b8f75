"""The driver's state: devices, contexts, and the objects that handles stand for.

A handle is a number that no two objects of a process ever share, so that one of an object that is
gone is refused, also where it is from an emulated GPU before this one.
"""

from __future__ import annotations

import ctypes
import itertools
import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, Final, TypeVar

from ferrule.emulator.driver.allocations import Allocation, Allocations, Kind
from ferrule.emulator.driver.machines import Machine, MakeMachine
from ferrule.emulator.driver.properties import attributes, properties
from ferrule.emulator.driver.results import DriverError, Result, name_of, words_of
from ferrule.specs.deferred import dataclass

_Kind = TypeVar("_Kind")
_Text = ctypes.Array[ctypes.c_char]

_HANDLES: Final = itertools.count(0x10000, 0x10)
"""Of all drivers of the process: an object of an earlier one is never taken for one of a later."""

_MOST_TEXT: Final = 900
"""Bytes of an error's text: launchers of others copy it into arrays of 1,024."""
_LONG_WORD: Final = re.compile(r"(\w{48})\w{32,}(\w{16})")
"""Names of C++'s templates, of which the beginning and the end say which it is."""


def _fitting(text: str) -> bytes:
    """The text of an error, in which long names are shortened where it is too long."""
    if len(text.encode()) > _MOST_TEXT:
        text = _LONG_WORD.sub(r"\1...\2", text)
    return text.encode()[:_MOST_TEXT]


LIMITS: Final = {0: 1024, 1: 1 << 20, 2: 8 << 20, 3: 2, 4: 2048, 5: 64, 6: 0}
"""`CUlimit`, with what each is at first."""
STACK_SIZE: Final = 0  # CU_LIMIT_STACK_SIZE


@dataclass(eq=False, slots=True)
class Context:
    """A context of a device."""

    handle: int
    device: Device
    primary: bool
    flags: int = 0
    alive: bool = True
    limits: dict[int, int] = field(default_factory=dict)
    cache: int = 0
    peers: set[int] = field(default_factory=set)
    owned: dict[int, Any] = field(default_factory=dict)
    """Modules, streams, events that go with it, by their handles."""


class Device:
    """One of the emulated GPUs."""

    def __init__(self, ordinal: int, arch: str) -> None:
        self.ordinal: Final = ordinal
        self.arch: Final = arch
        self.attributes: Final[Mapping[int, int]] = attributes(arch, ordinal)
        self.primary: Context | None = None
        self.retained = 0
        self.flags = 0
        self.pools: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """As programs print it."""
        return f"Emulated {properties(self.arch).model}"

    @property
    def total_memory(self) -> int:
        """Bytes."""
        return properties(self.arch).memory << 30


class Driver:
    """The state of a process's emulated GPUs, all of one architecture."""

    def __init__(self, arch: str, devices: int, make_machine: MakeMachine) -> None:
        self.arch: Final = arch
        self.devices: Final = tuple(Device(i, arch) for i in range(devices))
        self.handles: Final[dict[int, Any]] = {}
        self.gone: Final[set[int]] = set()
        self.allocations: Final = Allocations()
        self.captures: Final[dict[int, Any]] = {}
        self.initialised = False
        self.forked = False
        self.used = 0
        self.symbols: dict[str, int] = {}
        """Addresses of the library's functions."""
        self._make: Final = make_machine
        self._threads: Final = Threads()
        self._numbers: Final = itertools.count(1)
        self._said: Final[dict[int, _Text]] = {}
        self._constants: Final[dict[str, _Text]] = {}
        # A program may still look at the text of an error before the last one.
        self._texts: Final[deque[_Text]] = deque(maxlen=1024)

    @cached_property
    def machine(self) -> Machine:
        """The machine, which is made when it is first needed."""
        return self._make()

    @cached_property
    def written(self) -> Callable[[int, int], None] | None:
        """How the machine is told that the host has written to memory, if it wants to know."""
        return getattr(self.machine.memory, "written", None)

    # ---- what has to be before a call ----

    def check_initialised(self) -> None:
        """NOT_INITIALIZED before cuInit, and in a process forked from one that called it."""
        if not self.initialised:
            raise DriverError(Result.NOT_INITIALIZED, "cuInit was not called")
        if self.forked:
            raise DriverError(
                Result.NOT_INITIALIZED, "the process was forked from one that had called cuInit"
            )

    def current(self) -> Context:
        """The context that is current on the calling thread."""
        if not self.initialised or self.forked:
            self.check_initialised()
        stack = self._threads.here().contexts
        found = stack[-1] if stack else None
        if found is None:
            raise DriverError(Result.INVALID_CONTEXT, "no context is current on this thread")
        if not found.alive:
            raise DriverError(Result.CONTEXT_IS_DESTROYED, "the current context was destroyed")
        return found

    def check_undisturbed(self) -> Context:
        """That a call which waits for everything, or allocates, is in the way of no capture."""
        context = self.current()
        if self.captures and self.thread.capture_mode != 2:
            self.disturb()
        return context

    def disturb(self) -> None:
        """End captures that this call is in the way of, as their mode says, and refuse it."""
        mine = self.thread
        found = [
            each
            for each in self.captures.values()
            # A global capture is disturbed by every thread, one of mode thread-local by its own.
            if each.mode == 0 or (each.mode == 1 and each.thread is mine)
        ]
        if mine.capture_mode == 1:
            found = [each for each in found if each.thread is mine]
        for each in found:
            each.invalid = True
        if found:
            raise DriverError(
                Result.STREAM_CAPTURE_UNSUPPORTED, "a stream is being captured into a graph"
            )

    # ---- threads ----

    @property
    def thread(self) -> Thread:
        """The state of the calling thread."""
        return self._threads.here()

    # ---- handles ----

    def new(self, thing: Any, owner: Context | None = None) -> int:
        """A handle for an object; it goes with its owner."""
        handle = next(_HANDLES)
        self.handles[handle] = thing
        if owner is not None:
            owner.owned[handle] = thing
        return handle

    def find(self, handle: int, kind: type[_Kind], what: str) -> _Kind:
        """The object of a handle; INVALID_HANDLE where that is none of this kind."""
        found = self.handles.get(handle)
        if type(found) is kind:
            return found
        if kind is Context and handle in self.gone:
            raise DriverError(Result.CONTEXT_IS_DESTROYED, f"the {what} was destroyed")
        if not handle:
            raise DriverError(Result.INVALID_HANDLE, f"the {what} is null")
        was = "was destroyed" if handle in self.gone else "is none of this driver's"
        raise DriverError(Result.INVALID_HANDLE, f"the {what} {handle:#x} {was}")

    def forget(self, handle: int, owner: Context | None = None) -> Any:
        """A handle that stands for nothing from now on."""
        self.gone.add(handle)
        if owner is not None:
            owner.owned.pop(handle, None)
        return self.handles.pop(handle)

    def device(self, ordinal: int) -> Device:
        """A device; INVALID_DEVICE where there is none."""
        if 0 <= ordinal < len(self.devices):
            return self.devices[ordinal]
        have = f"there are {len(self.devices)}, from 0 on"
        raise DriverError(Result.INVALID_DEVICE, f"there is no device {ordinal}: {have}")

    def next_number(self) -> int:
        """A number that nothing else of this driver has."""
        return next(self._numbers)

    # ---- contexts ----

    def new_context(self, device: Device, *, primary: bool, flags: int = 0) -> Context:
        """A context that is not current anywhere yet."""
        context = Context(0, device, primary, flags)
        context.handle = self.new(context)
        return context

    def primary(self, device: Device) -> Context:
        """The device's primary context, made if it is not there."""
        if device.primary is None:
            device.primary = self.new_context(device, primary=True, flags=device.flags)
        return device.primary

    def destroy(self, context: Context) -> None:
        """A context goes, with all that is in it."""
        # A copy: to close one thing takes others out.
        for handle, thing in tuple(context.owned.items()):
            close = getattr(thing, "close", None)
            if close is not None:
                close(self)
            self.forget(handle)
        context.owned.clear()
        for each in self.allocations:
            if each.context is context:
                self.release(each.address)
        context.alive = False
        self.forget(context.handle)

    # ---- memory ----

    def allocate(
        self, size: int, kind: Kind, context: Context, flags: int = 0, pool: Any = None
    ) -> int:
        """New memory; OUT_OF_MEMORY where the device has no more."""
        if self.used + size > context.device.total_memory:
            raise DriverError(
                Result.OUT_OF_MEMORY,
                f"{size} bytes are wanted, and {self.used} of {context.device.total_memory} in use",
            )
        address: int = self.machine.memory.allocate(size)
        if kind in (Kind.HOST, Kind.MANAGED) and self.written is not None:
            # Programs write to it themselves, and nobody is told.
            self.written(address, size)
        number = self.next_number()
        self.allocations.add(Allocation(address, size, kind, context, number, flags, pool))
        self.used += size
        if pool is not None:
            pool.used += size
            pool.high = max(pool.high, pool.used)
        return address

    def release(self, address: int) -> None:
        """Take memory back; INVALID_VALUE for what was not given out."""
        found = self.allocations.remove(address)
        if found.kind is not Kind.VARIABLE:
            self.machine.memory.free(address)
            self.used -= found.size
            if found.pool is not None:
                found.pool.used -= found.size

    def add_variable(self, address: int, size: int, context: Context) -> None:
        """A variable of a module, which is memory that programs may copy to and from."""
        if self.allocations.at_start(address) is None:
            number = self.next_number()
            self.allocations.add(Allocation(address, size, Kind.VARIABLE, context, number))

    # ---- errors ----

    def refused(self, symbol: str, result: Result, sentence: str) -> int:
        """Keep what a refused call has to say, for cuGetErrorString; gives the result."""
        words = words_of(result) or ""
        text = f"{words} ({symbol}: {sentence})" if sentence else words
        self._said[result] = said = ctypes.create_string_buffer(_fitting(text))
        self._texts.append(said)
        return int(result)

    def said(self, result: int) -> int:
        """The address of the text for a result: that of the last call that ended with it, or the
        general one; 0 if there is no such result."""
        found = self._said.get(result)
        if found is not None:
            return ctypes.addressof(found)
        words = words_of(result)
        return 0 if words is None else self.kept(words)

    def named(self, result: int) -> int:
        """The address of a result's name, 0 if there is no such result."""
        name = name_of(result)
        return 0 if name is None else self.kept(name)

    def kept(self, text: str) -> int:
        """The address of a text that stays where it is as long as the driver."""
        found = self._constants.get(text)
        if found is None:
            made = ctypes.create_string_buffer(text.encode())
            found = self._constants.setdefault(text, made)
        return ctypes.addressof(found)

    # ---- the end ----

    def close(self) -> None:
        """Everything goes; no function may be called afterwards."""
        for context in [each for each in self.handles.values() if isinstance(each, Context)]:
            self.destroy(context)
        self._threads.close()


@dataclass(slots=True)
class Thread:
    """A thread's own state."""

    contexts: list[Context] = field(default_factory=list)
    capture_mode: int = 0


class Threads:
    """The state of each thread that calls, found by a key of pthread's."""

    def __init__(self) -> None:
        # PyDLL: these calls keep the GIL, and take a fraction of a microsecond.
        library = ctypes.PyDLL(None)
        self._key: Final = ctypes.c_uint()
        if library.pthread_key_create(ctypes.byref(self._key), None) != 0:
            raise DriverError(Result.OPERATING_SYSTEM, "the process has no more pthread keys")
        self._get, self._set = library.pthread_getspecific, library.pthread_setspecific
        self._get.restype, self._get.argtypes = ctypes.c_size_t, [ctypes.c_uint]
        self._set.argtypes = [ctypes.c_uint, ctypes.c_size_t]
        self._delete = library.pthread_key_delete
        self._number = self._key.value
        self._threads: Final[list[Thread]] = []

    def here(self) -> Thread:
        """That of the calling thread."""
        found: int = self._get(self._number)
        if not found:
            self._threads.append(Thread())
            found = len(self._threads)
            self._set(self._number, found)
        return self._threads[found - 1]

    def close(self) -> None:
        """Give the key back; nothing may be asked afterwards."""
        self._delete(self._number)

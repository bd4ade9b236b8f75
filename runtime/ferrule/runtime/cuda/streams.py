"""Streams and events of a GPU.

`with stream:` makes a stream the current one of tvm-ffi's callers on its device: compiled functions
without a stream parameter launch there.
"""

from __future__ import annotations

import ctypes
from types import TracebackType
from typing import Any
from weakref import finalize

import tvm_ffi

from ferrule.runtime.cuda.driver import Hold, call, library, on_device

# CU_STREAM_NON_BLOCKING, CU_EVENT_DISABLE_TIMING and CUDA_ERROR_NOT_READY of cuda.h.
_NON_BLOCKING = 1
_DISABLE_TIMING = 2
_NOT_READY = 600


class Stream:
    """A stream of a GPU, destroyed when it goes. A compiled function takes it for a stream."""

    def __init__(self, device: int = 0, *, blocking: bool = False) -> None:
        """`blocking`: whether it waits for the legacy default stream, and that for it."""
        hold = Hold(device)
        self.device = device
        self._handle = ctypes.c_void_p()
        flags = 0 if blocking else _NON_BLOCKING
        with on_device(device):
            call("cuStreamCreate", ctypes.byref(self._handle), flags)
        finalize(self, hold.release, "cuStreamDestroy_v2", self._handle)
        self._entered: list[Any] = []

    @property
    def handle(self) -> int:
        """The driver's CUstream."""
        return self._handle.value or 0

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol by which packages take each other's streams."""
        # The version of the protocol, and the stream.
        return 0, self.handle

    def synchronize(self) -> None:
        """Wait for all that it was given; CudaError where something of it failed."""
        with on_device(self.device):
            call("cuStreamSynchronize", self._handle)

    def wait(self, event: Event) -> None:
        """Let what it is given from now on wait for an event."""
        _check_event(event)
        with on_device(self.device):
            call("cuStreamWaitEvent", self._handle, event._handle, 0)

    def record(self, event: Event | None = None) -> Event:
        """Record an event behind all that it was given; a new one unless one is named."""
        event = Event(self.device) if event is None else _check_event(event)
        with on_device(self.device):
            call("cuEventRecord", event._handle, self._handle)
        return event

    def __enter__(self) -> Stream:
        context = tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", self.device), self.handle)
        context.__enter__()
        self._entered.append(context)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._entered.pop().__exit__(kind, error, trace)

    def __repr__(self) -> str:
        return f"<ferrule.cuda.Stream {self.handle:#x} of cuda:{self.device}>"


class Event:
    """A point in a stream's work, destroyed when it goes."""

    def __init__(self, device: int = 0, *, timing: bool = True) -> None:
        """`timing`: whether it keeps the time, which `elapsed` needs."""
        hold = Hold(device)
        self.device = device
        self._handle = ctypes.c_void_p()
        with on_device(device):
            call("cuEventCreate", ctypes.byref(self._handle), 0 if timing else _DISABLE_TIMING)
        finalize(self, hold.release, "cuEventDestroy_v2", self._handle)

    @property
    def handle(self) -> int:
        """The driver's CUevent."""
        return self._handle.value or 0

    def synchronize(self) -> None:
        """Wait until it has happened."""
        call("cuEventSynchronize", self._handle)

    def happened(self) -> bool:
        """Whether all that came before it is done."""
        status = library().cuEventQuery(self._handle)
        if status not in (0, _NOT_READY):
            # The same call again, through what raises its error.
            call("cuEventQuery", self._handle)
        return bool(status == 0)

    def elapsed(self, start: Event) -> float:
        """Milliseconds since another event, which came before."""
        found = ctypes.c_float()
        call("cuEventElapsedTime", ctypes.byref(found), _check_event(start)._handle, self._handle)
        return found.value

    def __repr__(self) -> str:
        return f"<ferrule.cuda.Event {self.handle:#x} of cuda:{self.device}>"


def _check_event(event: Event) -> Event:
    if not isinstance(event, Event):
        raise TypeError(f"event must be an Event, but got {type(event).__name__}")
    return event

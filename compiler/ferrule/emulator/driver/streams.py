"""The driver's functions about streams and events.

What a stream is given is done at once, unless the stream is captured: then it becomes a node of a
graph. So all work of a stream is done, and every event has happened that was recorded.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from dataclasses import field
from typing import Final

from ferrule.emulator.driver.library.exports import Exports, Needs
from ferrule.emulator.driver.nodes import Graph, Node, NodeKind, Parameters, nodes_at
from ferrule.emulator.driver.places import put_float, put_int, put_word
from ferrule.emulator.driver.results import DriverError, Result
from ferrule.emulator.driver.state import Context, Driver, Thread
from ferrule.specs.deferred import dataclass

exports: Final = Exports()

# CU_STREAM_LEGACY and CU_STREAM_PER_THREAD of cuda.h, handles for which no stream is made.
LEGACY, PER_THREAD = 1, 2
NON_BLOCKING: Final = 1
# Lower numbers are higher priorities, and 0 is the lowest.
_PRIORITIES: Final = range(-5, 1)
# CU_EVENT_BLOCKING_SYNC, CU_EVENT_DISABLE_TIMING and CU_EVENT_INTERPROCESS of cuda.h: 1, 2 and 4.
_EVENT_FLAGS: Final = 7
_DISABLE_TIMING, _INTERPROCESS = 2, 4


@dataclass(eq=False, slots=True)
class Capture:
    """What is being captured, by the stream that it began in and all that joined it."""

    graph: Graph
    origin: Stream
    mode: int
    thread: Thread
    number: int
    invalid: bool = False
    streams: list[Stream] = field(default_factory=list)
    joined: set[Node] = field(default_factory=set)
    """Nodes that some later node of the origin depends on."""


@dataclass(eq=False, slots=True)
class Stream:
    """A stream of a context; `last` are the nodes that what comes next depends on."""

    context: Context
    flags: int = 0
    priority: int = 0
    handle: int = 0
    capture: Capture | None = None
    last: tuple[Node, ...] = ()


@dataclass(eq=False, slots=True)
class Event:
    """An event: when it was last recorded, or in which capture."""

    context: Context
    flags: int
    handle: int = 0
    time: float | None = None
    capture: Capture | None = None
    nodes: tuple[Node, ...] = ()


def stream_of(driver: Driver, handle: int) -> Stream | None:
    """The stream of a handle; None for those that every context has."""
    if handle in (0, LEGACY, PER_THREAD):
        return None
    found = driver.handles.get(handle)
    return found if type(found) is Stream else driver.find(handle, Stream, "stream")


def capture_of(driver: Driver, handle: int) -> Capture | None:
    """The capture that a stream is part of; one that has failed is refused."""
    stream = stream_of(driver, handle)
    if stream is None:
        if handle != PER_THREAD:
            _check_implicit(driver)
        return None
    if stream.capture is not None and stream.capture.invalid:
        raise DriverError(Result.STREAM_CAPTURE_INVALIDATED, "the capture has failed before")
    return stream.capture


def _check_implicit(driver: Driver) -> None:
    """The legacy stream waits for all blocking streams, which must not happen in a capture."""
    for capture in driver.captures.values():
        if any(not each.flags & NON_BLOCKING for each in capture.streams):
            capture.invalid = True
            raise DriverError(Result.STREAM_CAPTURE_IMPLICIT, "a blocking stream is captured")


def submit(
    driver: Driver,
    handle: int,
    kind: NodeKind,
    run: Callable[[], None],
    parameters: Parameters | None = None,
) -> None:
    """Run work in a stream: now or, during a capture, at each launch of the captured graph."""
    capture = capture_of(driver, handle) if handle or driver.captures else None
    if capture is None:
        run()
        return
    stream = driver.handles[handle]
    node = capture.graph.add(driver, kind, run, stream.last, parameters)
    stream.last = (node,)


# ---- streams ----


@exports("cuStreamCreate", "ou")
def create(driver: Driver, out: int, flags: int) -> None:
    create_with_priority(driver, out, flags, 0)


@exports("cuStreamCreateWithPriority", "oui")
def create_with_priority(driver: Driver, out: int, flags: int, priority: int) -> None:
    if flags not in (0, NON_BLOCKING):
        raise DriverError(Result.INVALID_VALUE, f"no stream has the flags {flags}")
    # cuStreamCreateWithPriority takes the nearest priority that there is; it refuses none.
    nearest = min(max(priority, _PRIORITIES.start), _PRIORITIES.stop - 1)
    stream = Stream(driver.current(), flags, nearest)
    stream.handle = driver.new(stream, stream.context)
    put_word(out, stream.handle)


@exports("cuStreamDestroy_v2 cuStreamDestroy", "p", Needs.INIT)
def destroy(driver: Driver, handle: int) -> None:
    stream = driver.find(handle, Stream, "stream")
    if stream.capture is not None:
        stream.capture.invalid = True
        if stream.capture.origin is stream:
            end(driver, stream.capture)
    driver.forget(handle, stream.context)


@exports("cuStreamQuery cuStreamSynchronize", "p")
def synchronize(driver: Driver, handle: int) -> None:
    capture = capture_of(driver, handle)
    if capture is not None:
        capture.invalid = True
        raise DriverError(Result.STREAM_CAPTURE_UNSUPPORTED, "the stream is being captured")


@exports("cuStreamGetFlags", "po")
def get_flags(driver: Driver, handle: int, out: int) -> None:
    stream = stream_of(driver, handle)
    put_int(out, stream.flags if stream else 0)


@exports("cuStreamGetPriority", "po")
def get_priority(driver: Driver, handle: int, out: int) -> None:
    stream = stream_of(driver, handle)
    put_int(out, stream.priority if stream else 0)


@exports("cuStreamGetId", "po")
def get_id(driver: Driver, handle: int, out: int) -> None:
    stream_of(driver, handle)
    put_word(out, handle)


@exports("cuStreamGetCtx", "po")
def get_context(driver: Driver, handle: int, out: int) -> None:
    stream = stream_of(driver, handle)
    put_word(out, (stream.context if stream else driver.current()).handle)


@exports("cuStreamGetCtx_v2", "pop")
def get_context_of(driver: Driver, handle: int, out: int, green: int) -> None:
    get_context(driver, handle, out)
    if green:
        put_word(green, 0)


@exports("cuStreamGetDevice", "po")
def get_device(driver: Driver, handle: int, out: int) -> None:
    stream = stream_of(driver, handle)
    put_int(out, (stream.context if stream else driver.current()).device.ordinal)


@exports("cuStreamWaitEvent", "ppu")
def wait_event(driver: Driver, handle: int, wanted: int, flags: int) -> None:
    # CU_EVENT_WAIT_DEFAULT and CU_EVENT_WAIT_EXTERNAL.
    if flags not in (0, 1):
        raise DriverError(Result.INVALID_VALUE, f"no flags {flags}")
    stream, event = stream_of(driver, handle), driver.find(wanted, Event, "event")
    mine = capture_of(driver, handle)
    if event.capture is None:
        if mine is not None and event.time is not None and flags == 0:
            mine.invalid = True
            raise DriverError(
                Result.STREAM_CAPTURE_ISOLATION, "the event is of work that is not captured"
            )
        return
    if stream is None:
        raise DriverError(Result.STREAM_CAPTURE_IMPLICIT, "a default stream cannot be captured")
    if mine is not None and mine is not event.capture:
        mine.invalid = event.capture.invalid = True
        raise DriverError(Result.STREAM_CAPTURE_MERGE, "the event is of another capture")
    # A stream that waits for an event of a capture joins the capture.
    if mine is None:
        stream.capture, stream.last = event.capture, ()
        event.capture.streams.append(stream)
    stream.last = tuple(dict.fromkeys((*stream.last, *event.nodes)))


@exports("cuLaunchHostFunc", "ppp")
def host_function(driver: Driver, handle: int, function: int, data: int) -> None:
    if not function:
        raise DriverError(Result.INVALID_VALUE, "the function is null")
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)
    submit(driver, handle, NodeKind.HOST, lambda: call(data), Parameters(host=(function, data)))


@exports("cuStreamAddCallback", "pppu")
def add_callback(driver: Driver, handle: int, function: int, data: int, flags: int) -> None:
    if not function or flags:
        raise DriverError(Result.INVALID_VALUE, f"the function {function:#x} with flags {flags}")
    if capture_of(driver, handle) is not None:
        raise DriverError(Result.STREAM_CAPTURE_UNSUPPORTED, "callbacks are not captured")
    kind = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_int, ctypes.c_void_p)
    kind(function)(handle, 0, data)


@exports("cuStreamAttachMemAsync", "ppzu")
def attach(driver: Driver, handle: int, address: int, size: int, flags: int) -> None:
    stream_of(driver, handle)
    driver.allocations.check(address, size or 1, "memory")


@exports("cuStreamCopyAttributes", "pp")
def copy_attributes(driver: Driver, to: int, source: int) -> None:
    for each in (to, source):
        stream_of(driver, each)


# ---- captures ----


@exports("cuThreadExchangeStreamCaptureMode", "o", Needs.INIT)
def exchange_mode(driver: Driver, place: int) -> None:
    thread, wanted = driver.thread, ctypes.c_int.from_address(place)
    # `CUstreamCaptureMode`: global, of the thread, relaxed.
    if wanted.value not in (0, 1, 2):
        raise DriverError(Result.INVALID_VALUE, f"no mode {wanted.value}")
    thread.capture_mode, wanted.value = wanted.value, thread.capture_mode


@exports("cuStreamBeginCapture_v2", "pi")
def begin_capture(driver: Driver, handle: int, mode: int) -> None:
    _begin(driver, handle, mode, Graph(), ())


@exports("cuStreamBeginCapture", "p")
def begin_capture_global(driver: Driver, handle: int) -> None:
    _begin(driver, handle, 0, Graph(), ())


@exports("cuStreamBeginCaptureToGraph", "ppppzi")
def begin_capture_to(
    driver: Driver, handle: int, graph: int, nodes: int, data: int, count: int, mode: int
) -> None:
    into = driver.find(graph, Graph, "graph")
    _begin(driver, handle, mode, into, nodes_at(driver, nodes, count))


def _begin(driver: Driver, handle: int, mode: int, graph: Graph, last: tuple[Node, ...]) -> None:
    stream = stream_of(driver, handle)
    if stream is None:
        raise DriverError(Result.STREAM_CAPTURE_UNSUPPORTED, "a default stream cannot be captured")
    if mode not in (0, 1, 2):
        raise DriverError(Result.INVALID_VALUE, f"no mode {mode}")
    if stream.capture is not None:
        stream.capture.invalid = True
        raise DriverError(Result.ILLEGAL_STATE, "the stream is being captured already")
    capture = Capture(graph, stream, mode, driver.thread, driver.next_number())
    capture.streams.append(stream)
    stream.capture, stream.last = capture, last
    driver.captures[stream.handle] = capture


@exports("cuStreamEndCapture", "po")
def end_capture(driver: Driver, handle: int, out: int) -> None:
    stream = stream_of(driver, handle)
    capture = stream.capture if stream else None
    put_word(out, 0)
    if stream is None or capture is None:
        raise DriverError(Result.ILLEGAL_STATE, "the stream is not being captured")
    if capture.origin is not stream:
        capture.invalid = True
        raise DriverError(Result.STREAM_CAPTURE_UNMATCHED, "the capture began in another stream")
    # Only CU_STREAM_CAPTURE_MODE_RELAXED lets another thread end the capture.
    if capture.mode != 2 and capture.thread is not driver.thread:
        raise DriverError(Result.STREAM_CAPTURE_WRONG_THREAD)
    joined = _joined(capture)
    end(driver, capture)
    if capture.invalid:
        raise DriverError(Result.STREAM_CAPTURE_INVALIDATED, "a call was in the way of the capture")
    if not joined:
        raise DriverError(
            Result.STREAM_CAPTURE_UNJOINED, "the capture's other streams were not waited for"
        )
    if not capture.graph.handle:
        capture.graph.handle = driver.new(capture.graph)
    put_word(out, capture.graph.handle)


def _joined(capture: Capture) -> bool:
    """Whether what the other streams did last comes before the end of the first."""
    behind, todo = set(capture.origin.last), list(capture.origin.last)
    while todo:
        for node in todo.pop().needs:
            if node not in behind:
                behind.add(node)
                todo.append(node)
    return all(set(each.last) <= behind for each in capture.streams)


def end(driver: Driver, capture: Capture) -> None:
    """Streams that were captured are as before."""
    for each in capture.streams:
        each.capture, each.last = None, ()
    driver.captures.pop(capture.origin.handle, None)


@exports("cuStreamIsCapturing", "po", Needs.INIT)
def is_capturing(driver: Driver, handle: int, out: int) -> None:
    stream = stream_of(driver, handle)
    if stream is None and handle != PER_THREAD:
        driver.current()
        _check_implicit(driver)
    put_int(out, _status(stream.capture if stream else None))


def _status(capture: Capture | None) -> int:
    """`CUstreamCaptureStatus`."""
    return 0 if capture is None else 2 if capture.invalid else 1


@exports("cuStreamGetCaptureInfo_v2", "popppp")
def capture_info(
    driver: Driver, handle: int, out: int, number: int, graph: int, needs: int, count: int
) -> None:
    _tell_capture(driver, handle, (out, number, graph, needs, 0, count))


@exports("cuStreamGetCaptureInfo_v3", "poppppp")
def capture_info_with_edges(
    driver: Driver, handle: int, out: int, number: int, graph: int, needs: int, edges: int,
    count: int,
) -> None:  # fmt: skip
    _tell_capture(driver, handle, (out, number, graph, needs, edges, count))


@exports("cuStreamGetCaptureInfo", "pop")
def capture_status(driver: Driver, handle: int, out: int, number: int) -> None:
    _tell_capture(driver, handle, (out, number, 0, 0, 0, 0))


def _tell_capture(driver: Driver, handle: int, places: tuple[int, ...]) -> None:
    out, number, graph, needs, edges, count = places
    stream = stream_of(driver, handle)
    capture = stream.capture if stream else None
    put_int(out, _status(capture))
    if stream is None or capture is None or capture.invalid:
        return
    if not capture.graph.handle:
        capture.graph.handle = driver.new(capture.graph)
    if number:
        put_word(number, capture.number)
    if graph:
        put_word(graph, capture.graph.handle)
    if edges:
        put_word(edges, 0)
    if needs:
        handles = [node.handle for node in stream.last]
        # The program gets its address: it stays until the next such question.
        capture.graph.told = (ctypes.c_uint64 * max(1, len(handles)))(*handles)
        put_word(needs, ctypes.addressof(capture.graph.told))
    if count:
        put_word(count, len(stream.last))


# ---- events ----


@exports("cuEventCreate", "ou")
def create_event(driver: Driver, out: int, flags: int) -> None:
    # cuda.h: events between processes are without times.
    if flags & ~_EVENT_FLAGS or (flags & _INTERPROCESS and not flags & _DISABLE_TIMING):
        raise DriverError(Result.INVALID_VALUE, f"no event has the flags {flags:#x}")
    event = Event(driver.current(), flags)
    event.handle = driver.new(event, event.context)
    put_word(out, event.handle)


@exports("cuEventDestroy_v2 cuEventDestroy", "p", Needs.INIT)
def destroy_event(driver: Driver, handle: int) -> None:
    event = driver.find(handle, Event, "event")
    driver.forget(handle, event.context)


@exports("cuEventRecord", "pp")
def record(driver: Driver, wanted: int, handle: int) -> None:
    event = driver.find(wanted, Event, "event")
    stream = stream_of(driver, handle)
    if stream is not None and stream.context.device is not event.context.device:
        raise DriverError(Result.INVALID_HANDLE, "the event and the stream are of two devices")
    capture = capture_of(driver, handle)
    if stream is None or capture is None:
        event.capture, event.nodes, event.time = None, (), time.perf_counter()
        return
    event.capture, event.nodes, event.time = capture, stream.last, None


@exports("cuEventRecordWithFlags", "ppu")
def record_with(driver: Driver, wanted: int, handle: int, flags: int) -> None:
    # CU_EVENT_RECORD_DEFAULT and CU_EVENT_RECORD_EXTERNAL.
    if flags not in (0, 1):
        raise DriverError(Result.INVALID_VALUE, f"no flags {flags}")
    capture = capture_of(driver, handle) if flags else None
    if capture is None:
        record(driver, wanted, handle)
        return
    event = driver.find(wanted, Event, "event")
    submit(driver, handle, NodeKind.EVENT_RECORD, lambda: note_time(event))


def note_time(event: Event) -> None:
    """An event happens now."""
    event.capture, event.nodes, event.time = None, (), time.perf_counter()


@exports("cuEventQuery cuEventSynchronize", "p", Needs.INIT)
def synchronize_event(driver: Driver, handle: int) -> None:
    event = driver.find(handle, Event, "event")
    if event.capture is not None:
        event.capture.invalid = True
        raise DriverError(Result.CAPTURED_EVENT, "the event was recorded in a capture")


@exports("cuEventElapsedTime cuEventElapsedTime_v2", "opp", Needs.INIT)
def elapsed(driver: Driver, out: int, start: int, stop: int) -> None:
    events = [driver.find(each, Event, "event") for each in (start, stop)]
    if any(each.flags & _DISABLE_TIMING for each in events):
        raise DriverError(Result.INVALID_HANDLE, "an event keeps no time")
    first, last = (each.time for each in events)
    if first is None or last is None:
        raise DriverError(Result.INVALID_HANDLE, "an event was not recorded")
    # In milliseconds.
    put_float(out, (last - first) * 1000)

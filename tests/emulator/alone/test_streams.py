"""Streams, events, captures and graphs of the driver, by ctypes."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import pytest

INT, P, U, Z = ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_size_t


def word(value: int) -> Any:
    return ctypes.c_uint64(value)


@pytest.fixture
def stream(cuda: Any) -> Any:
    return cuda.handle("cuStreamCreate", 1)


@pytest.fixture
def values(cuda: Any) -> Any:
    """Four floats: 1, 2, 3, 4."""
    address = cuda.allocate(16)
    cuda.write(address.value, struct.pack("<4f", 1, 2, 3, 4))
    return address


def read(cuda: Any, address: Any) -> tuple[float, ...]:
    return struct.unpack("<4f", cuda.read(address.value, 16))


def scale(cuda: Any, module: Any, address: Any, by: float, stream: Any) -> None:
    function = cuda.handle("cuModuleGetFunction", module, b"scale")
    given = address, ctypes.c_float(by), U(4)
    places = (P * 3)(*(ctypes.addressof(each) for each in given))
    cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, places, None)


def status(cuda: Any, stream: Any) -> int:
    place = INT()
    cuda.cuStreamIsCapturing(stream, ctypes.byref(place))
    return place.value


def test_streams_and_their_properties(cuda: Any) -> None:
    stream = cuda.handle("cuStreamCreateWithPriority", 1, -9)
    place = INT()
    cuda.cuStreamGetPriority(stream, ctypes.byref(place))
    assert place.value == -5
    cuda.cuStreamGetFlags(stream, ctypes.byref(place))
    assert place.value == 1
    context = ctypes.c_uint64()
    cuda.cuStreamGetCtx(stream, ctypes.byref(context))
    assert context.value == cuda.made("cuCtxGetCurrent")
    cuda.cuStreamSynchronize(stream)
    cuda.cuStreamQuery(None)
    cuda.cuStreamDestroy_v2(stream)
    assert cuda.result("cuStreamSynchronize", stream) == 400
    assert cuda.result("cuStreamCreate", ctypes.byref(P()), 8) == 1


def test_events_keep_time(cuda: Any, stream: Any) -> None:
    start, stop = (cuda.handle("cuEventCreate", 0) for _ in range(2))
    elapsed = ctypes.c_float(-1)
    arguments = ctypes.byref(elapsed), start, stop
    assert cuda.result("cuEventElapsedTime", *arguments) == 400
    cuda.cuEventRecord(start, stream)
    cuda.cuEventRecord(stop, stream)
    cuda.cuEventSynchronize(stop)
    cuda.cuEventElapsedTime(*arguments)
    assert 0 <= elapsed.value < 1000
    timeless = cuda.handle("cuEventCreate", 2)
    cuda.cuEventRecord(timeless, None)
    assert cuda.result("cuEventElapsedTime", ctypes.byref(elapsed), start, timeless) == 400


def test_host_functions_run_in_order(cuda: Any, stream: Any) -> None:
    seen: list[Any] = []
    function = ctypes.CFUNCTYPE(None, P)(seen.append)
    cuda.cuLaunchHostFunc(stream, function, P(5))
    callback = ctypes.CFUNCTYPE(None, P, INT, P)(lambda *all: seen.append(all))
    cuda.cuStreamAddCallback(stream, callback, P(6), 0)
    assert seen == [5, (stream.value, 0, 6)]


def test_a_capture_is_replayed(cuda: Any, module: Any, stream: Any, values: Any) -> None:
    cuda.cuStreamBeginCapture_v2(stream, 0)
    assert status(cuda, stream) == 1
    scale(cuda, module, values, 2, stream)
    scale(cuda, module, values, 5, stream)
    graph = ctypes.c_uint64()
    cuda.cuStreamEndCapture(stream, ctypes.byref(graph))
    assert status(cuda, stream) == 0
    assert read(cuda, values) == (1, 2, 3, 4)
    count = Z()
    cuda.cuGraphGetNodes(graph, None, ctypes.byref(count))
    assert count.value == 2
    ready = cuda.handle("cuGraphInstantiateWithFlags", graph, word(0))
    cuda.cuGraphDestroy(graph)
    for _ in range(2):
        cuda.cuGraphLaunch(ready, stream)
    assert read(cuda, values) == (100, 200, 300, 400)
    cuda.cuGraphExecDestroy(ready)
    assert cuda.result("cuGraphLaunch", ready, stream) == 400


def test_a_capture_has_the_parameters_of_its_call(
    cuda: Any, module: Any, stream: Any, values: Any
) -> None:
    function = cuda.handle("cuModuleGetFunction", module, b"scale")
    by = ctypes.c_float(2)
    places = (P * 3)(*(ctypes.addressof(each) for each in (values, by, U(4))))
    cuda.cuStreamBeginCapture_v2(stream, 0)
    count = U(4)
    places[2] = ctypes.addressof(count)
    cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, places, None)
    by.value = 7
    graph = ctypes.c_uint64()
    cuda.cuStreamEndCapture(stream, ctypes.byref(graph))
    ready = cuda.handle("cuGraphInstantiateWithFlags", graph, word(0))
    cuda.cuGraphLaunch(ready, None)
    assert read(cuda, values) == (2, 4, 6, 8)


def test_streams_join_a_capture(cuda: Any, module: Any, stream: Any, values: Any) -> None:
    other = cuda.handle("cuStreamCreate", 1)
    fork, join = (cuda.handle("cuEventCreate", 2) for _ in range(2))
    for joined in (True, False):
        cuda.cuStreamBeginCapture_v2(stream, 0)
        cuda.cuEventRecord(fork, stream)
        cuda.cuStreamWaitEvent(other, fork, 0)
        scale(cuda, module, values, 2, other)
        assert status(cuda, other) == 1
        if joined:
            cuda.cuEventRecord(join, other)
            cuda.cuStreamWaitEvent(stream, join, 0)
        graph = ctypes.c_uint64()
        result = cuda.result("cuStreamEndCapture", stream, ctypes.byref(graph))
        assert (result, bool(graph.value)) == ((0, True) if joined else (904, False))
        assert status(cuda, other) == 0
    assert read(cuda, values) == (1, 2, 3, 4)


def test_what_is_in_the_way_of_a_capture(cuda: Any, stream: Any) -> None:
    cuda.cuStreamBeginCapture_v2(stream, 0)
    assert cuda.result("cuMemAlloc_v2", ctypes.byref(P()), Z(8)) == 900
    assert status(cuda, stream) == 2
    graph = ctypes.c_uint64(1)
    assert cuda.result("cuStreamEndCapture", stream, ctypes.byref(graph)) == 901
    assert graph.value == 0
    cuda.cuStreamBeginCapture_v2(stream, 0)
    mode = INT(2)
    cuda.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
    assert mode.value == 0
    cuda.allocate(8)
    cuda.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
    assert mode.value == 2
    cuda.cuStreamEndCapture(stream, ctypes.byref(graph))
    assert cuda.result("cuStreamEndCapture", stream, ctypes.byref(graph)) == 401


def test_the_default_stream_waits_for_no_capture(cuda: Any, module: Any, values: Any) -> None:
    blocking = cuda.handle("cuStreamCreate", 0)
    cuda.cuStreamBeginCapture_v2(blocking, 2)
    function = cuda.handle("cuModuleGetFunction", module, b"nothing")
    assert cuda.result("cuLaunchKernel", function, *[1] * 6, 0, None, None, None) == 906
    graph = ctypes.c_uint64()
    assert cuda.result("cuStreamEndCapture", blocking, ctypes.byref(graph)) == 901
    assert cuda.result("cuStreamBeginCapture_v2", None, 0) == 900


def test_a_graph_is_built_node_by_node(cuda: Any, module: Any, stream: Any, values: Any) -> None:
    graph = cuda.handle("cuGraphCreate", 0)
    function = cuda.handle("cuModuleGetFunction", module, b"scale")
    given = values, ctypes.c_float(3), U(4)
    places = (P * 3)(*(ctypes.addressof(each) for each in given))
    sizes = 1, 1, 1, 32, 1, 1, 0
    first = struct.pack("<QQIIQQ", values.value, 0, 0x3F800000, 4, 4, 1)
    filled = cuda.handle("cuGraphAddMemsetNode", graph, None, Z(0), first, None)
    kernel = struct.pack("<Q7I4xQQQQ", function.value, *sizes, ctypes.addressof(places), 0, 0, 0)
    scaled = cuda.handle("cuGraphAddKernelNode_v2", graph, ctypes.byref(filled), Z(1), kernel)
    kind, count = INT(), Z()
    cuda.cuGraphNodeGetType(scaled, ctypes.byref(kind))
    assert kind.value == 0
    cuda.cuGraphNodeGetDependencies(scaled, None, ctypes.byref(count))
    assert count.value == 1
    ready = cuda.handle("cuGraphInstantiateWithFlags", graph, word(0))
    cuda.cuGraphLaunch(ready, stream)
    assert read(cuda, values) == (3, 3, 3, 3)
    given[1].value = 4
    cuda.cuGraphExecKernelNodeSetParams_v2(ready, scaled, kernel)
    cuda.cuGraphLaunch(ready, stream)
    assert read(cuda, values) == (4, 4, 4, 4)
    cuda.cuGraphAddDependencies(graph, ctypes.byref(scaled), ctypes.byref(filled), Z(1))
    assert cuda.result("cuGraphInstantiateWithFlags", ctypes.byref(P()), graph, word(0)) == 1
    assert "the graph has a cycle" in cuda.text(1)


def test_a_graph_is_updated(cuda: Any, module: Any, stream: Any, values: Any) -> None:
    graphs = []
    for by in (2, 10):
        cuda.cuStreamBeginCapture_v2(stream, 0)
        scale(cuda, module, values, by, stream)
        graphs.append(ctypes.c_uint64())
        cuda.cuStreamEndCapture(stream, ctypes.byref(graphs[-1]))
    ready = cuda.handle("cuGraphInstantiateWithFlags", graphs[0], word(0))
    info = ctypes.create_string_buffer(24)
    cuda.cuGraphExecUpdate_v2(ready, graphs[1], info)
    cuda.cuGraphLaunch(ready, stream)
    assert read(cuda, values) == (10, 20, 30, 40)
    empty = cuda.handle("cuGraphCreate", 0)
    assert cuda.result("cuGraphExecUpdate_v2", ready, empty, info) == 910

"""The driver's functions about graphs: built, instantiated, launched."""

from __future__ import annotations

import ctypes
import struct
from typing import Final

from ferrule.emulator.driver.copies import box_at, fill
from ferrule.emulator.driver.launches import Launch, checked, keep_attributes, packed
from ferrule.emulator.driver.libraries import function_of
from ferrule.emulator.driver.library.exports import Exports, Needs
from ferrule.emulator.driver.nodes import Graph, Node, NodeKind, Parameters, node_of, nodes_at
from ferrule.emulator.driver.places import put_bytes, put_int, put_word, unpacked
from ferrule.emulator.driver.results import DriverError, Result
from ferrule.emulator.driver.state import Driver
from ferrule.emulator.driver.streams import Event, Stream, capture_of, note_time
from ferrule.specs.deferred import dataclass

exports: Final = Exports()

_KERNEL: Final = struct.Struct("<Q7I4xQQ")
"""CUDA_KERNEL_NODE_PARAMS; the later form has a CUkernel and a context behind it."""
_LATER: Final = struct.Struct("<QQ")
# Of cuda.h: CUDA_MEMSET_NODE_PARAMS, CUDA_HOST_NODE_PARAMS, CUDA_GRAPH_INSTANTIATE_PARAMS, and
# CUgraphExecUpdateResultInfo.
_FILL: Final = struct.Struct("<QQIIQQ")
_HOST: Final = struct.Struct("<QQ")
_WITH_PARAMETERS: Final = struct.Struct("<QQQi")
_UPDATE_INFO: Final = struct.Struct("<i4xQQ")


@dataclass(eq=False, slots=True)
class Executable:
    """A graph as it was when it was instantiated: its steps, each by the node that it is of."""

    steps: dict[Node, Node]
    flags: int = 0


def _graph(driver: Driver, handle: int) -> Graph:
    return driver.find(handle, Graph, "graph")


def _add(
    driver: Driver, out: int, graph: int, needs: tuple[int, int], made: tuple[object, ...]
) -> None:
    kind, run, parameters = made
    into = _graph(driver, graph)
    before = nodes_at(driver, *needs)
    if any(each.graph is not into for each in before):
        raise DriverError(Result.INVALID_VALUE, "a node is of another graph")
    put_word(out, into.add(driver, kind, run, before, parameters).handle)  # type: ignore[arg-type]


# ---- graphs ----


@exports("cuGraphCreate", "ou", Needs.INIT)
def create(driver: Driver, out: int, flags: int) -> None:
    if flags:
        raise DriverError(Result.INVALID_VALUE, f"the flags must be 0, but are {flags}")
    graph = Graph()
    graph.handle = driver.new(graph)
    put_word(out, graph.handle)


@exports("cuGraphDestroy", "p", Needs.INIT)
def destroy(driver: Driver, handle: int) -> None:
    _graph(driver, handle).close(driver)
    driver.forget(handle)


@exports("cuGraphClone", "op", Needs.INIT)
def clone(driver: Driver, out: int, handle: int) -> None:
    made, copies = Graph(), dict[Node, Node]()
    for node in _graph(driver, handle).ordered():
        needs = tuple(copies[each] for each in node.needs)
        copies[node] = made.add(driver, node.kind, node.run, needs, node.parameters)
    made.handle = driver.new(made)
    put_word(out, made.handle)


# ---- nodes ----


@exports("cuGraphAddEmptyNode", "oppz", Needs.INIT)
def add_empty(driver: Driver, out: int, graph: int, needs: int, count: int) -> None:
    _add(driver, out, graph, (needs, count), (NodeKind.EMPTY, lambda: None, None))


def _kernel_node(driver: Driver, parameters: int, *, later: bool) -> Launch:
    handle, *sizes, addresses, extra = unpacked(_KERNEL, parameters)
    if later and not handle:
        handle, _ = unpacked(_LATER, parameters + _KERNEL.size)
    function = function_of(driver, handle, driver.current())
    data = packed(function.kernel, addresses, extra)
    return checked(driver, function, tuple(sizes), (0, 0), data)


def _add_kernel(
    driver: Driver, out: int, graph: int, needs: int, count: int, parameters: int, *, later: bool
) -> None:
    launch = _kernel_node(driver, parameters, later=later)
    made = NodeKind.KERNEL, launch.run, Parameters(launch=launch)
    _add(driver, out, graph, (needs, count), made)


@exports("cuGraphAddKernelNode_v2", "oppzo")
def add_kernel(
    driver: Driver, out: int, graph: int, needs: int, count: int, parameters: int
) -> None:
    _add_kernel(driver, out, graph, needs, count, parameters, later=True)


@exports("cuGraphAddKernelNode", "oppzo")
def add_kernel_early(
    driver: Driver, out: int, graph: int, needs: int, count: int, parameters: int
) -> None:
    _add_kernel(driver, out, graph, needs, count, parameters, later=False)


@exports("cuGraphAddMemcpyNode", "oppzop", Needs.INIT)
def add_copy(
    driver: Driver, out: int, graph: int, needs: int, count: int, parameters: int, context: int
) -> None:
    made = NodeKind.MEMCPY, box_at(driver, parameters), Parameters()
    _add(driver, out, graph, (needs, count), made)


@exports("cuGraphAddMemsetNode", "oppzop", Needs.INIT)
def add_fill(
    driver: Driver, out: int, graph: int, needs: int, count: int, parameters: int, context: int
) -> None:
    address, pitch, value, element, width, height = unpacked(_FILL, parameters)
    if element not in (1, 2, 4):
        raise DriverError(Result.INVALID_VALUE, f"elements of {element} bytes; 1, 2 or 4")
    step = fill(driver, address, pitch, value, element, width, height)
    _add(driver, out, graph, (needs, count), (NodeKind.MEMSET, step, Parameters()))


@exports("cuGraphAddHostNode", "oppzo", Needs.INIT)
def add_host(driver: Driver, out: int, graph: int, needs: int, count: int, parameters: int) -> None:
    function, data = unpacked(_HOST, parameters)
    if not function:
        raise DriverError(Result.INVALID_VALUE, "the function is null")
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)
    made = NodeKind.HOST, lambda: call(data), Parameters(host=(function, data))
    _add(driver, out, graph, (needs, count), made)


@exports("cuGraphAddChildGraphNode", "oppzp", Needs.INIT)
def add_child(driver: Driver, out: int, graph: int, needs: int, count: int, child: int) -> None:
    # The child as it is now: later changes of it are not seen (cuda.h: it is cloned).
    steps = [node.run for node in _graph(driver, child).ordered()]

    def run() -> None:
        for step in steps:
            step()

    _add(driver, out, graph, (needs, count), (NodeKind.GRAPH, run, Parameters()))


@exports("cuGraphAddEventRecordNode", "oppzp", Needs.INIT)
def add_record(driver: Driver, out: int, graph: int, needs: int, count: int, event: int) -> None:
    found = driver.find(event, Event, "event")
    made = NodeKind.EVENT_RECORD, lambda: note_time(found), Parameters()
    _add(driver, out, graph, (needs, count), made)


@exports("cuGraphAddEventWaitNode", "oppzp", Needs.INIT)
def add_wait(driver: Driver, out: int, graph: int, needs: int, count: int, event: int) -> None:
    driver.find(event, Event, "event")
    _add(driver, out, graph, (needs, count), (NodeKind.WAIT_EVENT, lambda: None, Parameters()))


@exports("cuGraphDestroyNode", "p", Needs.INIT)
def destroy_node(driver: Driver, handle: int) -> None:
    node = node_of(driver, handle)
    if node.graph is not None:
        node.graph.remove(driver, node)


@exports("cuGraphNodeGetType", "po", Needs.INIT)
def node_type(driver: Driver, handle: int, out: int) -> None:
    put_int(out, node_of(driver, handle).kind)


@exports("cuGraphKernelNodeGetParams_v2 cuGraphKernelNodeGetParams", "po", Needs.INIT)
def kernel_parameters(driver: Driver, handle: int, out: int) -> None:
    node = node_of(driver, handle)
    if node.kind is not NodeKind.KERNEL or node.parameters is None or node.graph is None:
        raise DriverError(Result.INVALID_VALUE, "the node is no kernel")
    launch: Launch = node.parameters.launch
    data = ctypes.create_string_buffer(launch.parameters, max(1, len(launch.parameters)))
    start = ctypes.addressof(data)
    places = [start + each.offset for each in launch.function.kernel.parameters]
    pointers = (ctypes.c_uint64 * max(1, len(places)))(*places)
    # The program gets their addresses: they stay until the next such question.
    node.graph.told = data, pointers
    sizes = *launch.grid, *launch.block, launch.shared
    fields = launch.function.handle, *sizes, ctypes.addressof(pointers), 0
    put_bytes(out, _KERNEL.pack(*fields))


@exports("cuGraphKernelNodeSetParams_v2", "po")
def set_kernel_parameters(driver: Driver, handle: int, parameters: int) -> None:
    _set_launch(driver, node_of(driver, handle), _kernel_node(driver, parameters, later=True))


@exports("cuGraphKernelNodeSetParams", "po")
def set_kernel_parameters_early(driver: Driver, handle: int, parameters: int) -> None:
    _set_launch(driver, node_of(driver, handle), _kernel_node(driver, parameters, later=False))


def _set_launch(driver: Driver, node: Node, launch: Launch) -> None:
    if node.kind is not NodeKind.KERNEL or node.parameters is None:
        raise DriverError(Result.INVALID_VALUE, "the node is no kernel")
    keep_attributes(driver, launch, node.parameters.launch)
    node.run, node.parameters = launch.run, Parameters(launch=launch)


# ---- edges ----


def _pairs(driver: Driver, sources: int, targets: int, count: int) -> list[tuple[Node, Node]]:
    first, second = nodes_at(driver, sources, count), nodes_at(driver, targets, count)
    return list(zip(first, second, strict=True))


@exports("cuGraphAddDependencies", "pppz", Needs.INIT)
def add_edges(driver: Driver, graph: int, sources: int, targets: int, count: int) -> None:
    found = _graph(driver, graph)
    for source, target in _pairs(driver, sources, targets, count):
        if source.graph is not found or target.graph is not found or source is target:
            raise DriverError(Result.INVALID_VALUE, "an edge joins two nodes of the graph")
        target.needs = tuple(dict.fromkeys((*target.needs, source)))


@exports("cuGraphAddDependencies_v2", "ppppz", Needs.INIT)
def add_edges_with(
    driver: Driver, graph: int, sources: int, targets: int, data: int, count: int
) -> None:
    add_edges(driver, graph, sources, targets, count)


@exports("cuGraphRemoveDependencies", "pppz", Needs.INIT)
def remove_edges(driver: Driver, graph: int, sources: int, targets: int, count: int) -> None:
    _graph(driver, graph)
    for source, target in _pairs(driver, sources, targets, count):
        target.needs = tuple(each for each in target.needs if each is not source)


@exports("cuGraphRemoveDependencies_v2", "ppppz", Needs.INIT)
def remove_edges_with(
    driver: Driver, graph: int, sources: int, targets: int, data: int, count: int
) -> None:
    remove_edges(driver, graph, sources, targets, count)


def _tell(handles: list[int], places: tuple[int, ...], count: int) -> None:
    """Write handles where a program has room for so many, or say how many there are."""
    room = ctypes.c_uint64.from_address(count)
    if not places[0]:
        room.value = len(handles) // len(places)
        return
    each = len(handles) // len(places)
    for i, place in enumerate(places):
        part = handles[i * each : (i + 1) * each]
        for at in range(room.value):
            put_word(place + 8 * at, part[at] if at < each else 0)
    room.value = each


@exports("cuGraphGetNodes", "ppo", Needs.INIT)
def get_nodes(driver: Driver, graph: int, out: int, count: int) -> None:
    _tell([node.handle for node in _graph(driver, graph).nodes], (out,), count)


@exports("cuGraphGetRootNodes", "ppo", Needs.INIT)
def get_roots(driver: Driver, graph: int, out: int, count: int) -> None:
    nodes = _graph(driver, graph).nodes
    _tell([node.handle for node in nodes if not node.needs], (out,), count)


@exports("cuGraphGetEdges", "pppo", Needs.INIT)
def get_edges(driver: Driver, graph: int, sources: int, targets: int, count: int) -> None:
    pairs = [(need, node) for node in _graph(driver, graph).nodes for need in node.needs]
    handles = [each.handle for each, _ in pairs] + [each.handle for _, each in pairs]
    _tell(handles, (sources, targets), count)


@exports("cuGraphNodeGetDependencies", "ppo", Needs.INIT)
def get_needs(driver: Driver, handle: int, out: int, count: int) -> None:
    _tell([each.handle for each in node_of(driver, handle).needs], (out,), count)


@exports("cuGraphNodeGetDependentNodes", "ppo", Needs.INIT)
def get_dependents(driver: Driver, handle: int, out: int, count: int) -> None:
    node = node_of(driver, handle)
    nodes = node.graph.nodes if node.graph else []
    _tell([each.handle for each in nodes if node in each.needs], (out,), count)


# ---- to be launched ----


def _instantiated(driver: Driver, handle: int, flags: int) -> int:
    steps = {
        node: Node(node.kind, node.run, (), node.parameters)
        for node in _graph(driver, handle).ordered()
    }
    return driver.new(Executable(steps, flags))


@exports("cuGraphInstantiateWithFlags", "opq", Needs.INIT)
def instantiate(driver: Driver, out: int, graph: int, flags: int) -> None:
    put_word(out, _instantiated(driver, graph, flags))


@exports("cuGraphInstantiate cuGraphInstantiate_v2", "opppz", Needs.INIT)
def instantiate_with_log(
    driver: Driver, out: int, graph: int, node: int, log: int, size: int
) -> None:
    if node:
        put_word(node, 0)
    if log and size:
        put_bytes(log, b"\0")
    put_word(out, _instantiated(driver, graph, 0))


@exports("cuGraphInstantiateWithParams", "opo", Needs.INIT)
def instantiate_with(driver: Driver, out: int, graph: int, parameters: int) -> None:
    flags, stream, _, _ = unpacked(_WITH_PARAMETERS, parameters)
    put_word(out, _instantiated(driver, graph, flags))
    # `hErrNode_out`, and CUDA_GRAPH_INSTANTIATE_SUCCESS in `result_out`.
    put_bytes(parameters + 16, struct.pack("<Qi", 0, 0))


@exports("cuGraphExecGetFlags", "po", Needs.INIT)
def executable_flags(driver: Driver, handle: int, out: int) -> None:
    put_word(out, driver.find(handle, Executable, "executable graph").flags)


@exports("cuGraphExecDestroy", "p", Needs.INIT)
def destroy_executable(driver: Driver, handle: int) -> None:
    driver.find(handle, Executable, "executable graph")
    driver.forget(handle)


@exports("cuGraphUpload", "pp")
def upload(driver: Driver, handle: int, stream: int) -> None:
    driver.find(handle, Executable, "executable graph")
    capture_of(driver, stream)


@exports("cuGraphLaunch", "pp")
def launch(driver: Driver, handle: int, stream: int) -> None:
    found = driver.find(handle, Executable, "executable graph")
    capture = capture_of(driver, stream)
    if capture is None:
        for step in found.steps.values():
            step.run()
        return
    into: Stream = driver.handles[stream]
    runs = [step.run for step in found.steps.values()]

    def run() -> None:
        for each in runs:
            each()

    into.last = (capture.graph.add(driver, NodeKind.GRAPH, run, into.last, Parameters()),)


@exports("cuGraphExecKernelNodeSetParams_v2", "ppo")
def set_executable_kernel(driver: Driver, handle: int, node: int, parameters: int) -> None:
    found = driver.find(handle, Executable, "executable graph")
    step = found.steps.get(node_of(driver, node))
    if step is None:
        raise DriverError(Result.INVALID_VALUE, "the node is of another graph")
    _set_launch(driver, step, _kernel_node(driver, parameters, later=True))


@exports("cuGraphExecUpdate_v2", "ppo", Needs.INIT)
def update(driver: Driver, handle: int, graph: int, info: int) -> None:
    found, nodes = driver.find(handle, Executable, "executable graph"), _graph(driver, graph)
    ordered = nodes.ordered()
    if [node.kind for node in ordered] != [step.kind for step in found.steps.values()]:
        put_bytes(info, _UPDATE_INFO.pack(2, 0, 0))  # the topology changed
        raise DriverError(
            Result.GRAPH_EXEC_UPDATE_FAILURE, "the graph has other nodes than the executable one"
        )
    for step, node in zip(found.steps.values(), ordered, strict=True):
        step.run, step.parameters = node.run, node.parameters
    put_bytes(info, _UPDATE_INFO.pack(0, 0, 0))

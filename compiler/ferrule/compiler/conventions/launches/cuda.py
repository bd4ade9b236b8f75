"""Launches of kernels for NVIDIA GPUs that other compilers made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from typing import Literal

from llvmlite import ir

from ferrule.compiler.artefacts import Fault
from ferrule.compiler.conventions.apart import Apart, Memory, apart_of
from ferrule.compiler.conventions.arguments import (
    Argument,
    check_argument,
    describe,
    in_memory,
    listed,
    parameters,
    spoken,
)
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.launches.attributes import (
    AXES,
    PRIORITIES,
    Sizes,
    check_product,
    checked_carveout,
    checked_event,
    checked_flag,
    checked_priority,
    event_of,
    scheduling,
    three,
)
from ferrule.compiler.conventions.launches.gaps import structs, untold
from ferrule.compiler.conventions.launches.reach import check_reach
from ferrule.compiler.conventions.launches.restrict import (
    RESTRICTED,
    restricted_pairs,
    taken_addresses,
    taken_members,
)
from ferrule.compiler.conventions.launches.types import check_members, check_typed
from ferrule.compiler.conventions.launches.variables import (
    Constant,
    checked_constants,
    chosen_variables,
    write_variable,
)
from ferrule.compiler.cuda.binaries.fit import LaunchSizes
from ferrule.compiler.cuda.binaries.names import check_name
from ferrule.compiler.cuda.binaries.parameters import KernelParameters
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.cuda.kernelfacts import KernelFacts
from ferrule.compiler.cuda.launcher.attributes import Asked
from ferrule.compiler.cuda.launcher.driver import SHARED_BY_DEFAULT, ClusterScheduling
from ferrule.compiler.cuda.launcher.faults import failures
from ferrule.compiler.cuda.launcher.launch import Large
from ferrule.compiler.cuda.limits import (
    BLOCK_LIMITS,
    CLUSTER_LIMIT,
    GRID_LIMITS,
    MAX_THREADS,
    MOST_SHARED,
    another_size,
    beyond,
    no_whole_clusters,
    too_many_blocks,
    too_many_threads,
)
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.spelledtypes import read_type
from ferrule.runtime.llvm.layouts import I32
from ferrule.specs import Condition, Dim, Param, Signature
from ferrule.specs.conditions import checked_condition
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import is_dim
from ferrule.specs.params import EnvStream, Stream


@dataclass(frozen=True, slots=True, init=False)
class CudaLaunch:
    """Launches a kernel of some device code, with these parameters, in this order.

        CudaLaunch(code, "add", [sig["x"].data, sig["y"].data, n], grid=ceil_div(n, 256), block=256)

    `kernel` is a name for `DeviceCode.parameters`.  `params` are arguments of
    `conventions.arguments`; their sizes and types are compared with the kernel's parameters when
    the function is built.  `grid`, `block` and `cluster` are one to three sizes, `smem` the dynamic
    shared memory of a block in bytes.  `stream` is a stream parameter; the default is the caller's
    current stream.  `cooperative`: all blocks run at the same time; `use_pdl`: it may begin before
    the kernel before it on the stream has ended (programmatic dependent launch); `priority`: like
    the priority of streams, lower numbers run first; `preferred_smem_carveout`: the part of an SM's
    memory that is to be shared memory, in percent; `cluster_scheduling`: "spread" or
    "load_balancing", where the blocks of a cluster go.  `launch_completion_event` and
    `programmatic_event` are pointers without a dtype, each a CUevent that the launch records, with
    the flags of cuEventRecordWithFlags.  An empty grid launches nothing.  Sizes beyond CUDA's
    limits are a LaunchError of the call.

    Without `smem` there is no dynamic shared memory; for a kernel whose PTX shows that it uses
    some, this is a CompileError.  `constants` are values of `__constant__` and `__device__`
    variables, by their names: bytes or an array, a tensor of the call, 0 for zeros; they are
    written on the stream before each launch.  With None, a variable keeps the value that kernels
    wrote.  A variable without an initial value must be named, else it is a CompileError.  `apart`
    lists tensors that must not share memory, else it is a ValueError of the call; the default is
    the tensors of parameters that the source declares `__restrict__`.

    Raises TypeError for invalid sizes and arguments, ValueError for a number of sizes other than 1
    to 3 and for constants beyond the limits.
    """

    code: DeviceCode
    kernel: str
    params: tuple[Argument, ...]
    grid: Sizes
    block: Sizes
    smem: Dim
    cluster: Sizes | None
    stream: Param | None
    cooperative: bool
    use_pdl: bool
    priority: Dim | None
    preferred_smem_carveout: int | None
    cluster_scheduling: ClusterScheduling | None
    launch_completion_event: Param | None
    launch_completion_event_flags: int
    programmatic_event: Param | None
    programmatic_event_flags: int
    programmatic_event_trigger_at_block_start: bool
    when: Condition | None
    constants: tuple[Constant, ...]
    apart: Apart | None
    is_smem_said: bool

    def __init__(
        self,
        code: DeviceCode,
        kernel: str,
        params: Sequence[Argument],
        grid: Dim | Sequence[Dim],
        block: Dim | Sequence[Dim],
        smem: Dim | None = None,
        *,
        cluster: Dim | Sequence[Dim] | None = None,
        stream: Param | None = None,
        cooperative: bool = False,
        use_pdl: bool = False,
        priority: Dim | None = None,
        preferred_smem_carveout: int | None = None,
        cluster_scheduling: Literal["spread", "load_balancing"] | None = None,
        launch_completion_event: Param | None = None,
        launch_completion_event_flags: int = 0,
        programmatic_event: Param | None = None,
        programmatic_event_flags: int = 0,
        programmatic_event_trigger_at_block_start: bool = False,
        when: Condition | None = None,
        constants: Mapping[str, object] | None = None,
        apart: Sequence[Memory] | None = None,
    ) -> None:
        put = object.__setattr__
        if not isinstance(code, DeviceCode):
            raise TypeError(
                f"CudaLaunch: code must be a DeviceCode, such as DeviceCode.from_cubin(data), "
                f"but got {type(code).__name__}"
            )
        kernel = check_name(kernel, "CudaLaunch: kernel")
        code, kernel = code.holder(kernel)
        for position, param in enumerate(listed(params, f"CudaLaunch: the params of {kernel}")):
            check_argument(param, f"CudaLaunch: parameter #{position} of {kernel}")
        if stream is not None and not isinstance(stream, (Stream, EnvStream)):
            raise TypeError(f"CudaLaunch: stream must be a stream parameter, but got {stream!r}")
        put(self, "is_smem_said", smem is not None)
        smem = 0 if smem is None else smem
        if not is_dim(smem):
            raise TypeError(f"CudaLaunch: smem must be a size, but got {smem!r}")
        if isinstance(smem, int) and not 0 <= smem <= MOST_SHARED:
            raise ValueError(f"CudaLaunch: smem must be in [0, {MOST_SHARED}], but got {smem}")
        put(self, "code", code)
        put(self, "kernel", kernel)
        put(self, "params", tuple(params))
        put(self, "grid", three("grid", grid, [(0, limit) for limit in GRID_LIMITS]))
        put(self, "block", three("block", block, [(1, limit) for limit in BLOCK_LIMITS]))
        put(self, "smem", smem)
        clusters = None if cluster is None else three("cluster", cluster, [(1, CLUSTER_LIMIT)] * 3)
        put(self, "cluster", clusters)
        put(self, "cluster_scheduling", scheduling(cluster_scheduling))
        starts = programmatic_event_trigger_at_block_start
        completion = (launch_completion_event, launch_completion_event_flags)
        events = checked_event("launch_completion_event", *completion)
        programmatic = (programmatic_event, programmatic_event_flags, starts)
        events |= checked_event("programmatic_event", *programmatic)
        for name, given in events.items():
            put(self, name, given)
        put(self, "stream", stream)
        for name, flag in (
            ("cooperative", cooperative),
            ("use_pdl", use_pdl),
            ("programmatic_event_trigger_at_block_start", starts),
        ):
            put(self, name, checked_flag(name, flag))
        put(self, "priority", checked_priority(priority))
        put(self, "preferred_smem_carveout", checked_carveout(preferred_smem_carveout))
        put(self, "when", None if when is None else checked_condition(when))
        put(self, "constants", checked_constants(constants))
        put(self, "apart", None if apart is None else apart_of(apart))
        check_product("a block", "threads", self.block, MAX_THREADS)
        check_product("a cluster", "blocks", self.cluster or (1, 1, 1), CLUSTER_LIMIT)

    def codes(self) -> tuple[DeviceCode, ...]:
        """See `CallingConvention`."""
        return (self.code,)

    def results(self) -> tuple[Param, ...]:
        """See `CallingConvention`."""
        return ()

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        for argument in self.params:
            check_reach(self.kernel, argument)
        sizes = LaunchSizes(self.block, self.cluster, self.smem, self.grid)
        images = self.code.check_launch(self.kernel, self.packed(call), sizes)
        facts = self.code.facts_of(self.kernel)
        check_typed(self.kernel, call.signature, self.params, facts.types or (), facts.aligned)
        check_members(self.kernel, call.signature, self.params, facts.members)
        is_apart_said = self.apart is not None
        for text in untold(self.kernel, self.params, facts, is_apart_said=is_apart_said):
            call.remark(text)
        self._check_shared(images[0], facts)
        variables = chosen_variables(call, images, facts, self.constants)
        self._apart(facts).emit(call)
        grid = self._sizes(call, "grid", self.grid, [(0, limit) for limit in GRID_LIMITS])
        block = self._sizes(call, "block", self.block, [(1, limit) for limit in BLOCK_LIMITS])
        kernel, static = images[0], max(each.static_shared for each in images)
        self._require_block(call, images, block)
        smem = self._smem(call)
        asked = self._asked(call, kernel, grid)
        stream = None if self.stream is None else call.leaves(self.stream)[0]
        with call.entered(self.code):
            launcher, device = call.launcher(self.code)
            places = [place for i, _ in enumerate(self.params) for place in self._place(call, i)]
            used = launcher.current_stream(device) if stream is None else stream
            for variable, constant in variables:
                write_variable(call, launcher, variable, constant, used)
            call.say(partial(self._line, call.signature))
            status = launcher.launch(
                self.kernel,
                grid,
                block,
                smem,
                used,
                places,
                call.values,
                self._large(device, static),
                asked,
            )
            call.require(status, failures(f"in the launch of {self.kernel}", None))

    def _line(self, signature: Signature) -> str:
        """The launch, as the steps of a function show it."""
        given = ", ".join(spoken(signature, param) for param in self.params)
        sizes = {"grid": self.grid, "block": self.block, "cluster": self.cluster}
        words = [
            f"{name}=({', '.join(map(signature.format, size))})"
            for name, size in sizes.items()
            if size is not None
        ]
        words += [f"smem={signature.format(self.smem)}"] if self.smem != 0 else []
        stream = "the caller's stream" if self.stream is None else f"stream {self.stream.name}"
        return f"launch {self.kernel}({given}) {' '.join(words)} on {stream}"

    def _check_shared(self, kernel: KernelParameters, facts: KernelFacts) -> None:
        """Refuse a kernel that uses dynamic shared memory if the launch does not set its size."""
        known = facts.dynamic_shared
        if self.is_smem_said or not (kernel.dynamic_shared if known is None else known):
            return
        raise CompileError(
            Diagnostic(
                f"{kernel} uses shared memory whose size the launch says (extern __shared__), but "
                "the launch does not say it",
                hint="write smem=…, the bytes of a block; smem=0 where it uses none in these calls",
            )
        )

    def _apart(self, facts: KernelFacts) -> Apart:
        """The check of tensors that must not share memory."""
        if self.apart is not None:
            return self.apart
        types = [read_type(each) for each in facts.types or ()]
        taken = [*taken_addresses(self.params, types, facts.restricted or ())]
        for position, given, members in structs(self.params, facts):
            declared = {each.at: read_type(each.type) for each in members or ()}
            taken += taken_members(f"argument #{position}", given, declared)
        return Apart.of_pairs(restricted_pairs(self.kernel, taken), hint=RESTRICTED)

    def _place(self, call: Call, position: int) -> list[ir.Value]:
        what = f"parameter #{position} of {self.kernel}"
        return in_memory(call, self.params[position], what)

    def packed(self, call: Call) -> list[tuple[int, str]]:
        """The size in bytes of each parameter in the launch's list, and its description."""
        names = call.signature
        return [
            (size, describe(names, argument))
            for argument in self.params
            for size, _ in parameters(argument)
        ]

    def _sizes(
        self, call: Call, what: str, sizes: Sizes, limits: Sequence[tuple[int, int]]
    ) -> list[ir.Value]:
        """Three i64, each within its limits."""
        rows = zip(AXES, sizes, limits, strict=True)
        return [self._size(call, f"{what} {axis}", size, each) for axis, size, each in rows]

    def _size(self, call: Call, name: str, size: Dim, limits: tuple[int, int]) -> ir.Value:
        smallest, largest = limits
        value = call.size(size, f"Invalid launch of {self.kernel}: {name}", "LaunchError")
        if isinstance(size, int):
            return value
        e, fault = call.emitter, Fault("LaunchError", beyond(self.kernel, name, limits))
        below = e.icmp("slt", value, e.const_i64(smallest))
        above = e.icmp("sgt", value, e.const_i64(largest))
        call.refuse(e.binary("or", below, above), fault, [value])
        return value

    def _require_block(
        self, call: Call, images: Sequence[KernelParameters], block: Sequence[ir.Value]
    ) -> None:
        """Require a block size for which the kernel was compiled; if images differ, for one of
        them."""
        most = max(prod(each.max_block or (MAX_THREADS,)) for each in images)
        most = min(MAX_THREADS, most)
        message = too_many_threads(self.kernel, most)
        self._require_product(call, message, most, self.block, block)
        wanted = images[0].required_block or ()
        for axis, given, size, each in zip(AXES, self.block, block, wanted, strict=False):
            if not isinstance(given, int):
                fault = Fault("LaunchError", another_size(self.kernel, f"block {axis}", each))
                other = call.emitter.icmp("ne", size, call.emitter.const_i64(each))
                call.refuse(other, fault, [size])

    def _require_product(
        self, call: Call, message: str, most: int, dims: Sizes, sizes: Sequence[ir.Value]
    ) -> None:
        """Require a product of sizes that is not above the limit of threads or blocks."""
        if all(isinstance(dim, int) for dim in dims):
            return
        e, (x, y, z) = call.emitter, sizes
        count = e.binary("mul", e.binary("mul", x, y), z)
        many = e.icmp("sgt", count, e.const_i64(most))
        call.refuse(many, Fault("LaunchError", message), [count, x, y, z])

    def _smem(self, call: Call) -> ir.Value:
        return _narrow(call, self._size(call, "smem", self.smem, (0, MOST_SHARED)))

    def _large(self, device: ir.Value, static: int) -> Large | None:
        if isinstance(self.smem, int) and self.smem + static <= SHARED_BY_DEFAULT:
            return None
        return Large(device, static)

    def _asked(self, call: Call, kernel: KernelParameters, grid: Sequence[ir.Value]) -> Asked:
        e, cluster, priority = call.emitter, None, None
        if self.cluster is not None:
            limits = [(1, CLUSTER_LIMIT)] * 3
            sizes = self._sizes(call, "cluster", self.cluster, limits)
            message = too_many_blocks(self.kernel)
            self._require_product(call, message, CLUSTER_LIMIT, self.cluster, sizes)
            self._require_whole(call, grid, sizes)
            x, y, z = (_narrow(call, size) for size in sizes)
            cluster = (x, y, z)
        compiled = kernel.cluster or (1, 1, 1)
        if self.cluster is None:
            self._require_whole(call, grid, [e.const_i64(size) for size in compiled])
        if self.priority is not None:
            wide = self._size(call, "priority", self.priority, PRIORITIES)
            priority = _narrow(call, wide)
        return Asked(
            cluster=cluster,
            cooperative=self.cooperative,
            programmatic=self.use_pdl,
            priority=priority,
            carveout=self.preferred_smem_carveout,
            completion=event_of(
                call, self.launch_completion_event, self.launch_completion_event_flags
            ),
            programmatic_event=event_of(
                call,
                self.programmatic_event,
                self.programmatic_event_flags,
                self.programmatic_event_trigger_at_block_start,
            ),
            compiled_cluster=prod(compiled),
            scheduling=self.cluster_scheduling,
        )

    def _require_whole(
        self, call: Call, grid: Sequence[ir.Value], cluster: Sequence[ir.Value]
    ) -> None:
        """Require a grid of whole clusters."""
        e = call.emitter
        for axis, blocks, size in zip(AXES, grid, cluster, strict=True):
            if isinstance(size, ir.Constant) and size.constant == 1:
                continue
            message = no_whole_clusters(self.kernel, axis)
            rest = e.binary("srem", blocks, size)
            partial = e.icmp("ne", rest, e.const_i64(0))
            call.refuse(partial, Fault("LaunchError", message), [size, blocks])


def _narrow(call: Call, size: ir.Value) -> ir.Value:
    """A number that fits as i32; a constant remains a constant."""
    if isinstance(size, ir.Constant):
        return ir.Constant(I32, size.constant)
    return call.emitter.builder.trunc(size, I32)

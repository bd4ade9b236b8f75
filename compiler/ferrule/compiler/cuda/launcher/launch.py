"""The hot half of launching: the code that is emitted at each launch.

    launcher = Launcher(emitter, image, ["add_one"])
    entered, token, device = launcher.enter(device, values)
    …                                                 # only where entered is 0
    launched = launcher.launch("add_one", grid, block, smem, stream, [parameter], values)
    left = launcher.leave(token, values)

A launch on the current device makes two calls, both to the driver: cuCtxGetDevice and
cuLaunchKernelEx.  Every operation returns an i32: 0, or the number of the fault, from 1 on, in the
result of `faults.failures`; then the fault's values are in `values`, which has room for
`FAULT_ROOM`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import FAULT_ROOM
from ferrule.compiler.cuda.launcher import encode as encoding
from ferrule.compiler.cuda.launcher import fill as clearing
from ferrule.compiler.cuda.launcher.attributes import Asked, blocks_of_cluster, store_attributes
from ferrule.compiler.cuda.launcher.driver import (
    SHARED_BY_DEFAULT,
    JitOption,
    Result,
)
from ferrule.compiler.cuda.launcher.entries import (
    ALLOW,
    ALLOW_CLUSTERS,
    OPEN,
    POP,
    PROTOTYPES,
    PUSH,
    REFUSED,
    REGISTER,
    UNLOAD,
    WRITE,
)
from ferrule.compiler.cuda.launcher.images import NO_OPTIONS, Image, program_constant
from ferrule.compiler.cuda.launcher.state import (
    KERNEL,
    STATE,
    Phase,
    Status,
    call_driver,
    state_size,
    status,
)
from ferrule.compiler.cuda.limits import PORTABLE_CLUSTER
from ferrule.compiler.cuda.tilings import Columns, Tiling
from ferrule.runtime.llvm import launches
from ferrule.runtime.llvm.emitter import LIKELY, UNLIKELY, Emitter
from ferrule.runtime.llvm.launches import store_config, store_parameters
from ferrule.runtime.llvm.layouts import I1, I8, I32, I64, PTR, VOID
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Large:
    """A launch that may need more shared memory than `SHARED_BY_DEFAULT`.

    `device` is the ordinal of the device, an i32; `static`: the bytes of static shared memory.
    """

    device: ir.Value
    static: int = 0


@dataclass(frozen=True, slots=True)
class Otherwise:
    """Another kernel with the same parameters, which is launched where an i1 is false."""

    unless: ir.Value
    kernel: str


class Launcher:
    """Launches the kernels of images from the module under construction.

    The images go into the module as constants, with a state record; each GPU gets the best image.
    Loaded images stay loaded until a finaliser of the module unloads them.
    """

    def __init__(
        self,
        emitter: Emitter,
        images: bytes | Sequence[Image],
        kernels: Sequence[str],
        options: Mapping[JitOption, int] = NO_OPTIONS,
    ) -> None:
        """`images` are images for several architectures, or the PTX text or cubin of one that
        serves every GPU; `kernels` are names in each of them.  `options` are for the driver's
        assembler."""
        if not kernels or len(set(kernels)) != len(kernels):
            raise ValueError(f"wanted the names of kernels, each once, but got {list(kernels)!r}")
        self._emitter: Final = emitter
        self._places: Final = {
            name: STATE.size + KERNEL.size * number for number, name in enumerate(kernels)
        }
        table = [Image(images)] if isinstance(images, bytes) else images
        self._program: Final = program_constant(emitter, table, kernels, options)
        self._state: Final = static_state(emitter, state_size(len(kernels), len(table)))

    def enter(self, device: ir.Value, values: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """Make a device current; returns a status, a token, and the ordinal of the device.

        `device` is an i32: the ordinal, or -1 for the current device, or device 0 if there is none.
        The first call finds libcuda and loads the image.  The token is for `leave`; if the status
        is not 0, `leave` must not be called.
        """
        e = self._emitter
        opening, asking, changing, entered = map(
            e.block, ("cuda.open", "cuda.ask", "cuda.change", "cuda.entered")
        )
        current = e.alloca(I32, name="current")
        phase = e.builder.load_atomic(self._state, "acquire", 4, typ=I32, name="phase")
        ready = e.icmp("eq", phase, e.const_i32(Phase.READY))
        e.cond_branch(ready, asking, opening, LIKELY)

        e.at(opening)
        opened = self._cold(OPEN, self._state, self._program, device, values)
        e.cond_branch(e.icmp("eq", opened, status(Status.DONE)), asking, entered, LIKELY)

        e.at(asking)
        # Costs less than to push a context, which is only needed if another device is current.
        result = call_driver(e, self._state, "cuCtxGetDevice", [current])
        known = e.icmp("eq", result, e.const_i32(Result.SUCCESS))
        found = e.load(current, I32, name="found")
        same = e.icmp("eq", found, device)
        # -1: the call has no GPU of its own.
        any_will_do = e.icmp("slt", device, e.const_i32(0))
        fits = e.binary("and", known, e.binary("or", same, any_will_do))
        e.cond_branch(fits, entered, changing, LIKELY)

        e.at(changing)
        changed = self._cold(PUSH, self._state, device, result, values)
        pushed = e.select(any_will_do, e.const_i32(0), device)
        e.branch(entered)

        e.at(entered)
        came = e.builder.phi(I32, name="entered")
        came.add_incoming(opened, opening)
        came.add_incoming(status(Status.DONE), asking)
        came.add_incoming(changed, changing)
        used = e.builder.phi(I32, name="used")
        for value, block in ((device, opening), (found, asking), (pushed, changing)):
            used.add_incoming(value, block)
        token = e.icmp("eq", came, status(Status.PUSHED))
        return e.select(token, status(Status.DONE), came), token, used

    def open(self, device: ir.Value, values: ir.Value) -> ir.Value:
        """Load the image where another launcher has made the device current; returns a status.

        `device` is its ordinal, an i32; the rest is as for `enter`.
        """
        e = self._emitter
        opening, opened = e.block("cuda.open"), e.block("cuda.opened")
        phase = e.builder.load_atomic(self._state, "acquire", 4, typ=I32, name="phase")
        ready, start = e.icmp("eq", phase, e.const_i32(Phase.READY)), e.builder.block
        e.cond_branch(ready, opened, opening, LIKELY)
        e.at(opening)
        came = self._cold(OPEN, self._state, self._program, device, values)
        e.branch(opened)
        e.at(opened)
        result = e.builder.phi(I32, name="opened")
        result.add_incoming(status(Status.DONE), start)
        result.add_incoming(came, opening)
        return result

    def leave(self, token: ir.Value, values: ir.Value | None = None) -> ir.Value:
        """Restore the context from before `enter`; returns a status.

        Without `values`, after an error, the status is 0 and the error is kept.
        """
        e = self._emitter
        start, popping, left = e.builder.block, e.block("cuda.pop"), e.block("cuda.left")
        e.cond_branch(token, popping, left, UNLIKELY)
        e.at(popping)
        room = e.alloca(I64, FAULT_ROOM, name="unread") if values is None else values
        popped = self._cold(POP, self._state, room)
        e.branch(left)
        e.at(left)
        if values is None:
            return status(Status.DONE)
        came = e.builder.phi(I32, name="left")
        came.add_incoming(status(Status.DONE), start)
        came.add_incoming(popped, popping)
        return came

    def current_stream(self, device: ir.Value) -> ir.Value:
        """The caller's current stream on a device, whose ordinal is an i32."""
        return launches.current_stream(self._emitter, device)

    def tensor_map(self) -> ir.Value:
        """A place for a tensor map on the stack, the address of a kernel's parameter."""
        return encoding.tensor_map(self._emitter)

    def encode_tensor_map(
        self,
        tiling: Tiling | Columns,
        place: ir.Value,
        address: ir.Value,
        sizes: Sequence[ir.Value],
        strides: Sequence[ir.Value],
        values: ir.Value,
    ) -> ir.Value:
        """Encode a tensor map after `enter`; returns 0, or the number of a fault, from 1 on, in the
        result of `tensormaps.encoding_faults`.

        `place` is a `tensor_map`, `address` that of the tensor's first element.  `sizes` are its
        dims, i64, from the innermost on, `strides` the strides in bytes of all but the innermost.
        The map of a tensor without elements must not be used by any copy.
        """
        given = (self._state, tiling, place, address, sizes, strides, values)
        return encoding.encode(self._emitter, *given)

    def clear(
        self, address: ir.Value, count: ir.Value, stream: ir.Value, values: ir.Value
    ) -> ir.Value:
        """Fill this number of bytes, an i64, with zeros in the order of a stream, after `enter`;
        returns a status."""
        return clearing.clear(self._emitter, self._state, address, count, stream, values)

    def write(
        self, name: str, source: ir.Value, size: int, stream: ir.Value, values: ir.Value
    ) -> ir.Value:
        """Write a variable of the images after `enter`, on a stream; returns a status.

        `source` is the address of `size` bytes, on the host or the device, or null for zeros.
        """
        e = self._emitter
        given = [e.cstring(name), source, e.const_i64(size), stream, values]
        return self._cold(WRITE, self._state, *given)

    def launch(
        self,
        kernel: str,
        grid: Sequence[ir.Value],
        block: Sequence[ir.Value],
        smem: ir.Value,
        stream: ir.Value,
        parameters: Sequence[ir.Value],
        values: ir.Value,
        large: Large | None = None,
        asked: Asked | None = None,
        otherwise: Otherwise | None = None,
    ) -> ir.Value:
        """Launch a kernel after `enter`; returns a status.

        `grid` and `block` are three i64 each, within CUDA's limits; an empty grid launches nothing.
        `smem` is the dynamic shared memory of a block in bytes, an i32, `stream` an address.  Each
        of `parameters` is the address of a kernel parameter's value.  `large`: a block may use more
        than 48 KiB of shared memory, for which a kernel needs an attribute.  `asked`: the launch
        attributes.  `otherwise`: another kernel that some calls launch instead.
        """
        e = self._emitter
        asked = asked or Asked()
        config = store_config(e, grid, block, smem, stream, store_attributes(e, asked))
        pointers = store_parameters(e, parameters)
        start, calling = e.builder.block, e.block("cuda.launch")
        failing, launched = e.block("cuda.failed"), e.block("cuda.launched")
        e.cond_branch(self._is_empty(grid), launched, calling, UNLIKELY)

        e.at(calling)
        kernel_at = e.index(self._state, I8, self._places[kernel])
        if otherwise is not None:
            other = e.index(self._state, I8, self._places[otherwise.kernel])
            kernel_at = e.select(otherwise.unless, kernel_at, other)
        not_allowed = self._allow_all(kernel_at, smem, large, asked, values, launched)
        function = e.load_field(kernel_at, KERNEL, "handle", name=kernel)
        operands = [config, function, pointers, e.null()]
        calling, result = e.builder.block, call_driver(e, self._state, "cuLaunchKernelEx", operands)
        went_well = e.icmp("eq", result, e.const_i32(Result.SUCCESS))
        e.cond_branch(went_well, launched, failing, LIKELY)

        e.at(failing)
        given = (self._program, kernel_at, function, config, pointers, result, values)
        failed = self._cold(REFUSED, self._state, *given)
        e.branch(launched)

        e.at(launched)
        came = e.builder.phi(I32, name="launched")
        came.add_incoming(status(Status.DONE), start)
        came.add_incoming(status(Status.DONE), calling)
        came.add_incoming(failed, failing)
        for refused in not_allowed:
            came.add_incoming(*refused)
        return came

    def _allow_all(
        self,
        kernel: ir.Value,
        smem: ir.Value,
        large: Large | None,
        asked: Asked,
        values: ir.Value,
        launched: ir.Block,
    ) -> list[tuple[ir.Value, ir.Block]]:
        """Set the attributes of a kernel that a launch needs beyond the defaults.

        Returns the statuses of failures, and the blocks from which the code branches to `launched`.
        """
        e, refused = self._emitter, []
        if large is not None:
            fits = e.icmp("ule", smem, e.const_i32(SHARED_BY_DEFAULT - large.static))
            given = [kernel, large.device, smem, values]
            refused.append(self._allow(fits, ALLOW, given, launched))
        blocks = blocks_of_cluster(e, asked)
        if not isinstance(blocks, ir.Constant) or blocks.constant > PORTABLE_CLUSTER:
            fits = e.icmp("ule", blocks, e.const_i32(PORTABLE_CLUSTER))
            refused.append(self._allow(fits, ALLOW_CLUSTERS, [kernel, values], launched))
        return refused

    def _allow(
        self, fits: ir.Value, name: str, given: Sequence[ir.Value], launched: ir.Block
    ) -> tuple[ir.Value, ir.Block]:
        """Call a function that sets an attribute, unless the launch fits without it."""
        e = self._emitter
        allowing, allowed = e.block("cuda.allow"), e.block("cuda.allowed")
        e.cond_branch(fits, allowed, allowing)
        e.at(allowing)
        went = self._cold(name, self._state, *given)
        e.cond_branch(e.icmp("eq", went, status(Status.DONE)), allowed, launched, LIKELY)
        e.at(allowed)
        return went, allowing

    def _cold(self, name: str, *arguments: ir.Value) -> ir.Value:
        function = self._emitter.symbol(name, PROTOTYPES[name])
        for attribute in ("cold", "nounwind"):
            function.attributes.add(attribute)
        return self._emitter.call(function, arguments)

    def _is_empty(self, grid: Sequence[ir.Value]) -> ir.Value:
        e = self._emitter
        if any(isinstance(dim, ir.Constant) and dim.constant == 0 for dim in grid):
            return ir.Constant(I1, 1)
        zeros = [
            e.icmp("eq", dim, e.const_i64(0)) for dim in grid if not isinstance(dim, ir.Constant)
        ]
        return reduce(partial(e.binary, "or"), zeros) if zeros else ir.Constant(I1, 0)


_USUAL: Final = 65535
"""The default priority of constructors and destructors."""


def static_state(emitter: Emitter, size: int) -> ir.Value:
    """Memory of the object, zero at start; its images are unloaded together with the code."""
    kind = ir.ArrayType(I8, size)
    state = ir.GlobalVariable(emitter.module, kind, emitter.module.get_unique_name("cuda.state"))
    state.linkage = "internal"
    state.initializer = ir.Constant(kind, None)
    state.align = STATE.align
    state.type = PTR
    _with_library(emitter, state)
    return state


def _with_library(emitter: Emitter, state: ir.Value) -> None:
    """Register the state, and unload it together with the code."""
    for when, entry in (("llvm.global_ctors", REGISTER), ("llvm.global_dtors", UNLOAD)):
        name = emitter.module.get_unique_name(entry.replace("ferrule_cuda_", "cuda."))
        with emitter.define(name, VOID, [], linkage="internal") as function:
            emitter.call(emitter.symbol(entry, PROTOTYPES[entry]), [state])
            emitter.ret()
        _append(emitter.module, when, function)


def _append(module: ir.Module, name: str, function: ir.Function) -> None:
    """Make a function run when the code is loaded, or unloaded (LLVM's language reference)."""
    address = ir.FormattedConstant(PTR, function.get_reference())
    row = ir.Constant.literal_struct([ir.Constant(I32, _USUAL), address, ir.Constant(PTR, None)])
    known = module.globals.get(name)
    rows = [row] if known is None else [*known.initializer.constant, row]
    kind = ir.ArrayType(row.type, len(rows))
    if known is None:
        known = ir.GlobalVariable(module, kind, name)
        known.linkage = "appending"
    known.value_type = kind
    known.initializer = ir.Constant(kind, rows)

"""The hot half of launching: code that stands where the kernels are launched.

    launcher = Launcher(emitter, image, ["add_one"])
    entered, token, device = launcher.enter(device, values)
    …                                                 # only where entered is 0
    launched = launcher.launch("add_one", grid, block, smem, stream, [parameter], values)
    left = launcher.leave(token, values)

On its way to a launch on the device that is current already it makes two calls, both of the
driver: cuCtxGetDevice and cuLaunchKernelEx; two more where blocks have more than 48 KiB of shared
memory.  Every operation gives an i32: 0, or the number of the
fault, from 1 on, in what `failures` gives; the fault's values are in `values` then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import Fault, Location, literal
from ferrule.compiler.cuda.driver import (
    LAUNCH_CONFIG,
    LIBRARY,
    SHARED_BY_DEFAULT,
    SINCE,
    Attribute,
    Result,
)
from ferrule.compiler.cuda.state import STATE, Phase, Status, call_driver, status
from ferrule.compiler.cuda.support import FAILED, OPEN, POP, PROTOTYPES, PUSH
from ferrule.runtime.abi import DeviceType
from ferrule.runtime.llvm.emitter import LIKELY, UNLIKELY, Emitter
from ferrule.runtime.llvm.layouts import I1, I8, I32, I64, PTR, size_of

_KIND: Final = "CudaError"
_SLOT: Final = size_of(PTR)
"""Bytes that a kernel takes behind the state."""


@dataclass(frozen=True, slots=True)
class Large:
    """A launch that may need more shared memory than `SHARED_BY_DEFAULT`.

    `device` is the ordinal of the device, an i32; `static`: the bytes of static shared memory.
    """

    device: ir.Value
    static: int = 0


def failures(doing: str, location: Location | None) -> tuple[Fault, ...]:
    """The faults behind the statuses 1, 2, …; `doing` ends their messages: `in the launch of f`."""
    where = literal(doing)
    messages = {
        Status.CALL_FAILED: f"{{text}} failed with {{text}} ({{}}: {{text}}) {where}",
        Status.NO_KERNEL: "cuLibraryGetKernel of the kernel {text} failed with {text} ({}: {text}) "
        + where,
        Status.NO_LIBRARY: f"the CUDA driver cannot be loaded {where}: {{text}}; "
        f"{LIBRARY} comes with the NVIDIA driver: install that",
        Status.NO_FUNCTION: f"the CUDA driver has no {{text}}, which is needed {where}: "
        f"wanted the driver of CUDA {SINCE} or later; update the NVIDIA driver",
    }
    return tuple(Fault(_KIND, messages[Status(i + 1)], location) for i in range(len(messages)))


class Launcher:
    """Launches the kernels of one image from the module under construction.

    The image goes into the module as a constant, with what the object keeps about it: once it is
    loaded it stays so until the process ends.
    """

    def __init__(self, emitter: Emitter, image: bytes, kernels: Sequence[str]) -> None:
        """`image` is PTX text, which gets its NUL here, or a cubin; `kernels` are names in it."""
        if not kernels or len(set(kernels)) != len(kernels):
            raise ValueError(f"wanted the names of kernels, each once, but got {list(kernels)!r}")
        self._emitter: Final = emitter
        self._places: Final = {
            name: STATE.size + _SLOT * number for number, name in enumerate(kernels)
        }
        names = b"".join(name.encode() + b"\0" for name in kernels)
        self._names: Final = emitter.bytes_constant(names)
        self._image: Final = emitter.bytes_constant(image + b"\0", align=16)
        self._state: Final = _state(emitter, STATE.size + _SLOT * len(kernels))

    def enter(self, device: ir.Value, values: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """Make a device current: status, token, and the ordinal of the device.

        `device` is an i32, the ordinal, or -1 for whatever is current, device 0 where nothing is.
        libcuda is found and the image loaded on the first call.  The token is for `leave`; where
        the status is not 0 there is nothing to leave.
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
        count = e.const_i64(len(self._places))
        opened = self._cold(OPEN, self._state, self._image, self._names, count, values)
        e.cond_branch(e.icmp("eq", opened, status(Status.DONE)), asking, entered, LIKELY)

        e.at(asking)
        result = call_driver(e, self._state, "cuCtxGetDevice", [current])
        known = e.icmp("eq", result, e.const_i32(Result.SUCCESS))
        found = e.load(current, I32, name="found")
        same = e.icmp("eq", found, device)
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

    def leave(self, token: ir.Value, values: ir.Value | None = None) -> ir.Value:
        """Make current what was before `enter`: a status.

        Without `values`, after an error, it is 0 and the error stays as it is.
        """
        e = self._emitter
        start, popping, left = e.builder.block, e.block("cuda.pop"), e.block("cuda.left")
        e.cond_branch(token, popping, left, UNLIKELY)
        e.at(popping)
        room = e.alloca(I64, 4, name="unread") if values is None else values
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
        kind = self._emitter.const_i32(DeviceType.CUDA)
        return self._emitter.call("TVMFFIEnvGetStream", [kind, device], "stream")

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
    ) -> ir.Value:
        """Launch a kernel behind `enter`: a status.

        `grid` and `block` are three i64 each, within CUDA's limits; an empty grid launches nothing.
        `smem` is the dynamic shared memory of a block in bytes, an i32, `stream` an address.  Each
        of `parameters` is the address of a kernel parameter's value.  `large`: where a block may
        have more than 48 KiB of shared memory, which a kernel must be allowed to.
        """
        e = self._emitter
        config = self._config(grid, block, smem, stream)
        pointers = self._pointers(parameters)
        start, calling = e.builder.block, e.block("cuda.launch")
        failing, launched = e.block("cuda.failed"), e.block("cuda.launched")
        e.cond_branch(self._is_empty(grid), launched, calling, UNLIKELY)

        e.at(calling)
        function = e.load(e.index(self._state, I8, self._places[kernel]), PTR, name=kernel)
        refused = None if large is None else self._allow(function, smem, large, values, launched)
        operands = [config, function, pointers, e.null()]
        calling, result = e.builder.block, call_driver(e, self._state, "cuLaunchKernelEx", operands)
        went_well = e.icmp("eq", result, e.const_i32(Result.SUCCESS))
        e.cond_branch(went_well, launched, failing, LIKELY)

        e.at(failing)
        call = e.cstring("cuLaunchKernelEx")
        failed = self._cold(FAILED, self._state, result, call, values)
        e.branch(launched)

        e.at(launched)
        came = e.builder.phi(I32, name="launched")
        came.add_incoming(status(Status.DONE), start)
        came.add_incoming(status(Status.DONE), calling)
        came.add_incoming(failed, failing)
        if refused is not None:
            came.add_incoming(*refused)
        return came

    def _allow(
        self,
        function: ir.Value,
        smem: ir.Value,
        large: Large,
        values: ir.Value,
        launched: ir.Block,
    ) -> tuple[ir.Value, ir.Block]:
        """Allow a kernel all the shared memory that the device has, if a launch needs that.

        Always all, because other threads may launch it at the same time.  Gives the status where
        that fails, and the block from which it goes to `launched`.
        """
        e = self._emitter
        asking, allowing = e.block("cuda.ask"), e.block("cuda.allow")
        refused, allowed = e.block("cuda.refused"), e.block("cuda.allowed")
        most = e.alloca(I32, name="most")
        fits = e.icmp("ule", smem, e.const_i32(SHARED_BY_DEFAULT - large.static))
        e.cond_branch(fits, allowed, asking)
        results = []
        e.at(asking)
        asked = [most, e.const_i32(Attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), large.device]
        results.append(call_driver(e, self._state, "cuDeviceGetAttribute", asked))
        e.cond_branch(e.icmp("eq", results[-1], e.const_i32(0)), allowing, refused, LIKELY)
        e.at(allowing)
        rest = e.binary("sub", e.load(most, I32), e.const_i32(large.static))
        kind = e.const_i32(Attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES)
        given = [kind, rest, function, large.device]
        results.append(call_driver(e, self._state, "cuKernelSetAttribute", given))
        e.cond_branch(e.icmp("eq", results[-1], e.const_i32(0)), allowed, refused, LIKELY)
        e.at(refused)
        result, call = e.builder.phi(I32, name="result"), e.builder.phi(PTR, name="call")
        names = ("cuDeviceGetAttribute", "cuKernelSetAttribute")
        for each, name, block in zip(results, names, (asking, allowing), strict=True):
            result.add_incoming(each, block)
            call.add_incoming(e.cstring(name), block)
        failed = self._cold(FAILED, self._state, result, call, values)
        e.branch(launched)
        e.at(allowed)
        return failed, refused

    def _cold(self, name: str, *arguments: ir.Value) -> ir.Value:
        function = self._emitter.symbol(name, PROTOTYPES[name])
        for attribute in ("cold", "nounwind"):
            function.attributes.add(attribute)
        return self._emitter.call(function, arguments)

    def _config(
        self,
        grid: Sequence[ir.Value],
        block: Sequence[ir.Value],
        smem: ir.Value,
        stream: ir.Value,
    ) -> ir.Value:
        e = self._emitter
        config = e.alloca(LAUNCH_CONFIG, name="config")
        for size, dims in (("grid", grid), ("block", block)):
            for axis, dim in zip("XYZ", dims, strict=True):
                e.store_field(config, LAUNCH_CONFIG, f"{size}Dim{axis}", self._narrow(dim))
        e.store_field(config, LAUNCH_CONFIG, "sharedMemBytes", smem)
        e.store_field(config, LAUNCH_CONFIG, "hStream", stream)
        e.store_field(config, LAUNCH_CONFIG, "attrs", e.null())
        e.store_field(config, LAUNCH_CONFIG, "numAttrs", e.const_i32(0))
        return config

    def _pointers(self, parameters: Sequence[ir.Value]) -> ir.Value:
        e = self._emitter
        if not parameters:
            return e.null()
        pointers = e.alloca(PTR, len(parameters), name="parameters")
        for number, parameter in enumerate(parameters):
            e.store(parameter, e.index(pointers, PTR, number))
        return pointers

    def _narrow(self, dim: ir.Value) -> ir.Value:
        if isinstance(dim, ir.Constant):
            return ir.Constant(I32, dim.constant)
        return self._emitter.builder.trunc(dim, I32)

    def _is_empty(self, grid: Sequence[ir.Value]) -> ir.Value:
        e = self._emitter
        if any(isinstance(dim, ir.Constant) and dim.constant == 0 for dim in grid):
            return ir.Constant(I1, 1)
        zeros = [
            e.icmp("eq", dim, e.const_i64(0)) for dim in grid if not isinstance(dim, ir.Constant)
        ]
        return reduce(partial(e.binary, "or"), zeros) if zeros else ir.Constant(I1, 0)


def _state(emitter: Emitter, size: int) -> ir.Value:
    """Memory of the object, zero at start."""
    kind = ir.ArrayType(I8, size)
    state = ir.GlobalVariable(emitter.module, kind, emitter.module.get_unique_name("cuda.state"))
    state.linkage = "internal"
    state.initializer = ir.Constant(kind, None)
    state.align = STATE.align
    state.type = PTR
    return state

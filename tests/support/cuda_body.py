"""A body that launches kernels of an image written by hand, behind a wrapper that takes numbers.

`launches()` is a function of the device, the kernel's number, grid, block, shared memory, stream
and two values that the kernels get.  With it the tests see what generated code does to the driver.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from llvmlite import ir
from wrapper_calls import Refused, _raised, forge

from ferrule.compiler import targets
from ferrule.compiler.artefacts import Body, Location
from ferrule.compiler.cuda.launcher.faults import failures
from ferrule.compiler.cuda.launcher.launch import Large, Launcher
from ferrule.compiler.origin import CompiledOrigin, host_module
from ferrule.runtime import Function, ObjectCode, load_function
from ferrule.runtime.linking.engine import Engine
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I32, I64, PTR
from ferrule.specs import Int32, Int64, Scalar, Signature

NAME = "launches"
WHERE = Location("kernels.py", "launches", 7)
ANY_DEVICE = -1
ENV_STREAM = -1
IMAGE = b"""\
.version 7.8
.target sm_80
.address_size 64

.visible .entry first(
    .param .u64 .ptr .global .align 4 first_a,
    .param .f32 first_b
)
{
    ret;
}
.visible .entry second(.param .align 8 .b8 second_both[16])
{
    ret;
}
"""
KERNELS = ("first", "second")
_SIZES = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_PARAMS = (
    Scalar("device", Int32),
    Scalar("kernel", Int32),
    *(Scalar(name, Int64) for name in _SIZES),
    Scalar("smem", Int32),
    Scalar("stream", Int64),
    Scalar("a", Int64),
    Scalar("b", Int32),
)
SIGNATURE = Signature(NAME, _PARAMS)
_TYPES = {Int32: I32, Int64: I64}


def body(image: bytes = IMAGE, kernels: Sequence[str] = KERNELS) -> Body:
    """The body; each call is one launch."""
    e = Emitter(NAME)
    types = [PTR, *(_TYPES[param.dtype] for param in _PARAMS)]
    names = ["values", *(param.name for param in _PARAMS)]
    launcher = Launcher(e, image, kernels)
    with e.define("ferrule_body", I32, types, names=names) as function:
        given = dict(zip(names, function.args, strict=True))
        entered, token, device = launcher.enter(given["device"], given["values"])
        with e.if_then(e.icmp("ne", entered, e.const_i32(0)), likely=False):
            e.ret(entered)
        stream = e.alloca(PTR, name="stream")
        e.store(e.builder.inttoptr(given["stream"], PTR), stream)
        with e.if_then(e.icmp("eq", given["stream"], e.const_i64(ENV_STREAM))):
            e.store(launcher.current_stream(device), stream)
        status = _launch(e, launcher, given, e.load(stream, PTR), Large(device))
        with e.if_then(e.icmp("ne", status, e.const_i32(0)), likely=False):
            launcher.leave(token)
            e.ret(status)
        e.ret(launcher.leave(token, given["values"]))
    return Body(e.text(), "ferrule_body", (), failures("in the launch of {first}", WHERE))


def _launch(
    e: Emitter, launcher: Launcher, given: dict[str, ir.Value], stream: ir.Value, large: Large
) -> ir.Value:
    """One of the kernels: `first(a, b)`, `second({a, b})`."""
    sizes = [given[name] for name in _SIZES]
    a, both = e.alloca(I64, name="a"), e.alloca(I64, 2, name="both")
    b = e.alloca(I32, name="b")
    e.store(given["a"], a)
    e.store(given["b"], b)
    e.store(given["a"], both)
    e.store(e.builder.sext(given["b"], I64), e.index(both, I64, 1))
    place = e.alloca(I32, name="status")
    first = e.icmp("eq", given["kernel"], e.const_i32(0))
    with e.builder.if_else(first) as (then, otherwise):
        for name, way, parameters in (("first", then, [a, b]), ("second", otherwise, [both])):
            with way:
                rest = given["smem"], stream, parameters, given["values"], large
                e.store(launcher.launch(name, sizes[:3], sizes[3:], *rest), place)
    return e.load(place, I32)


@cache
def code(image: bytes = IMAGE, kernels: Sequence[str] = KERNELS) -> tuple[CompiledOrigin, Any]:
    """Origin and object, made once."""
    origin = CompiledOrigin(host_module(SIGNATURE, body(image, kernels)), "")
    here = targets.host()
    return origin, origin.emit(NAME, here.cpu, here.triple)


@dataclass(frozen=True, slots=True)
class Args:
    """The arguments of a call."""

    device: int = 0
    kernel: int = 0
    grid: tuple[int, int, int] = (4, 1, 1)
    block: tuple[int, int, int] = (128, 1, 1)
    smem: int = 0
    stream: int = 0
    a: int = 4096
    b: int = 7

    def __iter__(self) -> Any:
        numbers = (self.smem, self.stream, self.a, self.b)
        return iter((self.device, self.kernel, *self.grid, *self.block, *numbers))


class Launches:
    """The function, loaded: an object with nothing in its state."""

    def __init__(self, image: bytes = IMAGE, kernels: Sequence[str] = KERNELS) -> None:
        origin, made = code(image, tuple(kernels))
        assert isinstance(made, ObjectCode)
        self.function: Function = load_function(made, SIGNATURE, origin)
        self.engine = Engine.load(made)
        address = self.engine.address(f"__tvm_ffi_{NAME}")
        kind = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p
        )
        self._address = kind(address)

    def __call__(self, **changes: Any) -> None:
        """A call from Python."""
        self.function(*Args(**changes))

    def refused(self, **changes: Any) -> str:
        """The error of a call as C finds it: `CudaError: …`."""
        try:
            self.call_from_c(**changes)
        except Refused as error:
            return str(error)
        raise AssertionError("the call was accepted")

    def call_from_c(self, **changes: Any) -> None:
        """A call through the C symbol of another copy of the object, without the GIL."""
        forged, result = forge(list(Args(**changes))), ctypes.create_string_buffer(16)
        if self._address(None, ctypes.addressof(forged.args), len(_PARAMS), result):
            raise _raised()


def at_once(launches: Launches, count: int) -> list[str]:
    """Calls from so many threads; the errors."""
    start, errors = threading.Barrier(count), []

    def call() -> None:
        start.wait()
        try:
            launches.call_from_c(device=1)
        except Exception as error:
            errors.append(str(error))

    threads = [threading.Thread(target=call) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors

"""Chooses the image for a GPU: the first one in an object's table that serves it.

On most machines all GPUs are of one kind, or get the same image: the code finds this out when the
first kernel is loaded.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.compiler.cuda.launcher.cold import attempt, call, cold
from ferrule.compiler.cuda.launcher.driver import Attribute
from ferrule.compiler.cuda.launcher.images import IMAGE, Serves
from ferrule.compiler.cuda.launcher.state import PROGRAM, Status, call_driver, status
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I1, I8, I32, I64, PTR

CAPABILITY: Final = "ferrule_cuda_capability"
CAPABILITY_TYPE: Final = ir.FunctionType(I32, [PTR, I32])
SERVING: Final = "ferrule_cuda_serving"
SERVING_TYPE: Final = ir.FunctionType(I64, [PTR, I32, I64])
COMMON: Final = "ferrule_cuda_common"
COMMON_TYPE: Final = ir.FunctionType(I32, [PTR, PTR, PTR, PTR])
DIFFERENT: Final = -1
"""The result of `COMMON` if GPUs get different images."""
_SERVES: Final = "ferrule_cuda_serves"
_SERVES_TYPE: Final = ir.FunctionType(I1, [PTR, I32])


def define_choosing(emitter: Emitter) -> None:
    """`CAPABILITY`, `SERVING` and `COMMON`."""
    _define_capability(emitter)
    _define_serves(emitter)
    _define_serving(emitter)
    _define_common(emitter)


def image_at(emitter: Emitter, program: ir.Value, number: ir.Value) -> ir.Value:
    """The address of an image's row."""
    images = emitter.load_field(program, PROGRAM, "images")
    return emitter.index(images, I8, emitter.binary("mul", number, emitter.const_i64(IMAGE.size)))


def ordinal(emitter: Emitter, state: ir.Value, device: ir.Value) -> ir.Value:
    """The ordinal of a device; for -1 that of the current device, or 0 if there is none."""
    place, zero = emitter.alloca(I32, name="wanted"), emitter.const_i32(0)
    emitter.store(device, place)
    with emitter.if_then(emitter.icmp("slt", device, zero)):
        emitter.store(zero, place)
        call_driver(emitter, state, "cuCtxGetDevice", [place])
    return emitter.load(place, I32)


def _define_capability(emitter: Emitter) -> None:
    """`i32 ferrule_cuda_capability(ptr state, i32 device)`: ten times the compute capability; 0 if
    unknown."""
    wanted = (Attribute.COMPUTE_CAPABILITY_MAJOR, Attribute.COMPUTE_CAPABILITY_MINOR)
    with cold(emitter, CAPABILITY, CAPABILITY_TYPE) as (state, device):
        place, found = emitter.alloca(I32, name="asked"), []
        for attribute in wanted:
            asked = [place, emitter.const_i32(attribute), device]
            result = call_driver(emitter, state, "cuDeviceGetAttribute", asked)
            with emitter.if_then(emitter.icmp("ne", result, emitter.const_i32(0))):
                emitter.ret(emitter.const_i32(0))
            found.append(emitter.load(place, I32))
        tens = emitter.binary("mul", found[0], emitter.const_i32(10))
        emitter.ret(emitter.binary("add", tens, found[1]))


def _define_serves(emitter: Emitter) -> None:
    """`i1 ferrule_cuda_serves(ptr image, i32 capability)`."""
    with cold(emitter, _SERVES, _SERVES_TYPE) as (image, capability):
        b, ten = emitter.builder, emitter.const_i32(10)
        number = emitter.load_field(image, IMAGE, "number")
        serves = emitter.load_field(image, IMAGE, "serves")
        newer = emitter.icmp("sge", capability, number)
        same = emitter.icmp("eq", capability, number)
        # Ten times the capability, so the quotient is the major version.
        family = b.and_(newer, b.icmp_signed("==", b.udiv(capability, ten), b.udiv(number, ten)))
        found: ir.Value = ir.Constant(I1, 1)
        for kind, answer in (
            (Serves.NEWER, newer), (Serves.SAME, same), (Serves.FAMILY, family)
        ):  # fmt: skip
            found = emitter.select(
                emitter.icmp("eq", serves, emitter.const_i32(kind)), answer, found
            )
        emitter.ret(found)


def _define_serving(emitter: Emitter) -> None:
    """`i64 ferrule_cuda_serving(ptr program, i32 capability, i64 start)`: the number of the first
    image from `start` on that serves a GPU, or the number of images if there is none.

    Every image serves the capability 0, which means unknown.
    """
    with cold(emitter, SERVING, SERVING_TYPE) as (program, capability, start):
        count = emitter.load_field(program, PROGRAM, "image_count")
        unknown = emitter.icmp("eq", capability, emitter.const_i32(0))
        with emitter.loop(emitter.binary("sub", count, start)) as behind:
            number = emitter.binary("add", start, behind)
            image = image_at(emitter, program, number)
            fits = call(emitter, _SERVES, _SERVES_TYPE, image, capability)
            with emitter.if_then(emitter.binary("or", unknown, fits)):
                emitter.ret(number)
        emitter.ret(count)


def _define_common(emitter: Emitter) -> None:
    """`i32 ferrule_cuda_common(ptr state, ptr program, ptr out, ptr values)`: the number, i64, of
    the image that is the best one for every GPU of the machine; `DIFFERENT` if there is none."""
    zero = emitter.const_i64(0)
    with cold(emitter, COMMON, COMMON_TYPE) as (state, program, out, values):
        emitter.store(zero, out)
        first = image_at(emitter, program, zero)
        serves = emitter.load_field(first, IMAGE, "serves")
        with emitter.if_then(emitter.icmp("eq", serves, emitter.const_i32(Serves.ALL))):
            emitter.ret(status(Status.DONE))
        devices = emitter.alloca(I32, name="devices")
        attempt(emitter, state, values, "cuDeviceGetCount", devices)
        with emitter.loop(emitter.load(devices, I32), name="device") as device:
            own = call(emitter, CAPABILITY, CAPABILITY_TYPE, state, device)
            best = call(emitter, SERVING, SERVING_TYPE, program, own, zero)
            is_first = emitter.icmp("eq", device, emitter.const_i32(0))
            with emitter.if_then(is_first):
                emitter.store(best, out)
            same = emitter.icmp("eq", best, emitter.load(out, I64))
            with emitter.if_then(emitter.not_(same)):
                emitter.store(emitter.const_i64(DIFFERENT), out)
                emitter.ret(status(Status.DONE))
        emitter.ret(status(Status.DONE))

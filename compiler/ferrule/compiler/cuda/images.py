"""Which of several images a GPU gets: the table of an object, and the code that chooses.

PTX for a plain architecture serves every GPU that is not older.  What has an `a` behind its number
serves that architecture alone, what has an `f` the newer ones of its major version too (PTX ISA,
".target").  A cubin serves its own architecture and the newer ones of its major version, with an
`a` its own alone (CUDA C++ Programming Guide, "Binary Compatibility").  Of
the images that serve a GPU it gets the one for the highest number; of one number the cubin goes
before the PTX and the special before the plain one.

One image serves a process: where its GPUs differ it is the best one that serves all of them, and if
there is none, the best one for the GPU of the first call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import DeviceCode
from ferrule.compiler.cuda.archs import capability
from ferrule.compiler.cuda.cold import attempt, call, cold, end
from ferrule.compiler.cuda.driver import Attribute, JitOption
from ferrule.compiler.cuda.state import PROGRAM, Status, call_driver, status
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I1, I8, I32, PTR, Field, Layout, size_of


class Serves(IntEnum):
    """Which GPUs an image is for."""

    ALL = 0
    """Whatever its number: nothing is known of it."""
    NEWER = 1
    SAME = 2
    FAMILY = 3


@dataclass(frozen=True, slots=True)
class Image:
    """PTX text or a cubin, for an architecture such as "sm_90a"; None where that is not known."""

    data: bytes = field(repr=False)
    arch: str | None = None
    is_cubin: bool = False

    @property
    def serves(self) -> Serves:
        """Which GPUs it is for."""
        if self.arch is None:
            return Serves.ALL
        if self.arch.endswith("a"):
            return Serves.SAME
        return Serves.FAMILY if self.is_cubin or self.arch.endswith("f") else Serves.NEWER

    @property
    def number(self) -> int:
        """Ten times the compute capability."""
        return 0 if self.arch is None else capability(self.arch)

    @property
    def newer(self) -> str | None:
        """What to say where the driver does not know the version of the PTX."""
        found = None if self.is_cubin else _VERSION.search(self.data)
        version = (0, 0) if found is None else (int(found[1]), int(found[2]))
        if version <= _ALWAYS_KNOWN:
            return None
        cuda = _CUDA_12.get(version, (version[0] + 4, version[1]))
        return (
            f"; the PTX has version {version[0]}.{version[1]}, which the driver of CUDA "
            f"{cuda[0]}.{cuda[1]} and newer ones know: update the NVIDIA driver, or embed a cubin"
        )

    def __str__(self) -> str:
        return f"{self.arch or 'an unknown architecture'} ({'cubin' if self.is_cubin else 'PTX'})"


IMAGE: Final = Layout(
    "CudaImage",
    [Field("number", I32), Field("serves", I32), Field("data", PTR), Field("newer", PTR)],
)
"""`newer` is what to say where the driver does not know the version of the PTX; null for none."""

_VERSION: Final = re.compile(rb"^\s*\.version\s+(\d+)\.(\d+)", re.MULTILINE)
_ALWAYS_KNOWN: Final = (8, 0)
"""The version of PTX that every driver knows which is new enough for the rest."""
_CUDA_12: Final = {(8, 6): (12, 7), (8, 7): (12, 8), (8, 8): (12, 9)}
NO_OPTIONS: Final[Mapping[JitOption, int]] = MappingProxyType({})
"""The driver assembles PTX as it likes."""

CHOOSE: Final = "ferrule_cuda_choose"
CHOOSE_TYPE: Final = ir.FunctionType(I32, [PTR, PTR, I32, PTR, PTR])
_CAPABILITY: Final = "ferrule_cuda_capability"
_CAPABILITY_TYPE: Final = ir.FunctionType(I32, [PTR, I32])
_SERVES: Final = "ferrule_cuda_serves"
_SERVES_TYPE: Final = ir.FunctionType(I1, [PTR, I32])


def images_of(code: DeviceCode) -> list[Image]:
    """What an object carries: PTX for every architecture, and the cubins that there are.

    PTX that serves one architecture alone is left out where there is a cubin for that.
    """
    images = []
    for image in code.images:
        images += [Image(cubin, image.arch, is_cubin=True) for cubin in image.cubins]
        text = Image(image.ptx.encode(), image.arch)
        if image.modules and (not image.cubins or text.serves is not Serves.SAME):
            images.append(text)
    return images


def best_first(images: Sequence[Image]) -> list[Image]:
    """The images in the order in which they are tried."""
    suffixes = {"a": 2, "f": 1}

    def rank(image: Image) -> tuple[int, int, bool]:
        return image.number, suffixes.get((image.arch or "")[-1:], 0), image.is_cubin

    return sorted(images, key=rank, reverse=True)


def image_table(emitter: Emitter, images: Sequence[Image]) -> tuple[ir.Value, int, ir.Value]:
    """The constant table of images, its length, and a text that lists them."""
    rows, ordered = [], best_first(images)
    for image in ordered:
        at = emitter.bytes_constant(image.data + b"\0", align=16).get_reference()
        newer = emitter.null() if image.newer is None else emitter.cstring(image.newer)
        fields = [ir.FormattedConstant(PTR, at), newer]
        numbers = [emitter.const_i32(image.number), emitter.const_i32(image.serves)]
        rows.append(ir.Constant.literal_struct([*numbers, *fields]))
    value = ir.Constant(ir.ArrayType(rows[0].type, len(rows)), rows)
    table = emitter.global_constant(emitter.module.get_unique_name("cuda.images"), value)
    table.align = IMAGE.align
    return table, len(rows), emitter.cstring(", ".join(map(str, ordered)))


def program_constant(
    emitter: Emitter,
    images: Sequence[Image],
    kernels: Sequence[str],
    options: Mapping[JitOption, int],
) -> ir.Value:
    """The constant `PROGRAM`."""
    names = b"".join(name.encode() + b"\0" for name in kernels)
    table, count, listed = image_table(emitter, images)
    fields = [table, emitter.const_i64(count), listed]
    fields += [_words(emitter, options, I32), _words(emitter, options.values(), PTR)]
    fields.append(emitter.const_i64(len(options)))
    fields += [emitter.bytes_constant(names), emitter.const_i64(len(kernels))]
    value = ir.Constant.literal_struct(fields)
    name = emitter.module.get_unique_name("cuda.program")
    program = emitter.global_constant(name, value)
    program.align = PROGRAM.align
    return program


def _words(emitter: Emitter, numbers: Iterable[int], kind: ir.Type) -> ir.Value:
    """The address of constant numbers of the size of a type; null for none."""
    data = b"".join(number.to_bytes(size_of(kind), "little") for number in numbers)
    return emitter.bytes_constant(data, align=size_of(kind)) if data else emitter.null()


def define_choosing(emitter: Emitter) -> None:
    """`i32 ferrule_cuda_choose(ptr state, ptr program, i32 device, ptr out, ptr values)`: the row
    of the image for a device, -1 for the one that is current, behind cuInit."""
    _define_capability(emitter)
    _define_serves(emitter)
    _define_choose(emitter)


def _define_capability(emitter: Emitter) -> None:
    """`i32 ferrule_cuda_capability(ptr state, i32 device)`: ten times it; 0 if it cannot be had."""
    wanted = (Attribute.COMPUTE_CAPABILITY_MAJOR, Attribute.COMPUTE_CAPABILITY_MINOR)
    with cold(emitter, _CAPABILITY, _CAPABILITY_TYPE) as (state, device):
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
        family = b.and_(newer, b.icmp_signed("==", b.udiv(capability, ten), b.udiv(number, ten)))
        found: ir.Value = ir.Constant(I1, 1)
        for kind, answer in (
            (Serves.NEWER, newer), (Serves.SAME, same), (Serves.FAMILY, family)
        ):  # fmt: skip
            found = emitter.select(
                emitter.icmp("eq", serves, emitter.const_i32(kind)), answer, found
            )
        emitter.ret(found)


def _define_choose(emitter: Emitter) -> None:
    with cold(emitter, CHOOSE, CHOOSE_TYPE) as (state, program, device, out, values):
        images = emitter.load_field(program, PROGRAM, "images")
        count = emitter.load_field(program, PROGRAM, "image_count")
        anything = emitter.icmp("eq", emitter.load_field(images, IMAGE, "serves"), _zero(emitter))
        with emitter.if_then(anything):
            emitter.store(images, out)
            emitter.ret(status(Status.DONE))
        wanted, devices = _wanted(emitter, state, device), emitter.alloca(I32, name="devices")
        attempt(emitter, state, values, "cuDeviceGetCount", devices)
        own = call(emitter, _CAPABILITY, _CAPABILITY_TYPE, state, wanted)
        # Without such a device the driver says later what is wrong.
        with emitter.if_then(emitter.icmp("eq", own, _zero(emitter))):
            emitter.store(images, out)
            emitter.ret(status(Status.DONE))
        best = emitter.alloca(PTR, name="best")
        emitter.store(emitter.null(), best)
        with emitter.loop(count) as i:
            image = emitter.index(images, I8, emitter.binary("mul", i, _size(emitter)))
            fits = emitter.builder.and_(
                emitter.is_null(emitter.load(best, PTR)),
                call(emitter, _SERVES, _SERVES_TYPE, image, own),
            )
            with emitter.if_then(fits):
                emitter.store(image, best)
            misses = _misses(emitter, state, image, emitter.load(devices, I32))
            with emitter.if_then(emitter.icmp("eq", misses, _zero(emitter))):
                emitter.store(image, out)
                emitter.ret(status(Status.DONE))
        with emitter.if_then(emitter.is_null(emitter.load(best, PTR))):
            ten = emitter.const_i32(10)
            parts = emitter.builder.udiv(own, ten), emitter.builder.urem(own, ten)
            listed = emitter.load_field(program, PROGRAM, "listed")
            end(emitter, Status.NO_IMAGE, values, wanted, *parts, listed)
        emitter.store(emitter.load(best, PTR), out)
        emitter.ret(status(Status.DONE))


def _wanted(emitter: Emitter, state: ir.Value, device: ir.Value) -> ir.Value:
    """The ordinal of a device; for -1 that of the current one, 0 where there is none."""
    place = emitter.alloca(I32, name="wanted")
    emitter.store(device, place)
    with emitter.if_then(emitter.icmp("slt", device, _zero(emitter))):
        emitter.store(_zero(emitter), place)
        call_driver(emitter, state, "cuCtxGetDevice", [place])
    return emitter.load(place, I32)


def _misses(emitter: Emitter, state: ir.Value, image: ir.Value, devices: ir.Value) -> ir.Value:
    """How many of the machine's GPUs an image does not serve."""
    place = emitter.alloca(I32, name="misses")
    emitter.store(_zero(emitter), place)
    with emitter.loop(devices, name="device") as device:
        capability = call(emitter, _CAPABILITY, _CAPABILITY_TYPE, state, device)
        fits = call(emitter, _SERVES, _SERVES_TYPE, image, capability)
        more = emitter.builder.zext(emitter.not_(fits), I32)
        emitter.store(emitter.binary("add", emitter.load(place, I32), more), place)
    return emitter.load(place, I32)


def _zero(emitter: Emitter) -> ir.Value:
    return emitter.const_i32(0)


def _size(emitter: Emitter) -> ir.Value:
    return emitter.const_i64(IMAGE.size)

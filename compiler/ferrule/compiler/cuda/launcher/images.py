"""The images of an object: the GPUs that each serves, and the table of images in the object.

PTX for a plain architecture serves every GPU that is not older.  An image with the suffix `a`
serves that architecture only, with the suffix `f` also the newer ones of its major version (PTX
ISA, ".target").  A cubin serves its own architecture and the newer ones of its major version, with
an `a` only its own (CUDA C++ Programming Guide, "Binary Compatibility").  A GPU gets, of the images
that serve it, the one with the highest number; for equal numbers a cubin is before PTX, and a
suffix before a plain architecture: the table is in this order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from llvmlite import ir

from ferrule.compiler.cuda.archs import capability
from ferrule.compiler.cuda.launcher.driver import JitOption
from ferrule.compiler.cuda.launcher.state import PROGRAM
from ferrule.runtime.devices import emulated_arch
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I32, PTR, Field, Layout, size_of
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.compiler.cuda.code import DeviceCode


class Serves(IntEnum):
    """The GPUs that an image serves."""

    ALL = 0
    """Any number: the architecture of the image is unknown."""
    NEWER = 1
    SAME = 2
    FAMILY = 3


@dataclass(frozen=True, slots=True)
class Image:
    """PTX text or a cubin, for an architecture such as "sm_90a"; None if that is unknown."""

    data: bytes = field(repr=False)
    arch: str | None = None
    is_cubin: bool = False

    @property
    def serves(self) -> Serves:
        """The GPUs that it serves."""
        if self.arch is None:
            return Serves.ALL
        if self.arch.endswith("a"):
            return Serves.SAME
        return Serves.FAMILY if self.is_cubin or self.arch.endswith("f") else Serves.NEWER

    @property
    def number(self) -> int:
        """Ten times the compute capability."""
        return 0 if self.arch is None else capability(self.arch)

    def serves_number(self, number: int) -> bool:
        """Whether it serves a GPU with ten times this compute capability."""
        match self.serves:
            case Serves.ALL:
                return True
            case Serves.NEWER:
                return number >= self.number
            case Serves.SAME:
                return number == self.number
            case Serves.FAMILY:
                return number >= self.number and number // 10 == self.number // 10

    @property
    def newer(self) -> str | None:
        """The hint if the driver does not know the version of the PTX."""
        found = None if self.is_cubin else _VERSION.search(self.data)
        version = (0, 0) if found is None else (int(found[1]), int(found[2]))
        if version <= _ALWAYS_KNOWN:
            return None
        # PTX 8.x came with CUDA 12.x, and 9.x with 13.x, of the same second number, but for the
        # last of CUDA 12 (PTX ISA, release notes).
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
"""`newer` is the hint if the driver does not know the version of the PTX; null for none."""

_VERSION: Final = re.compile(rb"^\s*\.version\s+(\d+)\.(\d+)", re.MULTILINE)
_ALWAYS_KNOWN: Final = (8, 0)
"""The newest version of PTX that every supported driver knows."""
_CUDA_12: Final = {(8, 6): (12, 7), (8, 7): (12, 8), (8, 8): (12, 9)}
NO_OPTIONS: Final[Mapping[JitOption, int]] = MappingProxyType({})
"""The driver's default options for assembling PTX."""


def images_of(code: DeviceCode) -> list[Image]:
    """The images of an object: PTX for every architecture, and the cubins.

    PTX that serves only one architecture is omitted if there is a cubin for it.
    A process that emulates a GPU executes no cubins, so it omits the cubins instead.
    """
    images = []
    if emulated_arch() is not None and any(image.modules for image in code.images):
        return [Image(image.ptx.encode(), image.arch) for image in code.images if image.modules]
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
    """The address of constant numbers, each with the size of the type; null if there are none."""
    data = b"".join(number.to_bytes(size_of(kind), "little") for number in numbers)
    return emitter.bytes_constant(data, align=size_of(kind)) if data else emitter.null()

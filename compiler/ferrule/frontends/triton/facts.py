"""What the launch of a compiled kernel needs to know, from Triton's metadata."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Final

from ferrule.compiler.errors import CompileError
from ferrule.specs.deferred import dataclass

WARP: Final = 32
"""The threads of a warp."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """Memory that a kernel needs for each of its blocks: its size in bytes and its alignment."""

    size: int
    align: int


@dataclass(frozen=True, slots=True)
class DescriptorLayout:
    """The required form of a descriptor's tensor map, as the compiled kernel reads it.

    `block` counts elements, the innermost last; `element` is the number of a type in the driver's
    enumeration (except 8 to 10, see `CUtensorMapDataType`), `swizzle` is the driver's own number.
    `fp4_padded`: a byte is two elements of 4 bits, which `block` counts, with gaps in shared
    memory.  `is_im2col`: the block is pixels and channels.
    """

    swizzle: int
    element: int
    element_size: int
    block: tuple[int, ...]
    fp4_padded: bool
    is_im2col: bool


@dataclass(frozen=True, slots=True)
class LaunchFacts:
    """The facts about a compiled kernel that its launch needs."""

    kernel: str
    warps: int
    ctas: int
    shared: int
    global_scratch: Scratch
    profile_scratch: Scratch
    use_pdl: bool
    cooperative: bool
    descriptors: tuple[DescriptorLayout, ...]

    @property
    def block(self) -> tuple[int, int, int]:
        """The number of threads of a block, along each axis."""
        return WARP * self.warps, 1, 1


@dataclass(frozen=True, slots=True)
class Built:
    """A specialisation for one architecture: cubin, PTX, and the facts for its launch."""

    images: tuple[bytes, bytes] = field(repr=False)
    facts: LaunchFacts


def facts_of(metadata: Any) -> LaunchFacts:
    def scratch(name: str) -> Scratch:
        size = getattr(metadata, f"{name}_scratch_size", 0)
        return Scratch(int(size or 0), int(getattr(metadata, f"{name}_scratch_align", 1) or 1))

    return LaunchFacts(
        str(metadata.name),
        int(metadata.num_warps),
        int(metadata.num_ctas),
        int(metadata.shared),
        scratch("global"),
        scratch("profile"),
        bool(metadata.launch_pdl),
        bool(metadata.launch_cooperative_grid),
        tuple(_descriptor(each) for each in getattr(metadata, "tensordesc_meta", None) or ()),
    )


def _descriptor(meta: Any) -> DescriptorLayout:
    if meta is None:
        raise CompileError("a descriptor of this kind cannot be made here: launch it with Triton")
    return DescriptorLayout(
        int(meta["swizzle"]),
        int(meta["elem_type"]),
        int(meta["elem_size"]),
        tuple(int(size) for size in meta["block_size"]),
        bool(meta["fp4_padded"]),
        bool(meta.get("is_im2col")),
    )

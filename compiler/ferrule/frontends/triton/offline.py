"""Triton's compiler, without a GPU: one specialisation of a kernel for several architectures."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import groupby
from typing import Any, Final

from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.cuda.launcher.images import Serves, images_of
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends import packages
from ferrule.frontends.triton.installed import Kernel, triton
from ferrule.frontends.triton.specialise import Specialisation
from ferrule.specs.deferred import dataclass

_ARCH: Final = re.compile(r"sm_?(\d{2,3})([af]?)")
_KNOWN: Final = frozenset({70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121})
_WARP: Final = 32


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
        return _WARP * self.warps, 1, 1


@dataclass(frozen=True, slots=True)
class Compiled:
    """A specialisation for the architectures whose launch facts are equal."""

    code: DeviceCode = field(repr=False)
    facts: LaunchFacts

    def serves(self, capability: int) -> bool:
        """Whether a GPU can run it; `capability` is ten times the compute capability."""
        return any(
            image.number == capability
            or (image.serves is Serves.NEWER and image.number <= capability)
            or (image.serves is Serves.FAMILY and image.number // 10 == capability // 10)
            for image in images_of(self.code)
        )


def architectures(target: str | Sequence[str]) -> tuple[int, ...]:
    """The numbers of architectures, such as 90 for "sm_90a".  Raises CompileError for other texts.

    Triton itself decides whether code is specific to one architecture.
    """
    several = isinstance(target, Sequence | set | frozenset) and not isinstance(target, str)
    named = list(target) if several else [target]
    words = [word.strip() for text in named for word in str(text).split(",")]
    found = [_ARCH.fullmatch(word) for word in words]
    numbers = [int(each[1]) for each in found if each is not None]
    if not words or None in found or not _KNOWN.issuperset(numbers):
        meant = re.search(r"\d{2,3}", words[0]) if words else None
        known = meant is not None and int(meant[0]) in _KNOWN
        raise CompileError(
            Diagnostic(
                f"the target is {target!r}",
                expected='an architecture such as "sm_90a", or several; of '
                + ", ".join(f"sm_{number}" for number in sorted(_KNOWN)),
                hint=f'did you mean "sm_{meant[0]}"?' if known and meant is not None else None,
            )
        )
    return tuple(dict.fromkeys(numbers))


def compile_offline(
    kernel: Kernel,
    specialisation: Specialisation,
    options: Mapping[str, Any],
    archs: Sequence[int],
) -> tuple[Compiled, ...]:
    """A specialisation for these architectures, grouped by equal launch facts.

    Raises CompileError with Triton's message for a kernel that it cannot compile.
    """
    made = [(arch, *_compile(kernel, specialisation, options, arch)) for arch in archs]
    made.sort(key=lambda each: repr(each[2]))
    groups = []
    for _, several in groupby(made, key=lambda each: each[2]):
        members = sorted(several, key=lambda each: each[0])
        images = [image for _, each, _ in members for image in each]
        code = DeviceCode.from_images(images, [members[0][2].kernel])
        groups.append((members[0][0], Compiled(code, members[0][2])))
    return tuple(compiled for _, compiled in sorted(groups, key=lambda each: each[0]))


def warm() -> None:
    """Do now what the first compilation in a process does: forked processes then share it.

    Half of a second: the imports, and the digest of Triton's own files, which it keeps.
    """
    package = triton()
    for module in ("triton.backends.compiler", "triton.backends.nvidia", "triton.compiler"):
        packages.load(module, "triton")
    digest = getattr(package.runtime.cache, "triton_key", None)
    if digest is not None:  # some versions have it elsewhere, and only the time is lost
        digest()


def _compile(
    kernel: Kernel, specialisation: Specialisation, options: Mapping[str, Any], arch: int
) -> tuple[list[bytes], LaunchFacts]:
    """Cubin and PTX for one architecture, and the facts for its launch."""
    package = triton()
    source = _source(kernel)(
        fn=kernel.function,
        signature=dict(specialisation.types),
        constexprs=dict(specialisation.constants),
        attrs=dict(specialisation.attributes),
    )
    backends = packages.load("triton.backends.compiler", "triton")
    target = backends.GPUTarget("cuda", arch, _WARP)
    with _failures(kernel, arch):
        compiled = package.compile(source, target=target, options=dict(options))
        images = [bytes(compiled.asm["cubin"]), str(compiled.asm["ptx"]).encode()]
    return images, _facts(compiled.metadata)


def _source(kernel: Kernel) -> Any:
    if kernel.is_gluon:
        return packages.load("triton.experimental.gluon._runtime", "triton").GluonASTSource
    return packages.load("triton.compiler", "triton").ASTSource


@contextlib.contextmanager
def _failures(kernel: Kernel, arch: int) -> Iterator[None]:
    """Turns exceptions of Triton into CompileErrors; messages of its passes about the code are on
    stderr."""
    try:
        yield
    except Exception as error:
        raise CompileError(
            f"Triton cannot compile {kernel.name} for sm_{arch}: {_said(error)}"
        ) from error


def _said(error: BaseException) -> str:
    """The message of an error, and that of its cause: Triton shows the lines of a function that
    calls another, and the cause is in the called one."""
    text, first = f"{type(error).__name__}: {error}", error
    while first.__cause__ is not None:
        first = first.__cause__
    return text if str(first) in text else f"{text}\n{type(first).__name__}: {first}"


def _facts(metadata: Any) -> LaunchFacts:
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

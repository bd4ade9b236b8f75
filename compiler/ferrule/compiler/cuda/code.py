"""Kernels as they are handed on: an image for each GPU architecture, and the names of entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ferrule.compiler.cuda.binaries import Binary
    from ferrule.compiler.cuda.fitting import LaunchSizes
    from ferrule.compiler.cuda.parameters import KernelParameters


@dataclass(frozen=True, slots=True)
class KernelImage:
    """Kernels for one GPU architecture: PTX modules, and the cubins that were assembled from them.

    There are no cubins unless they were asked for.  A function has one module, what calls others
    has theirs too.
    """

    arch: str
    modules: tuple[str, ...] = field(repr=False)
    cubins: tuple[bytes, ...] = field(default=(), repr=False)

    @property
    def ptx(self) -> str:
        """The text of all modules."""
        return "\n".join(self.modules)


@dataclass(frozen=True, slots=True)
class Member:
    """A number or an address in a struct: the byte where it is, its type in C++'s words, and what
    is behind an address is `aligned` to."""

    at: int
    type: str
    aligned: int = 1


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What the source of a kernel says of it beyond its binary; None for what is not known.

    `types` are those of its parameters, in C++'s words, `restricted` says which of these are
    addresses that share no memory with what others write or read, `aligned` what is behind each
    is aligned to beyond what its type's name says, 0 where that was asked and not told,
    `members` are the numbers and addresses in each parameter that is a struct by value, where
    they are known, `variables` are the names of the module's variables that it uses,
    `dynamic_shared` is as in `KernelParameters`.  `is_read`: its source was looked at for this,
    so that callers are told what was not found there.
    """

    kernel: str
    types: tuple[str, ...] | None = None
    members: tuple[tuple[Member, ...] | None, ...] = ()
    aligned: tuple[int, ...] = ()
    restricted: tuple[bool, ...] | None = None
    variables: frozenset[str] | None = None
    dynamic_shared: bool | None = None
    is_read: bool = False


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """The kernels of a body: an image for each GPU architecture, and the names of its entries.

    `ptxas_options` are those that its modules are assembled with, `facts` what is known of kernels
    beyond the images.
    """

    images: tuple[KernelImage, ...]
    kernels: tuple[str, ...]
    ptxas_options: tuple[str, ...] = ()
    facts: tuple[KernelFacts, ...] = ()

    @property
    def archs(self) -> tuple[str, ...]:
        """The architectures, in the order in which they were named."""
        return tuple(image.arch for image in self.images)

    @property
    def ptx(self) -> dict[str, str]:
        """The PTX by architecture, of the images that have any."""
        return {image.arch: image.ptx for image in self.images if image.modules}

    @classmethod
    def from_cubin(
        cls,
        data: Binary | Sequence[Binary],
        kernels: Sequence[str] | None = None,
        arch: str | None = None,
    ) -> DeviceCode:
        """The kernels of a cubin, or of several for different architectures: bytes or paths.

        `kernels` are the names of those to use, as `parameters` takes them, all by default.  A
        cubin says its architecture itself; `arch` is for one that has lost the letter behind it.
        ValueError for what is no cubin, is damaged, or where the images' kernels differ;
        CompileError for a kernel that is not there.
        """
        from ferrule.compiler.cuda.binaries import code_from_cubin

        return code_from_cubin(data, kernels, arch)

    @classmethod
    def from_ptx(
        cls,
        text: Binary | Sequence[Binary],
        kernels: Sequence[str] | None = None,
        arch: str | None = None,
    ) -> DeviceCode:
        """The kernels of PTX, or of several for different architectures: texts, bytes or paths.

        It is for what its `.target` says and, without a letter there, all newer GPUs; `arch` is for
        one to be used from a newer architecture on.  Errors are those of `from_cubin`.
        """
        from ferrule.compiler.cuda.binaries import code_from_ptx

        return code_from_ptx(text, kernels, arch)

    @classmethod
    def from_images(
        cls, images: Binary | Sequence[Binary], kernels: Sequence[str] | None = None
    ) -> DeviceCode:
        """The kernels of several cubins and PTX texts, at most one of each for an architecture."""
        from ferrule.compiler.cuda.binaries import code_from_images

        return code_from_images(images, kernels)

    def parameters(self, kernel: str) -> KernelParameters:
        """What a kernel takes, as the first image says.

        `kernel` is its name there, or in a source of C++: `ns::add`, `scale<float, 4>`.
        CompileError where it is not there.
        """
        from ferrule.compiler.cuda.binaries import parameters_of

        return parameters_of(self, kernel)

    def facts_of(self, kernel: str) -> KernelFacts:
        """What is known of a kernel beyond the images; its name tells the types of C++'s."""
        from ferrule.compiler.mangledtypes import parameter_types

        known = next((each for each in self.facts if each.kernel == kernel), KernelFacts(kernel))
        if known.types is None:
            return replace(known, types=parameter_types(kernel))
        return known

    def check_launch(
        self, kernel: str, packed: Sequence[tuple[int, str]], sizes: LaunchSizes | None = None
    ) -> list[KernelParameters]:
        """What the kernel takes as each image says, if that is what a launch gives: for each
        parameter its bytes and what it is.

        CompileError where it is not.  Of the sizes what is constant must be what every image
        allows, on a GPU that it is for.
        """
        from ferrule.compiler.cuda.binaries import all_parameters_of
        from ferrule.compiler.cuda.fitting import check_launch
        from ferrule.compiler.cuda.parameters import check_packed

        images = all_parameters_of(self, kernel)
        check_packed(images[0], packed)
        if sizes is not None:
            plain = {each.arch for each in self.images if each.modules and each.arch[-1].isdigit()}
            for image in images:
                check_launch(image, sizes, or_newer=image.arch in plain)
        return images


def joined_code(codes: Sequence[DeviceCode]) -> DeviceCode | None:
    """The kernels of several bodies, by architecture; None where there are none."""
    if len(codes) < 2:
        return codes[0] if codes else None
    archs = dict.fromkeys(arch for code in codes for arch in code.archs)
    images = []
    for arch in archs:
        parts = [image for code in codes for image in code.images if image.arch == arch]
        cubins = tuple(cubin for image in parts for cubin in image.cubins)
        modules = tuple(module for image in parts for module in image.modules)
        images.append(KernelImage(arch, modules, cubins))
    kernels = dict.fromkeys(kernel for code in codes for kernel in code.kernels)
    facts = tuple(dict.fromkeys(fact for code in codes for fact in code.facts))
    return DeviceCode(tuple(images), tuple(kernels), codes[0].ptxas_options, facts)

"""`DeviceCode`: an image of the kernels for each GPU architecture, and their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ferrule.compiler.cuda.kernelfacts import KernelFacts, KernelImage
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.compiler.cuda.binaries.fit import LaunchSizes
    from ferrule.compiler.cuda.binaries.foreign import Binary
    from ferrule.compiler.cuda.binaries.parameters import KernelParameters


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """The kernels of a body: an image for each GPU architecture, and the names of its entries.

    `ptxas_options` are the options for assembling its modules, `facts` are known facts about
    kernels that the images lack.
    """

    images: tuple[KernelImage, ...]
    kernels: tuple[str, ...]
    ptxas_options: tuple[str, ...] = ()
    facts: tuple[KernelFacts, ...] = ()

    @property
    def archs(self) -> tuple[str, ...]:
        """The architectures, in the given order."""
        return tuple(image.arch for image in self.images)

    @property
    def ptx(self) -> dict[str, str]:
        """The PTX by architecture, of the images that have PTX."""
        return {image.arch: image.ptx for image in self.images if image.modules}

    @classmethod
    def from_cubin(
        cls,
        data: Binary | Sequence[Binary],
        kernels: Sequence[str] | None = None,
        arch: str | None = None,
    ) -> DeviceCode:
        """The kernels of a cubin, or of several for different architectures: bytes or paths.

        `kernels` are the names of the kernels to use, as for `parameters`; the default is all.  A
        cubin contains its architecture; `arch` is for one that lacks the suffix of it.  ValueError
        for data that is not a cubin or is damaged, or if the images' kernels differ; CompileError
        for an unknown kernel.
        """
        from ferrule.compiler.cuda.binaries.foreign import code_from_cubin

        return cls(*code_from_cubin(data, kernels, arch))

    @classmethod
    def from_ptx(
        cls,
        text: Binary | Sequence[Binary],
        kernels: Sequence[str] | None = None,
        arch: str | None = None,
    ) -> DeviceCode:
        """The kernels of PTX, or of several for different architectures: texts, bytes or paths.

        PTX is for the architecture in its `.target` and, without a suffix there, for all newer
        GPUs; `arch` restricts it to a newer architecture and those after it.  Errors are those of
        `from_cubin`.
        """
        from ferrule.compiler.cuda.binaries.foreign import code_from_ptx

        return cls(*code_from_ptx(text, kernels, arch))

    @classmethod
    def from_images(
        cls, images: Binary | Sequence[Binary], kernels: Sequence[str] | None = None
    ) -> DeviceCode:
        """The kernels of several cubins and PTX texts, at most one of each for an architecture."""
        from ferrule.compiler.cuda.binaries.foreign import code_from_images

        return cls(*code_from_images(images, kernels))

    @classmethod
    def joined(
        cls, *codes: DeviceCode, names: Sequence[Mapping[str, str]] | None = None
    ) -> DeviceCode:
        """The kernels of several codes in one, each with the images and variables of its own code.

        `names` has for each code new names of kernels, `{"kernel": "its name here"}`.  On a GPU
        each kernel comes from its own code's best image.  ValueError if two kernels have one name,
        or if no GPU has an image of each code; TypeError for other values.
        """
        from ferrule.compiler.cuda.binaries.joined import joined

        return joined(codes, names)

    def holder(self, kernel: str) -> tuple[DeviceCode, str]:
        """The code that is loaded for a kernel, and the kernel's name there; for an unknown kernel,
        the name as it stands."""
        from ferrule.compiler.cuda.binaries.names import find_kernel

        return self, find_kernel(kernel, self.kernels) or kernel

    def parameters(self, kernel: str) -> KernelParameters:
        """The parameters of a kernel, from the first image.

        `kernel` is its name there, or in a C++ source: `ns::add`, `scale<float, 4>`.  CompileError
        for an unknown kernel.
        """
        from ferrule.compiler.cuda.binaries.foreign import parameters_of

        return parameters_of(self.images, self.kernels, kernel)

    def facts_of(self, kernel: str) -> KernelFacts:
        """The facts about a kernel beyond the images; a mangled C++ name contains its types."""
        from ferrule.compiler.mangledtypes import parameter_types

        known = next((each for each in self.facts if each.kernel == kernel), KernelFacts(kernel))
        if known.types is None:
            return replace(known, types=parameter_types(kernel))
        return known

    def check_launch(
        self, kernel: str, packed: Sequence[tuple[int, str]], sizes: LaunchSizes | None = None
    ) -> list[KernelParameters]:
        """The kernel's parameters in each image, if they match the launch: for each parameter its
        bytes and description.

        CompileError if they do not match.  Constant sizes must be within the limits of every image,
        for the GPUs that it serves.
        """
        from ferrule.compiler.cuda.binaries.fit import check_launch
        from ferrule.compiler.cuda.binaries.foreign import all_parameters_of
        from ferrule.compiler.cuda.binaries.parameters import check_packed

        images = all_parameters_of(self.images, self.kernels, kernel)
        check_packed(images[0], packed)
        if sizes is not None:
            plain = {each.arch for each in self.images if each.modules and each.arch[-1].isdigit()}
            for image in images:
                check_launch(image, sizes, or_newer=image.arch in plain)
        return images


def joined_code(codes: Sequence[DeviceCode]) -> DeviceCode | None:
    """The kernels of several bodies, by architecture; None if there are none."""
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

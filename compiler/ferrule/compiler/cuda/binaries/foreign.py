"""Foreign device code: cubins and PTX become the images of a `DeviceCode`.

A launch must work with every image, for any architecture: so all images must have the same kernels
with the same parameters.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import chain
from pathlib import Path
from typing import Final, TypeAlias

from ferrule.compiler.cuda.binaries.cubins import read_cubin
from ferrule.compiler.cuda.binaries.names import check_name, find_kernel, unknown_kernel
from ferrule.compiler.cuda.binaries.parameters import KernelParameters
from ferrule.compiler.cuda.binaries.ptx_text import as_text, read_ptx
from ferrule.compiler.cuda.kernelfacts import KernelImage
from ferrule.specs.deferred import dataclass

Binary: TypeAlias = "bytes | bytearray | memoryview | str | os.PathLike[str]"
"""The content of a file, or its path; a `str` with a line break, or an empty one, is PTX text."""

_ARCH: Final = re.compile(r"sm_(\d+)([af]?)")


Found: TypeAlias = "tuple[tuple[KernelImage, ...], tuple[str, ...]]"
"""The images of a `DeviceCode`, and the names of its kernels."""


@dataclass(frozen=True, slots=True)
class _Read:
    """An image, its name in errors, and its kernels."""

    image: KernelImage = field(repr=False)
    what: str
    kernels: tuple[KernelParameters, ...]


def code_from_cubin(
    data: Binary | Sequence[Binary], kernels: Sequence[str] | None = None, arch: str | None = None
) -> Found:
    """See `DeviceCode.from_cubin`."""
    return _joined([_read_cubin(each, arch) for each in _several(data)], kernels)


def code_from_ptx(
    text: Binary | Sequence[Binary], kernels: Sequence[str] | None = None, arch: str | None = None
) -> Found:
    """See `DeviceCode.from_ptx`."""
    return _joined([_read_text(each, arch) for each in _several(text)], kernels)


def code_from_images(
    images: Binary | Sequence[Binary], kernels: Sequence[str] | None = None
) -> Found:
    """See `DeviceCode.from_images`."""
    return _joined([_read_any(each) for each in _several(images)], kernels)


def image_kernels(image: KernelImage) -> tuple[KernelParameters, ...]:
    """The kernels of an image, from its cubins if it has any."""
    if image.cubins:
        found = [read_cubin(cubin).kernels for cubin in image.cubins]
    else:
        found = [read_ptx(module).kernels for module in image.modules]
    return tuple(replace(kernel, arch=image.arch) for kernel in chain.from_iterable(found))


def parameters_of(
    images: Sequence[KernelImage], kernels: tuple[str, ...], kernel: str
) -> KernelParameters:
    """See `DeviceCode.parameters`."""
    return all_parameters_of(images, kernels, kernel)[0]


def all_parameters_of(
    images: Sequence[KernelImage], kernels: tuple[str, ...], kernel: str
) -> list[KernelParameters]:
    """The parameters of a kernel in each image; `kernels` are the names of all."""
    name = find_kernel(check_name(kernel, "kernel"), kernels)
    every = (each for image in images for each in image_kernels(image))
    found = [each for each in every if each.kernel == name]
    if not found:
        raise unknown_kernel(kernel, kernels)
    return found


def _several(data: Binary | Sequence[Binary]) -> list[Binary]:
    if isinstance(data, bytes | bytearray | memoryview | str | os.PathLike):
        return [data]
    if not isinstance(data, Sequence):
        raise TypeError(
            f"wanted the bytes or the path of a binary, or a sequence of these, but got {data!r}"
        )
    if not data:
        raise ValueError("wanted one binary at least, but got an empty sequence")
    return [*data]


def _content(data: Binary) -> tuple[bytes, str]:
    """The bytes, and their name in errors."""
    match data:
        case bytes() | bytearray() | memoryview():
            return bytes(data), "the data"
        case str() if "\n" in data or not data.strip():
            return data.encode(), "the text"
        case str() | os.PathLike():
            return _read(data), os.fspath(data)
    raise TypeError(f"wanted the bytes or the path of a binary, but got {data!r}")


def _read(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        if not isinstance(path, str) or Path(path).suffix in (".cubin", ".ptx"):
            raise
        raise FileNotFoundError(
            error.errno,
            "There is no such file, and text of one line is no PTX: it has several, .version and "
            ".target among them",
            path,
        ) from None


def _read_cubin(data: Binary, arch: str | None) -> _Read:
    content, what = _content(data)
    try:
        cubin = read_cubin(content)
    except ValueError as error:
        raise type(error)(f"{what} cannot be read: {error}{_advice(content)}") from None
    if arch is not None and _number(arch) != _number(cubin.arch):
        raise ValueError(f"{what} is a cubin for {cubin.arch}, but arch={arch!r}")
    chosen = arch or cubin.arch
    return _Read(KernelImage(chosen, (), (content,)), f"{what} for {chosen}", cubin.kernels)


def _read_text(data: Binary, arch: str | None) -> _Read:
    content, what = _content(data)
    try:
        text = as_text(content)
        ptx = read_ptx(text)
    except ValueError as error:
        raise type(error)(f"{what} cannot be read: {error}{_advice(content)}") from None
    if arch is not None and _number(arch) < _number(ptx.arch):
        raise ValueError(f"{what} is PTX for {ptx.arch} and newer, but arch={arch!r}")
    chosen = arch or ptx.arch
    return _Read(KernelImage(chosen, (text,)), f"{what} for {chosen}", ptx.kernels)


def _advice(content: bytes) -> str:
    """The hint for bytes that are another kind of CUDA code."""
    if b"__global__" in content and b"\0" not in content:
        return "; CUDA C++ is for fe.frontends.cuda.compile"
    if b".nv_fatbin" in content:
        return "; there are kernels in it: cuobjdump -xelf all takes the cubins out, -xptx all PTX"
    return ""


def _read_any(data: Binary) -> _Read:
    content, _ = _content(data)
    is_text = b".version" in content and content[:4] != b"\x7fELF"
    return _read_text(data, None) if is_text else _read_cubin(data, None)


def _number(arch: object) -> int:
    found = _ARCH.fullmatch(arch) if isinstance(arch, str) else None
    if found is None:
        kind = ValueError if isinstance(arch, str) else TypeError
        meant = re.fullmatch(r"(?:sm|compute)?[_-]?(\d+[af]?)", str(arch))
        hint = f"; did you mean 'sm_{meant[1]}'?" if meant else ""
        raise kind(f"wanted an architecture such as 'sm_90a', but got arch={arch!r}{hint}")
    return int(found[1])


def _joined(read: Sequence[_Read], kernels: Sequence[str] | None) -> Found:
    names = _chosen(read, kernels)
    first = read[0]
    for other in read[1:]:
        _check_same(first, other, names)
    images: dict[str, KernelImage] = {}
    for each in read:
        image = each.image
        known = images.get(image.arch, KernelImage(image.arch, ()))
        joined = KernelImage(image.arch, known.modules + image.modules, known.cubins + image.cubins)
        if len(joined.modules) > 1 or len(joined.cubins) > 1:
            raise ValueError(f"there are two images of one kind for {image.arch}: leave one out")
        images[image.arch] = joined
    return tuple(images.values()), names


def _chosen(read: Sequence[_Read], kernels: Sequence[str] | None) -> tuple[str, ...]:
    """The names of the kernels to use: all, unless a list is given."""
    if isinstance(kernels, str):
        kernels = [kernels]
    if not isinstance(kernels, Iterable | None):
        raise TypeError(f"kernels must be a list of names, but got {kernels!r}")
    there = list(dict.fromkeys(kernel.kernel for each in read for kernel in each.kernels))
    asked = [] if kernels is None else [_named(each, there) for each in kernels]
    names = tuple(dict.fromkeys(asked or (k.kernel for k in read[0].kernels)))
    if not names:
        raise ValueError(
            f"{read[0].what} has no kernel: a kernel is a __global__ function, in PTX a .entry"
        )
    if kernels is None:
        for each in read[1:]:
            _check_names(read[0], each)
    return names


def _named(kernel: object, there: Sequence[str]) -> str:
    name = check_name(kernel, "each of kernels")
    found = find_kernel(name, there)
    if found is None:
        raise unknown_kernel(name, sorted(there))
    return found


def _check_names(first: _Read, other: _Read) -> None:
    left, right = ({kernel.kernel for kernel in each.kernels} for each in (first, other))
    for names, has, lacks in ((left - right, first, other), (right - left, other, first)):
        if names:
            raise ValueError(
                f"all images must have the same kernels, but {has.what} has "
                f"{', '.join(sorted(names))}, which {lacks.what} has not: a list is of one "
                "module for several architectures; modules with different kernels are "
                "DeviceCode.joined(a, b), and kernels=[…] names those to use"
            )


def _check_same(first: _Read, other: _Read, names: Sequence[str]) -> None:
    left, right = ({k.kernel: k for k in each.kernels} for each in (first, other))
    for name in names:
        for each, table in ((first, left), (other, right)):
            if name not in table:
                raise ValueError(f"{each.what} has no kernel {name}; it has {', '.join(table)}")
        for what, one, two in _facts(left[name], right[name]):
            if one != two:
                raise ValueError(
                    f"all images must have the same kernels, but {name} has {what} {one} in "
                    f"{first.what}, and {two} in {other.what}"
                )


def _facts(left: KernelParameters, right: KernelParameters) -> Iterator[tuple[str, object, object]]:
    """The facts that must be equal in every image."""
    yield "parameters with the bytes", left.sizes, right.sizes
    yield "the block", left.required_block, right.required_block
    yield "the cluster", left.cluster, right.cluster

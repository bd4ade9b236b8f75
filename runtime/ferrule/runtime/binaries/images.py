"""Finds the images of kernels for a GPU in the bytes of an exported file.

An image is a constant of the code, at a place that only the code knows. The metadata has its size
and its digest, so a place where an image could begin or end is compared with both: what is found is
the image, byte for byte, or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Final

from ferrule.runtime.binaries.metadata import DeviceImage, digest_of_image
from ferrule.specs.deferred import dataclass

_PTX: Final = re.compile(rb"^\s*\.version\s", re.MULTILINE)
_BINARY: Final = re.compile(rb"\x7fELF|\x50\xed\x55\xba")
"""How cubins and fatbins begin."""


@dataclass(frozen=True, slots=True)
class FoundImage:
    """An image of a file: its kind ("ptx" or "cubin"), architecture, kernels and bytes."""

    kind: str
    arch: str
    kernels: tuple[str, ...]
    data: bytes = field(repr=False)


def find_images(data: bytes, images: Iterable[DeviceImage]) -> Iterator[FoundImage]:
    """The images that the metadata names and the file has, in the order of the metadata.

    Files of a ferrule that did not write sizes and digests give none.
    """
    wanted = [image for image in images if image.size]
    sizes = {image.size for image in wanted}
    found = dict(_by_digest(data, sizes, {image.digest for image in wanted}))
    for image in wanted:
        if image.digest in found:
            yield FoundImage(image.kind, image.arch, image.kernels, found[image.digest])


def _by_digest(data: bytes, sizes: Iterable[int], wanted: Iterable[str]) -> Mapping[str, bytes]:
    missing, found = set(wanted), {}
    places = ((start, size) for size in sizes for start in _starts(data, size))
    for start, size in places:
        if not missing:
            break
        part = data[start : start + size]
        digest = digest_of_image(part)
        if digest in missing:
            missing.remove(digest)
            found[digest] = part
    return found


def _starts(data: bytes, size: int) -> Iterator[int]:
    """Where an image of this size may begin: a text ends with NUL, a binary begins with its tag."""
    for match in _PTX.finditer(data):
        end = data.find(b"\0", match.end())
        if size <= end <= match.start() + size:
            yield end - size
    for match in _BINARY.finditer(data, 1):
        if match.start() + size <= len(data):
            yield match.start()

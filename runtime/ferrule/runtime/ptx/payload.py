"""The bytes of a module of kind `ferrule.ptx`.

    u64 size, JSON                    {"format": 1, "kernels": ["first(a: Pointer(float32))", …]}
    image                             PTX text, a cubin or a fatbin

The number is little-endian; a kernel is the full text of its signature.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

from ferrule.runtime.abi import PTX
from ferrule.runtime.binaries.elf import ObjectFileError
from ferrule.specs import Signature, parse_signature
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import Param, Pointer, Scalar, Tuple

KIND: Final = PTX
FORMAT: Final = 1
"""The version of the format.  A reader refuses a greater number."""

_WORD: Final = 8
_ENTRY: Final = re.compile(rb"\.entry\s+([\w$%]+)")
_BINARY: Final = (b"\x7fELF", b"\x50\xed\x55\xba")
"""The magic numbers of a cubin and of a fatbin."""


@dataclass(frozen=True, slots=True)
class PtxPayload:
    """An image, and the signatures of the kernels in it that can be called.

    A parameter is a number, a pointer, or a tuple of these, which is a C struct by value; the
    function has one parameter for each member of the struct.
    """

    image: bytes
    kernels: tuple[Signature, ...]

    @property
    def is_text(self) -> bool:
        """Whether the image is PTX."""
        return not self.image.startswith(_BINARY)


def make_payload(image: str | bytes, kernels: Iterable[Signature | str]) -> PtxPayload:
    """The payload of an image with these kernels, signatures or their texts.

    TypeError for a kernel that is neither a signature nor a text. ValueError for bytes that are not
    an image, and for a kernel that is not in the PTX text, is listed twice, or has a parameter of
    another kind.
    """
    data = image.encode() if isinstance(image, str) else bytes(image)
    payload = PtxPayload(data.rstrip(b"\0") if _is_text(data) else data, _signatures(kernels))
    if not payload.kernels:
        raise ValueError("wanted the signature of a kernel at least, but got none")
    names = [kernel.name for kernel in payload.kernels]
    if len(set(names)) < len(names):
        raise ValueError(f"wanted the signatures of kernels, each once, but got {names}")
    for kernel in payload.kernels:
        for param in kernel.params:
            _check_param(kernel, param)
    if payload.is_text:
        _check_entries(payload)
    return payload


def _is_text(data: bytes) -> bool:
    if data.startswith(_BINARY):
        return False
    if b".version" not in data or b".target" not in data:
        raise ValueError(
            f"wanted PTX text, a cubin or a fatbin, but got bytes that begin with {data[:8]!r}"
        )
    return True


def _signatures(kernels: Iterable[Signature | str]) -> tuple[Signature, ...]:
    if isinstance(kernels, str | Signature):
        return _signatures([kernels])
    found = []
    for kernel in kernels:
        if not isinstance(kernel, str | Signature):
            raise TypeError(f"wanted the signature of a kernel, or its text, but got {kernel!r}")
        found.append(parse_signature(kernel) if isinstance(kernel, str) else kernel)
    return tuple(found)


def _check_param(kernel: Signature, param: Param) -> None:
    match param:
        case Scalar() | Pointer():
            return
        case Tuple(items=items) if items:
            for item in items:
                _check_param(kernel, item)
        case _:
            raise ValueError(
                f"{kernel.name}: a kernel takes numbers, pointers, and tuples of these for "
                f"structs, but got {kernel.describe(param)}; write a tensor as a Pointer"
            )


def _check_entries(payload: PtxPayload) -> None:
    there = [name.decode() for name in _ENTRY.findall(payload.image)]
    for kernel in payload.kernels:
        if kernel.name not in there:
            known = ", ".join(there) or "none"
            raise ValueError(f"the PTX has no kernel {kernel.name!r}; its kernels: {known}")


def write_payload(payload: PtxPayload) -> bytes:
    """The bytes; the same payload gives the same ones."""
    kernels = [kernel.text() for kernel in payload.kernels]
    header = json.dumps({"format": FORMAT, "kernels": kernels}, separators=(",", ":")).encode()
    return len(header).to_bytes(_WORD, "little") + header + payload.image


def read_payload(data: bytes) -> PtxPayload:
    """The payload of these bytes; ObjectFileError that says what is wrong with them."""
    end = _WORD + int.from_bytes(data[:_WORD], "little")
    if len(data) < _WORD or end > len(data):
        raise ObjectFileError(f"a module of kind {KIND} is cut off: it has {len(data)} bytes")
    try:
        header = json.loads(data[_WORD:end])
        if int(header["format"]) > FORMAT:
            raise ObjectFileError(
                f"a module of kind {KIND} has format {header['format']}, this ferrule reads up to "
                f"{FORMAT}: load it with a newer one"
            )
        return make_payload(data[end:], [str(text) for text in header["kernels"]])
    except ObjectFileError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ObjectFileError(f"a module of kind {KIND} cannot be read: {error}") from error

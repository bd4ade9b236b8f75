"""The metadata of the functions in an exported object.

The metadata of a function is one JSON object.  `type_schema` is for tvm-ffi, in the flat form that
every version reads.  `ferrule` has the data for a reloaded function: the full text of its
signature, and the target of the code.  One copy of the text serves two readers: it is an ELF note,
which can be read before any code of the file runs, and `__tvm_ffi__metadata_<name>` returns it to
tvm-ffi.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, field
from typing import Any, Final

from ferrule.runtime.entry.key import ANY_FUNCTION, CallTraits
from ferrule.runtime.linking.links import Link
from ferrule.specs import Signature
from ferrule.specs._version import __version__
from ferrule.specs.deferred import dataclass

FORMAT: Final = 1
"""The version of the entry `ferrule`.  A reader refuses a greater number."""

NOTE_SECTION: Final = ".note.ferrule"
NOTE_OWNER: Final = "ferrule"
NOTE_TYPE: Final = 1

_ABI: Final = (0, 1, 0)


class MetadataError(ValueError):
    """The metadata of an object cannot be read, or has a newer format."""


@dataclass(frozen=True, slots=True)
class DeviceImage:
    """The kernels of an object for one GPU architecture; `kind` is the kind of their code.

    `size`, in bytes, and `digest` are of the image in the file; 0 and "" where the file does not
    say.
    """

    kind: str
    arch: str
    kernels: tuple[str, ...]
    size: int = 0
    digest: str = ""

    @classmethod
    def of(cls, kind: str, arch: str, kernels: tuple[str, ...], data: bytes) -> DeviceImage:
        """The description of an image with these bytes."""
        return cls(kind, arch, kernels, len(data), digest_of_image(data))


def digest_of_image(data: bytes) -> str:
    """The digest of an image in the metadata: half of its SHA-256, as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata of one exported function.

    `cpu` is LLVM's name of the target CPU, `features` are the CPU features that the code needs
    beyond the baseline.  `abi` is the oldest version of tvm-ffi's C API that the code works with.
    `version` is the version of ferrule that made the code.  `traits` are the properties that a call
    from Python needs, `links` the undefined symbols of the code.  `notes` are the notes that the
    maker of the function gave, as JSON values.
    """

    signature: Signature
    triple: str
    cpu: str
    features: tuple[str, ...] = ()
    images: tuple[DeviceImage, ...] = ()
    abi: tuple[int, int, int] = _ABI
    version: str = __version__
    traits: CallTraits = ANY_FUNCTION
    links: tuple[Link, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def name(self) -> str:
        """The function's name."""
        return self.signature.name

    def text(self) -> str:
        """The JSON text; the same metadata gives the same text."""
        images = [_image(image) for image in self.images]
        ours = {
            "format": FORMAT,
            "name": self.name,
            "signature": self.signature.text(),
            "target": {
                "triple": self.triple,
                "cpu": self.cpu,
                "features": list(self.features),
                "images": images,
            },
            "call": asdict(self.traits),
            **({"links": [_link(link) for link in self.links]} if self.links else {}),
            **({"notes": self.notes} if self.notes else {}),
            "abi": list(self.abi),
            "version": self.version,
        }
        from ferrule.runtime.binaries.typeschema import type_schema  # for what is exported

        schema = json.dumps(type_schema(self.signature), separators=(",", ":"))
        return json.dumps({"type_schema": schema, "ferrule": ours}, separators=(",", ":"))


def read_metadata(text: str | bytes) -> Metadata:
    """Parse the metadata.  Raises MetadataError that shows the unreadable part."""
    try:
        ours = json.loads(text)["ferrule"]
        found = int(ours["format"])
        if found > FORMAT:
            raise MetadataError(
                f"the metadata has format {found}, made by ferrule {ours.get('version')}; "
                f"this ferrule, {__version__}, reads up to {FORMAT}: load it with a newer one"
            )
        return _read(ours)
    except MetadataError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, MemoryError) as error:
        raise MetadataError(f"the metadata cannot be read: {error!r}") from error


def _read(ours: dict[str, Any]) -> Metadata:
    target = ours["target"]
    images = tuple(
        DeviceImage(
            str(image["kind"]),
            str(image["arch"]),
            tuple(map(str, image["kernels"])),
            int(image.get("size", 0)),
            str(image.get("digest", "")),
        )
        for image in target["images"]
    )
    from ferrule.specs.reading import parse_signature  # what is compiled here has no text to read

    major, minor, patch = map(int, ours["abi"])
    return Metadata(
        parse_signature(ours["signature"]),
        str(target["triple"]),
        str(target["cpu"]),
        tuple(map(str, target["features"])),
        images,
        (major, minor, patch),
        str(ours["version"]),
        _read_traits(ours.get("call", {})),
        tuple(_read_link(link) for link in ours.get("links", ())),
        dict(ours.get("notes", {})),
    )


def checked_notes(notes: Mapping[str, Any]) -> dict[str, Any]:
    """Notes as a file returns them.  Raises TypeError for a value that JSON cannot represent."""
    try:
        copied: dict[str, Any] = json.loads(json.dumps(dict(notes), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise TypeError(f"notes must be a mapping of what JSON has, but {error}") from None
    return copied


def _image(image: DeviceImage) -> dict[str, Any]:
    place = {"size": image.size, "digest": image.digest} if image.size else {}
    return {"kind": image.kind, "arch": image.arch, "kernels": list(image.kernels), **place}


def _link(link: Link) -> dict[str, str | None]:
    return {"symbol": link.symbol, "library": link.library}


def _read_link(given: Mapping[str, Any]) -> Link:
    library = given.get("library")
    return Link(str(given["symbol"]), None if library is None else str(library))


def _read_traits(given: Mapping[str, object]) -> CallTraits:
    """The traits in the metadata; a missing one has the safe default of `ANY_FUNCTION`."""
    known = asdict(ANY_FUNCTION)
    return CallTraits(**{name: bool(given.get(name, known[name])) for name in known})

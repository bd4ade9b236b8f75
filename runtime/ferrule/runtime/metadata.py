"""What an exported object says of itself: the metadata of each function in it.

The metadata is one JSON object.  `type_schema` is tvm-ffi's, in the flat form that every version
reads; `ferrule` holds what a reloaded function needs: the full text of its signature, and what the
code was made for.  It stands in the object twice over at no cost: as an ELF note, which is read
before anything of the file runs, and behind `__tvm_ffi__metadata_<name>`, which tvm-ffi calls.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from ferrule.runtime.entry.key import ANY_FUNCTION, CallTraits
from ferrule.runtime.links import Link
from ferrule.runtime.typeschema import type_schema
from ferrule.specs import Signature, parse_signature
from ferrule.specs._version import __version__

FORMAT: Final = 1
"""The version of the entry `ferrule`.  A reader refuses a greater one."""

NOTE_SECTION: Final = ".note.ferrule"
NOTE_OWNER: Final = "ferrule"
NOTE_TYPE: Final = 1

_ABI: Final = (0, 1, 0)


class MetadataError(ValueError):
    """The metadata of an object cannot be read, or is of a newer format."""


@dataclass(frozen=True, slots=True)
class DeviceImage:
    """The kernels for one GPU architecture that an object carries; `kind` is that of the code."""

    kind: str
    arch: str
    kernels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Metadata:
    """What is known of one exported function.

    `cpu` and `features` are LLVM's names of the processor that the code is for and of what that
    must have beyond the baseline.  `abi` is the least version of tvm-ffi's C API that the code
    needs.  `version` is ferrule's, that made it.  `traits` are what a call from Python needs,
    `links` the symbols that the code needs of other objects.  `notes` are what whoever made the
    function wrote down, as JSON has it.
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
        images = [
            {"kind": image.kind, "arch": image.arch, "kernels": list(image.kernels)}
            for image in self.images
        ]
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
        schema = json.dumps(type_schema(self.signature), separators=(",", ":"))
        return json.dumps({"type_schema": schema, "ferrule": ours}, separators=(",", ":"))


def read_metadata(text: str | bytes) -> Metadata:
    """The metadata of this text.  Raises MetadataError that says what cannot be read."""
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
        DeviceImage(str(image["kind"]), str(image["arch"]), tuple(map(str, image["kernels"])))
        for image in target["images"]
    )
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
    """Notes as they come back from a file.  Raises TypeError for what JSON does not have."""
    try:
        copied: dict[str, Any] = json.loads(json.dumps(dict(notes), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise TypeError(f"notes must be a mapping of what JSON has, but {error}") from None
    return copied


def _link(link: Link) -> dict[str, str | None]:
    return {"symbol": link.symbol, "library": link.library}


def _read_link(given: Mapping[str, Any]) -> Link:
    library = given.get("library")
    return Link(str(given["symbol"]), None if library is None else str(library))


def _read_traits(given: Mapping[str, object]) -> CallTraits:
    """What is not told holds as it does for every function."""
    known = asdict(ANY_FUNCTION)
    return CallTraits(**{name: bool(given.get(name, known[name])) for name in known})

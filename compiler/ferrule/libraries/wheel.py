"""Wheels: a library as a typed Python package that needs only apache-tvm-ffi.

The format is that of the Python Packaging User Guide, "Binary distribution format" (PEP 427), with
platform tags of PEP 600. The same files give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import Final

from ferrule.runtime.binaries import dynamic, elf
from ferrule.runtime.binaries.dependencies import needed_names
from ferrule.runtime.binaries.elf import FileType
from ferrule.specs._version import __version__

_DATE: Final = (1980, 1, 1, 0, 0, 0)
"""The first date that a zip file can have, on every file: bytes must not depend on the day."""

_OF_LINUX: Final = frozenset(
    ("libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libgcc_s.so.1")
)
"""Libraries that every Linux of a manylinux tag has (PEP 600, the policies of auditwheel)."""

_GLIBC: Final = re.compile(rb"\0GLIBC_2\.(\d+)(?=[.\0])")
_OLDEST_GLIBC: Final = 17
"""The oldest glibc that pip has tags for in use: manylinux_2_17."""

TVM_FFI: Final = "apache-tvm-ffi>=0.1.0"


def wheel_name(name: str, version: str, platform: str) -> str:
    """The file name of the wheel; any Python 3 can load it."""
    return f"{_normal(name)}-{version}-py3-none-{platform}.whl"


def _normal(name: str) -> str:
    """The name as file names have it: small letters, one `_` for each run of `-`, `_` and `.`."""
    return re.sub(r"[-_.]+", "_", name).lower()


def wheel_bytes(
    name: str,
    version: str,
    platform: str,
    files: Mapping[str, bytes],
    *,
    summary: str = "",
    requires: Sequence[str] = (),
    license: str = "",
    readme: str = "",
) -> bytes:
    """The wheel with these files, whose paths begin with the folder of the package."""
    info = f"{_normal(name)}-{version}.dist-info"
    whole = {
        **files,
        f"{info}/METADATA": _metadata(name, version, summary, requires, license, readme).encode(),
        f"{info}/WHEEL": _wheel(platform).encode(),
    }
    record = "".join(f"{path},{_digest(data)},{len(data)}\n" for path, data in whole.items())
    whole[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in whole.items():
            entry = zipfile.ZipInfo(path, _DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            # The permissions of a zip made on Unix are in the upper half.
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    return content.getvalue()


def platform_tag(library: bytes) -> str:
    """The tag of the systems that can load a shared library.

    `manylinux_2_<minor>_<machine>` with the newest glibc that the library asks for, or
    `linux_<machine>`, which an index does not take, for a library that needs others than those of
    glibc. ObjectFileError for what is no shared library.
    """
    header = elf.read_header(library, FileType.LIBRARY)
    machine = header.machine.name.lower()
    section = dynamic.read_dynamic(library, elf.read_segments(library, header))
    if set(needed_names(section)) - _OF_LINUX:
        return f"linux_{machine}"
    strings = library[section.table(dynamic.Tag.STRTAB, 1) or 0 :]
    size = section.values.get(dynamic.Tag.STRSZ, len(strings))
    minors = [int(minor) for minor in _GLIBC.findall(strings[:size])]
    return f"manylinux_2_{max([_OLDEST_GLIBC, *minors])}_{machine}"


def _metadata(
    name: str, version: str, summary: str, requires: Sequence[str], license: str, readme: str
) -> str:
    lines = [
        # The first version with expressions of SPDX; tools of older ones read the others.
        f"Metadata-Version: {'2.4' if license else '2.1'}",
        f"Name: {name}",
        f"Version: {version}",
        *([f"Summary: {summary}"] if summary else []),
        *([f"License-Expression: {license}"] if license else []),
        "Requires-Python: >=3.10",
        *(f"Requires-Dist: {each}" for each in (TVM_FFI, *requires)),
        "Classifier: Typing :: Typed",
        *(["Description-Content-Type: text/markdown; charset=UTF-8"] if readme else []),
    ]
    return "\n".join(lines) + "\n" + (f"\n{readme}" if readme else "")


def _wheel(platform: str) -> str:
    lines = [
        "Wheel-Version: 1.0",
        f"Generator: ferrule {__version__}",
        "Root-Is-Purelib: false",
        f"Tag: py3-none-{platform}",
    ]
    return "\n".join(lines) + "\n"


def _digest(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return f"sha256={digest.decode()}"

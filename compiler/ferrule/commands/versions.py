"""Versions of what ferrule stands on, as commands tell them."""

from __future__ import annotations

from functools import cache
from importlib import metadata


def installed(package: str) -> str | None:
    """The version of an installed package, as pip lists it; None if there is none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@cache
def tvm_ffi_text() -> str:
    """The version of libtvm_ffi, which files are compared with, and that of its package.

    They may differ: a fixed release of the package can have the library of a later version.
    """
    from ferrule.runtime.linking.sharedlibrary import tvm_ffi_version

    library, package = ".".join(map(str, tvm_ffi_version())), installed("apache-tvm-ffi")
    return f"libtvm_ffi {library}" + (f" (package apache-tvm-ffi {package})" if package else "")

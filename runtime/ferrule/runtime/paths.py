"""Paths of files that users give."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def checked_path(path: object, caller: str) -> Path:
    """The path; bytes are decoded like file names of the system.  TypeError for other types."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"{caller}: expected the path of a file, but got {path!r}")
    return Path(os.fsdecode(path))


def read_file(path: Path) -> bytes:
    """The bytes of a file. OSError for a device, pipe or socket: reading a pipe could block."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "it is no file: a device, a pipe or a socket", str(path))
    return path.read_bytes()

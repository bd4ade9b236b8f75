"""Object files from C, for tests of what embeds them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path


def c_compiler() -> str:
    """The one that `CC` names, else the first that is found."""
    return next(filter(shutil.which, (os.environ.get("CC", "cc"), "gcc", "clang")))


@cache
def c_object(source: str, *flags: str, suffix: str = ".c") -> bytes:
    """The object of some C, with -O1 and -fPIC unless flags say otherwise."""
    with tempfile.TemporaryDirectory() as folder:
        file, made = Path(folder) / f"source{suffix}", Path(folder) / "made.o"
        file.write_text(source)
        options = ["-O1", "-fPIC", *flags]
        subprocess.run([c_compiler(), *options, "-c", file, "-o", made], check=True)
        return made.read_bytes()

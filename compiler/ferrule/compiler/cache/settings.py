"""Settings of the cache: whether it is on, its folder, its size, its second level, its log.

They come from the environment, and are read at each use, except what `set_folder` and `set_limit`
chose for this process.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ferrule.compiler.errors import CompileError, Diagnostic

SWITCH: Final = "FERRULE_CACHE"
FOLDER: Final = "FERRULE_CACHE_DIR"
SIZE: Final = "FERRULE_CACHE_SIZE"
REMOTE: Final = "FERRULE_CACHE_REMOTE"
SECRET: Final = "FERRULE_CACHE_KEY"
LOG: Final = "FERRULE_LOG"

DEFAULT_LIMIT: Final = 2 << 30
_UNITS: Final = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_OFF: Final = ("0", "off", "no", "false")
_CHOSEN: Final[dict[str, Path | int]] = {}


def is_on() -> bool:
    """Whether compilations use the cache: unless `FERRULE_CACHE` is 0."""
    return os.environ.get(SWITCH, "1").lower() not in _OFF


def chosen_folder() -> Path | None:
    """The folder that a user named, in this process or in the environment; None for the default."""
    chosen = _CHOSEN.get(FOLDER)
    if isinstance(chosen, Path):
        return chosen
    named = os.environ.get(FOLDER)
    return Path(named).expanduser().absolute() if named else None


def default_folder() -> Path | None:
    """The folder where nobody named one; None without a home."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):
        return Path(base) / "ferrule"
    home = os.path.expanduser("~")
    return Path(home) / ".cache" / "ferrule" if os.path.isabs(home) else None


def set_folder(path: Path | None) -> None:
    """Choose the folder of this process; None for that of the environment."""
    if path is None:
        _CHOSEN.pop(FOLDER, None)
    else:
        _CHOSEN[FOLDER] = path


def limit() -> int:
    """The largest size of the folder, in bytes.  CompileError for a `FERRULE_CACHE_SIZE` that is
    none."""
    chosen = _CHOSEN.get(SIZE)
    if isinstance(chosen, int):
        return chosen
    text = os.environ.get(SIZE)
    return read_size(text) if text else DEFAULT_LIMIT


def set_limit(size: int | None) -> None:
    """Choose the largest size of this process; None for that of the environment."""
    if size is None:
        _CHOSEN.pop(SIZE, None)
    else:
        _CHOSEN[SIZE] = size


def read_size(text: str) -> int:
    """The number of bytes in a text such as "500M" or "2GiB"."""
    word = text.strip().upper().removesuffix("IB").removesuffix("B")
    number, unit = (word[:-1], word[-1]) if word[-1:] in tuple("KMGT") else (word, "")
    if not number.isdecimal():
        raise CompileError(
            Diagnostic(
                f"{SIZE} is {text!r}",
                expected="a number of bytes, with K, M, G or T",
                hint=f"write for example {SIZE}=500M",
            )
        )
    return int(number) << _UNITS[unit]


def remote() -> str | None:
    """The address of the second level, as fsspec takes it."""
    return os.environ.get(REMOTE) or None


def secret() -> bytes | None:
    """The key that signs what the second level has."""
    text = os.environ.get(SECRET)
    return text.encode("utf-8", "surrogateescape") if text else None


def is_logged() -> bool:
    """Whether `FERRULE_LOG` lists the cache."""
    return "cache" in os.environ.get(LOG, "").replace(",", " ").split()
